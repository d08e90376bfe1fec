import { createHash } from 'node:crypto';

// The call's id determines its trace: every process derives it, also after a restart, and nothing needs to be passed along. W3C Trace
// Context: 16 bytes of trace, 8 of span, in hex.

/** A call's id is a UUID with 122 random bits. */
export function traceIdOf(callId: string): string {
  const hex = callId.replaceAll('-', '').toLowerCase();
  return /^[0-9a-f]{32}$/.test(hex) ? hex : digest(callId).slice(0, 32);
}

/** @param name of the span within its call; '' for the call itself */
export function spanIdOf(callId: string, name = ''): string {
  return digest(`${callId}|${name}`).slice(0, 16);
}

/** Every process gives the same answer for a call. */
export function isSampled(callId: string, ratio: number): boolean {
  return parseInt(traceIdOf(callId).slice(-8), 16) / 2 ** 32 < ratio;
}

/** The header `traceparent` of requests made for a call; the receiver's spans become children of the call's own. */
export function traceparentOf(callId: string, ratio: number): string {
  return `00-${traceIdOf(callId)}-${spanIdOf(callId)}-${isSampled(callId, ratio) ? '01' : '00'}`;
}

function digest(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}

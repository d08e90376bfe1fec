import { newUuid } from '../../lib/ids.js';

// Ids as Twilio's formats and API spell them: two letters and the 32 hex digits of a UUID.

export function accountSidOf(orgId: string): string {
  return `AC${hexOf(orgId)}`;
}

export function callSidOf(callId: string): string {
  return `CA${hexOf(callId)}`;
}

/** A new id of a WebSocket connection of an agent: `MZ` and 32 random hex digits. */
export function newStreamSid(): string {
  return `MZ${hexOf(newUuid())}`;
}

/** A new id of a session of an application that exchanges text with a call: `VX` and 32 random hex digits. */
export function newSessionId(): string {
  return `VX${hexOf(newUuid())}`;
}

/** `undefined`: it is no id of a call. */
export function callIdOf(callSid: string): string | undefined {
  return uuidOf('CA', callSid);
}

/** `undefined`: it is no id of an account. */
export function orgIdOf(accountSid: string): string | undefined {
  return uuidOf('AC', accountSid);
}

function uuidOf(prefix: string, sid: string): string | undefined {
  const [, a = '', b = '', c = '', d = '', e = ''] =
    /^([\da-f]{8})([\da-f]{4})([\da-f]{4})([\da-f]{4})([\da-f]{12})$/i.exec(sid.slice(2)) ?? [];
  return a === '' || !sid.startsWith(prefix) ? undefined : [a, b, c, d, e].join('-').toLowerCase();
}

function hexOf(uuid: string): string {
  return uuid.replaceAll('-', '').toLowerCase();
}

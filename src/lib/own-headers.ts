/** Only the embedded SIP server sets these headers. It removes what a peer sends under their names. */
export const IDENTITY_HEADER = 'X-Trunkline-Tls-Identity';
export const TLS_HEADER = 'X-Trunkline-Tls';
/**
 * On an OPTIONS request of the SIP server itself. `overload`: the gateway answers 503 while it has more work than it can do, else 200.
 * `take <gateway>`: 200 when it has taken the calls of this gateway of a lost host, or had done so before.
 */
export const PING_HEADER = 'X-Trunkline-Ping';
/** Reason of a BYE that the SIP server shows a gateway and sends to nobody: another host has the call. */
export const TAKEN_OVER_REASON = 'SIP;cause=200;text="taken over by another host"';

const OWN = new RegExp(`^(?:${IDENTITY_HEADER}|${TLS_HEADER}):[^\\r\\n]*\\r?\\n`, 'gim');

/** A SIP message as the peer sent it, without the headers that the SIP server added for us. */
export function withoutOwnHeaders(text: string): string {
  if (!text.includes(TLS_HEADER)) return text;
  const end = text.indexOf('\r\n\r\n');
  // A text that was cut is all head.
  const head = end === -1 ? text : text.slice(0, end + 2);
  return head.replace(OWN, '') + text.slice(head.length);
}

/** Only the embedded SIP server sets these headers. It removes what a peer sends under their names. */
export const IDENTITY_HEADER = 'X-Trunkline-Tls-Identity';
export const TLS_HEADER = 'X-Trunkline-Tls';
/**
 * On an OPTIONS request of the SIP server itself. `overload`: the gateway answers 503 while it has more work than it can do,
 * with the figure and its limit in this header, else 200.
 * `take <gateway>`: 200 when it has taken the calls of this gateway of a lost host, or had done so before.
 * `refused <calls> <number>=<calls> …`: calls that the SIP server refused itself in one second, in all and by called number.
 */
export const PING_HEADER = 'X-Trunkline-Ping';
/**
 * On a request of the gateway's to a trunk with TLS settings of its own (`writeTrunkTls`). The SIP server takes it off; no other one
 * may get it, as it would send the key to the carrier.
 */
export const TRUNK_TLS_HEADER = 'X-Trunkline-Trunk-Tls';
/**
 * On each request of a call that we place, and each REGISTER: its peer is to be at a public address, whatever its name resolves to and its
 * Contact says. The SIP server takes it off.
 */
export const PUBLIC_ONLY_HEADER = 'X-Trunkline-Public-Only';
/** Reason of a BYE that the SIP server shows a gateway and sends to nobody: another host has the call. */
export const TAKEN_OVER_REASON = 'SIP;cause=200;text="taken over by another host"';

/** Whether the version that a SIP server states is of Trunkline's: only that one adds these headers, and takes them off. */
export function isOwnServer(version: string): boolean {
  return /-trunkline\b/.test(version);
}

const OWN = new RegExp(`^(?:${IDENTITY_HEADER}|${TLS_HEADER}):[^\\r\\n]*\\r?\\n`, 'gim');

/** A SIP message as the peer sent it, without the headers that the SIP server added for us. */
export function withoutOwnHeaders(text: string): string {
  if (!text.includes(TLS_HEADER)) return text;
  const end = text.indexOf('\r\n\r\n');
  // A text that was cut is all head.
  const head = end === -1 ? text : text.slice(0, end + 2);
  return head.replace(OWN, '') + text.slice(head.length);
}

/** How the connection to a trunk is checked, and what it shows. All PEM; left out: as the SIP server is set up. */
export interface TrunkTls {
  /** In place of the usual CAs. */
  readonly ca?: string;
  /** Names of which the trunk's certificate must have one; left out: the host that is called. */
  readonly names?: readonly string[];
  readonly certificate?: string;
  readonly key?: string;
}

/** One header value, without line breaks. */
export function writeTrunkTls(tls: TrunkTls): string {
  return Buffer.from(JSON.stringify(tls)).toString('base64');
}

/** `undefined`: the value is not of `writeTrunkTls`. */
export function readTrunkTls(value: string): TrunkTls | undefined {
  try {
    const read: unknown = JSON.parse(Buffer.from(value, 'base64').toString());
    if (typeof read !== 'object' || read === null) return undefined;
    const { ca, names, certificate, key } = read as Record<string, unknown>;
    const texts = { ca, certificate, key };
    if (Object.values(texts).some((text) => text !== undefined && typeof text !== 'string')) return undefined;
    if (names !== undefined && !(Array.isArray(names) && names.every((name) => typeof name === 'string'))) return undefined;
    return read;
  } catch {
    return undefined;
  }
}

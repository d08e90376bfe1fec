import { formatHostPort } from '../../lib/address.js';

/** The parts of our own URIs. */
export interface OwnAddress {
  /** The name in the certificate, or an address. */
  readonly host: string;
  readonly port: number;
  /** `tls`, `tcp`, `udp`. */
  readonly transport: string;
}

/** The headers of an INVITE that select sip or sips. */
export interface SecurityHead {
  readonly requestUri: string;
  readonly topRecordRoute: string | undefined;
  readonly contactUri: string | undefined;
}

/** The host of a SIP URI, an IPv6 address in brackets; `undefined`: none. */
export function hostOf(uri: string): string | undefined {
  return /^sips?:(?:[^@]*@)?(\[[\da-f:.]+\]|[^\s:;?<>@]+)/i.exec(uri)?.[1];
}

/**
 * Our Contact. `sips:` only where RFC 3261 §12.1.1 requires it (Request-URI, top Record-Route, or without one the Contact is sips):
 * many peers cannot dial it.
 */
export function ownContact(own: OwnAddress, head: SecurityHead): string {
  const decisive = head.topRecordRoute ?? head.contactUri ?? '';
  const isSips = own.transport === 'tls' && (/^sips:/i.test(head.requestUri) || /^[^<]*<?\s*sips:/i.test(decisive));
  return `<${isSips ? 'sips' : 'sip'}:${formatHostPort(own.host, own.port)};transport=${own.transport}>`;
}

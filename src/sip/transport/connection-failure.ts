import type { PeerCertificate } from 'node:tls';
import { formatHostPort } from '../../lib/address.js';
import type { Endpoint } from './flow.js';

/** Servers whose failures are named; the others are counted. */
const MAX_NAMED = 3;

const BY_CODE: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'refused the connection',
  ECONNRESET: 'reset the connection',
  ETIMEDOUT: 'did not answer',
  EHOSTUNREACH: 'cannot be reached from this host',
  ENETUNREACH: 'is in a network that cannot be reached from this host',
};

/**
 * Why a connection failed, for a person.
 * @param shown the certificate that the peer showed and that did not pass; `null`: the handshake did not get so far, or is done
 */
export function connectionFailure(error: Error, shown: PeerCertificate | null): string {
  const { code = '', reason } = error as NodeJS.ErrnoException & { readonly reason?: string };
  if (shown !== null) return `showed a certificate that is not accepted: ${error.message} (${code}); ${described(shown)}`;
  const alert = /SSL alert number (\d+)/.exec(error.message)?.[1];
  if (alert !== undefined) return `ended TLS with alert ${alert} (${reason ?? code})${CLIENT_CERTIFICATE_ALERTS[alert] ?? ''}`;
  const known = BY_CODE[code];
  return known === undefined ? `failed: ${reason ?? error.message}` : `${known} (${code})`;
}

/** RFC 8446 §6.2. */
const CLIENT_CERTIFICATE_ALERTS: Readonly<Record<string, string>> = {
  42: ': it does not accept our certificate',
  48: ': it does not know the CA of our certificate',
  116: ': it wants a certificate of ours',
};

/** What failed at each server, in the order that they were tried. */
export function failuresOf(tried: readonly { readonly endpoint: Endpoint; readonly failure: string }[]): string {
  const named = tried.slice(0, MAX_NAMED).map(({ endpoint, failure }) => `${formatHostPort(endpoint.address, endpoint.port)} ${failure}`);
  const more = tried.length - named.length;
  return [...named, ...(more > 0 ? [`so did ${String(more)} more`] : [])].join('; ');
}

function described({ subject, issuer, valid_to: until, subjectaltname: names }: PeerCertificate): string {
  const at = Date.parse(until);
  const expiry = Number.isNaN(at) ? '' : `, valid until ${new Date(at).toISOString()}`;
  return `its subject is ${nameOf(subject)}${names === undefined ? '' : ` (${names})`}, its issuer ${nameOf(issuer)}${expiry}`;
}

/** @param name as Node.js gives it, where nothing says that it is there */
function nameOf(name: Partial<PeerCertificate['subject']> | undefined): string {
  const { CN: common, O: organization } = name ?? {};
  return String(common ?? organization ?? 'without a name');
}

import { isInBlocks } from '../../lib/address.js';

/** The parts of `tls.PeerCertificate` with its names. */
export interface CertificateNames {
  readonly subjectaltname?: string | undefined;
  readonly subject: { readonly CN?: string | readonly string[] | undefined };
}

/**
 * The names of a verified certificate in one line: `DNS:sip.example.com, URI:sip:example.com`; without such SANs the common name, `CN:…`
 * (RFC 5922 §7.1). '' if none. Skips names with characters unsafe in a header.
 */
export function identityOf(certificate: CertificateNames): string {
  const names = sansOf(certificate);
  if (names.length > 0) return names.join(', ');
  const { CN: commonName } = certificate.subject;
  const text = typeof commonName === 'string' ? commonName : (commonName?.[0] ?? '');
  return /^[A-Za-z0-9 *@._:-]{1,253}$/.test(text) ? `CN:${text}` : '';
}

/** Node.js quotes, as JSON, a SAN with a comma or another ambiguous character. */
function sansOf({ subjectaltname: text = '' }: CertificateNames): string[] {
  const entries = text.match(/(?:"(?:[^"\\]|\\.)*"|[^,"])+/g) ?? [];
  return entries.map((entry) => entry.trim()).filter((entry) => /^(?:DNS:[A-Za-z0-9*._-]{1,253}|URI:[!#-+\--~]{1,1000})$/.test(entry));
}

/** RFC 5922 §7.1: a certificate for the SIP domain, whatever the host's name, has it as a URI. */
export function namesSipDomain(certificate: CertificateNames, domain: string): boolean {
  return sansOf(certificate).some(
    (entry) => /^URI:sips?:/i.test(entry) && entry.replace(/^URI:sips?:/i, '').toLowerCase() === domain.toLowerCase(),
  );
}

/** Of names, and of those that hold for an address or CIDR block alone (`203.0.113.0/28=sip.example.com`). */
export function namesForAddress(entries: readonly string[], address: string): readonly string[] {
  return entries.flatMap((entry) => {
    const [block = '', name] = entry.split('=', 2);
    if (name === undefined) return [entry];
    return isInBlocks([block], address) ? [name] : [];
  });
}

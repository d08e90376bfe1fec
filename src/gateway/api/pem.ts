import { createPrivateKey, X509Certificate } from 'node:crypto';

const CERTIFICATE = /-----BEGIN CERTIFICATE-----[\s\S]*?-----END CERTIFICATE-----/g;

/** One or more certificates, and nothing else. */
export function areCertificates(text: string): boolean {
  const all = text.match(CERTIFICATE) ?? [];
  if (all.length === 0 || text.replace(CERTIFICATE, '').trim() !== '') return false;
  return all.every((one) => certificateOf(one) !== null);
}

/** Whether the key belongs to the first certificate. */
export function isKeyOf({ certificate, key }: { readonly certificate: string; readonly key: string }): boolean {
  const own = certificateOf(certificate);
  if (own === null) return false;
  try {
    return own.checkPrivateKey(createPrivateKey(key));
  } catch {
    return false;
  }
}

/** The first one; `null`: it cannot be read. */
function certificateOf(text: string): X509Certificate | null {
  try {
    return new X509Certificate(text);
  } catch {
    return null;
  }
}

import { X509Certificate, constants } from 'node:crypto';
import { DEFAULT_CIPHERS, createSecureContext, type SecureContext, type SecureContextOptions } from 'node:tls';

export interface TlsCertificate {
  /** PEM, the whole chain. */
  readonly cert: string;
  readonly key: string;
}

/** Certificates and requirements of the TLS listener. */
export interface TlsMaterial {
  /** The first is the default for clients without a matching server name. */
  readonly certificates: readonly [TlsCertificate, ...TlsCertificate[]];
  readonly minVersion: 'TLSv1.2' | 'TLSv1.3';
  /** OpenSSL names; `null`: `CIPHERS`. */
  readonly ciphers: string | null;
  /** Whether to request client certificates, and the CAs to verify them. */
  readonly clients: { readonly mode: 'request' | 'require'; readonly ca: string } | null;
  /** 48 bytes, so that sessions are resumed after a restart; left out: random ones. */
  readonly ticketKeys?: Buffer;
}

/**
 * Node.js's list without ciphers with 64-bit tags and without the unused ARIA. AES128-SHA stays, as the last: RFC 3261 §26.2.1 requires it.
 */
const CIPHERS = `${DEFAULT_CIPHERS}:!AESCCM8:!ARIAGCM`;

/** TLS contexts by the names in their certificates. Throws OpenSSL's error for unusable material. */
export class TlsServerContexts {
  /** Options of the first certificate, for `tls.createServer` and `setSecureContext`. */
  readonly options: SecureContextOptions;
  readonly #byName = new Map<string, SecureContext>();

  constructor(material: TlsMaterial) {
    const [first, ...others] = material.certificates.map((certificate) => contextOptions(material, certificate));
    // Builds the first too, so that faults surface here and not in a handshake.
    const contexts = [first, ...others].map((options) => createSecureContext(options));
    this.options = first ?? {};
    material.certificates.forEach(({ cert }, index) => {
      const context = contexts[index];
      for (const name of namesOf(cert)) if (context !== undefined && !this.#byName.has(name)) this.#byName.set(name, context);
    });
  }

  /** RFC 6066 §3. An exact name precedes a wildcard, which covers one label (RFC 6125 §6.4.3). `undefined`: the first certificate. */
  choose(serverName: string): SecureContext | undefined {
    const name = serverName.toLowerCase().replace(/\.$/, '');
    return this.#byName.get(name) ?? this.#byName.get(name.replace(/^[^.]+/, '*'));
  }
}

function contextOptions(material: TlsMaterial, { cert, key }: TlsCertificate): SecureContextOptions {
  return {
    cert,
    key,
    minVersion: material.minVersion,
    maxVersion: 'TLSv1.3',
    honorCipherOrder: true,
    // A handshake costs us more than the peer: one a connection, and connections are limited (CVE-2011-1473).
    secureOptions: constants.SSL_OP_NO_RENEGOTIATION,
    ciphers: material.ciphers ?? CIPHERS,
    ...(material.clients === null ? {} : { ca: material.clients.ca }),
    ...(material.ticketKeys === undefined ? {} : { ticketKeys: material.ticketKeys, sessionIdContext: 'sip' }),
  };
}

/** The DNS SANs of a certificate, in lower case. */
function namesOf(cert: string): string[] {
  const names = new X509Certificate(cert).subjectAltName ?? '';
  return [...names.matchAll(/(?:^|, )DNS:([A-Za-z0-9*._-]+)(?=,|$)/g)].map(([, name = '']) => name.toLowerCase());
}

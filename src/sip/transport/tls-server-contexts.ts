import { X509Certificate, constants } from 'node:crypto';
import { DEFAULT_CIPHERS, createSecureContext, type SecureContext, type SecureContextOptions } from 'node:tls';

export interface TlsCertificate {
  /** PEM, the whole chain. */
  readonly cert: string;
  readonly key: string;
}

/** What the TLS listener shows and demands. */
export interface TlsMaterial {
  /** The first one is shown to whoever names no host, or one that none of them names. */
  readonly certificates: readonly [TlsCertificate, ...TlsCertificate[]];
  readonly minVersion: 'TLSv1.2' | 'TLSv1.3';
  /** OpenSSL's names; `null`: `CIPHERS`. */
  readonly ciphers: string | null;
  /** Whether peers are asked for a certificate, and the CAs that it is checked against. */
  readonly clients: { readonly mode: 'request' | 'require'; readonly ca: string } | null;
}

/**
 * Node.js's list without ciphers of tags of 64 bits, and without ARIA, which nobody asks for. AES128-SHA stays, as the last one: RFC 3261
 * §26.2.1 wants it of every peer.
 */
const CIPHERS = `${DEFAULT_CIPHERS}:!AESCCM8:!ARIAGCM`;

/** The contexts of a listener's certificates, by the names in them. Throws what OpenSSL says of material that it cannot use. */
export class TlsServerContexts {
  /** The first certificate's options, for `tls.createServer` and `setSecureContext`. */
  readonly options: SecureContextOptions;
  readonly #byName = new Map<string, SecureContext>();

  constructor(material: TlsMaterial) {
    const [first, ...others] = material.certificates.map((certificate) => contextOptions(material, certificate));
    // The first is made too, so that whatever is wrong with it is found here and not in a handshake.
    const contexts = [first, ...others].map((options) => createSecureContext(options));
    this.options = first ?? {};
    material.certificates.forEach(({ cert }, index) => {
      const context = contexts[index];
      for (const name of namesOf(cert)) if (context !== undefined && !this.#byName.has(name)) this.#byName.set(name, context);
    });
  }

  /** RFC 6066 §3. An exact name goes before a wildcard, which stands for one label (RFC 6125 §6.4.3). `undefined`: the first certificate. */
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
    // A handshake costs us more than the peer: it has one a connection, where connections are limited (CVE-2011-1473).
    secureOptions: constants.SSL_OP_NO_RENEGOTIATION,
    ciphers: material.ciphers ?? CIPHERS,
    ...(material.clients === null ? {} : { ca: material.clients.ca }),
  };
}

/** The DNS names of a certificate's SANs, in lower case. */
function namesOf(cert: string): string[] {
  const names = new X509Certificate(cert).subjectAltName ?? '';
  return [...names.matchAll(/(?:^|, )DNS:([A-Za-z0-9*._-]+)(?=,|$)/g)].map(([, name = '']) => name.toLowerCase());
}

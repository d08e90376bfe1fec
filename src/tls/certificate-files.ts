import { createPrivateKey, X509Certificate } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { ConfigError } from '../config/layers.js';
import { errorText } from '../lib/result.js';
import type { TlsCertificate } from '../sip/transport/tls-server-contexts.js';

/** A file and the setting that names it. */
export interface SettingFile {
  readonly setting: string;
  readonly file: string;
}

/** A certificate's fields in a log line. */
export interface CertificateFacts {
  readonly file: string;
  readonly subject: string;
  readonly names: string;
  readonly expires: string;
  readonly serial: string;
}

/** Reads a certificate with its chain and its key. Throws a `ConfigError` that names the file and its fault. */
export async function readCertificatePair(certFile: SettingFile, keyFile: SettingFile): Promise<TlsCertificate> {
  // One after the other: of two faults the same one is always named.
  const cert = await readCertificates(certFile);
  const key = await readSettingFile(keyFile);
  let isKeyOf: boolean;
  try {
    isKeyOf = new X509Certificate(cert).checkPrivateKey(createPrivateKey(key));
  } catch (error) {
    throw problem(keyFile, `has no usable private key (PEM, without a passphrase): ${errorText(error)}`);
  }
  if (!isKeyOf) throw problem(keyFile, `is not the key of ${certFile.setting} = ${JSON.stringify(certFile.file)}`);
  return { cert, key };
}

/** Reads a file of certificates, each of which must be complete. */
export async function readCertificates(from: SettingFile): Promise<string> {
  const text = await readSettingFile(from);
  const blocks = text.match(/-----BEGIN (?:TRUSTED )?CERTIFICATE-----[\s\S]*?(?:-----END (?:TRUSTED )?CERTIFICATE-----|$)/g) ?? [];
  if (blocks.length === 0) throw problem(from, 'has no certificate (PEM)');
  blocks.forEach((block, index) => {
    try {
      new X509Certificate(block);
    } catch (error) {
      throw problem(from, `certificate ${index + 1} of ${blocks.length} cannot be read: ${errorText(error)}`);
    }
  });
  return text;
}

export function certificateFacts(file: string, { cert }: TlsCertificate): CertificateFacts {
  const { subject, subjectAltName, validTo, serialNumber } = new X509Certificate(cert);
  return {
    file,
    subject: subject.replaceAll('\n', ', '),
    names: subjectAltName ?? '',
    expires: new Date(validTo).toISOString(),
    serial: serialNumber,
  };
}

async function readSettingFile(from: SettingFile): Promise<string> {
  try {
    return await readFile(from.file, 'utf8');
  } catch (error) {
    throw problem(from, `cannot be read: ${errorText(error)}`);
  }
}

function problem({ setting, file }: SettingFile, what: string): ConfigError {
  return new ConfigError(`${setting} = ${JSON.stringify(file)} ${what}`);
}

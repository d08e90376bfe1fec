import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { ConfigError } from '../config/layers.js';
import type { Config } from '../config/schema.js';
import type { TlsMaterial } from '../sip/transport/stream-listener.js';
import { ensureCertificates } from './certificates.js';
import { ensureDataDir } from './data-dir.js';

export interface ServerTls {
  readonly material: TlsMaterial;
  /** Of the local CA; `null` with a certificate of the operator's. */
  readonly caFile: string | null;
}

/** The name that Contact and the certificate carry. */
export function sipHost(config: Config): string {
  return config.sip.host ?? config.public_address ?? config.bind_address;
}

/** The operator's certificate, or one of the local CA that names every host we may be called by. */
export async function serverTls(config: Config): Promise<ServerTls> {
  const { cert_file: certFile, key_file: keyFile, tls_min_version: minVersion } = config.sip;
  if (certFile !== null || keyFile !== null) {
    if (certFile === null || keyFile === null) throw new ConfigError('sip.cert_file and sip.key_file go together: set both or none');
    const [cert, key] = await Promise.all([readSetting('sip.cert_file', certFile), readSetting('sip.key_file', keyFile)]);
    return { material: { cert, key, minVersion }, caFile: null };
  }
  const hosts = [...new Set(['localhost', '127.0.0.1', sipHost(config), config.public_address, config.bind_address])];
  const usable = hosts.filter((host) => host !== null);
  const files = await ensureCertificates(join(ensureDataDir(config), 'tls'), usable, Date.now());
  const [cert, key] = await Promise.all([readFile(files.certFile, 'utf8'), readFile(files.keyFile, 'utf8')]);
  return { material: { cert, key, minVersion }, caFile: files.caFile };
}

async function readSetting(name: string, file: string): Promise<string> {
  try {
    return await readFile(file, 'utf8');
  } catch (error) {
    throw new ConfigError(`${name} = ${JSON.stringify(file)} cannot be read: ${(error as Error).message}`);
  }
}

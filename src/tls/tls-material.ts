import { randomBytes } from 'node:crypto';
import { readFileSync, statSync } from 'node:fs';
import { createSecureContext } from 'node:tls';
import { join } from 'node:path';
import { ConfigError } from '../config/layers.js';
import type { Config } from '../config/schema.js';
import { errorText } from '../lib/result.js';
import type { TlsCertificate, TlsMaterial } from '../sip/transport/tls-server-contexts.js';
import { certificateFacts, readCertificatePair, readCertificates, type CertificateFacts } from './certificate-files.js';
import { ensureCertificates } from './certificates.js';
import { ensureDataDir, writePrivateFile } from '../config/data-dir.js';

export interface ServerTls {
  readonly material: TlsMaterial;
  /** Certificate of the local CA; `null` with the operator's own certificate. */
  readonly caFile: string | null;
  /** Every file read; a reload watches them. */
  readonly files: readonly string[];
  readonly facts: readonly CertificateFacts[];
}

/** The host name in Contact and certificate. */
export function sipHost(config: Config): string {
  return config.sip.host ?? config.public_address ?? config.bind_address;
}

interface Pair {
  readonly setting: string;
  readonly certFile: string;
  readonly keyFile: string;
}

/**
 * The operator's certificate, or one of the local CA that names every host of ours; then those of sip.certificates.
 * Throws a `ConfigError` that names the file and its fault.
 */
export async function serverTls(config: Config): Promise<ServerTls> {
  const { sip } = config;
  const { main, caFile } = await mainPair(config);
  const more = sip.certificates.map((pair, index) => ({
    setting: `sip.certificates.${String(index)}.`,
    certFile: pair.cert_file,
    keyFile: pair.key_file,
  }));
  const pairs = [main, ...more];
  const [first, ...others] = await Promise.all([readPair(main), ...more.map(readPair)]);
  const certificates = [first, ...others] as const;
  const ca = sip.client_ca_file === null ? null : await readCertificates({ setting: 'sip.client_ca_file', file: sip.client_ca_file });
  const mode = sip.client_certificates;
  const material: TlsMaterial = {
    certificates,
    minVersion: sip.tls_min_version,
    ciphers: sip.tls_ciphers,
    clients: mode === 'off' || ca === null ? null : { mode, ca },
    ticketKeys: ticketKeys(join(ensureDataDir(config), 'ticket-keys')),
  };
  checkCiphers(material);
  return {
    material,
    caFile,
    files: [...pairs.flatMap(({ certFile, keyFile }) => [certFile, keyFile]), ...(sip.client_ca_file === null ? [] : [sip.client_ca_file])],
    facts: certificates.map((certificate, index) => certificateFacts(pairs[index]?.certFile ?? '', certificate)),
  };
}

const TICKET_KEY_BYTES = 48;
/** Who has them reads recorded TLS 1.2 sessions that were resumed. */
const TICKET_KEYS_MS = 86_400_000;

/**
 * Keys of session tickets, which returning carriers use after a restart too. Made anew when they are a day old: the running process reads
 * them once a minute, with the certificates.
 */
function ticketKeys(file: string): Buffer {
  try {
    const keys = Buffer.from(readFileSync(file, 'utf8'), 'base64');
    if (keys.length === TICKET_KEY_BYTES && Date.now() - statSync(file).mtimeMs < TICKET_KEYS_MS) return keys;
  } catch {
    // First start.
  }
  const keys = randomBytes(TICKET_KEY_BYTES);
  writePrivateFile(file, keys.toString('base64'));
  return keys;
}

async function mainPair(config: Config): Promise<{ main: Pair; caFile: string | null }> {
  const { cert_file: certFile, key_file: keyFile } = config.sip;
  if (certFile !== null || keyFile !== null) {
    if (certFile === null || keyFile === null) throw new ConfigError('sip.cert_file and sip.key_file go together: set both or none');
    return { main: { setting: 'sip.', certFile, keyFile }, caFile: null };
  }
  const hosts = [...new Set(['localhost', '127.0.0.1', sipHost(config), config.public_address, config.bind_address])];
  const usable = hosts.filter((host) => host !== null);
  const files = await ensureCertificates(join(ensureDataDir(config), 'tls'), usable, Date.now());
  return { main: { setting: 'data_dir: ', ...files }, caFile: files.caFile };
}

/** The contents of `ca_file`; `null` if it is not set. Throws a `ConfigError` that states its fault. */
export async function calledCertificates({ ca_file: file }: Pick<Config, 'ca_file'>): Promise<string | null> {
  return file === null ? null : readCertificates({ setting: 'ca_file', file });
}

function readPair({ setting, certFile, keyFile }: Pair): Promise<TlsCertificate> {
  return readCertificatePair({ setting: `${setting}cert_file`, file: certFile }, { setting: `${setting}key_file`, file: keyFile });
}

function checkCiphers({ ciphers, minVersion }: TlsMaterial): void {
  if (ciphers === null) return;
  try {
    createSecureContext({ ciphers, minVersion });
  } catch (error) {
    throw new ConfigError(`sip.tls_ciphers = ${JSON.stringify(ciphers)} with sip.tls_min_version = ${minVersion}: ${errorText(error)}`);
  }
}

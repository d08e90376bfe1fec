import { execFile } from 'node:child_process';
import { X509Certificate } from 'node:crypto';
import { chmod, mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { isIP } from 'node:net';
import { join } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);

export interface CertificateFiles {
  readonly caFile: string;
  /** The whole chain: the server's certificate and the CA's. */
  readonly certFile: string;
  readonly keyFile: string;
}

const CA_DAYS = 3_650;
const SERVER_DAYS = 397;
const RENEW_BEFORE_MS = 30 * 24 * 3_600_000;

/**
 * Creates, if missing, a local CA and a server certificate signed by it, in `directory` (mode 0700, keys 0600).
 * Replaces a certificate that lacks a host or expires soon by another from the same CA, so that peers that trust the CA need no change.
 */
export async function ensureCertificates(directory: string, hosts: readonly string[], nowMs: number): Promise<CertificateFiles> {
  await mkdir(directory, { recursive: true, mode: 0o700 });
  const files: CertificateFiles = {
    caFile: join(directory, 'ca.pem'),
    certFile: join(directory, 'server.pem'),
    keyFile: join(directory, 'server-key.pem'),
  };
  const caKeyFile = join(directory, 'ca-key.pem');
  const ca = await readCertificate(files.caFile);
  if (ca === undefined || !(await exists(caKeyFile))) {
    await makeCa(files.caFile, caKeyFile);
    await rm(files.certFile, { force: true });
  }
  const current = await readCertificate(files.certFile);
  if (
    current === undefined ||
    !covers(current, hosts) ||
    Date.parse(current.validTo) - nowMs < RENEW_BEFORE_MS ||
    !(await exists(files.keyFile))
  ) {
    await makeServer(files, caKeyFile, hosts, directory);
  }
  return files;
}

function covers(certificate: X509Certificate, hosts: readonly string[]): boolean {
  return hosts.every((host) => (isIP(host) === 0 ? certificate.checkHost(host) : certificate.checkIP(host)) !== undefined);
}

async function readCertificate(file: string): Promise<X509Certificate | undefined> {
  try {
    return new X509Certificate(await readFile(file));
  } catch {
    return undefined;
  }
}

async function exists(file: string): Promise<boolean> {
  return readFile(file).then(
    () => true,
    () => false,
  );
}

async function makeCa(caFile: string, caKeyFile: string): Promise<void> {
  await openssl(['ecparam', '-name', 'prime256v1', '-genkey', '-noout', '-out', caKeyFile]);
  await chmod(caKeyFile, 0o600);
  await openssl([
    ...['req', '-x509', '-new', '-sha256', '-key', caKeyFile, '-days', String(CA_DAYS), '-out', caFile],
    ...[
      '-subj',
      '/CN=Trunkline local CA',
      '-addext',
      'basicConstraints=critical,CA:TRUE',
      '-addext',
      'keyUsage=critical,keyCertSign,cRLSign',
    ],
  ]);
}

async function makeServer(files: CertificateFiles, caKeyFile: string, hosts: readonly string[], directory: string): Promise<void> {
  const request = join(directory, 'server.csr');
  const extensions = join(directory, 'server.ext');
  const names = hosts.map((host) => `${isIP(host) === 0 ? 'DNS' : 'IP'}:${host}`).join(',');
  // RSA for the server: carriers' old stacks can verify it.
  const newKey = `${files.keyFile}.new`;
  await openssl(['genpkey', '-algorithm', 'RSA', '-pkeyopt', 'rsa_keygen_bits:2048', '-out', newKey]);
  await chmod(newKey, 0o600);
  await openssl(['req', '-new', '-key', newKey, '-subj', '/CN=Trunkline', '-out', request]);
  await writeFile(
    extensions,
    `subjectAltName=${names}\nbasicConstraints=CA:FALSE\nkeyUsage=digitalSignature,keyEncipherment\nextendedKeyUsage=serverAuth,clientAuth\n`,
  );
  const signed = join(directory, 'server.crt');
  await openssl([
    ...['x509', '-req', '-sha256', '-in', request, '-CA', files.caFile, '-CAkey', caKeyFile, '-CAcreateserial'],
    ...['-days', String(SERVER_DAYS), '-extfile', extensions, '-out', signed],
  ]);
  // With the CA, for peers that require the whole chain.
  await writeFile(`${files.certFile}.new`, `${await readFile(signed, 'utf8')}${await readFile(files.caFile, 'utf8')}`);
  await rename(newKey, files.keyFile);
  await rename(`${files.certFile}.new`, files.certFile);
  await Promise.all([request, extensions, signed].map((file) => rm(file, { force: true })));
}

async function openssl(args: readonly string[]): Promise<void> {
  try {
    await run('openssl', args, { timeout: 30_000 });
  } catch (error) {
    const { stderr, message } = error as { stderr?: string; message: string };
    throw new Error(`openssl ${args[0] ?? ''} failed: ${stderr ?? message}`, { cause: error });
  }
}

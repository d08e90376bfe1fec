import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);

/** A certificate with its chain, as files. */
export interface CertificatePair {
  readonly certFile: string;
  readonly keyFile: string;
  readonly serial: string;
}

/** A CA of a test's own, in a directory of its own. */
export class TestCa {
  #serial = 0x1000;

  private constructor(
    readonly directory: string,
    readonly caFile: string,
    readonly ca: string,
  ) {}

  static async create(): Promise<TestCa> {
    const directory = await mkdtemp(join(tmpdir(), 'trunkline-ca-'));
    const caFile = join(directory, 'ca.pem');
    await makeKey(join(directory, 'ca-key.pem'));
    const subject = ['-subj', '/CN=Test CA', '-addext', 'basicConstraints=critical,CA:TRUE'];
    const { stdout: ca } = await run('openssl', ['req', '-x509', '-new', '-key', join(directory, 'ca-key.pem'), '-days', '2', ...subject]);
    await writeFile(caFile, ca);
    return new TestCa(directory, caFile, ca);
  }

  /** Signs a certificate for the SANs (`DNS:a.test,URI:sip:a.test`), its chain with it; without SANs it has its common name only. */
  async issue(name: string, sans: string, until: 'tomorrow' | 'yesterday' = 'tomorrow'): Promise<CertificatePair> {
    this.#serial += 1;
    const serial = this.#serial.toString(16).toUpperCase();
    const path = (suffix: string): string => join(this.directory, `${name}-${serial}${suffix}`);
    await makeKey(path('.key'));
    await run('openssl', ['req', '-new', '-key', path('.key'), '-subj', `/CN=${name}`, '-out', path('.csr')]);
    await writeFile(path('.ext'), sans === '' ? 'basicConstraints=CA:FALSE\n' : `subjectAltName=${sans}\nbasicConstraints=CA:FALSE\n`);
    const { stdout } = await run('openssl', [
      ...['x509', '-req', '-in', path('.csr'), '-CA', this.caFile, '-CAkey', join(this.directory, 'ca-key.pem')],
      ...['-set_serial', `0x${serial}`, '-days', until === 'tomorrow' ? '1' : '-1', '-extfile', path('.ext')],
    ]);
    await writeFile(path('.pem'), `${stdout}${this.ca}`);
    return { certFile: path('.pem'), keyFile: path('.key'), serial };
  }

  remove(): Promise<void> {
    return rm(this.directory, { recursive: true, force: true });
  }
}

async function makeKey(file: string): Promise<void> {
  await run('openssl', ['ecparam', '-name', 'prime256v1', '-genkey', '-noout', '-out', file]);
}

/** What `openssl s_client` says of a handshake; its standard input is at its end, so it closes after it. */
export async function sClient(port: number, ...args: string[]): Promise<string> {
  const running = run('openssl', ['s_client', '-connect', `127.0.0.1:${String(port)}`, '-showcerts', ...args]);
  running.child.stdin?.end();
  const { stdout, stderr } = await running.catch((failed: unknown) => failed as { stdout: string; stderr: string });
  // OpenSSL 3.2 and newer write names without spaces.
  return `${stdout}\n${stderr}`.replace(/\bCN=/g, 'CN = ');
}

/** The serial number of the certificate that the server shows to whoever asks for this name. */
export async function shownSerial(port: number, serverName: string): Promise<string> {
  const shown = await sClient(port, '-servername', serverName);
  const pem = /-----BEGIN CERTIFICATE-----[\s\S]*?-----END CERTIFICATE-----/.exec(shown)?.[0] ?? shown;
  const reading = run('openssl', ['x509', '-noout', '-serial']);
  reading.child.stdin?.end(pem);
  return (await reading).stdout.trim().replace('serial=', '');
}

import { execFile } from 'node:child_process';
import { createSocket } from 'node:dgram';
import { readFile } from 'node:fs/promises';
import { isIP } from 'node:net';
import { join } from 'node:path';
import { connect } from 'node:tls';
import { promisify } from 'node:util';
import { formatHostPort } from '../../lib/address.js';
import { sippVersion, speaksTls, type SippWay } from '../sipp-command.js';
import { Tunnel } from './tunnel.js';

const run = promisify(execFile);

export interface SippBuild {
  readonly version: string;
  readonly speaksTls: boolean;
}

/** What SIPp is installed. It exits with an error after it has told its version. */
export async function installedSipp(): Promise<SippBuild> {
  const text = await run('sipp', ['-v'], { timeout: 10_000 }).then(
    ({ stdout, stderr }) => stdout + stderr,
    (error: unknown) => {
      const { code, stdout, stderr } = error as { code?: unknown; stdout?: string; stderr?: string };
      if (code === 'ENOENT') throw new Error(`SIPp is not installed (Debian: sip-tester)`);
      return `${stdout ?? ''}${stderr ?? ''}`;
    },
  );
  const version = sippVersion(text);
  if (version === null) throw new Error('the program sipp does not print its version');
  return { version, speaksTls: speaksTls(text) };
}

/** The address of this machine from which the target is reached. Sends nothing. */
export function localAddressTo(host: string, port: number): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = createSocket(host.includes(':') ? 'udp6' : 'udp4');
    socket.once('error', reject);
    socket.connect(port, host, () => {
      const { address } = socket.address();
      socket.close(() => resolve(address));
    });
  });
}

const REACHED_WITHIN_MS = 5_000;

/** Rejects when the gateway cannot be reached, or its certificate is not one of the CA: SIPp would say so in riddles. */
export async function reachTarget(target: { readonly host: string; readonly port: number }, caFile: string): Promise<void> {
  const { host, port } = target;
  const ca = await readFile(caFile);
  const name = isIP(host) === 0 ? { servername: host } : {};
  await new Promise<void>((resolve, reject) => {
    const socket = connect({ host, port, ca, ...name, minVersion: 'TLSv1.2', timeout: REACHED_WITHIN_MS });
    const fail = (why: string): void => {
      socket.destroy();
      reject(new Error(`${formatHostPort(host, port)} cannot be reached over TLS: ${why}`));
    };
    socket.once('secureConnect', () => {
      socket.destroy();
      resolve();
    });
    socket.once('error', (error: Error) => fail(error.message));
    socket.once('timeout', () => fail('no answer'));
  });
}

export interface WayOptions {
  readonly build: SippBuild;
  readonly target: { readonly host: string; readonly port: number };
  readonly caFile: string;
  readonly directory: string;
}

/** Ways from SIPp to the gateway: tunnels, as many as were asked for at once, or one for all of a SIPp that speaks TLS. */
export class Ways {
  readonly #tunnels: Tunnel[] = [];
  #own: SippWay | undefined;

  constructor(private readonly options: WayOptions) {}

  async get(count: number): Promise<readonly SippWay[]> {
    if (this.options.build.speaksTls) {
      this.#own ??= await this.#ownTls();
      return Array.from({ length: count }, () => this.#own as SippWay);
    }
    while (this.#tunnels.length < count) this.#tunnels.push(await Tunnel.open(this.options));
    return this.#tunnels.slice(0, count).map(({ port }) => ({ kind: 'tunnel', port }));
  }

  async close(): Promise<void> {
    await Promise.all(this.#tunnels.splice(0).map((tunnel) => tunnel.close()));
  }

  /** SIPp wants a certificate of its own, which a gateway that asks for none does not see. */
  async #ownTls(): Promise<SippWay> {
    const [certificate, key] = [join(this.options.directory, 'sipp.pem'), join(this.options.directory, 'sipp-key.pem')];
    const subject = [
      '-x509',
      '-newkey',
      'ec',
      '-pkeyopt',
      'ec_paramgen_curve:prime256v1',
      '-nodes',
      '-days',
      '2',
      '-subj',
      '/CN=load-test',
    ];
    await run('openssl', ['req', ...subject, '-keyout', key, '-out', certificate], { timeout: 20_000 });
    return { kind: 'tls', certificate, key, caFile: this.options.caFile };
  }
}

import type { ChildProcess } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { connect, createServer, isIP, type AddressInfo } from 'node:net';
import { join } from 'node:path';
import type { Clock } from '../../lib/clock.js';
import { formatHostPort } from '../../lib/address.js';
import { ownedChild, whenGone } from './owned-child.js';

export interface TunnelOptions {
  readonly target: { readonly host: string; readonly port: number };
  /** PEM, the CA that the gateway's certificate must be signed by. */
  readonly caFile: string;
  /** Where its configuration is written. */
  readonly directory: string;
  readonly clock: Clock;
}

const OPEN_WITHIN_MS = 10_000;
const TRY_EVERY_MS = 20;

/** Debian's SIPp does not speak TLS: stunnel speaks it in its place, and checks the gateway's certificate. */
export class Tunnel {
  private constructor(
    readonly port: number,
    private readonly child: ChildProcess,
  ) {}

  get pid(): number {
    return this.child.pid ?? 0;
  }

  /** Resolves when it takes connections on loopback. */
  static async open({ target, caFile, directory, clock }: TunnelOptions): Promise<Tunnel> {
    const port = await freePort();
    const file = join(directory, `stunnel-${String(port)}.conf`);
    await writeFile(file, configuration(port, target, caFile), { mode: 0o600 });
    const child = ownedChild('stunnel4', [file], { stdio: 'ignore' });
    const tunnel = new Tunnel(port, child);
    try {
      await untilOpen(port, child, clock);
    } catch (error) {
      await tunnel.close();
      throw error;
    }
    return tunnel;
  }

  async close(): Promise<void> {
    this.child.kill('SIGTERM');
    await whenGone(this.child);
  }
}

function configuration(port: number, { host, port: targetPort }: TunnelOptions['target'], caFile: string): string {
  return [
    'foreground = yes',
    'pid =',
    'debug = warning',
    '[sip]',
    'client = yes',
    `accept = 127.0.0.1:${String(port)}`,
    `connect = ${formatHostPort(host, targetPort)}`,
    `CAfile = ${caFile}`,
    'verifyChain = yes',
    `${isIP(host) === 0 ? 'checkHost' : 'checkIP'} = ${host}`,
    'sslVersionMin = TLSv1.2',
    '',
  ].join('\n');
}

function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once('error', reject);
    server.listen({ host: '127.0.0.1', port: 0 }, () => {
      const { port } = server.address() as AddressInfo;
      server.close(() => resolve(port));
    });
  });
}

/** Tries until the port takes a connection; rejects when the program has ended. */
function untilOpen(port: number, child: ChildProcess, clock: Clock): Promise<void> {
  return new Promise((resolve, reject) => {
    const untilMs = clock.nowMs() + OPEN_WITHIN_MS;
    child.once('error', (error) => reject(new Error(`stunnel4 cannot be started: ${error.message}`)));
    child.once('exit', (code) => reject(new Error(`stunnel4 ended with ${String(code)}`)));
    const attempt = (): void => {
      const socket = connect({ host: '127.0.0.1', port });
      socket.once('connect', () => {
        socket.destroy();
        resolve();
      });
      socket.once('error', () => {
        if (clock.nowMs() > untilMs) reject(new Error('stunnel4 does not accept connections'));
        else clock.setTimer(TRY_EVERY_MS, attempt);
      });
    };
    attempt();
  });
}

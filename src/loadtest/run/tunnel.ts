import type { ChildProcess } from 'node:child_process';
import { isIP } from 'node:net';
import type { Readable } from 'node:stream';
import { formatHostPort } from '../../lib/address.js';
import { within, type Clock } from '../../lib/clock.js';
import { ownedChild, whenGone } from './owned-child.js';

export interface TunnelOptions {
  readonly target: { readonly host: string; readonly port: number };
  /** PEM, the CA that the gateway's certificate must be signed by. */
  readonly caFile: string;
  readonly clock: Clock;
}

const OPEN_WITHIN_MS = 10_000;
const MAX_LOG = 4_096;

/** Debian's SIPp does not speak TLS: stunnel speaks it in its place, and checks the gateway's certificate. */
export class Tunnel {
  private constructor(
    readonly port: number,
    private readonly child: ChildProcess,
  ) {}

  get pid(): number {
    return this.child.pid ?? 0;
  }

  /** Resolves when it takes connections on loopback. The system chooses the port: a free one that is looked for before can be taken meanwhile. */
  static async open({ target, caFile, clock }: TunnelOptions): Promise<Tunnel> {
    const child = ownedChild('stunnel4', ['-fd', '0'], { stdio: ['pipe', 'ignore', 'pipe'] });
    child.stdin?.on('error', () => undefined).end(configuration(target, caFile));
    const bound = boundPort(child);
    if (!(await within(clock, OPEN_WITHIN_MS, bound))) child.kill('SIGKILL');
    const port = await bound;
    if (typeof port === 'number') return new Tunnel(port, child);
    throw new Error(`stunnel4 does not accept connections: ${port}`);
  }

  async close(): Promise<void> {
    this.child.kill('SIGTERM');
    await whenGone(this.child);
  }
}

function configuration({ host, port }: TunnelOptions['target'], caFile: string): string {
  return [
    'foreground = yes',
    'pid =',
    // The level at which it names its port.
    'debug = info',
    '[sip]',
    'client = yes',
    'accept = 127.0.0.1:0',
    `connect = ${formatHostPort(host, port)}`,
    `CAfile = ${caFile}`,
    'verifyChain = yes',
    `${isIP(host) === 0 ? 'checkHost' : 'checkIP'} = ${host}`,
    'sslVersionMin = TLSv1.2',
    '',
  ].join('\n');
}

/** The port that it names in its log; what it wrote, or why it could not be started, when it ended. */
function boundPort(child: ChildProcess): Promise<number | string> {
  return new Promise((resolve) => {
    let log = '';
    const stderr = child.stderr as Readable;
    stderr.setEncoding('latin1');
    stderr.on('data', (text: string) => {
      log = (log + text).slice(-MAX_LOG);
      const bound = /Service \[sip\] \(FD=\d+\) bound to 127\.0\.0\.1:(\d+)\s/.exec(log);
      if (bound !== null) resolve(Number(bound[1]));
    });
    child.once('error', (error) => resolve(error.message));
    child.once('close', () => resolve(log));
  });
}

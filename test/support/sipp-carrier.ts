import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { createConnection, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { pipeline } from 'node:stream';
import { createServer, type Server } from 'node:tls';
import { ownedChild, whenGone } from '../../src/loadtest/run/owned-child.js';
import { until } from './carrier-call.js';
import { HANG_GUARD_MS } from './hang-guard.js';
import { testCertificates } from './certificates.js';
import { freePorts } from './ports.js';
import { KEY } from './sdp.js';
import { outcomeOf, type SippOutcome } from './sipp.js';
import { readWire, type WireMessage } from './wire-peer.js';

/** SIPp as a carrier that takes our calls, with a tunnel in front of it, which speaks TLS in its place. */
export class SippCarrier {
  private constructor(
    private readonly directory: string,
    /** Of the tunnel. */
    readonly port: number,
    private readonly sipp: ChildProcess,
    private readonly tunnel: Server,
    /** After its last call. */
    readonly outcome: Promise<SippOutcome>,
  ) {}

  /** @param scenario of test/sipp; it ends after so many calls. @param keys values of `[name]` in it */
  static async start(scenario: string, calls = 1, keys: Readonly<Record<string, string>> = {}): Promise<SippCarrier> {
    const [inside = 0] = await freePorts(1);
    const directory = await mkdtemp(join(tmpdir(), 'trunkline-sipp-'));
    const tunnel = await tunnelTo(inside);
    const { port } = tunnel.address() as AddressInfo;
    const values = { tunnel_port: String(port), rtp_port: '9', rtcp_port: '10', srtp_key: KEY, ...keys };
    const args = [
      ...['-t', 't1', '-i', '127.0.0.1', '-p', String(inside), '-sf', resolve(`test/sipp/${scenario}.xml`), '-m', String(calls)],
      ...Object.entries(values).flatMap(([name, value]) => ['-key', name, value]),
      ...[
        '-timeout',
        String(HANG_GUARD_MS / 1_000),
        '-timeout_error',
        '-nostdin',
        '-trace_msg',
        '-message_file',
        join(directory, 'messages'),
      ],
    ];
    const sipp = ownedChild('sipp', args, { cwd: directory, env: { ...process.env, TERM: 'dumb' } });
    const carrier = new SippCarrier(directory, port, sipp, tunnel, outcomeOf(sipp));
    try {
      await until(() => isListening(inside), 'SIPp does not listen');
    } catch (error) {
      await carrier.stop();
      throw error;
    }
    return carrier;
  }

  get endpoint(): string {
    return `127.0.0.1:${String(this.port)}`;
  }

  /** The requests of a method that it got, in order, when there are so many. */
  async requests(method: string, count = 1): Promise<WireMessage[]> {
    let found: WireMessage[] = [];
    const areThere = async (): Promise<boolean> => {
      found = (await this.#received()).filter(({ startLine }) => startLine.startsWith(`${method} `));
      return found.length >= count;
    };
    await until(areThere, `SIPp has no ${method}`);
    return found;
  }

  async stop(): Promise<void> {
    this.sipp.kill('SIGKILL');
    await whenGone(this.sipp);
    this.tunnel.close();
    await rm(this.directory, { recursive: true, force: true });
  }

  async #received(): Promise<WireMessage[]> {
    const text = await readFile(join(this.directory, 'messages'), 'latin1').catch(() => '');
    const entries = text.split(/^-{20,}.*\n/m);
    return entries.flatMap((entry) => {
      const message = /^\S+ message received[^\n]*\n\n([^]*)/.exec(entry)?.[1];
      return message?.includes('\r\n\r\n') === true ? [readWire(message)] : [];
    });
  }
}

/** A connection of SIPp's for each of the gateway's. */
async function tunnelTo(port: number): Promise<Server> {
  const { cert, key } = await testCertificates();
  const tunnel = createServer({ cert, key, minVersion: 'TLSv1.2' }, (gateway) => {
    const sipp = createConnection(port, '127.0.0.1');
    pipeline(gateway, sipp, gateway, () => undefined);
  });
  tunnel.listen(0, '127.0.0.1');
  await once(tunnel, 'listening');
  return tunnel;
}

/** Looks without a connection, which SIPp would take for a caller's (proc(5), /proc/net/tcp: 0A is LISTEN). */
async function isListening(port: number): Promise<boolean> {
  const local = `0100007F:${port.toString(16).toUpperCase().padStart(4, '0')}`;
  return (await readFile('/proc/net/tcp', 'latin1')).includes(` ${local} 00000000:0000 0A `);
}

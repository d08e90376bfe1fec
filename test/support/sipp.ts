import { spawn } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { Tunnel as TlsTunnel } from '../../src/load/run/tunnel.js';
import { systemClock } from '../../src/ops/system-clock.js';

export interface SippOutcome {
  readonly code: number | null;
  readonly successful: number;
  readonly failed: number;
  readonly output: string;
}

/** A tunnel to a gateway of this machine, in a directory of its own. */
export class Tunnel {
  private constructor(
    private readonly tunnel: TlsTunnel,
    private readonly directory: string,
  ) {}

  static async open(gatewayPort: number, caFile: string): Promise<Tunnel> {
    const directory = await mkdtemp(join(tmpdir(), 'trunkline-tunnel-'));
    const target = { host: '127.0.0.1', port: gatewayPort };
    return new Tunnel(await TlsTunnel.open({ target, caFile, directory, clock: systemClock }), directory);
  }

  get port(): number {
    return this.tunnel.port;
  }

  async close(): Promise<void> {
    await this.tunnel.close();
    await rm(this.directory, { recursive: true, force: true });
  }
}

/** Runs a scenario of test/sipp through a tunnel: `calls` calls at `rate` a second. */
export async function runSipp(tunnel: Tunnel, scenario: string, called: string, calls: number, rate: number): Promise<SippOutcome> {
  const directory = await mkdtemp(join(tmpdir(), 'trunkline-sipp-'));
  const args = [
    ...[`127.0.0.1:${String(tunnel.port)}`, '-t', 't1', '-i', '127.0.0.1', '-sf', resolve(`test/sipp/${scenario}.xml`), '-s', called],
    ...['-m', String(calls), '-r', String(rate), '-l', String(calls), '-timeout', '60', '-timeout_error', '-nostdin'],
  ];
  const child = spawn('sipp', args, { cwd: directory, env: { ...process.env, TERM: 'dumb' } });
  let output = '';
  child.stdout.on('data', (chunk: Buffer) => (output += chunk.toString()));
  child.stderr.on('data', (chunk: Buffer) => (output += chunk.toString()));
  const code = await new Promise<number | null>((resolve_) => child.once('close', resolve_));
  await rm(directory, { recursive: true, force: true });
  const last = (name: string): number =>
    Number([...output.matchAll(new RegExp(`${name}\\s*\\|\\s*\\d+\\s*\\|\\s*(\\d+)`, 'g'))].at(-1)?.[1] ?? Number.NaN);
  return { code, successful: last('Successful call'), failed: last('Failed call'), output };
}

import { spawn, type ChildProcess } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { Tunnel } from '../../src/loadtest/run/tunnel.js';

export interface SippOutcome {
  readonly code: number | null;
  readonly successful: number;
  readonly failed: number;
  /** Packets that SIPp itself threw away, as it was told to. */
  readonly lost: number;
  readonly output: string;
}

/** To a gateway of this machine. */
export function tunnelTo(gatewayPort: number, caFile: string): Promise<Tunnel> {
  return Tunnel.open({ target: { host: '127.0.0.1', port: gatewayPort }, caFile });
}

/** What is not as usual. */
export interface SippOptions {
  readonly transport?: 't1' | 'u1';
  /** Packet loss each way, in percent; UDP only. */
  readonly lost?: number;
}

/** Runs a scenario of test/sipp against a port, a tunnel's or the gateway's own: `calls` calls at `rate` a second. */
export async function runSipp(
  target: { readonly port: number },
  scenario: string,
  called: string,
  calls: number,
  rate: number,
  { transport = 't1', lost = 0 }: SippOptions = {},
): Promise<SippOutcome> {
  const directory = await mkdtemp(join(tmpdir(), 'trunkline-sipp-'));
  const args = [
    ...[`127.0.0.1:${String(target.port)}`, '-t', transport, '-i', '127.0.0.1', '-sf', resolve(`test/sipp/${scenario}.xml`), '-s', called],
    ...['-m', String(calls), '-r', String(rate), '-l', String(calls), '-timeout', '110', '-timeout_error', '-nostdin'],
    ...(lost === 0 ? [] : ['-lost', String(lost)]),
  ];
  const child = spawn('sipp', args, { cwd: directory, env: { ...process.env, TERM: 'dumb' } });
  const outcome = await outcomeOf(child, lost > 0);
  await rm(directory, { recursive: true, force: true });
  return outcome;
}

/** Resolves when it has ended. @param isLossy it was to throw packets away */
export async function outcomeOf(child: ChildProcess, isLossy = false): Promise<SippOutcome> {
  let output = '';
  child.stdout?.on('data', (chunk: Buffer) => (output += chunk.toString()));
  child.stderr?.on('data', (chunk: Buffer) => (output += chunk.toString()));
  const code = await new Promise<number | null>((resolve_) => child.once('close', resolve_));
  const last = (name: string): number =>
    Number([...output.matchAll(new RegExp(`${name}\\s*\\|\\s*\\d+\\s*\\|\\s*(\\d+)`, 'g'))].at(-1)?.[1] ?? Number.NaN);
  // The last screen's messages; the column is there when packets are lost only.
  const messages = output.slice(output.lastIndexOf('Messages  Retrans')).matchAll(/(?:-+>|<-+) .* (\d+) *\r?$/gm);
  const thrownAway = !isLossy ? 0 : [...messages].reduce((sum, [, count]) => sum + Number(count), 0);
  return { code, successful: last('Successful call'), failed: last('Failed call'), lost: thrownAway, output };
}

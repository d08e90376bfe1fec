import { execFileSync, spawn, type ChildProcess } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { RunFigures } from '../../../src/loadtest/figures.js';
import { runCli, RunningGateway } from '../../support/gateway.js';

// The real command, SIPp and media generator against a real gateway.

let gateway: RunningGateway;

beforeAll(async () => {
  gateway = await RunningGateway.start();
});

afterAll(async () => {
  await gateway.destroy();
});

type Result = RunFigures & { readonly report: string | null };
const load = async (...flags: readonly string[]): Promise<{ code: number | null; result: Result }> => {
  const { code, stdout, stderr } = await gateway.cli('load', '--json', ...flags);
  if (!stdout.startsWith('{')) throw new Error(stderr);
  return { code, result: camelKeys(JSON.parse(stdout)) as Result };
};

/** The other way than the command goes: what it printed as the figures that they were. */
function camelKeys(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(camelKeys);
  if (typeof value !== 'object' || value === null) return value;
  const camel = (name: string): string => name.replace(/(?<=[a-z0-9])_([a-z0-9])/g, (_all, letter: string) => letter.toUpperCase());
  return Object.fromEntries(Object.entries(value).map(([name, inner]) => [camel(name), camelKeys(inner)]));
}

/** One that is not waited for. */
function background(...flags: readonly string[]): { child: ChildProcess; ended: Promise<{ code: number | null; result: Result }> } {
  const child = spawn(process.execPath, [resolve('dist/cli/main.js'), 'load', '--json', ...flags], {
    env: { ...process.env, ...gateway.environment },
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  let stdout = '';
  child.stdout.on('data', (chunk: Buffer) => (stdout += chunk.toString()));
  const closed = new Promise<number | null>((done) => child.once('close', done));
  return { child, ended: closed.then((code) => ({ code, result: camelKeys(JSON.parse(stdout)) as Result })) };
}

async function batchLog(id: string | null): Promise<{ event_type: string; payload: Record<string, unknown> }[]> {
  const { status, json } = await gateway.api('GET', `/v2/batches/${String(id)}/logs?direction=asc`);
  expect(status).toBe(200);
  return json['data'] as { event_type: string; payload: Record<string, unknown> }[];
}

const liveCalls = async (): Promise<number> =>
  ((await gateway.api('GET', '/v1/calls?state=live&limit=100')).json['calls'] as unknown[]).length;

/** The first SIPp that a load test has started; 0: none so far. */
function sippOf({ pid }: ChildProcess): number {
  const children = readFileSync(`/proc/${String(pid)}/task/${String(pid)}/children`, 'utf8')
    .trim()
    .split(' ');
  return Number(children.find((child) => child !== '' && readFileSync(`/proc/${child}/comm`, 'utf8') === 'sipp\n') ?? 0);
}

describe('trunkline load', () => {
  it('places calls with and without media, measures the audio that comes back, and writes page and batch', async () => {
    const { code, result } = await load('--cps', '8', '--calls', '16', '--media', '50', '--hold', '5');
    const [stage] = result.stages;
    expect(stage?.verdict.faults).toEqual([]);
    expect(code).toBe(0);
    expect(stage).toMatchObject({ started: 16, answered: 16, successful: 16, failed: 0, failures: [] });
    expect(stage?.media).toMatchObject({
      calls: 8,
      unchecked: 0,
      tone: { heard: 8, silent: 0, wrong: 0 },
      digits: { pressed: 8, answered: 8 },
    });
    expect(stage?.latency?.count).toBe(16);
    expect(stage?.processes.map(({ name }) => name)).toEqual(
      expect.arrayContaining(['gateway', 'sip-server', 'rtpengine', 'redis-server', 'media-generator', 'sipp 1', 'sipp 2']),
    );
    expect(result.timeline.reduce((sum, { answered }) => sum + answered, 0)).toBe(16);

    const page = await readFile(String(result.report), 'utf8');
    expect(result.report).toContain(join(gateway.dataDir, 'load-reports'));
    expect(page).toContain('<b>Audio there and back</b>');
    const uplot = await readFile('node_modules/uplot/dist/uPlot.iife.min.js', 'utf8');
    expect(page).toContain(uplot);
    expect(page.replace(uplot, '')).not.toMatch(/<script[^>]+src|<link|<img|url\(|https?:\/\//);

    const log = await batchLog(result.batchId);
    const seconds = log.filter(({ event_type: type }) => type === 'figures');
    expect(seconds.length).toBeGreaterThan(3);
    expect(seconds.at(-1)?.payload).toMatchObject({ stage: 1, answered: 16, failed: 0 });
    expect(log.filter(({ event_type: type }) => type !== 'figures')).toMatchObject([
      { event_type: 'lifecycle', payload: { state_change: 'started' } },
      { event_type: 'lifecycle', payload: { state_change: 'stage' } },
      { event_type: 'complete', payload: { calls_total: 16, calls_failed: 0, calls_successful: 16 } },
    ]);
  });

  it('counts failures by their reason and exits with 1 for a number that nobody has', async () => {
    const { code, stdout } = await gateway.cli('load', '--cps', '20', '--calls', '20', '--number', '+15550199999', '--no-report');
    expect(code).toBe(1);
    expect(stdout).toContain('20 × 404 NUMBER_NOT_ATTACHED');
    expect(stdout).toContain('fault: 20 calls failed');
    expect(stdout).toContain('FAILED.');
  });

  it('measures a scenario of your own without log lines by SIPp itself, and writes no batch without an organization', async () => {
    const target = ['--target', gateway.ready.sip.tls, '--ca', gateway.ready.ca_file, '--number', gateway.ready.phone_number];
    const { code, result } = await load(
      ...target,
      '--sipp-scenario',
      resolve('test/fixtures/load/own.xml'),
      '--cps',
      '10',
      '--calls',
      '5',
      '--no-report',
    );
    expect(code).toBe(0);
    expect(result.stages[0]).toMatchObject({ answered: 5, successful: 5, latency: { count: 5 } });
    expect(result).toMatchObject({ batchId: null, report: null, notes: [expect.stringContaining('cannot write a batch')] });
  });

  it('sends BYE to the calls in progress when it is interrupted, which result and batch record', async () => {
    const { child, ended } = background('--cps', '10', '--calls', '1000', '--hold', '60');
    await expect.poll(liveCalls).toBeGreaterThan(5);
    child.kill('SIGINT');
    const { code, result } = await ended;
    expect(code).toBe(1);
    await expect.poll(liveCalls).toBe(0);
    expect(result).toMatchObject({ interrupted: true, passed: false });
    expect(result.stages[0]).toMatchObject({ failed: 0, verdict: { faults: [], limit: null } });
    expect(result.stages[0]?.interrupted).toBeGreaterThan(5);
    const log = await batchLog(result.batchId);
    const marks = log.filter(({ event_type: type }) => type !== 'figures');
    expect(marks.map(({ payload }) => payload['state_change'] ?? null)).toEqual(['started', 'stage', 'interrupted', null]);
    const { json } = await gateway.api('GET', '/v1/calls?limit=5');
    expect(new Set((json['calls'] as { reason: string }[]).map(({ reason }) => reason))).toEqual(new Set(['CALLER_HANGUP']));
  });

  it('starts a SIPp whose port is taken again, and places all its calls', async () => {
    // What SIPp does when another one bound the same port and listens first; the second start is the real one.
    const directory = await mkdtemp(join(tmpdir(), 'sipp-'));
    const fake = `#!/bin/bash
if [ "$1" != -v ] && [ "$(basename "$PWD")" = 1 ]; then
  echo "The following events occurred:" >errors.log
  printf '2026-01-02\\t03:04:05.000001\\t1795317116.000001: Unable to listen main socket, errno = 98 (Address already in use)' >>errors.log
  exit 254
fi
exec ${execFileSync('which', ['sipp'], { encoding: 'utf8' }).trim()} "$@"
`;
    await writeFile(join(directory, 'sipp'), fake, { mode: 0o755 });
    const environment = { ...gateway.environment, PATH: `${directory}:${process.env['PATH'] ?? ''}` };
    const { code, stdout, stderr } = await runCli(environment, [
      'load',
      '--json',
      '--cps',
      '10',
      '--calls',
      '10',
      '--hold',
      '3',
      '--no-report',
    ]);
    await rm(directory, { recursive: true });
    expect(code, stderr).toBe(0);
    const [stage] = (camelKeys(JSON.parse(stdout)) as Result).stages;
    expect(stage).toMatchObject({ started: 10, successful: 10, failed: 0, failures: [], verdict: { faults: [] } });
    expect(stage?.processes.map(({ name }) => name)).toContain('sipp 1');
  });

  it('reports a fault when a SIPp breaks off before it has placed its calls', async () => {
    const { child, ended } = background('--cps', '4', '--calls', '12', '--connections', '2', '--no-report');
    await expect.poll(() => sippOf(child)).toBeGreaterThan(0);
    await expect.poll(liveCalls).toBeGreaterThan(0);
    process.kill(sippOf(child), 'SIGKILL');
    const { code, result } = await ended;
    expect(code).toBe(1);
    const faults = result.stages[0]?.verdict.faults;
    expect(faults).toContainEqual(expect.stringMatching(/^SIPp ended with SIGKILL/));
    expect(faults).toContainEqual(expect.stringMatching(/^\d of 12 calls were not placed$/));
  });

  it('finds the limit of a number by a ramp, and names the setting', async () => {
    const number = '+15550102900';
    const options = { max_concurrent_calls: 3 };
    await gateway.api('POST', '/sip/attach', { phone_number: number, directions: ['inbound'], service: 'sip', options });
    const flags = ['--ramp', 'held', '--calls', '2', '--cps', '20', '--stage', '1', '--max-p99', '5000', '--number', number, '--no-report'];
    const { code, result } = await load(...flags);
    expect(result.ramps).toMatchObject([
      {
        kind: 'held',
        highest: 3,
        lowestFailed: 4,
        limit: { kind: 'refused', settings: [expect.stringContaining('max_concurrent_calls')] },
      },
    ]);
    expect(result.stages.map(({ plan }) => plan.calls)).toEqual([2, 4, 4, 3]);
    expect(code).toBe(0);
  });

  it('refuses a target that is not this machine', async () => {
    const { code, stdout, stderr } = await gateway.cli('load', '--target', '192.0.2.1:5061', '--number', '+15550100100');
    expect(code).toBe(1);
    expect(stderr).toContain('192.0.2.1 is not this machine');
    expect(stderr).toContain('add --i-own-the-target');
    expect(stdout).toBe('');
  });

  it('places all its calls beside a reload, which closes its connection: it opens another one, as a carrier does', async () => {
    const { ended } = background('--cps', '5', '--calls', '40', '--media', '0', '--hold', '2');
    await expect.poll(liveCalls).toBeGreaterThanOrEqual(5);
    const { code, stderr } = await gateway.cli('reload');
    expect([code, stderr]).toEqual([0, '']);
    const { result } = await ended;
    expect(result.stages[0]).toMatchObject({ started: 40, interrupted: 0 });
    // Those whose request was under way when the connection closed.
    expect(result.stages[0]?.successful).toBeGreaterThan(20);
  });
});

import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { askProcess, processSocket, serveProcess } from '../../../../src/config/process-socket.js';
import { metricsRefusal } from '../../../../src/observability/metrics/access.js';
import { METRICS, type MetricDefinition } from '../../../../src/observability/metrics/catalog.js';
import { openMetricsServer } from '../../../../src/observability/metrics/metrics-server.js';
import { leaveCounts, takeCounts } from '../../../../src/observability/metrics/left-counts.js';
import { silentLog } from '../../../../src/lib/log.js';
import { gatherMetrics, METRICS_QUESTION } from '../../../../src/observability/metrics/peers.js';
import { exposition, Metrics } from '../../../../src/observability/metrics/registry.js';
import { parseExposition } from '../../../support/prometheus-text.js';

let directory: string;

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'trunkline-metrics-'));
});

afterEach(() => rmSync(directory, { recursive: true, force: true }));

function twoCalls(process_: string): Metrics {
  const metrics = new Metrics(process_);
  metrics.count('trunkline_calls_ended_total', { reason: 'CALLER_HANGUP', fault: 'nobody' }, 2);
  metrics.observe('trunkline_call_answer_seconds', {}, 0.04);
  metrics.observe('trunkline_call_answer_seconds', {}, 0.06);
  metrics.collect((figures) => figures.set('trunkline_calls_in_progress', {}, 7));
  metrics.collect((figures) => figures.set('trunkline_sip_messages_total', { kind: 'taken' }, 100));
  return metrics;
}

describe('the catalogue', () => {
  it('follows the naming rules of Prometheus: the prefix, the unit last, and _total for counters only', () => {
    for (const [name, { type, help }] of Object.entries<MetricDefinition>(METRICS)) {
      expect(name).toMatch(/^trunkline_[a-z][a-z_]*[a-z]$/);
      expect(name.endsWith('_total')).toBe(type === 'counter');
      expect(help).toMatch(/^\S.*\.$/);
    }
  });
});

describe('the metrics of a process', () => {
  it('are counters, gauges and histograms in the text format, with the process in each sample', async () => {
    const { types, samples, sum } = parseExposition(await exposition([await twoCalls('gateway').snapshot()]));
    expect(samples.every(({ labels }) => labels['process'] === 'gateway')).toBe(true);
    expect(types.get('trunkline_call_answer_seconds')).toBe('histogram');
    expect(sum('trunkline_calls_ended_total', { reason: 'CALLER_HANGUP' })).toBe(2);
    expect(sum('trunkline_call_answer_seconds_bucket', { le: '0.05' })).toBe(1);
    expect(sum('trunkline_call_answer_seconds_bucket', { le: '+Inf' })).toBe(2);
    expect(sum('trunkline_call_answer_seconds_sum')).toBeCloseTo(0.1);
    expect(sum('trunkline_calls_in_progress')).toBe(7);
  });

  it('are the same for two concurrent scrapes: a collected counter is not counted twice', async () => {
    const metrics = twoCalls('gateway');
    for (const snapshot of await Promise.all([metrics.snapshot(), metrics.snapshot()])) {
      expect(parseExposition(await exposition([snapshot])).sum('trunkline_sip_messages_total')).toBe(100);
    }
  });

  it('lack what a collector could not read, and have the rest', async () => {
    const metrics = twoCalls('gateway');
    metrics.collect(() => Promise.reject(new Error('away')));
    const { sum } = parseExposition(await exposition([await metrics.snapshot()]));
    expect(sum('trunkline_webhooks_waiting')).toBeUndefined();
    expect(sum('trunkline_calls_in_progress')).toBe(7);
  });
});

describe('the metrics of several processes', () => {
  const served = (name: string, answer: () => unknown): (() => void) =>
    serveProcess(directory, name, { [METRICS_QUESTION]: answer }, (reason) => expect.fail(reason));

  it('come in one answer; a process that is gone or does not answer is down and delays nothing', async () => {
    const close = served('gateway-2', () => twoCalls('gateway-2').snapshot());
    const mute = createServer(() => undefined).listen(processSocket(directory, 'sip-server'));
    const text = await gatherMetrics(twoCalls('gateway'), directory, [
      ['gateway', 'gateway-4'],
      ['gateway-2', 'gateway-5'],
      ['gateway-3', 'gateway-6'],
      ['sip-server'],
    ]);
    close();
    mute.close();
    const { sum } = parseExposition(text);
    const up = ['gateway', 'gateway-2', 'gateway-3', 'sip-server'].map((name) => sum('trunkline_process_up', { process: name }));
    expect(up).toEqual([1, 1, 0, 0]);
    expect(sum('trunkline_calls_in_progress', { process: 'gateway-2' })).toBe(7);
    expect(sum('trunkline_calls_in_progress')).toBe(14);
    expect(sum('trunkline_call_answer_seconds_count')).toBe(4);
  });

  it('keep the counts of a process that has ended in order until the next one of its name goes on from them, and none of its gauges', async () => {
    await leaveCounts(directory, twoCalls('gateway-2'), silentLog);
    const sums = async (next?: Metrics): Promise<unknown[]> => {
      const close = next === undefined ? () => undefined : served('gateway-2', () => next.snapshot());
      const { sum } = parseExposition(await gatherMetrics(twoCalls('gateway'), directory, [['gateway', 'gateway-2']]));
      close();
      return ['trunkline_call_answer_seconds_count', 'trunkline_calls_in_progress'].map((name) => sum(name, { process: 'gateway-2' }));
    };
    expect(await sums()).toEqual([2, undefined]);
    const next = twoCalls('gateway-2');
    next.goOnFrom(takeCounts(directory, 'gateway-2'));
    expect(await sums(next)).toEqual([4, 7]);
    expect(await sums()).toEqual([undefined, undefined]);
    expect(takeCounts(directory, 'gateway-2')).toEqual([]);
  });

  it('fail for a process that is away where somebody awaits them, however long the own ones take', async () => {
    const unhandled: unknown[] = [];
    const note = (reason: unknown): void => void unhandled.push(reason);
    process.on('unhandledRejection', note);
    const own = twoCalls('gateway');
    const slow = {
      process: 'gateway',
      snapshot: async () => {
        // Once this is refused, what was asked before is, too.
        await askProcess(directory, 'gateway-2', METRICS_QUESTION, 1_000).catch(() => undefined);
        await new Promise((resolve) => setImmediate(resolve));
        return own.snapshot();
      },
    };
    const { sum } = parseExposition(await gatherMetrics(slow as Metrics, directory, [['gateway'], ['gateway-2']]));
    process.off('unhandledRejection', note);
    expect([sum('trunkline_process_up', { process: 'gateway-2' }), unhandled]).toEqual([0, []]);
  });

  it('show a process that answers with something else as down', async () => {
    const close = served('sip-server', () => ({ not: 'metrics' }));
    const { sum } = parseExposition(await gatherMetrics(twoCalls('gateway'), directory, [['sip-server']]));
    close();
    expect(sum('trunkline_process_up', { process: 'sip-server' })).toBe(0);
  });

  it('work in a data directory whose path is too long for a socket', async () => {
    const deep = join(directory, 'x'.repeat(120));
    mkdirSync(deep);
    const close = serveProcess(deep, 'gateway-2', { question: () => 'answer' }, (reason) => expect.fail(reason));
    expect(await askProcess(deep, 'gateway-2', 'question', 1_000)).toBe('answer');
    await expect(askProcess(deep, 'gateway-2', 'another', 1_000)).rejects.toMatchObject({ wasClosed: true });
    close();
    await expect(askProcess(deep, 'gateway-2', 'question', 1_000)).rejects.toMatchObject({ wasClosed: false });
  });
});

describe('the access to the metrics', () => {
  const local = { allowedSources: ['127.0.0.0/8', '::1'], bearerToken: null };
  const token = 'a-token-of-some-length';

  it.each([
    ['127.0.0.1', null],
    ['::1', null],
    ['::ffff:127.0.0.1', null],
    ['192.0.2.1', 403],
    ['', 403],
  ])('is limited to this machine by default: %s', (address, status) => {
    expect(metricsRefusal(local, address, undefined)?.status ?? null).toBe(status);
  });

  it.each([
    [undefined, 401],
    ['Basic abc', 401],
    [`Bearer ${token}x`, 401],
    [`Bearer ${token}`, null],
    [`bearer  ${token}`, null],
  ])('with a token needs the token and an allowed address: %s', (authorization, status) => {
    expect(metricsRefusal({ allowedSources: [], bearerToken: token }, '192.0.2.1', authorization)?.status ?? null).toBe(status);
    expect(metricsRefusal({ ...local, bearerToken: token }, '192.0.2.1', authorization)?.status).toBe(403);
  });

  it('on a SIP server of its own machine gives its own metrics and nothing else', async () => {
    const server = await openMetricsServer(
      twoCalls('sip-server'),
      { host: '127.0.0.1', port: 0 },
      { allowedSources: [], bearerToken: token },
    );
    const ask = (path: string, init?: RequestInit) => fetch(`http://127.0.0.1:${String(server.port)}${path}`, init);
    const answer = await ask('/metrics', { headers: { authorization: `Bearer ${token}` } });
    const statuses = [(await ask('/metrics')).status, (await ask('/')).status, (await ask('/metrics', { method: 'POST' })).status];
    const { sum } = parseExposition(await answer.text());
    server.close();
    expect(sum('trunkline_process_up', { process: 'sip-server' })).toBe(1);
    expect(answer.headers.get('content-type')).toContain('version=0.0.4');
    expect(statuses).toEqual([401, 404, 405]);
  });
});

import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { METRICS, type MetricDefinition } from '../../../src/observability/metrics/catalog.js';
import { CarrierCall, until } from '../../support/carrier-call.js';
import { talkingIn } from '../../support/cells.js';
import { RunningGateway } from '../../support/gateway.js';
import { parseExposition, type Exposition } from '../../support/prometheus-text.js';
import { recordOf } from '../../support/trunk.js';

let gateway: RunningGateway;

beforeAll(async () => {
  gateway = await RunningGateway.start({ TRUNKLINE_GATEWAY_WORKERS: '2' });
});

afterAll(() => gateway.destroy());

async function scrape(): Promise<Exposition> {
  const answer = await fetch(`${gateway.ready.http}/metrics`);
  expect([answer.status, answer.headers.get('content-type')]).toEqual([200, 'text/plain; version=0.0.4; charset=utf-8']);
  return parseExposition(await answer.text());
}

describe('GET /metrics of two gateway processes and their SIP servers, after real calls,', () => {
  it('has the right figures of all of them', async () => {
    const before = await scrape();
    const up = ['gateway', 'gateway-2', 'sip-server', 'sip-server-2'].map((name) => before.sum('trunkline_process_up', { process: name }));
    expect(up).toEqual([1, 1, 1, 1]);

    const calls = await Promise.all([1, 2].map((cell) => talkingIn(cell, gateway)));
    const unknown = await CarrierCall.open(gateway, '+15550109999');
    unknown.signalling.invite(unknown.audio.sdp());
    expect((await unknown.signalling.final()).status).toBe(404);
    // The one that was refused is in progress until its record is written.
    let during = before;
    await until(async () => (during = await scrape()).sum('trunkline_calls_in_progress') === 2, 'not two calls');
    expect(during.sum('trunkline_calls_in_progress', { process: 'gateway-2' })).toBe(1);
    expect(during.sum('trunkline_media_legs')).toBe(2);
    // 1000 ports of rtpengine, four a call, in two shares.
    expect(during.sum('trunkline_call_room')).toBe(250 - 2);
    expect(during.sum('trunkline_relay_sessions')).toBe(2);
    expect(during.sum('trunkline_media_packets_sent_total')).toBeGreaterThan(0);

    for (const call of calls) await call.request('BYE');
    const records = await Promise.all(calls.map((call) => recordOf(gateway, call)));
    await until(async () => (await scrape()).sum('trunkline_calls_in_progress') === 0, 'calls are left');
    for (const call of [...calls, unknown]) call.close();
    const after = await scrape();

    expect(after.sum('trunkline_calls_begun_total')).toBe(3);
    expect(after.sum('trunkline_calls_ended_total', { reason: 'CALLER_HANGUP', fault: 'nobody' })).toBe(2);
    expect(after.sum('trunkline_calls_refused_total', { reason: 'NUMBER_NOT_ATTACHED', fault: 'customer' })).toBe(1);
    expect(after.sum('trunkline_call_answer_seconds_count')).toBe(2);
    expect(after.sum('trunkline_call_talk_seconds_count')).toBe(2);
    expect(after.sum('trunkline_agent_connects_total', { agent: 'test-line', outcome: 'connected' })).toBe(2);
    for (const direction of ['sent', 'received'] as const) {
      const told = records.reduce((sum, { quality }) => sum + (quality.endpoint?.[`packets_${direction}`] ?? 0), 0);
      expect(after.sum(`trunkline_media_packets_${direction}_total`)).toBe(told);
    }
    expect(after.sum('trunkline_relay_command_seconds_count', { command: 'offer' })).toBe(2);
    expect(after.sum('trunkline_relay_up')).toBe(2);
    expect(after.sum('trunkline_redis_up')).toBe(2);
    expect(after.sum('trunkline_sip_tls_handshakes_total', { outcome: 'ok' })).toBe(3);
    expect(after.sum('trunkline_sip_applications')).toBe(2);
    const endsInDays = ((after.sum('trunkline_certificate_end_seconds') ?? 0) - Date.now() / 1_000) / 86_400;
    expect(endsInDays).toBeGreaterThan(300);
  });

  it('has only metrics and labels of the catalogue, and no value that is a phone number', async () => {
    await gateway.api('GET', '/v1/calls/7f3b5f0e-5d0c-4b0e-9a51-1c52ce0b4a11');
    const { types, samples } = await scrape();
    const known: Readonly<Record<string, MetricDefinition>> = METRICS;
    for (const [name, type] of types) expect([name, known[name]?.type]).toEqual([name, type]);
    expect(types.size).toBeGreaterThan(40);
    for (const { name, labels } of samples) {
      const definition = known[name] ?? known[name.replace(/_(?:bucket|sum|count)$/, '')];
      const allowed = ['process', 'le', ...Object.keys(definition?.labels ?? {})];
      expect(Object.keys(labels).filter((label) => !allowed.includes(label))).toEqual([]);
      for (const value of Object.values(labels)) expect(value).not.toMatch(/\d{6}|[0-9a-f]{8}-/);
    }
    expect(samples.some(({ labels }) => labels['route'] === '/v1/calls/:call_id')).toBe(true);
  });

  it('reports a process that is stopped as down, and answers all the same', async () => {
    const pid = await gateway.pidOf('gateway-2');
    process.kill(pid, 'SIGSTOP');
    const { sum } = await scrape().finally(() => process.kill(pid, 'SIGCONT'));
    expect(sum('trunkline_process_up', { process: 'gateway-2' })).toBe(0);
    expect(sum('trunkline_process_up', { process: 'sip-server' })).toBe(1);
  });

  it('counts the death of a killed process, and 0 for another one', async () => {
    const deaths = async (child: string): Promise<number | undefined> => (await scrape()).sum('trunkline_child_deaths_total', { child });
    expect(await deaths('gateway-2')).toBe(0);
    process.kill(await gateway.pidOf('gateway-2'), 'SIGKILL');
    await until(async () => (await deaths('gateway-2')) === 1, 'not counted');
    expect(await deaths('gateway')).toBe(0);
  });
});

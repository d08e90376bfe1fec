import { describe, expect, it } from 'vitest';
import type { CallRecord } from '../../../../src/gateway/model/call-record.js';
import { CallTimeline } from '../../../../src/gateway/call/call-trace.js';
import type { EndedCall } from '../../../../src/gateway/ports/ports.js';
import { isSampled, spanIdOf, traceIdOf, traceparentOf } from '../../../../src/observability/tracing/trace-context.js';
import { callSpans } from '../../../../src/gateway/wiring/call-spans.js';
import { webhookSpan } from '../../../../src/gateway/wiring/webhook-span.js';
import { openTraceExporter } from '../../../../src/observability/tracing/exporter.js';
import { EventLog } from '../../../support/event-log.js';
import { OtlpCollector } from '../../../support/otlp-collector.js';
import { passUntil, VirtualClock } from '../../../support/virtual-clock.js';

const CALL_ID = '153ee546-05b9-4d95-bd6d-f899f082d48b';

const RECORD = {
  call_id: CALL_ID,
  org_id: 'ORG-SECRET',
  from: '+15550100001',
  to: '+15550100002',
  source: { ip: '192.0.2.77', port: 5_061, transport: 'tls', tls_version: 'TLSv1.3', tls_cipher: 'x' },
  reason: 'CALLER_HANGUP',
  sip_status: 200,
  codec: 'PCMU',
  crypto_suite: 'AES_CM_128_HMAC_SHA1_80',
  started_at: '2026-01-01T00:00:00.000Z',
  answered_at: '2026-01-01T00:00:00.800Z',
  ended_at: '2026-01-01T00:00:10.000Z',
  timings: { ring_ms: 500, answer_ms: 800, first_audio_ms: 0, talk_ms: 9_200 },
  stale_route: false,
} as unknown as CallRecord;

describe('the trace of a call', () => {
  it('is named by the call’s id, and the header traceparent of W3C Trace Context leads to it', () => {
    expect(traceIdOf(CALL_ID)).toBe('153ee54605b94d95bd6df899f082d48b');
    expect(traceparentOf(CALL_ID, 1)).toBe(`00-153ee54605b94d95bd6df899f082d48b-${spanIdOf(CALL_ID)}-01`);
    expect(traceparentOf(CALL_ID, 0)).toMatch(/-00$/);
    expect(traceparentOf('not a uuid', 1)).toMatch(/^00-[0-9a-f]{32}-[0-9a-f]{16}-01$/);
  });

  it('is sampled at the configured share', () => {
    const ids = Array.from({ length: 2_000 }, () => crypto.randomUUID());
    const kept = ids.filter((id) => isSampled(id, 0.25)).length;
    // Five standard deviations.
    expect(Math.abs(kept - 500)).toBeLessThan(97);
    expect(ids.every((id) => isSampled(id, 1) && !isSampled(id, 0))).toBe(true);
  });

  it('has a span for the call and one below it for each step, the ringing and the talk', async () => {
    const clock = new VirtualClock();
    const timeline = new CallTimeline(clock, true);
    await timeline.step('look-up', Promise.resolve());
    await timeline.step('relay offer', Promise.reject(new Error('no'))).catch(() => undefined);
    timeline.moment('digit');
    const spans = callSpans(RECORD, timeline.read());
    expect(spans.map(({ name, isFailed, parentId }) => [name, isFailed, parentId])).toEqual([
      ['call', false, null],
      ['look-up', false, spanIdOf(CALL_ID)],
      ['relay offer', true, spanIdOf(CALL_ID)],
      ['ring', false, spanIdOf(CALL_ID)],
      ['talk', false, spanIdOf(CALL_ID)],
    ]);
    expect(spans.map(({ kind }) => kind)).toEqual(['server', 'client', 'client', 'internal', 'internal']);
    expect(spans[2]?.attributes).toEqual({ 'peer.service': 'rtpengine', 'error.type': '_OTHER' });
    expect(spans.map(({ startedMs, endedMs }) => endedMs - startedMs).slice(3)).toEqual([300, 9_200]);
    expect(spans[0]?.events.map(({ name }) => name)).toEqual(['digit', 'end']);
    expect(new Set(spans.map(({ spanId }) => spanId)).size).toBe(spans.length);
  });

  it('has neither caller nor called number', () => {
    const text = JSON.stringify(callSpans(RECORD, { steps: [], moments: [] }));
    expect(text).not.toMatch(/1555|192\.0\.2|ORG-SECRET/);
    expect(text).toContain('CALLER_HANGUP');
  });

  it('has a span for each attempt to deliver its webhook', () => {
    const attempt = { callId: CALL_ID, attempt: 1, outcome: 'failed', status: 503, startedMs: 1_000, tookMs: 40 } as const;
    const [first, second, third] = [
      webhookSpan(attempt),
      webhookSpan({ ...attempt, attempt: 2, status: null, startedMs: 6_000 }),
      webhookSpan({ ...attempt, attempt: 3, outcome: 'delivered', status: 200, startedMs: 16_000 }),
    ];
    expect(first).toMatchObject({ name: 'webhook', kind: 'client', parentId: spanIdOf(CALL_ID), startedMs: 1_000, endedMs: 1_040 });
    const sent = { 'trunkline.call.id': CALL_ID, 'http.request.method': 'POST' };
    expect([first, second, third].map(({ isFailed, attributes }) => [isFailed, attributes])).toEqual([
      [true, { ...sent, 'http.response.status_code': 503, 'error.type': '503' }],
      [true, { ...sent, 'http.request.resend_count': 1, 'error.type': 'failed' }],
      [false, { ...sent, 'http.request.resend_count': 2, 'http.response.status_code': 200 }],
    ]);
    expect(new Set([first, second, third].map(({ spanId }) => spanId)).size).toBe(3);
  });

  it('counts as failed by the gateway’s or the agent’s fault, but not when the caller cancelled', () => {
    const isFailed = (reason: string): boolean | undefined => callSpans({ ...RECORD, reason }, { steps: [], moments: [] })[0]?.isFailed;
    expect([isFailed('INTERNAL_ERROR'), isFailed('AGENT_UNAVAILABLE'), isFailed('CALLER_CANCELLED')]).toEqual([true, true, false]);
  });

  it('keeps a bounded number of steps, and nothing when it is off', async () => {
    const [on, off] = [true, false].map((isOn) => new CallTimeline(new VirtualClock(), isOn));
    for (let i = 0; i < 300; i += 1) {
      on?.moment('digit');
      off?.moment('digit');
      await on?.step('relay offer', Promise.resolve());
    }
    await off?.step('relay offer', Promise.resolve());
    expect([on?.read().moments.length, on?.read().steps.length, off?.read().steps.length, off?.read().moments.length]).toEqual([
      100, 100, 0, 0,
    ]);
  });
});

describe('the exporter', () => {
  const call = (callId: string): EndedCall => ({
    record: { ...RECORD, call_id: callId },
    trace: [],
    completion: null,
    timeline: { steps: [], moments: [] },
  });

  const clock = new VirtualClock();

  async function exporting(collector: OtlpCollector, work: (take: (call: EndedCall) => void) => void | Promise<void>) {
    const counted = new Map<string, number>();
    const log = new EventLog();
    const exporter = openTraceExporter({
      url: collector.url,
      ratio: 1,
      instance: 'gw-1',
      clock,
      counts: {
        count: (_name, labels, by = 1) => {
          const [outcome = ''] = Object.values(labels);
          counted.set(outcome, (counted.get(outcome) ?? 0) + by);
        },
      },
      log,
    });
    await work(({ record, timeline }) => {
      if (timeline !== undefined) exporter.take(record.call_id, () => callSpans(record, timeline));
    });
    await exporter.close();
    return { counted: Object.fromEntries(counted), log };
  }

  it('sends spans by OTLP over HTTP, with the ids that others got', async () => {
    const collector = await OtlpCollector.open();
    const { counted } = await exporting(collector, (take) => take(call(CALL_ID)));
    collector.close();
    expect(counted).toEqual({ exported: 3 });
    const root = collector.spans.find(({ name }) => name === 'call');
    expect(root).toMatchObject({
      traceId: traceIdOf(CALL_ID),
      spanId: spanIdOf(CALL_ID),
      startTimeUnixNano: '1767225600000000000',
      endTimeUnixNano: '1767225610000000000',
      events: [{ name: 'end' }],
    });
    expect(root?.parentSpanId ?? '').toBe('');
    expect(collector.spans.filter(({ parentSpanId }) => parentSpanId === spanIdOf(CALL_ID))).toHaveLength(2);
    expect(collector.bodies.join()).toContain('"service.name"');
  });

  it('loses spans when the collector is away, logs that once, and delays nothing', async () => {
    const collector = await OtlpCollector.open();
    collector.status = 400;
    const { counted, log } = await exporting(collector, (take) => take(call(CALL_ID)));
    collector.close();
    expect(counted).toEqual({ dropped: 3 });
    expect(log.named('telemetry.not_exported')).toHaveLength(1);
  });

  it('sends again what a collector that was away did not accept', async () => {
    const collector = await OtlpCollector.open();
    collector.status = 400;
    const { counted, log } = await exporting(collector, async (take) => {
      take(call(CALL_ID));
      await passUntil(clock, () => collector.bodies.length === 1);
      collector.status = 200;
      await passUntil(clock, () => collector.spans.length === 3);
    });
    collector.close();
    expect(counted).toEqual({ exported: 3 });
    expect(log.named('telemetry.not_exported')).toHaveLength(1);
  });

  it('keeps a bounded number of spans', async () => {
    const collector = await OtlpCollector.open();
    const { counted } = await exporting(collector, (take) => {
      for (let i = 0; i < 2_000; i += 1) take(call(crypto.randomUUID()));
    });
    collector.close();
    expect(counted['dropped']).toBe(6_000 - 4_095);
    expect(collector.spans).toHaveLength(4_095);
  });
});

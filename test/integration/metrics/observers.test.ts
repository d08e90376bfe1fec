import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { spanIdOf, traceIdOf } from '../../../src/observability/tracing/trace-context.js';
import { AgentSite } from '../../support/agent/agent-site.js';
import { until } from '../../support/carrier-call.js';
import { HepCollector } from '../../support/hep.js';
import { OtlpCollector } from '../../support/otlp-collector.js';
import { WebhookReceiver } from '../../support/webhook-receiver.js';

let homer: HepCollector;
let otlp: OtlpCollector;
let receiver: WebhookReceiver;
let site: AgentSite;

beforeAll(async () => {
  [homer, otlp, receiver] = await Promise.all([HepCollector.open(), OtlpCollector.open(), WebhookReceiver.start()]);
  site = await AgentSite.start({
    TRUNKLINE_HEP_ADDRESS: `127.0.0.1:${String(homer.port)}`,
    TRUNKLINE_HEP_CAPTURE_ID: '77',
    TRUNKLINE_HEP_PASSWORD: 'homer-password',
    TRUNKLINE_TELEMETRY_OTLP_URL: otlp.url,
    TRUNKLINE_WEBHOOKS_ALLOW_PRIVATE: 'true',
    TRUNKLINE_CALLS_TRACE: 'false',
  });
});

afterAll(async () => {
  await site.stop();
  await receiver.stop();
  homer.close();
  otlp.close();
});

describe('a call, looked at from outside', () => {
  it('is at the Homer collector message by message, without keys, and one trace from the gateway to the agent and the webhook', async () => {
    const number = await site.numberOf({ stream: { url: site.bot.url }, webhook: receiver.url('/done') });
    const call = await site.talking({ number });
    const { callId } = call.signalling;
    await until(() => homer.packets.length >= 3, 5_000, 'no packets');
    await call.hangUp();
    const { call_id: id } = await site.gateway.record(callId);
    const own = `127.0.0.1:${String(site.gateway.sipPort)}`;
    await until(
      () => homer.packets.some(({ payload }) => /^SIP\/2\.0 200 [^]*\r\nCSeq: \d+ BYE\r\n/.test(payload)),
      5_000,
      'no 200 to the BYE',
    );

    expect(homer.packets.every((one) => one.correlationId === callId && one.captureId === 77 && one.password === 'homer-password')).toBe(
      true,
    );
    const said = homer.packets.map(({ payload, source }) => `${source === own ? 'out' : 'in'} ${payload.split(/ sip|\r/)[0] ?? ''}`);
    expect(said).toEqual(expect.arrayContaining(['in INVITE', 'out SIP/2.0 200 OK', 'in ACK', 'in BYE']));
    const times = homer.packets.map(({ atMs }) => Math.abs(atMs - Date.now()));
    expect(Math.max(...times)).toBeLessThan(60_000);
    const texts = homer.packets.map(({ payload }) => payload).join('\n');
    expect(texts).toMatch(/a=crypto:\S+ AES_CM_128_HMAC_SHA1_80 \*\*\*/);
    expect(texts).not.toContain('inline:');
    expect(texts).not.toMatch(/X-Trunkline/i);

    const traceId = traceIdOf(String(id));
    const [webhook] = await receiver.first('/done', 1, 10_000);
    const expected = `00-${traceId}-${spanIdOf(String(id))}-01`;
    expect([call.bot.upgrade.headers['traceparent'], webhook?.headers['traceparent']]).toEqual([expected, expected]);
    await until(() => otlp.spans.some(({ name }) => name === 'call'), 10_000, 'no spans');
    expect(new Set(otlp.spans.map((span) => span.traceId))).toEqual(new Set([traceId]));
    const names = otlp.spans.map(({ name }) => name);
    expect(names).toEqual(expect.arrayContaining(['call', 'look-up', 'relay offer', 'relay answer', 'agent connect', 'talk']));
    expect(otlp.bodies.join('\n')).not.toContain(number.slice(1));
  });
});

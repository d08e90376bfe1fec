import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { spanIdOf, traceIdOf } from '../../../src/observability/tracing/trace-context.js';
import { AgentSite } from '../../support/agent/agent-site.js';
import { until } from '../../support/carrier-call.js';
import { HepCollector, type HepPacket } from '../../support/hep.js';
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

const messages = (): readonly HepPacket[] => homer.packets.filter(({ payloadType }) => payloadType === 1);
const reports = (): readonly HepPacket[] => homer.packets.filter(({ payloadType }) => payloadType === 5);

describe('a call with a Homer collector and a trace collector', () => {
  it('reaches Homer message by message without keys, and makes one trace from the gateway to the agent and the webhook', async () => {
    const number = await site.numberOf({ stream: { url: site.bot.url }, webhook: receiver.url('/done') });
    const call = await site.talking({ number });
    const { callId } = call.signalling;
    await until(() => homer.packets.length >= 3, 'no packets');
    await until(() => reports().length > 0, 'no RTCP of the gateway');
    call.end.peer.sendReport();
    await until(() => new Set(reports().map(({ source }) => source)).size === 2, 'no RTCP of the carrier');
    await call.hangUp();
    const { call_id: id } = await site.gateway.record(callId);
    const own = `127.0.0.1:${String(site.gateway.sipPort)}`;
    await until(() => homer.packets.some(({ payload }) => /^SIP\/2\.0 200 [^]*\r\nCSeq: \d+ BYE\r\n/.test(payload)), 'no 200 to the BYE');

    expect(homer.packets.every((one) => one.correlationId === callId && one.captureId === 77 && one.password === 'homer-password')).toBe(
      true,
    );
    const said = messages().map(({ payload, source }) => `${source === own ? 'out' : 'in'} ${payload.split(/ sip|\r/)[0] ?? ''}`);
    expect(said).toEqual(expect.arrayContaining(['in INVITE', 'out SIP/2.0 200 OK', 'in ACK', 'in BYE']));
    // The media leg of the gateway, and rtpengine's inside.
    const ofSource = (source: string | undefined) => reports().filter((one) => one.source === source);
    const ours = ofSource(reports()[0]?.source);
    const [theirs] = ofSource(reports()[0]?.destination);
    expect(ours.length + ofSource(theirs?.source).length).toBe(reports().length);
    expect(theirs).toMatchObject({ destination: ours[0]?.source, protocol: 17 });
    expect(JSON.parse(theirs?.payload ?? '')).toMatchObject({ type: 200, ssrc: call.end.peer.ssrc, report_blocks: [{ packets_lost: 0 }] });
    expect(JSON.parse(ours[0]?.payload ?? '')).toMatchObject({ type: 200, sdes_report_count: 1 });
    const times = homer.packets.map(({ atMs }) => Math.abs(atMs - Date.now()));
    expect(Math.max(...times)).toBeLessThan(60_000);
    const texts = homer.packets.map(({ payload }) => payload).join('\n');
    expect(texts).toMatch(/a=crypto:\S+ AES_CM_128_HMAC_SHA1_80 \*\*\*/);
    expect(texts).not.toContain('inline:');
    expect(texts).not.toMatch(/X-Trunkline/i);

    const traceId = traceIdOf(String(id));
    const [webhook] = await receiver.first('/done', 1);
    const expected = `00-${traceId}-${spanIdOf(String(id))}-01`;
    expect([call.bot.upgrade.headers['traceparent'], webhook?.headers['traceparent']]).toEqual([expected, expected]);
    await until(() => otlp.spans.some(({ name }) => name === 'call'), 'no spans');
    expect(new Set(otlp.spans.map((span) => span.traceId))).toEqual(new Set([traceId]));
    const names = otlp.spans.map(({ name }) => name);
    expect(names).toEqual(expect.arrayContaining(['call', 'look-up', 'relay offer', 'relay answer', 'agent connect', 'talk']));
    expect(otlp.bodies.join('\n')).not.toContain(number.slice(1));
  });
});

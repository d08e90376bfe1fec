import { mulaw } from 'alawmulaw';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { builtInGreeting } from '../../../src/gateway/agents/languages.js';
import { EspeakSpeech } from '../../../src/gateway/agents/speech.js';
import type { CallRecord } from '../../../src/gateway/model/call-record.js';
import { TestBot, type BotCall } from '../../support/agent/test-bot.js';
import { RunningGateway } from '../../support/gateway.js';
import { until } from '../../support/carrier-call.js';
import { framesInOrder } from '../../support/media/frames-in-order.js';
import { FROM, OutboundSite } from '../../support/outbound-site.js';
import { parseExposition } from '../../support/prometheus-text.js';
import { attach, nothingLeft } from '../../support/trunk.js';

// Two installations: one's bot calls the number of the other's test line.

const CALLED = '+15550104001';
let bot: TestBot;
let caller: OutboundSite;
let callee: RunningGateway;

beforeAll(async () => {
  [bot, callee] = await Promise.all([TestBot.start(), RunningGateway.start()]);
  await attach(callee, CALLED);
  caller = await OutboundSite.start(false, { TRUNKLINE_AGENTS_URL: bot.url, TRUNKLINE_AGENTS_ALLOW_PRIVATE: 'true' });
  const directions = [{ type: 'outbound', sip_endpoint: `127.0.0.1:${String(callee.sipPort)}`, ca: callee.ca }];
  const attached = await caller.gateway.api('POST', '/sip/attach', { phone_number: FROM, directions, service: 'sip' });
  expect(attached.status, JSON.stringify(attached.json)).toBe(200);
  await caller.allow('--prices', '+1555=0.01');
});
afterAll(async () => {
  await caller.destroy();
  await callee.destroy();
  await bot.stop();
});
afterEach(async () => {
  for (const { environment } of [caller.gateway, callee]) await nothingLeft(Number(environment['TRUNKLINE_RTPENGINE_NG_PORT']));
});

interface Talk {
  readonly callId: string;
  readonly sipCallId: string;
  readonly call: BotCall;
}

/** A level that no greeting keeps, and a frame of it. */
const LEVEL = Buffer.alloc(160, 0x9f);

/** A call in which the bot hears the test line's greeting, which takes 11 s, and then its own level as the test line's echo. */
async function talking(): Promise<Talk> {
  const samples = await new EspeakSpeech().synthesize(builtInGreeting('ENG'), []);
  const greeting = Buffer.from(mulaw.encode(samples.subarray(0, samples.length - (samples.length % LEVEL.length))));
  const lateBefore = await packetsLate();
  const { callId, call } = await place();
  // Every frame, in order, but for those that came after the caller had made them up: on a busy machine the callee pauses in between.
  await until(
    async () => framesInOrder(call.heard, greeting) + (await packetsLate()) - lateBefore >= greeting.length / LEVEL.length,
    'the greeting is not whole',
    { everyMs: 200 },
  );
  expect(call.heard.includes(LEVEL)).toBe(false);
  // Said for as long as the bot may be waited for.
  call.say(Buffer.alloc(800_000, LEVEL));
  await until(() => call.heard.subarray(-16_000).includes(LEVEL), 'no echo');
  const shown = await caller.callOf(callId);
  expect(shown).toMatchObject({ state: 'in_progress', codec: 'PCMU', crypto_suite: 'AES_CM_128_HMAC_SHA1_80' });
  return { callId, sipCallId: shown.sip_call_id, call };
}

async function place(): Promise<{ readonly callId: string; readonly call: BotCall }> {
  const before = bot.calls.all.length;
  const { status, json } = await caller.place({ phone_number: CALLED });
  expect(status, JSON.stringify(json)).toBe(200);
  return { callId: String(json['call_id']), call: await bot.calls.at(before) };
}

async function stop(callId: string): Promise<void> {
  expect((await caller.gateway.api('POST', `/v1/calls/${callId}/stop`, {})).status).toBe(200);
}

/** Of the callee, when they came to the caller: behind those that stand in their place. */
async function packetsLate(): Promise<number> {
  const answer = await fetch(`${caller.gateway.ready.http}/metrics`);
  return parseExposition(await answer.text()).sum('trunkline_media_packets_late_total') ?? 0;
}

/** What both sides wrote of the call: the caller's first. */
async function records({ callId, sipCallId }: Talk): Promise<readonly [CallRecord, CallRecord]> {
  return [await caller.ended(callId), (await callee.record(sipCallId)) as unknown as CallRecord];
}

/** Both relays took packets from both directions, and none of them in vain. */
function expectMediaBothWays(both: readonly CallRecord[]): void {
  for (const { codec, crypto_suite: suite, quality } of both) {
    expect([codec, suite]).toEqual(['PCMU', 'AES_CM_128_HMAC_SHA1_80']);
    for (const stream of [quality.relay!.from_carrier, quality.relay!.from_agent]) {
      expect(stream.packets).toBeGreaterThan(50);
      expect(stream.errors).toBe(0);
    }
  }
}

describe('Trunkline, as the carrier of outbound calls,', () => {
  it('answers over TLS with SRTP: both sides hear each other, until the API of the caller ends the call', async () => {
    const talk = await talking();
    await stop(talk.callId);
    const both = await records(talk);
    expectMediaBothWays(both);
    expect(both).toMatchObject([
      { direction: 'outbound', reason: 'API_STOPPED', sip_status: 200, from: FROM, to: CALLED },
      { direction: 'inbound', reason: 'CALLER_HANGUP', sip_status: 200, from: FROM, source: { transport: 'tls', tls_version: 'TLSv1.3' } },
    ]);
    await talk.call.message('stop');
  });

  it('ends the call by the API of the callee', async () => {
    const talk = await talking();
    const { calls } = (await callee.api('GET', '/v1/calls?state=in_progress')).json as {
      calls: { call_id: string; sip_call_id: string }[];
    };
    const { call_id: theirs } = calls.find(({ sip_call_id: id }) => id === talk.sipCallId)!;
    expect((await callee.api('POST', `/v1/calls/${theirs}/stop`, {})).status).toBe(200);
    const both = await records(talk);
    expectMediaBothWays(both);
    expect(both.map(({ reason }) => reason)).toEqual(['CALLEE_HANGUP', 'API_STOPPED']);
    await talk.call.message('stop');
  });
});

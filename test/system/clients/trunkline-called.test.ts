import { mulaw } from 'alawmulaw';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { builtInGreeting } from '../../../src/gateway/agents/languages.js';
import { EspeakSpeech } from '../../../src/gateway/agents/speech.js';
import type { CallRecord } from '../../../src/gateway/model/call-record.js';
import { findPhrase } from '../../../src/loadtest/test-caller/correlation.js';
import { TestBot, type BotCall } from '../../support/agent/test-bot.js';
import { RunningGateway } from '../../support/gateway.js';
import { until, untilWhole } from '../../support/carrier-call.js';
import { muLawNoise } from '../../support/media/mu-law.js';
import { FROM, OutboundSite } from '../../support/outbound-site.js';
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

/** A call in which the bot hears the test line's greeting, which takes 11 s, and its own noise as the test line's echo. */
async function talking(): Promise<Talk> {
  const greeting = await new EspeakSpeech().synthesize(builtInGreeting('ENG'), []);
  let placed!: { readonly callId: string; readonly call: BotCall };
  await untilWhole(async () => {
    placed = await place();
    const heard = (): number => scoreOf(placed.call, greeting);
    await expect
      .poll(heard, { interval: 200 })
      .toBeGreaterThan(0.95)
      .catch(async (error: unknown) => {
        await stop(placed.callId);
        throw error;
      });
  });
  const { callId, call } = placed;
  const score = (expected: Int16Array): number => scoreOf(call, expected);
  const noise = muLawNoise(0.5, 31);
  expect(score(mulaw.decode(noise))).toBeLessThan(0.5);
  await untilWhole(() => {
    call.say(noise);
    return until(() => score(mulaw.decode(noise)) > 0.95, 'the echo is not whole');
  });
  const shown = await caller.callOf(callId);
  expect(shown).toMatchObject({ state: 'in_progress', codec: 'PCMU', crypto_suite: 'AES_CM_128_HMAC_SHA1_80' });
  return { callId, sipCallId: shown.sip_call_id, call };
}

async function place(): Promise<{ readonly callId: string; readonly call: BotCall }> {
  const before = bot.calls.all.length;
  const { status, json } = await caller.place({ phone_number: CALLED });
  expect(status, JSON.stringify(json)).toBe(200);
  return { callId: String(json['call_id']), call: await bot.calls.at(before, 10_000) };
}

async function stop(callId: string): Promise<void> {
  expect((await caller.gateway.api('POST', `/v1/calls/${callId}/stop`, {})).status).toBe(200);
}

function scoreOf(call: BotCall, expected: Int16Array): number {
  return findPhrase(mulaw.decode(call.heard), expected)?.score ?? 0;
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

describe('Trunkline, as the carrier of calls that we place', () => {
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
    expect(both.map(({ reason }) => reason)).toEqual(['CALLER_HANGUP', 'API_STOPPED']);
    await talk.call.message('stop');
  });
});

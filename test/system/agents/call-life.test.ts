import { mulaw } from 'alawmulaw';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { AgentSite, type AgentCall } from '../../support/agent/agent-site.js';
import { TestBot, type BotCall } from '../../support/agent/test-bot.js';
import { voiceLikeNoise } from '../../support/media/audio.js';
import { framesInOrder } from '../../support/media/frames-in-order.js';
import { until } from '../../support/carrier-call.js';
import { isKept, killGateway, nothingLeft } from '../../support/trunk.js';

// A call's agent for as long as the call lasts: beside other calls, over a gateway's death, to the end that its owner set.

let site: AgentSite;
let other: TestBot;
let otherNumber: string;

beforeAll(async () => {
  [site, other] = await Promise.all([AgentSite.start({ TRUNKLINE_CALLS_DRAIN_MS: '200' }), TestBot.start()]);
  otherNumber = await site.numberOf({ stream: { url: other.url }, prompt: 'the other one' });
});
afterAll(async () => {
  await site.stop();
  await other.stop();
});

const noise = (seed: number): Buffer => Buffer.from(mulaw.encode(voiceLikeNoise(3_200, seed)));
const startOf = (bot: BotCall): { callSid: string; customParameters: Record<string, string> } =>
  (bot.start as unknown as { start: { callSid: string; customParameters: Record<string, string> } }).start;

/** This caller and this bot, and nobody else, hear each other. */
async function hearEachOther(call: AgentCall, bot: BotCall, seed: number): Promise<void> {
  const [said, answer] = [noise(seed), noise(seed + 1)];
  bot.say(answer);
  // Ahead of its time: a caller whose packets are late would be heard with what stands in their place.
  await call.end.peer.speakAhead(mulaw.decode(said));
  await Promise.all([
    until(() => framesInOrder(bot.heard, codeOf(said)) === said.length / 160, 'the bot does not hear the caller'),
    call.end.heard(answer),
  ]);
}

/** As it is on the wire: a zero has one code. */
const codeOf = (bytes: Buffer): Buffer => Buffer.from(mulaw.encode(mulaw.decode(bytes)));

describe('two agents of one organization on two numbers', () => {
  it('have the calls to their own numbers, at the same time', async () => {
    const [mine, theirs] = [await site.talking(), await site.talking({ number: otherNumber }, other)];
    expect(startOf(mine.bot).customParameters).toMatchObject({ to: site.gateway.ready.phone_number });
    expect(startOf(theirs.bot).customParameters).toMatchObject({ to: otherNumber, prompt: 'the other one' });
    await Promise.all([hearEachOther(mine, mine.bot, 31), hearEachOther(theirs, theirs.bot, 41)]);
    expect(other.calls.all).toHaveLength(1);
    await Promise.all([mine.hangUp(), theirs.hangUp()]);
  });
});

describe('a gateway that is killed in a call', () => {
  it('takes it up again, and connects the bot anew: the same call', async () => {
    const call = await site.talking();
    await hearEachOther(call, call.bot, 51);
    await isKept(site.gateway, call.signalling.callId);
    const calls = site.bot.calls.all.length;
    await killGateway(site.gateway);
    expect(await call.bot.closed.at(0)).toBe(1_006);
    const again = await site.bot.calls.at(calls);
    await again.message('start');
    expect(startOf(again).callSid).toBe(startOf(call.bot).callSid);
    expect(startOf(again).customParameters).toEqual({
      ...startOf(call.bot).customParameters,
      reconnects: '1',
      missed_ms: expect.stringMatching(/^[1-9]\d*$/) as string,
    });
    await hearEachOther(call, again, 61);
    await call.hangUp();
    expect(await again.closed.at(0)).toBe(1_000);
    expect(await site.gateway.record(call.signalling.callId)).toMatchObject({ reason: 'CALLER_HANGUP', resumed: 1 });
    await nothingLeft(Number(site.gateway.environment['TRUNKLINE_RTPENGINE_NG_PORT']));
  });
});

describe('a gateway that is stopped', () => {
  it('ends its calls with SHUTDOWN when they have had their time, and tells each bot with stop', async () => {
    const call = await site.talking();
    const stopping = site.gateway.stop();
    expect(await call.ended()).toContain('text="SHUTDOWN"');
    expect(await call.bot.closed.at(0)).toBe(1_000);
    expect(call.bot.messages.all.at(-1)).toMatchObject({ event: 'stop' });
    await stopping;
  });
});

import { mulaw } from 'alawmulaw';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { AgentSite, type AgentCall } from '../../support/agent/agent-site.js';
import { TestBot, type BotCall } from '../../support/agent/test-bot.js';
import { muLawNoise } from '../../support/media/mu-law.js';
import { isKept } from '../../support/trunk.js';
import { World } from '../world.js';

// A call's agent for as long as the call lasts: beside other calls, over a gateway's death, to the end that its owner set.

let site: AgentSite<World>;
let other: TestBot;
let otherNumber: string;

beforeAll(async () => {
  [site, other] = await Promise.all([AgentSite.startOn((all) => World.start(all), { TRUNKLINE_CALLS_DRAIN_MS: '200' }), TestBot.start()]);
  otherNumber = await site.numberOf({ stream: { url: other.url }, prompt: 'the other one' });
});
afterAll(async () => {
  await site.stop();
  await other.stop();
});

const noise = (seed: number): Buffer => muLawNoise(0.4, seed);
const startOf = (bot: BotCall): { callSid: string; customParameters: Record<string, string> } =>
  (bot.start as unknown as { start: { callSid: string; customParameters: Record<string, string> } }).start;

/** This caller and this bot, and nobody else, hear each other. */
async function hearEachOther(call: AgentCall, bot: BotCall, seed: number): Promise<void> {
  const [said, answer] = [noise(seed), noise(seed + 1)];
  bot.say(answer);
  await call.end.peer.speak(mulaw.decode(said));
  await Promise.all([bot.messages.until(() => bot.heard.includes(said) || undefined), call.end.heard(answer)]);
}

describe('two agents of one organization on two numbers', () => {
  it('get the calls to their own numbers, at the same time', async () => {
    const [mine, theirs] = [await site.talking(), await site.talking({ number: otherNumber }, other)];
    expect(startOf(mine.bot).customParameters).toMatchObject({ to: site.gateway.ready.phone_number });
    expect(startOf(theirs.bot).customParameters).toMatchObject({ to: otherNumber, prompt: 'the other one' });
    await Promise.all([hearEachOther(mine, mine.bot, 31), hearEachOther(theirs, theirs.bot, 41)]);
    expect(other.calls.all).toHaveLength(1);
    await Promise.all([mine.hangUp(), theirs.hangUp()]);
  });
});

describe('a gateway that was killed in a call', () => {
  it('resumes the call when it is back, and connects the bot of the call again', async () => {
    const call = await site.talking();
    await hearEachOther(call, call.bot, 51);
    await isKept(site.gateway, call.signalling.callId);
    const calls = site.bot.calls.all.length;
    site.gateway.killGateway();
    await site.gateway.pass(500);
    await site.gateway.startGateway();
    expect(await call.bot.closed.at(0)).toBe(1_006);
    const again = await site.bot.calls.at(calls);
    await again.message('start');
    expect(startOf(again).callSid).toBe(startOf(call.bot).callSid);
    expect(startOf(again).customParameters).toEqual({
      ...startOf(call.bot).customParameters,
      reconnects: '1',
      missed_ms: '500',
    });
    await hearEachOther(call, again, 61);
    await call.hangUp();
    expect(await again.closed.at(0)).toBe(1_000);
    expect(await site.gateway.record(call.signalling.callId)).toMatchObject({ reason: 'CALLER_HANGUP', resumed: 1 });
    await site.gateway.until(() => site.gateway.rtpengine.sessions.size === 0);
  });
});

describe('a gateway that is stopped', () => {
  it('ends its calls with SHUTDOWN after the grace period, and sends stop to each bot', async () => {
    const call = await site.talking();
    const stopping = site.gateway.stopGateway();
    expect(await call.ended()).toContain('text="SHUTDOWN"');
    expect(await call.bot.closed.at(0)).toBe(1_000);
    expect(call.bot.messages.all.at(-1)).toMatchObject({ event: 'stop' });
    await stopping;
  });
});

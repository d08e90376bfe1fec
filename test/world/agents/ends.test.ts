import { mulaw } from 'alawmulaw';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { AgentSite, type AgentCall } from '../../support/agent/agent-site.js';
import { TestBot, type BotCall, type BotOptions } from '../../support/agent/test-bot.js';
import { voiceLikeNoise } from '../../support/media/audio.js';
import { muLawNoise } from '../../support/media/mu-law.js';
import { World } from '../world.js';

// How a connection to a bot ends, and what becomes of the call.

const PORT = 45_678;
const GRACE_MS = 10_000;
const PING_INTERVAL_MS = 5_000;
const UNSENT_AUDIO_MS = 400;
const NOISE = Buffer.from(mulaw.encode(voiceLikeNoise(8_000, 21)));
let site: AgentSite<World>;
let bot: TestBot | undefined;

beforeAll(async () => {
  site = await AgentSite.startOn((all) => World.start(all), {
    TRUNKLINE_AGENTS_URL: `ws://127.0.0.1:${String(PORT)}/stream`,
    TRUNKLINE_AGENTS_RECONNECT_GRACE_MS: String(GRACE_MS),
    TRUNKLINE_AGENTS_PING_INTERVAL_MS: String(PING_INTERVAL_MS),
    TRUNKLINE_AGENTS_MAX_UNSENT_AUDIO_MS: String(UNSENT_AUDIO_MS),
  });
});
afterEach(async () => {
  await bot?.stop();
  bot = undefined;
});
afterAll(() => site.stop());

async function startBot(options: BotOptions = {}): Promise<TestBot> {
  return (bot = await TestBot.start({ port: PORT, ...options }));
}

async function talking(): Promise<AgentCall> {
  return site.talking({}, bot);
}

const startOf = (call: BotCall): { callSid: string; streamSid: string; customParameters: Record<string, string> } =>
  (call.start as unknown as { start: { callSid: string; streamSid: string; customParameters: Record<string, string> } }).start;

/** Both hear each other on this connection. */
async function talksOn(call: AgentCall, connection: BotCall): Promise<void> {
  const voiced = call.end.voiced;
  connection.say(NOISE.subarray(0, 3_200));
  const said = muLawNoise(0.3, 31);
  await call.end.peer.speak(mulaw.decode(said));
  await connection.messages.until(() => connection.heard.includes(said) || undefined);
  await call.end.peer.until(() => call.end.voiced > voiced + 10);
}

/** The second connection is that of the same call, whose caller noticed nothing but silence. */
async function isBack(call: AgentCall, again: BotCall): Promise<void> {
  await again.message('start');
  expect(startOf(again).callSid).toBe(startOf(call.bot).callSid);
  expect(startOf(again).streamSid).not.toBe(startOf(call.bot).streamSid);
  const { missed_ms: missedMs, ...parameters } = startOf(again).customParameters;
  expect(parameters).toEqual({ ...startOf(call.bot).customParameters, reconnects: '1' });
  expect(missedMs).toMatch(/^\d+$/);
  await talksOn(call, again);
  expect(call.peer.received.some(({ startLine }) => startLine.startsWith('BYE '))).toBe(false);
  await call.hangUp();
}

describe('a bot that closes its connection', () => {
  it.each([
    ['with 1000', 1_000],
    ['with 1001', 1_001],
    ['without a code', undefined],
  ])('%s ends the call: the caller gets BYE with AGENT_HANGUP, and the gateway connects no other time', async (_how, code) => {
    await startBot();
    const call = await talking();
    call.bot.socket.close(code);
    expect(await call.ended()).toContain('text="AGENT_HANGUP"');
    expect(bot!.calls.all).toHaveLength(1);
    expect(await site.gateway.record(call.signalling.callId)).toMatchObject({ reason: 'AGENT_HANGUP', sip_status: 200, agent_error: null });
  });
});

describe('a bot that loses its connection', () => {
  it('gets its call again, as the same call, when it is back within the grace period', async () => {
    const first = await startBot();
    const call = await talking();
    await talksOn(call, call.bot);
    await first.stop();
    const second = await startBot();
    await isBack(call, await second.calls.at(0));
  });

  it('loses its call, which gets BYE with AGENT_LOST, when it is not back within the grace period', async () => {
    await startBot();
    const call = await talking();
    const brokenMs = performance.now();
    await bot!.stop();
    expect(await call.ended()).toContain('text="AGENT_LOST"');
    expect(performance.now() - brokenMs).toBe(GRACE_MS);
    expect(await site.gateway.record(call.signalling.callId)).toMatchObject({ reason: 'AGENT_LOST', sip_status: 200 });
  });

  it('loses its call after some attempts with backoff when it closes at each start', async () => {
    const failing = await startBot({ onMessage: (call, { event }) => event === 'start' && call.socket.close(1_011) });
    const call = await talking();
    expect(await call.ended()).toContain('text="AGENT_LOST"');
    expect(failing.calls.all.length).toBeGreaterThan(1);
    expect(failing.calls.all.length).toBeLessThan(20);
  });
});

describe('a bot that freezes', () => {
  it('answers no ping, so the gateway connects it again', async () => {
    const frozen = await startBot();
    const call = await talking();
    call.bot.socket.pause();
    const again = await frozen.calls.at(1);
    await isBack(call, again);
  });
});

describe('a bot that does not read for a while', () => {
  it('gets the latest audio without what it missed, and a message with how much it missed', async () => {
    await startBot();
    const call = await talking();
    call.bot.send({ event: 'configure', configure: { drop_events: true } });
    call.bot.socket.pause();
    await call.end.peer.speak(voiceLikeNoise(6_400, 22));
    call.bot.socket.resume();
    const dropped = await call.bot.message('dropped');
    const { track, milliseconds } = dropped.dropped as { track: string; milliseconds: number };
    expect(track).toBe('inbound');
    await call.bot.messages.until(() => call.bot.messages.all.indexOf(dropped) < call.bot.messages.all.length - 30 || undefined);
    const times = call.bot.of('media').map(({ media }) => Number((media as { timestamp: string }).timestamp));
    const gaps = times.map((time, index) => time - (times[index - 1] ?? -20) - 20).filter((gap) => gap !== 0);
    expect(gaps).toEqual([milliseconds]);
    // The network would have held it all.
    expect(milliseconds).toBeGreaterThanOrEqual(300);
    await call.hangUp();
  });
});

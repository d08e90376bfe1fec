import { alaw, mulaw } from 'alawmulaw';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { findPhrase } from '../../../src/loadtest/test-caller/correlation.js';
import { AgentSite, type AgentCall } from '../../support/agent/agent-site.js';
import { payloadOf, type BotMessage } from '../../support/agent/test-bot.js';
import { voiceLikeNoise } from '../../support/media/audio.js';
import { World } from '../world.js';

// A bot as its owner would write it for Twilio Media Streams, behind the whole product.

const SECOND = 8_000;
const HEX = /^[0-9a-f]{32}$/;
let site: AgentSite<World>;

beforeAll(async () => {
  site = await AgentSite.startOn((settings) => World.start(settings));
});
afterAll(() => site.stop());

/** µ-law of the voice band, unlike any other; without the second zero, which a decoder makes the first. */
const noise = (seconds: number, seed: number): Buffer =>
  Buffer.from(mulaw.encode(voiceLikeNoise(seconds * SECOND, seed))).map((byte) => (byte === 0x7f ? 0xff : byte)) as Buffer;

const audioOf = ({ end }: AgentCall) => end.peer.received.filter(({ packet }) => packet.header.payloadType === 0);
const heardBy = (call: AgentCall): Buffer => Buffer.concat(audioOf(call).map(({ packet }) => packet.payload));

/** Resolves when the carrier heard exactly these bytes, with when the last of them came; no packet has the time of another one. */
async function heardWhole(call: AgentCall, said: Buffer): Promise<number> {
  await call.end.peer.until(() => heardBy(call).includes(said));
  const audio = audioOf(call);
  const at = heardBy(call).indexOf(said);
  const packets = audio.slice(Math.floor(at / 160), Math.floor((at + said.length - 1) / 160) + 1);
  const stamps = packets.map(({ packet }) => packet.header.timestamp);
  // A media thread that stands still leaves out whole frames of time.
  const steps = stamps.slice(1).map((stamp, index) => (stamp - stamps[index]!) | 0);
  expect(steps.filter((step) => step < 160 || step % 160 !== 0)).toEqual([]);
  return packets.at(-1)!.arrivalMs;
}

const timesOf = (messages: readonly BotMessage[]): number[] =>
  messages.map(({ media }) => Number((media as { timestamp: string }).timestamp));
const markOf = ({ mark }: BotMessage): string => (mark as { name: string }).name;

describe('a Twilio bot', () => {
  it('gets its connection before the 200, and no message before the ACK', async () => {
    const call = await site.invite();
    await call.answered();
    // It was accepted: the 200 waited for it.
    const bot = await site.bot.calls.at(0, 0);
    // A round trip through SIP server and gateway, in which nothing is said.
    expect((await call.signalling.request('UPDATE', call.ok)).status).toBe(200);
    expect(bot.messages.all).toEqual([]);
    call.ack();
    expect((await bot.messages.at(0)).event).toBe('connected');
    expect((await bot.messages.at(1)).event).toBe('start');
    await call.hangUp();
  });

  it('gets caller, called number, format and the headers of the INVITE in start', async () => {
    const call = await site.talking({ headers: ['X-Order: 4711', 'User-to-User: 00ab;encoding=hex'] });
    const { start } = call.bot.start as unknown as { start: Record<string, unknown> };
    const id = (prefix: string): RegExp => new RegExp(`^${prefix}${HEX.source.slice(1)}`);
    expect(start).toMatchObject({
      accountSid: `AC${site.gateway.ready.org_id.replaceAll('-', '')}`,
      streamSid: expect.stringMatching(id('MZ')) as string,
      callSid: expect.stringMatching(id('CA')) as string,
      tracks: ['inbound'],
      mediaFormat: { encoding: 'audio/x-mulaw', sampleRate: 8_000, channels: 1 },
      customParameters: { from: '+15550100999', to: site.gateway.ready.phone_number },
    });
    const parameters = start['customParameters'] as Record<string, string>;
    expect(`CA${parameters['call_id']?.replaceAll('-', '') ?? ''}`).toBe(start['callSid']);
    const told = JSON.parse(parameters['sip_headers'] ?? '{}') as { headers: Record<string, string>; user_to_user: string };
    expect(JSON.stringify(told)).toContain('4711');
    expect(told.user_to_user).toContain('00ab');
    await call.hangUp();
  });

  it('gets a message each 20 ms from the first packet on, numbered as Twilio does, whether or not the caller speaks', async () => {
    const startedMs = performance.now();
    const call = await site.talking();
    await call.end.peer.speak(voiceLikeNoise(SECOND / 2, 3));
    await call.bot.message('media', 149);
    const media = call.bot.of('media');
    expect(timesOf(media)).toEqual(media.map((_, index) => 20 * index));
    expect(media.map((one) => (one.media as { chunk: string }).chunk)).toEqual(media.map((_, index) => String(index + 1)));
    expect(media.map(({ sequenceNumber }) => sequenceNumber)).toEqual(media.map((_, index) => String(index + 2)));
    expect(new Set(media.map((one) => payloadOf(one).length))).toEqual(new Set([160]));
    // No sooner than time passes.
    expect(call.bot.arrivalMs(media.at(-1)!) - startedMs).toBeGreaterThan(18 * media.length);
    await call.hangUp();
  });

  it('hears the caller byte for byte, from before the ACK on, and the caller hears the first word of the bot', async () => {
    const said = noise(0.2, 5);
    const greeting = noise(1, 6);
    // Audio does not go the way of the ACK: here three packets are quicker.
    const quicker = 3 * 160;
    const before = site.bot.calls.all.length;
    const call = await site.invite();
    await call.answered();
    const bot = await site.bot.calls.at(before, 0);
    // In one turn: nothing that this process waits for comes between them.
    call.end.peer.speakAtOnce(mulaw.decode(said.subarray(0, quicker)));
    call.ack();
    call.end.peer.speakAtOnce(mulaw.decode(said.subarray(quicker)));
    await bot.message('start');
    bot.say(greeting);
    await heardWhole(call, greeting);
    await bot.messages.until(() => bot.heard.includes(said) || undefined);
    await call.hangUp();
  });

  it('hears a caller with PCMA in µ-law', async () => {
    const call = await site.talking({ codec: 'PCMA' });
    const said = voiceLikeNoise(SECOND / 2, 7);
    const expected = mulaw.decode(mulaw.encode(alaw.decode(alaw.encode(said))));
    const score = (): number => findPhrase(mulaw.decode(call.bot.heard), expected)?.score ?? 0;
    // Ahead of its time: what stands in the place of late packets is another sound.
    await call.end.peer.speakAhead(said);
    await site.gateway.until(() => score() > 0.999);
    await call.hangUp();
  });
});

describe('the audio of a Twilio bot', () => {
  it('that comes all at once is heard whole and at the pace of speech, and its mark comes back when it was heard', async () => {
    const call = await site.talking();
    const said = noise(2, 11);
    const half = said.length / 2;
    const saidMs = performance.now();
    call.bot.say(said.subarray(0, half));
    call.bot.send({ event: 'mark', streamSid: call.bot.streamSid, mark: { name: 'half' } });
    call.bot.say(said.subarray(half));
    call.bot.send({ event: 'mark', streamSid: call.bot.streamSid, mark: { name: 'end' } });
    const end = await call.bot.message('mark', 1);
    const middle = await call.bot.message('mark', 0);
    expect([markOf(middle), markOf(end)]).toEqual(['half', 'end']);
    expect((await heardWhole(call, said)) - saidMs).toBeGreaterThan(1_900);
    expect(call.bot.arrivalMs(end) - saidMs).toBeGreaterThan(1_900);
    expect(call.bot.arrivalMs(middle) - saidMs).toBeGreaterThan(900);
    // The caller's frames in between are the time that the bot spoke: the first mark did not wait for the second half.
    const { all } = call.bot.messages;
    const between = all.slice(all.indexOf(middle), all.indexOf(end)).filter(({ event }) => event === 'media');
    expect(between.length).toBeGreaterThan(45);
    await call.hangUp();
  });

  it('stops within some frames after clear, and the marks that waited come back at once', async () => {
    const call = await site.talking();
    const { bot, end } = call;
    const said = noise(10, 13);
    bot.say(said);
    for (const name of ['one', 'two']) bot.send({ event: 'mark', streamSid: bot.streamSid, mark: { name } });
    await end.peer.until(() => end.voiced > 10);
    bot.send({ event: 'clear', streamSid: bot.streamSid });
    const second = await bot.message('mark', 1);
    expect(bot.of('mark').map(markOf)).toEqual(['one', 'two']);
    expect(markOf(second)).toBe('two');
    const anew = noise(1, 14);
    bot.say(anew);
    await heardWhole(call, anew);
    // What is said anew comes after some of the ten seconds, and none of them after it.
    const heard = heardBy(call);
    expect(heard.includes(said.subarray(-160))).toBe(false);
    const rest = heard.subarray(heard.indexOf(anew) + anew.length);
    expect(new Set(rest.subarray(0, rest.length - (rest.length % 160)))).toEqual(new Set(rest.length === 0 ? [] : [0xff]));
    await call.hangUp();
  });
});

describe('the DTMF digits', () => {
  it('of the caller reach the bot once each, in order', async () => {
    const call = await site.talking();
    for (const event of [4, 11]) await call.end.peer.press(event);
    await call.bot.message('dtmf', 1);
    expect(call.bot.of('dtmf').map(({ dtmf }) => dtmf)).toEqual(['4', '#'].map((digit) => ({ track: 'inbound_track', digit })));
    await call.hangUp();
  });

  it('[4733 §2.5.1] of the bot reach the carrier as telephone-events of the requested duration', async () => {
    const call = await site.talking();
    call.bot.send({ event: 'dtmf', streamSid: call.bot.streamSid, dtmf: { digits: '7#', duration_ms: 100 } });
    const events = (): Buffer[] =>
      call.end.peer.received.filter(({ packet }) => packet.header.payloadType === 101).map(({ packet }) => packet.payload);
    const ends = (): Buffer[] => events().filter((payload) => ((payload[1] ?? 0) & 0x80) !== 0);
    await call.end.peer.until(() => ends().length === 6);
    expect(ends().map((payload) => [payload[0], payload.readUInt16BE(2)])).toEqual([7, 7, 7, 11, 11, 11].map((event) => [event, 800]));
    await call.hangUp();
  });
});

describe('a caller who hangs up', () => {
  it('ends the stream: the bot gets stop, and the WebSocket closes with 1000', async () => {
    const call = await site.talking();
    const { bot } = call;
    await call.hangUp();
    expect(await bot.closed.at(0)).toBe(1_000);
    const { callSid, accountSid } = (bot.start as unknown as { start: { callSid: string; accountSid: string } }).start;
    expect(bot.messages.all.at(-1)).toMatchObject({ event: 'stop', stop: { accountSid, callSid } });
    expect(await site.gateway.record(call.signalling.callId)).toMatchObject({ reason: 'CALLER_HANGUP' });
  });
});

describe('an INVITE without SDP', () => {
  it('connects its bot before the 200, and both parties hear each other after the ACK', async () => {
    const before = site.bot.calls.all.length;
    const call = await site.invite({ isLate: true });
    await call.answered();
    const bot = await site.bot.calls.at(before, 0);
    expect(bot.messages.all).toEqual([]);
    call.ack();
    await bot.message('start');
    const [said, answer] = [noise(0.2, 17), noise(1, 18)];
    bot.say(answer);
    call.end.peer.speakAtOnce(mulaw.decode(said));
    await bot.messages.until(() => bot.heard.includes(said) || undefined);
    await heardWhole(call, answer);
    await call.hangUp();
  });
});

import { alaw, mulaw } from 'alawmulaw';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { findPhrase } from '../../../src/loadtest/test-caller/correlation.js';
import { AgentSite, type AgentCall } from '../../support/agent/agent-site.js';
import { payloadOf, type BotMessage } from '../../support/agent/test-bot.js';
import { voiceLikeNoise } from '../../support/media/audio.js';

// A bot as its owner would write it for Twilio Media Streams, behind the whole product.

const SECOND = 8_000;
/** Between two packets of a caller who counts as one without gaps. */
const MAX_GAP_MS = 40;
const HEX = /^[0-9a-f]{32}$/;
let site: AgentSite;

beforeAll(async () => {
  site = await AgentSite.start();
});
afterAll(() => site.stop());

/** µ-law of the voice band, unlike any other; without the second zero, which a decoder makes the first. */
const noise = (seconds: number, seed: number): Buffer =>
  Buffer.from(mulaw.encode(voiceLikeNoise(seconds * SECOND, seed))).map((byte) => (byte === 0x7f ? 0xff : byte)) as Buffer;

/** Where the carrier heard exactly these bytes: the packets that hold them; none when they are not there without a gap. */
function heardWhole({ end }: AgentCall, said: Buffer): { readonly firstMs: number; readonly lastMs: number } | undefined {
  const audio = end.peer.received.filter(({ packet }) => packet.header.payloadType === 0);
  const at = Buffer.concat(audio.map(({ packet }) => packet.payload)).indexOf(said);
  const [first, last] = [audio[Math.floor(at / 160)], audio[Math.floor((at + said.length - 1) / 160)]];
  if (at < 0 || first === undefined || last === undefined) return undefined;
  const stamps = audio.slice(audio.indexOf(first), audio.indexOf(last) + 1).map(({ packet }) => packet.header.timestamp);
  const isGapless = stamps.every((stamp, index) => index === 0 || ((stamp - (stamps[index - 1] ?? 0)) | 0) === 160);
  return isGapless ? { firstMs: first.arrivalMs, lastMs: last.arrivalMs } : undefined;
}

const timesOf = (messages: readonly BotMessage[]): number[] =>
  messages.map(({ media }) => Number((media as { timestamp: string }).timestamp));
const markOf = ({ mark }: BotMessage): string => (mark as { name: string }).name;

describe('a Twilio bot', () => {
  it('is connected before the 200, and told nothing before the ACK', async () => {
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

  it('is told who calls whom, the format, and the headers of the INVITE', async () => {
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

  it('gets a message each 20 ms from the first packet on, counted as Twilio counts, whether the caller speaks or not', async () => {
    const call = await site.talking();
    await call.end.peer.speak(voiceLikeNoise(SECOND / 2, 3));
    await call.bot.message('media', 60);
    const media = call.bot.of('media');
    expect(timesOf(media)).toEqual(media.map((_, index) => 20 * index));
    expect(media.map((one) => (one.media as { chunk: string }).chunk)).toEqual(media.map((_, index) => String(index + 1)));
    expect(media.map(({ sequenceNumber }) => sequenceNumber)).toEqual(media.map((_, index) => String(index + 2)));
    expect(new Set(media.map((one) => payloadOf(one).length))).toEqual(new Set([160]));
    const [first, last] = [media[0]!, media.at(-1)!];
    const tookMs = call.bot.arrivalMs(last) - call.bot.arrivalMs(first);
    expect(tookMs / (media.length - 1)).toBeGreaterThan(18);
    await call.hangUp();
  });

  it('hears the caller byte for byte, from before his ACK is there, and the caller the first word of the bot', async () => {
    const said = noise(0.2, 5);
    const greeting = noise(1, 6);
    // Audio does not go the way of the ACK: here three packets are quicker.
    const quicker = 3 * 160;
    let gapMs = Infinity;
    // A test that is kept waiting by others is a caller with gaps: it calls again.
    for (let time = 1; time <= 5 && gapMs > MAX_GAP_MS; time += 1) {
      const before = site.bot.calls.all.length;
      const call = await site.invite();
      await call.answered();
      const bot = await site.bot.calls.at(before, 0);
      const beforeAck = await call.end.peer.speak(mulaw.decode(said.subarray(0, quicker)));
      call.ack();
      const speaking = call.end.peer.speak(mulaw.decode(said.subarray(quicker)));
      await bot.message('start');
      bot.say(greeting);
      gapMs = Math.max(beforeAck, await speaking);
      await call.end.peer.until(() => heardWhole(call, greeting) !== undefined);
      if (gapMs <= MAX_GAP_MS) expect(bot.heard.includes(said)).toBe(true);
      await call.hangUp();
    }
    expect(gapMs).toBeLessThanOrEqual(MAX_GAP_MS);
  });

  it('hears a caller with PCMA in µ-law', async () => {
    const call = await site.talking({ codec: 'PCMA' });
    const said = voiceLikeNoise(SECOND / 2, 7);
    const expected = mulaw.decode(mulaw.encode(alaw.decode(alaw.encode(said))));
    const score = (): number => findPhrase(mulaw.decode(call.bot.heard), expected)?.score ?? 0;
    // A test that is kept waiting by others is a caller with gaps: it says it again.
    for (let time = 1; time <= 3 && score() < 0.999; time += 1) {
      await call.end.peer.speak(said);
      await call.bot.message('media', call.bot.of('media').length + 3);
    }
    expect(score()).toBeGreaterThan(0.999);
    await call.hangUp();
  });
});

describe('what a Twilio bot says', () => {
  it('all at once is heard whole and at the pace of speech, and its mark comes back when it was heard', async () => {
    const call = await site.talking();
    const said = noise(2, 11);
    const half = said.length / 2;
    call.bot.say(said.subarray(0, half));
    call.bot.send({ event: 'mark', streamSid: call.bot.streamSid, mark: { name: 'half' } });
    call.bot.say(said.subarray(half));
    call.bot.send({ event: 'mark', streamSid: call.bot.streamSid, mark: { name: 'end' } });
    const end = await call.bot.message('mark', 1);
    const middle = await call.bot.message('mark', 0);
    expect([markOf(middle), markOf(end)]).toEqual(['half', 'end']);
    await call.end.peer.until(() => heardWhole(call, said) !== undefined);
    const { firstMs, lastMs } = heardWhole(call, said)!;
    expect(lastMs - firstMs).toBeGreaterThan(1_900);
    // A mark goes out with the packet before it, by another way.
    expect(call.bot.arrivalMs(end) - lastMs).toBeGreaterThan(-60);
    expect(call.bot.arrivalMs(end) - lastMs).toBeLessThan(200);
    expect(call.bot.arrivalMs(middle) - firstMs).toBeGreaterThan(900);
    await call.hangUp();
  });

  it('is stopped by clear within some frames, and the marks that waited come back at once', async () => {
    const call = await site.talking();
    const { bot, end } = call;
    const said = noise(10, 13);
    bot.say(said);
    for (const name of ['one', 'two']) bot.send({ event: 'mark', streamSid: bot.streamSid, mark: { name } });
    await end.peer.until(() => end.voiced > 10);
    const clearedMs = performance.now();
    bot.send({ event: 'clear', streamSid: bot.streamSid });
    const second = await bot.message('mark', 1);
    expect(bot.of('mark').map(markOf)).toEqual(['one', 'two']);
    expect(bot.arrivalMs(second) - clearedMs).toBeLessThan(500);
    const voicedThen = end.voiced;
    // What was on its way; and after it what is said anew, at once.
    const anew = noise(1, 14);
    bot.say(anew);
    await end.peer.until(() => heardWhole(call, anew) !== undefined);
    expect(end.voiced - voicedThen).toBeLessThan(50 + 10);
    await call.hangUp();
  });
});

describe('keys', () => {
  it('of the caller reach the bot once each, in order', async () => {
    const call = await site.talking();
    for (const event of [4, 11]) await call.end.peer.press(event);
    await call.bot.message('dtmf', 1);
    expect(call.bot.of('dtmf').map(({ dtmf }) => dtmf)).toEqual(['4', '#'].map((digit) => ({ track: 'inbound_track', digit })));
    await call.hangUp();
  });

  it('[4733 §2.5.1] of the bot reach the carrier as telephone-events of the length that it wants', async () => {
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

describe('at the end', () => {
  it('of the caller the bot is told with stop, and the WebSocket is closed with 1000', async () => {
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
  it('has its bot connected before the 200, and both hear each other after the ACK', async () => {
    const before = site.bot.calls.all.length;
    const call = await site.invite({ isLate: true });
    await call.answered();
    const bot = await site.bot.calls.at(before, 0);
    expect(bot.messages.all).toEqual([]);
    call.ack();
    await bot.message('start');
    const [said, answer] = [noise(0.2, 17), noise(1, 18)];
    bot.say(answer);
    await call.end.peer.speak(mulaw.decode(said));
    await bot.messages.until(() => bot.heard.includes(said) || undefined);
    await call.end.peer.until(() => heardWhole(call, answer) !== undefined);
    await call.hangUp();
  });
});

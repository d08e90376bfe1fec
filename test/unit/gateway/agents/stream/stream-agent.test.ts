import { audioPacket } from '../../../../support/audio-packet.js';
import { describe, expect, it } from 'vitest';
import { AgentUnavailableError } from '../../../../../src/gateway/ports/ports.js';
import { AGENT_LIMITS } from '../../../../support/media/agent-limits.js';
import { markNames, media, openStream, SILENCE, STREAM } from '../../../../support/agent/stream-leg.js';

describe('an agent on Twilio Media Streams', () => {
  it('is connected silently; connected and start follow the ACK, then audio with strings throughout', async () => {
    const { agent, bot, clock, frames } = openStream();
    const connected = agent.connect();
    expect(bot.attempts[0]!.address).toMatchObject({ url: STREAM.url, signatureKey: 'secret', bearerToken: null });
    bot.accept();
    await connected;
    clock.advance(3_000);
    expect(bot.messages).toEqual([]);
    agent.start('PCMU', clock.nowMs());
    frames(3, true);
    const streamSid = `MZ${'1'.padStart(32, '0')}`;
    expect(bot.messages.slice(0, 2)).toEqual([
      { event: 'connected', protocol: 'Call', version: '1.0.0' },
      {
        event: 'start',
        sequenceNumber: '1',
        start: {
          accountSid: STREAM.accountSid,
          streamSid,
          callSid: STREAM.callSid,
          tracks: ['inbound'],
          mediaFormat: { encoding: 'audio/x-mulaw', sampleRate: 8_000, channels: 1 },
          customParameters: STREAM.customParameters,
        },
        streamSid,
      },
    ]);
    expect(bot.messages.slice(2)).toEqual(
      [0, 1, 2].map((i) => ({
        event: 'media',
        sequenceNumber: String(i + 2),
        media: { track: 'inbound', chunk: String(i + 1), timestamp: String(i * 20), payload: Buffer.alloc(160, i).toString('base64') },
        streamSid,
      })),
    );
  });

  it('hears µ-law and speaks µ-law on a leg of A-law too', async () => {
    const { agent, bot, clock, said } = openStream({ codec: 'PCMA' });
    const connected = agent.connect();
    bot.accept();
    await connected;
    agent.start('PCMA', 0);
    // ITU-T G.711: silence is 0xd5 in A-law and 0xff in µ-law; the loudest is 0xaa and 0x80.
    agent.hear(audioPacket('PCMA', 1, 0, Buffer.alloc(160, 0xaa), 0, 160, 0));
    expect(Buffer.from((bot.messages[2]!.media as { payload: string }).payload, 'base64')).toEqual(Buffer.alloc(160, 0x80));
    bot.says(media(Buffer.alloc(160, 0x80)));
    const payload = new Uint8Array(160);
    clock.advance(20);
    agent.fill(payload, clock.nowMs());
    expect(Buffer.from(payload)).toEqual(Buffer.alloc(160, 0xaa));
    agent.fill(payload, clock.nowMs());
    expect(Buffer.from(payload)).toEqual(Buffer.alloc(160, 0xd5));
    expect(said).toEqual([]);
  });

  it('makes messages of 20 ms of packets of any length', async () => {
    const { agent, bot, talk } = openStream();
    await talk();
    let timestamp = 0;
    for (const length of [80, 80, 240, 240, 320, 480, 80]) {
      agent.hear(audioPacket('PCMU', 1, timestamp, Buffer.alloc(length, 1), 0, length, timestamp / 8));
      timestamp += length;
    }
    const sizes = bot.of('media').map((message) => Buffer.from((message.media as { payload: string }).payload, 'base64').length);
    expect(sizes).toEqual(Array(9).fill(160));
  });

  it('plays speech of any length at the pace of the call, returns marks when they are played, and clears', async () => {
    const { bot, talk, frames, said } = openStream();
    await talk();
    const second = Buffer.from(Array.from({ length: 8_000 }, (_, i) => i % 100));
    bot.says(media(second.subarray(0, 5_000)));
    bot.says(media(second.subarray(5_000)));
    bot.says({ event: 'mark', streamSid: 'x', mark: { name: 'said' } });
    frames(49);
    expect(markNames(bot)).toEqual([]);
    frames(1);
    expect(markNames(bot)).toEqual(['said']);
    expect(Buffer.concat(said)).toEqual(second);
    frames(1);
    expect(said.at(-1)).toEqual(Buffer.alloc(160, SILENCE));
    bot.says(media(second));
    bot.says({ event: 'mark', streamSid: 'x', mark: { name: 'never played' } });
    frames(3);
    bot.says({ event: 'clear', streamSid: 'x' });
    expect(markNames(bot)).toEqual(['said', 'never played']);
    bot.says({ event: 'clear', streamSid: 'x' });
    bot.says({ event: 'mark', streamSid: 'x', mark: { name: 'nothing before' } });
    frames(1);
    expect(said.at(-1)).toEqual(Buffer.alloc(160, SILENCE));
    expect(markNames(bot)).toEqual(['said', 'never played', 'nothing before']);
  });

  it('gets each digit, including those pressed before the answer', async () => {
    const { agent, bot, clock } = openStream();
    const connected = agent.connect();
    bot.accept();
    await connected;
    agent.digit(5);
    agent.start('PCMU', clock.nowMs());
    for (const event of [0, 10, 11, 15]) agent.digit(event);
    expect(bot.of('dtmf').map(({ dtmf }) => dtmf)).toEqual(['5', '0', '*', '#', 'D'].map((digit) => ({ track: 'inbound_track', digit })));
  });

  it('hears what the caller said before the ACK came, of the last 200 ms and in order', async () => {
    const { agent, bot, clock } = openStream();
    const connected = agent.connect();
    bot.accept();
    await connected;
    // 15 packets in 300 ms; the second last and the last change places.
    for (const i of [...Array(13).keys(), 14, 13]) {
      clock.advance(20);
      agent.hear(audioPacket('PCMU', 1, 160 * i, Buffer.alloc(160, i), 0, 160, clock.nowMs()));
    }
    agent.start('PCMU', clock.nowMs());
    const heard = bot.of('media').map((message) => Buffer.from((message.media as { payload: string }).payload, 'base64')[0]);
    expect(heard).toEqual([4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14]);
    agent.hear(audioPacket('PCMU', 1, 160 * 15, Buffer.alloc(160, 15), 0, 160, clock.nowMs()));
    expect(bot.of('media')).toHaveLength(12);
  });

  it('gets stop and a close when the call ends', async () => {
    const { agent, bot, talk } = openStream();
    await talk();
    agent.close();
    expect(bot.messages.at(-1)).toMatchObject({ event: 'stop', stop: { accountSid: STREAM.accountSid, callSid: STREAM.callSid } });
    expect(bot.ended).toEqual(['closed']);
  });

  it('is closed without start when the call is cancelled, while it is connecting or after', async () => {
    const ringing = openStream();
    const connected = ringing.agent.connect();
    ringing.bot.accept();
    await connected;
    ringing.agent.close();
    expect([ringing.bot.messages, ringing.bot.ended]).toEqual([[], ['closed']]);
    const connecting = openStream();
    const waiting = connecting.agent.connect();
    connecting.agent.close();
    await expect(waiting).rejects.toThrow(AgentUnavailableError);
    expect(connecting.bot.attempts[0]!.isGivenUp).toBe(true);
    expect(connecting.clock.pendingTimers).toBe(0);
  });

  it.each([1_000, 1_001, 1_005, 1_008, 4_000])('ends the call when the agent closes with %i', async (code) => {
    const { bot, asked, clock, talk } = openStream();
    await talk();
    bot.events.onClosed(code);
    expect(asked).toEqual([{ type: 'agent-hangup' }]);
    expect(bot.attempts).toHaveLength(1);
    expect(clock.pendingTimers).toBe(0);
  });

  it('ignores what is unknown or cannot be read, and the bot never sees an extension', async () => {
    const { bot, asked, talk, frames } = openStream();
    await talk();
    for (const text of [
      '',
      '{',
      'null',
      '[]',
      '{"event":5}',
      '{"event":"media"}',
      '{"event":"media","media":{"payload":5}}',
      '{"event":"mark"}',
    ]) {
      bot.events.onText(text);
    }
    bot.says({ event: 'something', x: 1 });
    bot.events.onBinary(Buffer.alloc(160));
    frames(5, true);
    expect(asked).toEqual([]);
    expect(new Set(bot.messages.map(({ event }) => event))).toEqual(new Set(['connected', 'start', 'media']));
  });
});

describe('an agent that cannot be reached', () => {
  it('fails with the cause', async () => {
    const { agent, bot, clock } = openStream();
    const connected = agent.connect();
    bot.events.onFailed('the upgrade was answered with HTTP 503');
    await expect(connected).rejects.toThrow(new AgentUnavailableError('the upgrade was answered with HTTP 503'));
    expect(clock.pendingTimers).toBe(0);
  });

  it('fails when it does not answer in time', async () => {
    const { agent, bot, clock } = openStream();
    const connected = agent.connect();
    clock.advance(5_000);
    await expect(connected).rejects.toThrow('no answer within 5000 ms');
    expect(bot.attempts[0]!.isGivenUp).toBe(true);
  });

  it('is lost when it breaks before the call is answered, and there is no grace', async () => {
    const { agent, bot, asked } = openStream({ limits: { reconnectGraceMs: 0 } });
    const connected = agent.connect();
    bot.accept();
    await connected;
    bot.events.onClosed(1_006);
    expect(asked).toEqual([{ type: 'agent-lost' }]);
  });
});

describe('a connection to an agent that breaks in a call', () => {
  it.each([1_006, 1_011, 1_012, 1_013])(
    'with %i is made again at once, with a stream of its own, and the agent hears the caller again',
    async (code) => {
      const { bot, asked, talk, frames } = openStream();
      await talk();
      frames(5, true);
      bot.events.onClosed(code);
      frames(5, true);
      expect(bot.attempts).toHaveLength(2);
      bot.accept();
      frames(2, true);
      expect(asked).toEqual([]);
      const starts = bot.of('start');
      expect(starts.map(({ streamSid }) => streamSid)).toEqual(['1', '2'].map((n) => `MZ${n.padStart(32, '0')}`));
      expect((starts[1]!.start as { customParameters: object }).customParameters).toEqual({
        ...STREAM.customParameters,
        reconnects: '1',
        missed_ms: '100',
      });
      expect(bot.of('media').slice(5)).toMatchObject([
        { sequenceNumber: '2', media: { chunk: '1', timestamp: '0' } },
        { sequenceNumber: '3', media: { chunk: '2', timestamp: '20' } },
      ]);
    },
  );

  it('loses neither the marks due in the meantime nor digits: they follow the next start, in order', async () => {
    const { agent, bot, talk, frames } = openStream();
    await talk();
    bot.says({ event: 'media', media: { payload: Buffer.alloc(3 * 160).toString('base64') } });
    for (const name of ['one', 'two']) bot.says({ event: 'mark', mark: { name } });
    bot.events.onClosed(1_006);
    agent.digit(5);
    frames(5);
    expect(bot.of('mark')).toEqual([]);
    bot.accept();
    const after = bot.messages.slice(bot.messages.findLastIndex(({ event }) => event === 'start'));
    expect(after.map(({ event }) => event)).toEqual(['start', 'dtmf', 'mark', 'mark']);
    expect(after.map(({ streamSid }) => streamSid)).toEqual(after.map(() => after[0]?.streamSid));
    expect(bot.of('mark').map(({ mark }) => mark)).toEqual([{ name: 'one' }, { name: 'two' }]);
  });

  it('is retried, and is lost when the grace period is over', async () => {
    const { bot, asked, clock, talk, frames } = openStream();
    await talk();
    bot.events.onClosed(1_006);
    for (let i = 0; i < 20 && asked.length === 0; i += 1) {
      bot.events.onFailed('refused');
      frames(100);
    }
    expect(asked).toEqual([{ type: 'agent-lost' }]);
    expect(clock.nowMs()).toBe(10_000);
    expect(bot.attempts.length).toBeGreaterThan(6);
    expect(clock.pendingTimers).toBe(0);
  });

  it('that breaks again and again is retried with backoff, and is lost when the grace period is over', async () => {
    const { bot, asked, clock, talk, frames } = openStream();
    await talk();
    const brokenMs = clock.nowMs();
    bot.events.onClosed(1_011);
    // It fails at each `start`.
    while (asked.length === 0 && clock.nowMs() < 60_000) {
      if (bot.attempts.length > bot.of('start').length) {
        bot.accept();
        bot.events.onClosed(1_011);
      }
      frames(1);
    }
    expect(asked).toEqual([{ type: 'agent-lost' }]);
    expect(clock.nowMs() - brokenMs).toBe(10_000);
    expect(bot.attempts.length).toBeLessThan(15);
    expect(clock.pendingTimers).toBe(0);
  });

  it('that opens at the end of the grace period is kept, but must last for two seconds', async () => {
    const late = openStream({ limits: { connectTimeoutMs: 20_000 } });
    await late.talk();
    late.bot.events.onClosed(1_006);
    late.frames(450);
    late.bot.accept();
    late.frames(99);
    late.bot.events.onClosed(1_006);
    expect(late.asked).toEqual([{ type: 'agent-lost' }]);

    const { bot, asked, talk, frames } = openStream({ limits: { connectTimeoutMs: 20_000 } });
    await talk();
    bot.events.onClosed(1_006);
    frames(450);
    bot.accept();
    frames(101);
    bot.events.onClosed(1_006);
    expect(asked).toEqual([]);
    expect(bot.attempts).toHaveLength(3);
  });

  it('gets a ping each interval while the call is on hold; a hang-up takes effect then too, and times follow the clock', async () => {
    const { agent, bot, asked, clock, talk, frames } = openStream();
    await talk();
    frames(50, true);
    const before = bot.pings.length;
    const [messages, last] = [bot.of('media').length, bot.of('media').at(-1)!.media as { timestamp: string }];
    for (let second = 0; second < 60; second += 1) {
      clock.advance(1_000);
      agent.pass(clock.nowMs(), 50);
    }
    expect(bot.pings.length - before).toBe(60_000 / AGENT_LIMITS.pingIntervalMs);
    expect(bot.of('media')).toHaveLength(messages);
    frames(3);
    frames(2, true);
    const after = bot.of('media').at(-1)!.media as { timestamp: string };
    expect(Math.abs(Number(after.timestamp) - Number(last.timestamp) - 60_100)).toBeLessThanOrEqual(60);
    bot.says({ event: 'hangup', streamSid: 'x' });
    agent.pass(clock.nowMs(), 50);
    expect(asked).toEqual([{ type: 'agent-hangup' }]);
  });

  it('counts as broken when two pings are not answered', async () => {
    const { bot, asked, talk, frames } = openStream();
    await talk();
    frames(250);
    bot.reads = false;
    frames(499);
    expect(bot.attempts).toHaveLength(1);
    frames(1);
    expect(bot.ended).toEqual(['terminated']);
    expect(bot.attempts).toHaveLength(2);
    expect(asked).toEqual([]);
  });

  it('is not made again when the call ends in the meantime', async () => {
    const { agent, bot, asked, clock, talk } = openStream();
    await talk();
    bot.events.onClosed(1_006);
    agent.close();
    expect(bot.attempts[1]!.isGivenUp).toBe(true);
    clock.advance(60_000);
    expect([bot.attempts.length, asked, clock.pendingTimers]).toEqual([2, [], 0]);
  });

  it('ends the call at once when the grace period is 0', async () => {
    const { bot, asked, talk } = openStream({ limits: { reconnectGraceMs: 0 } });
    await talk();
    bot.events.onClosed(1_006);
    expect(asked).toEqual([{ type: 'agent-lost' }]);
    expect(bot.attempts).toHaveLength(1);
  });
});

describe('the notes of a call on its connection to an agent', () => {
  it('have the URL without its query, the outcome and its duration, close codes, redials and counts of messages', async () => {
    const { agent, bot, clock, notes, talk } = openStream({ settings: { url: 'wss://bot.example.com/stream?key=secret' } });
    await talk();
    for (let message = 0; message < 7; message += 1) bot.events.onText('{"event":"mark"}');
    bot.events.onClosed(1_011);
    clock.advance(30);
    bot.events.onFailed('connect ECONNREFUSED 192.0.2.1:443');
    clock.advance(100);
    bot.accept();
    agent.close();
    expect(notes).toEqual([
      'connected to wss://bot.example.com/stream?… after 0 ms',
      ...Array.from(
        { length: 5 },
        (_, index) => expect.stringMatching(index < 4 ? /^message ignored: mark: [^;]+$/ : /; further warnings are not sent$/) as string,
      ),
      "the agent's connection was closed with 1011 (error of the agent)",
      'wss://bot.example.com/stream?…: connect ECONNREFUSED 192.0.2.1:443, after 30 ms',
      'connected to wss://bot.example.com/stream?… after 0 ms',
      'connected again, time 1, after 130 ms without',
    ]);
  });
});

describe('the buffers of a stream', () => {
  it('lose the oldest audio of a slow agent beyond 1.5 s of the 2 s that may be unread, which it gets reported on request', async () => {
    const { bot, talk, frames } = openStream();
    await talk();
    bot.says({ event: 'configure', configure: { drop_events: true } });
    frames(10, true);
    bot.unsentBytes = 20_000;
    frames(150, true);
    expect(bot.of('media')).toHaveLength(10);
    bot.unsentBytes = 0;
    frames(1, true);
    const chunks = bot.of('media').slice(10);
    expect(chunks).toHaveLength(75);
    // 151 frames waited, the first 76 are gone; times tell of the gap, chunks count on.
    expect(chunks[0]).toMatchObject({ media: { chunk: '11', timestamp: String((10 + 76) * 20) } });
    expect(bot.of('dropped')).toMatchObject([{ dropped: { track: 'inbound', milliseconds: 1_520 } }]);
  });

  it('hold at most 1.5 s for a suspended agent, which hears the latest audio once it runs', async () => {
    const { bot, talk, frames } = openStream();
    await talk();
    bot.says({ event: 'configure', configure: { drop_events: true } });
    frames(25, true);
    // The kernel takes whatever is sent.
    bot.reads = false;
    frames(200, true);
    expect(bot.of('media').length).toBeLessThanOrEqual(25 + 75);
    expect(bot.of('media').length).toBeGreaterThan(75);
    const stalled = bot.of('media').length;
    bot.reads = true;
    bot.events.onPong(bot.pings.at(-1) ?? 0);
    const timesOf = (): number[] => bot.of('media').map((message) => Number((message.media as { timestamp: string }).timestamp));
    // Half a second, up to now.
    expect(timesOf().slice(stalled)).toEqual(Array.from({ length: 25 }, (_, index) => (200 + index) * 20));
    expect(bot.of('dropped')).toMatchObject([{ dropped: { milliseconds: (200 - stalled) * 20 } }]);
    frames(25, true);
    expect(timesOf().slice(-25)).toEqual(Array.from({ length: 25 }, (_, index) => (225 + index) * 20));
  });

  it('lose nothing for an agent that reads with a delay of a second', async () => {
    const { bot, clock, talk, frames } = openStream();
    await talk();
    bot.reads = false;
    const sentAtMs: number[] = [];
    let answered = 0;
    for (let frame = 0; frame < 500; frame += 1) {
      frames(1, true);
      while (sentAtMs.length < bot.pings.length) sentAtMs.push(clock.nowMs());
      for (; clock.nowMs() - (sentAtMs[answered] ?? Infinity) >= 1_000; answered += 1) bot.events.onPong(bot.pings[answered] ?? 0);
    }
    const times = bot.of('media').map((message) => Number((message.media as { timestamp: string }).timestamp));
    expect(times.every((time, index) => time === index * 20)).toBe(true);
    expect(times).toHaveLength(500);
  });

  it('end the connection of an agent that asks for answers and reads none, which is connected again', async () => {
    const { bot, talk } = openStream();
    await talk();
    bot.unsentBytes = 4 * 1_024 * 1_024;
    bot.says({ event: 'mark', mark: { name: 'first' } });
    expect(bot.attempts).toHaveLength(1);
    bot.unsentBytes += 1;
    bot.says({ event: 'mark', mark: { name: 'second' } });
    expect(bot.ended).toEqual(['terminated']);
    expect(bot.attempts).toHaveLength(2);
  });

  it('drop speech beyond the cap, which a bot that did not ask does not see', async () => {
    const { bot, talk, frames, said } = openStream({ limits: { maxQueuedSpeechMs: 100 } });
    await talk();
    bot.says(media(Buffer.alloc(8_000, 1)));
    frames(6);
    expect(said.map((frame) => frame[0])).toEqual([1, 1, 1, 1, 1, SILENCE]);
    expect(bot.of('dropped')).toEqual([]);
  });
});

describe('a stream in the format', () => {
  it.each([
    ['pcmu', 'PCMU', 0x12, 0x12],
    ['pcma', 'PCMA', 0x12, 0x12],
  ] as const)('%s has binary frames of G.711 both ways, and JSON for the rest', async (format, codec, sent, heard) => {
    const { agent, bot, talk, frames, said } = openStream({ settings: { format }, codec });
    await talk();
    agent.hear(audioPacket(codec, 1, 0, Buffer.alloc(160, sent), 0, 160, 0));
    expect(bot.binary).toEqual([Buffer.alloc(160, heard)]);
    expect(bot.of('media')).toEqual([]);
    bot.events.onBinary(Buffer.alloc(320, heard));
    bot.says({ event: 'mark', mark: { name: 'm' } });
    frames(2);
    expect(said).toEqual([Buffer.alloc(160, sent), Buffer.alloc(160, sent)]);
    expect(markNames(bot)).toEqual(['m']);
  });

  it('pcm16-16000 has twice as many samples both ways', async () => {
    const { agent, bot, talk, frames, said } = openStream({ settings: { format: 'pcm16-16000' } });
    await talk();
    expect(bot.of('start')).toMatchObject([{ start: { mediaFormat: { encoding: 'audio/l16', sampleRate: 16_000, channels: 1 } } }]);
    for (let i = 0; i < 5; i += 1) agent.hear(audioPacket('PCMU', 1, i * 160, Buffer.alloc(160, 0x90), 0, 160, i * 20));
    expect(bot.binary.map(({ length }) => length)).toEqual(Array(5).fill(640));
    // ITU-T G.711: µ-law 0x90 is 15,996.
    expect(Math.abs(bot.binary[4]!.readInt16LE(400) - 15_996)).toBeLessThan(20);
    for (const frame of bot.binary.slice()) bot.events.onBinary(frame);
    frames(5);
    expect(said[4]![100]).toBe(0x90);
  });

  it('pcm16-8000 has little-endian samples', async () => {
    const { agent, bot, talk, frames, said } = openStream({ settings: { format: 'pcm16-8000' } });
    await talk();
    expect(bot.of('start')).toMatchObject([{ start: { mediaFormat: { encoding: 'audio/l16', sampleRate: 8_000, channels: 1 } } }]);
    // ITU-T G.711: µ-law 0x80 is the largest sample, 32,124.
    agent.hear(audioPacket('PCMU', 1, 0, Buffer.alloc(160, 0x80), 0, 160, 0));
    expect(bot.binary[0]).toHaveLength(320);
    expect(bot.binary[0]!.readInt16LE(318)).toBe(32_124);
    bot.events.onBinary(bot.binary[0]!);
    frames(1);
    expect(said[0]).toEqual(Buffer.alloc(160, 0x80));
  });
});

describe('the marks of a stream', () => {
  it('come back, each one, when a bot sends one with each 20 ms of a minute at once', async () => {
    const { bot, frames, notes, talk } = openStream();
    await talk();
    for (let piece = 0; piece < 3_000; piece += 1) {
      bot.says(media(Buffer.alloc(160, 0x11)));
      bot.says({ event: 'mark', mark: { name: String(piece) } });
    }
    frames(1_500);
    expect(markNames(bot)).toHaveLength(1_500);
    frames(1_500);
    expect(markNames(bot)).toEqual(Array.from({ length: 3_000 }, (_, piece) => String(piece)));
    expect(notes.join()).not.toContain('marks');
  });

  it('come back early, and the call gets a note, when more than ten thousand wait', async () => {
    const { bot, frames, notes, talk } = openStream();
    await talk();
    bot.says(media(Buffer.alloc(80_000, 0x11)));
    for (let n = 0; n < 9_000; n += 1) bot.says({ event: 'mark', mark: { name: String(n) } });
    frames(100);
    for (let n = 9_000; n < 10_010; n += 1) bot.says({ event: 'mark', mark: { name: String(n) } });
    expect(markNames(bot)).toEqual(Array.from({ length: 10 }, (_, n) => String(n)));
    expect(notes.filter((note) => note.includes('too many marks wait'))).toHaveLength(1);
    frames(500);
    expect(markNames(bot)).toEqual(Array.from({ length: 10_010 }, (_, n) => String(n)));
  });
});

describe('a message in a binary frame', () => {
  const binary = (message: object | string): Uint8Array => Buffer.from(typeof message === 'string' ? message : JSON.stringify(message));

  it.each(['twilio', 'pcmu', 'pcm16-16000'] as const)('is read as its text would be, at an agent with the format %s', async (format) => {
    const { bot, frames, notes, said, talk } = openStream({ settings: { format } });
    await talk();
    bot.events.onBinary(binary(media(Buffer.alloc(160, 0x11))));
    bot.events.onBinary(binary({ event: 'mark', mark: { name: 'said' } }));
    bot.events.onBinary(binary({ event: 'unheard of' }));
    frames(2);
    expect(said[0]).toEqual(Buffer.alloc(160, 0x11));
    expect(markNames(bot)).toEqual(['said']);
    expect(notes.filter((note) => note.includes('ignored'))).toEqual([expect.stringContaining('message ignored: unheard of')]);
  });

  it('is audio when it only begins like JSON', async () => {
    const { bot, frames, said, talk } = openStream({ settings: { format: 'pcmu' } });
    await talk();
    // The byte of an opening brace is a quiet sample of µ-law.
    const frameList = [Buffer.alloc(160, '{'), Buffer.alloc(160, '{}'), Buffer.concat([binary('{"a'), Buffer.alloc(157, 0xfe)])];
    for (const frame of frameList) bot.events.onBinary(frame);
    frames(3);
    expect(said).toEqual(frameList);
  });

  it('makes one note when it is audio, and the format is twilio', async () => {
    const { bot, frames, notes, said, talk } = openStream();
    await talk();
    for (let n = 0; n < 10; n += 1) bot.events.onBinary(Buffer.alloc(160, 0x11));
    bot.events.onBinary(Buffer.alloc(200, '{'));
    frames(2);
    expect(said[0]).toEqual(Buffer.alloc(160, SILENCE));
    expect(notes.filter((note) => note.includes('ignored'))).toEqual([
      'binary messages were ignored: in the format twilio all messages are JSON',
      'message ignored: : nested too deep',
    ]);
  });
});

describe('a flood of an agent', () => {
  it('is read at ten thousand messages at once and a thousand a second', async () => {
    const { bot, talk, frames } = openStream();
    await talk();
    for (let i = 0; i < 12_000; i += 1) bot.says({ event: 'mark', mark: { name: String(i) } });
    expect(markNames(bot)).toHaveLength(10_000);
    frames(50);
    for (let i = 0; i < 2_000; i += 1) bot.says({ event: 'mark', mark: { name: 'more' } });
    expect(markNames(bot).filter((name) => name === 'more').length).toBeGreaterThanOrEqual(998);
    expect(markNames(bot).length).toBeLessThanOrEqual(11_000);
  });

  it('is read at 2 MiB of text at once and 128 kB a second', async () => {
    const { bot, asked, talk, frames } = openStream();
    await talk();
    const entry = { speaker: 'agent', text: 'a'.repeat(10_000) };
    const say = (): void => bot.says({ event: 'transcript', transcript: { entries: Array(20).fill(entry) } });
    for (let i = 0; i < 20; i += 1) say();
    expect(asked.filter(({ type }) => type === 'agent-request')).toHaveLength(11);
    // The last one went 111 kB beyond: 0.88 s of allowance.
    frames(40);
    say();
    expect(asked.filter(({ type }) => type === 'agent-request')).toHaveLength(11);
    frames(4);
    say();
    expect(asked.filter(({ type }) => type === 'agent-request')).toHaveLength(12);
  });

  it('is passed on at five hundred requests at once and fifty a second', async () => {
    const { bot, asked, talk, frames } = openStream();
    await talk();
    const ask = (count: number): number => {
      for (let i = 0; i < count; i += 1) bot.says({ event: 'do_not_call' });
      return asked.filter(({ type }) => type === 'agent-request').length;
    };
    expect(ask(1_000)).toBeLessThanOrEqual(500);
    const before = ask(0);
    frames(100);
    expect(ask(1_000) - before).toBeGreaterThanOrEqual(90);
    expect(ask(0) - before).toBeLessThanOrEqual(101);
  });
});

describe('a bug in the effect of a message', () => {
  it('ends that call, and throws nothing at the socket', async () => {
    const { bot, asked, talk } = openStream({ pressThrows: true });
    await talk();
    bot.says({ event: 'dtmf', dtmf: { digits: '1' } });
    expect(asked).toEqual([{ type: 'agent-lost' }]);
  });
});

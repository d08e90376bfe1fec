import { describe, expect, it } from 'vitest';
import { markNames, media, openStream, STREAM } from '../../../../support/agent/stream-leg.js';

describe('a connection that breaks before the ACK', () => {
  it.each([
    ['before the ACK', 'opened', 'started'],
    ['after it', 'started', 'opened'],
  ])('is made again at once, and is the call’s first stream; the other one is open %s', async (_when, ...order) => {
    const { agent, bot, asked, clock, frames } = openStream();
    const connected = agent.connect();
    bot.accept();
    await connected;
    bot.events.onClosed(1_006);
    expect([asked, bot.attempts.length]).toEqual([[{ type: 'agent-away' }], 2]);
    for (const next of order) {
      expect(bot.messages).toEqual([]);
      if (next === 'opened') bot.accept();
      else agent.start('PCMU', clock.nowMs());
    }
    frames(2, true);
    expect(bot.messages.map(({ event }) => event)).toEqual(['connected', 'start', 'media', 'media']);
    expect(bot.of('start')[0]).toMatchObject({ start: { customParameters: STREAM.customParameters } });
    expect((bot.of('start')[0]!.start as { customParameters: object }).customParameters).not.toHaveProperty('reconnects');
    // The grace is over when the connection has lasted.
    frames(600);
    expect(asked).toEqual([{ type: 'agent-away' }]);
  });

  it('again and again is lost when the grace period is over, whether or not the ACK has come', async () => {
    for (const isStarted of [false, true]) {
      const { agent, bot, asked, clock } = openStream();
      const connected = agent.connect();
      bot.accept();
      await connected;
      bot.events.onClosed(1_011);
      if (isStarted) agent.start('PCMU', clock.nowMs());
      for (let i = 0; i < 20; i += 1) {
        bot.events.onFailed('refused');
        clock.advance(2_000);
      }
      expect(asked).toEqual([{ type: 'agent-away' }, { type: 'agent-lost' }]);
      expect(clock.pendingTimers).toBe(0);
    }
  });
});

describe('the messages that a bot sends before start', () => {
  const early = async () => {
    const leg = openStream({ limits: { maxQueuedSpeechMs: 120_000 } });
    const connected = leg.agent.connect();
    leg.bot.accept();
    await connected;
    return leg;
  };
  const mark = (name: string): object => ({ event: 'mark', mark: { name } });

  it('take effect after start, in their order, and the call gets one note', async () => {
    const { agent, asked, bot, clock, frames, notes, pressed, said } = await early();
    bot.says(media(Buffer.alloc(320, 0x11)));
    bot.says(mark('greeting'));
    bot.says({ event: 'dtmf', dtmf: { digits: '1' } });
    bot.says({ event: 'transcript', transcript: { entries: [{ speaker: 'agent', text: 'Hello.' }] } });
    clock.advance(5_000);
    expect([bot.messages, pressed, asked]).toEqual([[], [], []]);
    agent.start('PCMU', clock.nowMs());
    expect(pressed).toEqual([[1, 160]]);
    expect(asked).toMatchObject([{ request: { type: 'transcript', entries: [{ text: 'Hello.', at_ms: 0 }] } }]);
    frames(2);
    expect(Buffer.concat(said)).toEqual(Buffer.alloc(320, 0x11));
    expect(bot.messages.map(({ event }) => event)).toEqual(['connected', 'start', 'mark']);
    expect(notes.filter((note) => note.includes('before start'))).toEqual(['messages that came before start take effect behind it']);
  });

  it('are two megabytes at most, and the call gets a note about the rest', async () => {
    const { agent, bot, clock, frames, notes, said } = await early();
    for (let n = 0; n < 9_000; n += 1) bot.says(media(Buffer.alloc(160, 0x11)));
    agent.start('PCMU', clock.nowMs());
    frames(6_000);
    const heard = said.filter((frame) => frame[0] === 0x11).length;
    expect([heard > 3_500, heard < 6_000]).toEqual([true, true]);
    expect(notes).toContain('messages were ignored: too many came before start');
  });

  it('are dropped with their connection, as the next one starts anew', async () => {
    const { agent, bot, clock } = await early();
    bot.says(mark('old'));
    bot.events.onClosed(1_006);
    bot.accept();
    bot.says(mark('new'));
    agent.start('PCMU', clock.nowMs());
    expect(markNames(bot)).toEqual(['new']);
  });
});

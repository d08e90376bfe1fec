import { describe, expect, it } from 'vitest';
import { openStream, STREAM } from '../../../../support/agent/stream-leg.js';

describe('a connection that breaks before the ACK', () => {
  it.each([
    ['before the ACK', 'opened', 'started'],
    ['after it', 'started', 'opened'],
  ])('is made again at once, and is the call’s first stream; the other one is there %s', async (_when, ...order) => {
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

  it('again and again is lost when the grace is over, whether the ACK has come or not', async () => {
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

import { expect, it } from 'vitest';
import { markNames, media, openStream, STREAM } from '../../../../support/agent/stream-leg.js';

// What of a bot's marks outlives the process that has its stream.

const mark = (name: string): object => ({ event: 'mark', mark: { name } });
const FRAME = Buffer.alloc(160);
const RESUMED = { ...STREAM.customParameters, reconnects: '1' };

it('marks that wait are reported as they come and go, twice a second at most', async () => {
  const { bot, talk, frames, marks } = openStream();
  await talk();
  frames(10);
  expect(marks).toEqual([]);
  for (let piece = 0; piece < 3; piece += 1) {
    bot.says(media(FRAME));
    bot.says(mark(String(piece)));
  }
  frames(1);
  // The first one was played with this frame.
  expect(marks).toEqual([['1', '2']]);
  frames(24);
  expect(marks).toHaveLength(1);
  frames(1);
  expect(marks).toEqual([['1', '2'], []]);
  frames(100);
  expect(marks).toHaveLength(2);
  bot.says(media(Buffer.alloc(1_600)));
  bot.says(mark('long'));
  bot.says({ event: 'clear' });
  frames(1);
  // It came and went.
  expect(marks.slice(2)).toEqual([[]]);
});

it('marks of the earlier process come back after start, with the time during which nobody listened', async () => {
  const { bot, clock, talk, frames, marks } = openStream({ settings: { customParameters: RESUMED, marks: ['a', 'b'], unheardSinceMs: 0 } });
  const sinceMs = clock.wallMs();
  await talk();
  expect(bot.messages.map(({ event }) => event)).toEqual(['connected', 'start', 'mark', 'mark']);
  expect(markNames(bot)).toEqual(['a', 'b']);
  expect((bot.of('start')[0]!.start as { customParameters: object }).customParameters).toEqual({
    ...RESUMED,
    missed_ms: String(sinceMs),
  });
  frames(1);
  // They wait no more.
  expect(marks).toEqual([[]]);
});

it('a stream that was connected before its call was here starts with what is known then', async () => {
  const { agent, bot, clock, talk } = openStream();
  agent.describe({ kind: 'stream', ...STREAM, customParameters: RESUMED, marks: ['c'], unheardSinceMs: clock.wallMs() - 70 });
  await talk();
  expect(markNames(bot)).toEqual(['c']);
  expect((bot.of('start')[0]!.start as { customParameters: object }).customParameters).toMatchObject({ missed_ms: '70' });
});

import { describe, expect, it } from 'vitest';
import { CallerKeys } from '../../../../../src/gateway/agents/provider/caller-keys.js';
import { ConversationSoFar } from '../../../../../src/gateway/agents/provider/conversation-so-far.js';
import { EarlySpeech } from '../../../../../src/gateway/agents/provider/early-speech.js';
import { Farewell } from '../../../../../src/gateway/agents/provider/farewell.js';
import { Liveness } from '../../../../../src/gateway/agents/provider/liveness.js';
import { LongSilence } from '../../../../../src/gateway/agents/provider/long-silence.js';
import { Renewal } from '../../../../../src/gateway/agents/provider/renewal.js';
import { VirtualClock } from '../../../../support/virtual-clock.js';

const MINUTE = 60_000;

describe('the renewal of a session', () => {
  const isDue = (renewal: Renewal, nowMs: number): readonly [boolean, boolean] => [
    renewal.isDue(nowMs, () => true),
    renewal.isDue(nowMs, () => false),
  ];

  it.each([
    ['an hour', 60 * MINUTE, 55 * MINUTE, 60 * MINUTE - 30_000],
    ['less than 5 minutes, in the next pause', 4 * MINUTE, 0, 4 * MINUTE - 30_000],
    ['less than a minute, at half of it', 40_000, 0, 20_000],
  ])('of %s is due in a pause from 5 minutes before its end on, and 30 s before it at the latest', (_what, withinMs, atMs, latestMs) => {
    const renewal = new Renewal();
    renewal.endsIn(withinMs, 1_000);
    expect(isDue(renewal, 1_000 + atMs - 1)).toEqual([false, false]);
    expect(isDue(renewal, 1_000 + atMs)).toEqual([true, false]);
    expect(isDue(renewal, 1_000 + latestMs - 1)).toEqual([true, false]);
    expect(isDue(renewal, 1_000 + latestMs)).toEqual([true, true]);
  });

  it('follows the earliest end that was announced, until it is cleared', () => {
    const renewal = new Renewal();
    renewal.endsIn(40_000, 0);
    renewal.endsIn(60 * MINUTE, 0);
    expect(isDue(renewal, 20_000)).toEqual([true, true]);
    renewal.clear();
    expect(isDue(renewal, 90 * MINUTE)).toEqual([false, false]);
  });
});

describe('the check that a provider is alive', () => {
  it('sends a ping once an interval, and accepts any message within two', () => {
    let pings = 0;
    const liveness = new Liveness(10_000, () => (pings += 1));
    expect([liveness.pass(9_999, null), pings]).toEqual([true, 0]);
    expect([liveness.pass(1, null), pings]).toEqual([true, 1]);
    expect([liveness.pass(10_000, null), pings]).toEqual([true, 2]);
    liveness.seen();
    expect([liveness.pass(20_000, null), pings]).toEqual([true, 3]);
    expect([liveness.pass(1, null), pings]).toEqual([false, 3]);
  });

  it('allows the time that the provider states', () => {
    const liveness = new Liveness(10_000, () => undefined);
    expect([liveness.pass(5_000, 5_000), liveness.pass(1, 5_000)]).toEqual([true, false]);
  });
});

describe('an agent that hangs up', () => {
  const frames = (farewell: Farewell, count: number, isQuiet: boolean): number =>
    Array.from({ length: count }, () => farewell.pass(1, isQuiet)).indexOf(true) + 1;

  it('hangs up once the caller has heard everything and 0.2 s of silence, once', () => {
    const farewell = new Farewell();
    expect(frames(farewell, 100, true)).toBe(0);
    farewell.begin();
    expect(farewell.isBegun).toBe(true);
    expect(frames(farewell, 100, false)).toBe(0);
    expect(frames(farewell, 100, true)).toBe(11);
    expect(farewell.isBegun).toBe(false);
  });

  it('hangs up after 30 s, whatever it still says', () => {
    const farewell = new Farewell();
    farewell.begin();
    expect(frames(farewell, 2_000, false)).toBe(1_500);
  });
});

describe('a long silence', () => {
  const run = (silence: LongSilence, count: number, isQuiet = true): (readonly [number, string])[] =>
    Array.from({ length: count }, (_, n) => [n + 1, silence.frame(isQuiet)] as const).flatMap(([n, done]) =>
      done === null ? [] : [[n, done]],
    );

  it('makes the agent ask, and hang up after as long again', () => {
    expect(run(new LongSilence(1_000), 100)).toEqual([
      [50, 'ask'],
      [100, 'leave'],
    ]);
  });

  it('starts again when anybody speaks, and asks again when it was the caller', () => {
    const silence = new LongSilence(1_000);
    expect(run(silence, 49)).toEqual([]);
    run(silence, 1, false);
    expect(run(silence, 50)).toEqual([[50, 'ask']]);
    silence.caller(true);
    expect(run(silence, 200)).toEqual([]);
    // A key while they speak.
    silence.caller();
    expect(run(silence, 200)).toEqual([]);
    silence.caller(false);
    expect(run(silence, 100)).toEqual([
      [50, 'ask'],
      [100, 'leave'],
    ]);
  });

  it('is ended by loud packets in a row, but not by single noises', () => {
    const silence = new LongSilence(1_000);
    const quiet = (count: number) => Array.from({ length: count }, () => silence.frame(true)).filter((step) => step !== null);
    for (let n = 0; n < 200; n += 1) {
      silence.loud(20 * n);
      expect(silence.frame(true)).toBeNull();
    }
    expect(quiet(48)).toEqual([]);
    silence.loud(10_000);
    silence.loud(10_300);
    expect(quiet(1)).toEqual(['ask']);
  });
});

describe('the DTMF digits of a caller', () => {
  function site() {
    const clock = new VirtualClock();
    const told: string[] = [];
    const keys = new CallerKeys(clock, (text) => told.push(text));
    const press = (digits: string): void => Array.from(digits).forEach((digit) => keys.press(digit));
    return { clock, told, keys, press };
  }

  it('are reported together at #, or 2 s after the last', () => {
    const { clock, told, keys, press } = site();
    keys.start();
    press('12#');
    press('3');
    clock.advance(1_999);
    press('*');
    clock.advance(1_999);
    expect(told).toEqual(['The caller pressed the keys 1 2.']);
    clock.advance(1);
    expect(told).toEqual(['The caller pressed the keys 1 2.', 'The caller pressed the keys 3 *.']);
    press('#');
    expect(told.at(-1)).toBe('The caller pressed the key #.');
    clock.advance(10_000);
    expect(told).toHaveLength(3);
  });

  it('wait until somebody listens', () => {
    const { clock, told, keys, press } = site();
    press('4#5');
    clock.advance(10_000);
    expect(told).toEqual([]);
    keys.start();
    clock.advance(2_000);
    expect(told).toEqual(['The caller pressed the keys 4 5.']);
  });

  it('are 64 at most, and none once they are closed', () => {
    const { clock, told, keys, press } = site();
    keys.start();
    press('1'.repeat(65));
    press('#');
    expect(told).toEqual([`The caller pressed the keys ${Array.from('1'.repeat(64)).join(' ')}.`]);
    press('2');
    keys.close();
    expect(clock.pendingTimers).toBe(0);
  });
});

describe('the speech of an agent before the ACK', () => {
  const piece = (utterance: string, length: number | null) => ({ utterance, bytes: length === null ? null : new Uint8Array(length) });
  const taken = (early: EarlySpeech) => early.take().map(({ utterance, bytes }) => [utterance, bytes?.length ?? null]);

  it('is kept up to 2 MiB, with its ends, and taken once', () => {
    const early = new EarlySpeech();
    early.add(piece('a', 2 << 20));
    early.add(piece('b', 1));
    early.add(piece('b', null));
    expect(taken(early)).toEqual([
      ['a', 2 << 20],
      ['b', null],
    ]);
    expect(taken(early)).toEqual([]);
  });

  it('is dropped when its session is over, and frees its space', () => {
    const early = new EarlySpeech();
    early.add(piece('a', (2 << 20) - 10));
    early.add(piece('kept', 10));
    early.sessionEnded('kept');
    early.add(piece('b', (2 << 20) - 10));
    early.add(piece('c', 1));
    expect(taken(early)).toEqual([
      ['kept', 10],
      ['b', (2 << 20) - 10],
    ]);
  });
});

describe('the conversation so far', () => {
  const entry = (text: string, atMs: number) => ({ speaker: 'agent' as const, text, at_ms: atMs });
  const texts = (so: ConversationSoFar): string[] => so.said.map(({ text }) => text);

  it('has the order of its audio, after what was said to another agent', () => {
    const soFar = new ConversationSoFar([{ speaker: 'caller', text: 'before' }]);
    soFar.add([entry('third', 300), entry('first', 100)]);
    soFar.add([entry('second', 200), entry('second too', 200)]);
    expect(texts(soFar)).toEqual(['before', 'first', 'second', 'second too', 'third']);
  });

  it('keeps the last 200 texts', () => {
    const soFar = new ConversationSoFar(Array.from({ length: 201 }, (_, n) => ({ speaker: 'caller', text: String(n) })));
    expect([texts(soFar).length, texts(soFar)[0]]).toEqual([200, '1']);
    soFar.add([entry('new', 1), entry('newer', 2)]);
    expect([texts(soFar).length, texts(soFar)[0], texts(soFar).at(-1)]).toEqual([200, '3', 'newer']);
  });
});

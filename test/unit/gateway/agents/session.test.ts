import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { INITIAL_SESSION, step, type SessionEvent, type SessionState } from '../../../../src/gateway/agents/session.js';

const START: SessionEvent = { type: 'started' };
const DONE: SessionEvent = { type: 'phrase-finished' };
const key = (event: number): SessionEvent => ({ type: 'digit', event });
const STAR = key(10);
const POUND = key(11);

/** What the line does, in words. */
function run(events: readonly SessionEvent[]): { readonly done: string[]; readonly state: SessionState } {
  let state = INITIAL_SESSION;
  const done: string[] = [];
  for (const event of events) {
    const result = step(state, event);
    state = result.state;
    for (const effect of result.effects) {
      const isDigit = effect.type === 'say' && effect.phrase.kind === 'digit';
      done.push(effect.type === 'say' ? (isDigit ? `say ${effect.phrase.event}` : `say ${effect.phrase.kind}`) : effect.type);
    }
  }
  return { done, state };
}

describe('a session of the test line', () => {
  it('greets, then echoes', () => {
    expect(run([START]).done).toEqual(['say greeting']);
    expect(run([START, DONE])).toMatchObject({ done: ['say greeting'], state: { phase: 'echo' } });
  });

  it('reads back a digit pressed during the echo, and echoes again', () => {
    expect(run([START, DONE, key(5)])).toMatchObject({ done: ['say greeting', 'say 5'], state: { phase: 'reading' } });
    expect(run([START, DONE, key(5), DONE]).state.phase).toBe('echo');
  });

  it('reads back digits pressed during the greeting, which they interrupt, all in order', () => {
    const events = [START, key(3), key(1), key(2), DONE, DONE, DONE];
    expect(run(events).done).toEqual(['say greeting', 'stop-speaking', 'say 3', 'say 1', 'say 2']);
    expect(run(events).state.phase).toBe('echo');
  });

  it('speaks the figures on *, in its turn among the digits, and does not break off for the next digit', () => {
    const events = [START, DONE, key(1), STAR, STAR, key(2), DONE, DONE, DONE];
    expect(run(events).done).toEqual(['say greeting', 'say 1', 'say figures', 'say figures', 'say 2']);
    expect(run([...events, DONE]).state.phase).toBe('echo');
  });

  it('reads back the digits before #, then says goodbye, then hangs up', () => {
    const events = [START, DONE, key(1), key(2), POUND, key(9), DONE, DONE];
    expect(run(events).done).toEqual(['say greeting', 'say 1', 'say 2', 'say goodbye']);
    expect(run([...events, DONE]).done.at(-1)).toBe('hang-up');
    expect(run([...events, DONE]).state.phase).toBe('ended');
  });

  it('says goodbye at once when # comes during the greeting', () => {
    expect(run([START, POUND, DONE]).done).toEqual(['say greeting', 'stop-speaking', 'say goodbye', 'hang-up']);
  });

  it('reads back digits pressed before the start instead of the greeting', () => {
    expect(run([key(4), START]).done).toEqual(['say 4']);
  });

  it('hangs up at most once, whatever comes, and always in the end when # came and every phrase ends', () => {
    const event = fc.oneof(
      fc.constant(START),
      fc.constant(DONE),
      fc.nat(15).map((digit) => key(digit)),
    );
    fc.assert(
      fc.property(fc.array(event, { maxLength: 60 }), (events) => {
        const all = [START, ...events, POUND, ...Array.from({ length: 64 }, () => DONE), DONE, DONE];
        expect(run(all).done.filter((what) => what === 'hang-up')).toEqual(['hang-up']);
      }),
    );
  });

  it('keeps no more than 64 digits to read back', () => {
    const { state } = run([START, DONE, ...Array.from({ length: 500 }, () => key(1))]);
    expect(state.pending).toHaveLength(64);
  });
});

import { describe, expect, it } from 'vitest';
import { forkingStart, stepForking, type ForkingEffect, type ForkingEvent, type ForkingState } from '../../../../src/sip/proxy/forking.js';

const INVITE = { isInvite: true, isSerial: false, followsRedirects: false, targets: ['sip:a', 'sip:b'] };
const SERIAL = { ...INVITE, isSerial: true };
const OPTIONS = { ...INVITE, isInvite: false };

const START: ForkingEvent = { type: 'start' };
const CANCEL: ForkingEvent = { type: 'cancel' };
const response = (branch: number, status: number, contacts: readonly string[] = []): ForkingEvent => ({
  type: 'response',
  branch,
  status,
  contacts,
});
const failed = (branch: number, status: 408 | 503): ForkingEvent => ({ type: 'failed', branch, status });
const timer = (branch: number, which: 'provisional' | 'final'): ForkingEvent => ({ type: 'timer', branch, timer: which });

/** A word or two for each effect. */
function told(effect: ForkingEffect): string {
  if (effect.do === 'launch') return `launch ${effect.target} as ${String(effect.branch)}`;
  if (effect.do === 'answer') return `answer ${String(effect.status)} of ${String(effect.branch)}`;
  return 'branch' in effect ? `${effect.do} ${String(effect.branch)}` : effect.do;
}

/** What each event led to, and the state behind the last one. */
function played(
  options: Parameters<typeof forkingStart>[0],
  ...events: readonly ForkingEvent[]
): { effects: string[][]; state: ForkingState } {
  let state = forkingStart(options);
  const effects = events.map((event) => {
    const step = stepForking(state, event);
    state = step.state;
    return step.effects.map(told);
  });
  return { effects, state };
}

const effectsOf = (options: Parameters<typeof forkingStart>[0], ...events: readonly ForkingEvent[]): string[][] =>
  played(options, ...events).effects;
const lastOf = (options: Parameters<typeof forkingStart>[0], ...events: readonly ForkingEvent[]): string[] | undefined =>
  effectsOf(options, ...events).at(-1);

describe('the targets of a forwarded request', () => {
  it('are called all at once, or one after the other', () => {
    expect(effectsOf(INVITE, START)).toEqual([['launch sip:a as 0', 'launch sip:b as 1']]);
    expect(effectsOf(SERIAL, START, response(0, 486))).toEqual([['launch sip:a as 0'], ['stop-timers 0', 'launch sip:b as 1']]);
    expect(effectsOf(SERIAL, START, response(0, 180), response(0, 486))).toEqual([
      ['launch sip:a as 0'],
      ['stop-provisional-timer 0', 'restart-final-timer 0', 'forward'],
      ['stop-timers 0', 'launch sip:b as 1'],
    ]);
  });

  it('may be missing, and then the caller gets 487', () => {
    expect(effectsOf({ ...INVITE, targets: [] }, START)).toEqual([['answer 487 of null', 'done']]);
  });

  it('begin with no response and nothing done', () => {
    expect(forkingStart(SERIAL)).toEqual({
      isInvite: true,
      isSerial: true,
      followsRedirects: false,
      waiting: ['sip:a', 'sip:b'],
      branches: [],
      isAnswered: false,
      isDone: false,
    });
  });
});

describe('a provisional response', () => {
  it('is forwarded, each, and restarts the long timer', () => {
    const { effects, state } = played(INVITE, START, response(0, 180), response(0, 183));
    const expected = ['stop-provisional-timer 0', 'restart-final-timer 0', 'forward'];
    expect(effects.slice(1)).toEqual([expected, expected]);
    expect(state.branches.map(({ name }) => name)).toEqual(['Proceeding', 'Calling']);
  });

  it('has no effect once the branch has its final response, or the caller one', () => {
    expect(lastOf(INVITE, START, response(0, 486), response(0, 180))).toEqual([]);
    expect(lastOf(INVITE, START, response(0, 200), response(1, 180))).toEqual([]);
  });

  it('of an abandoned branch is forwarded, and does not revive it', () => {
    const { effects, state } = played(INVITE, START, timer(0, 'final'), response(0, 180));
    expect(effects.at(-1)).toEqual(['stop-provisional-timer 0', 'restart-final-timer 0', 'forward']);
    expect(state.branches[0]?.name).toBe('Abandoned');
  });
});

describe('a 2xx', () => {
  it('is forwarded, cancels the others, and starts no further target', () => {
    expect(lastOf(INVITE, START, response(0, 200))).toEqual(['stop-timers 0', 'forward', 'cancel 1']);
    expect(lastOf(INVITE, START, response(1, 180), response(0, 299))).toEqual(['stop-timers 0', 'forward', 'cancel 1']);
    const { effects, state } = played(SERIAL, START, response(0, 200));
    expect(effects.at(-1)).toEqual(['stop-timers 0', 'forward', 'done']);
    expect([state.waiting, state.isDone]).toEqual([[], true]);
  });

  it('to an INVITE is forwarded however late (RFC 3261 §16.7), to another request once', () => {
    expect(lastOf(INVITE, START, response(0, 200), response(1, 200))).toEqual(['stop-timers 1', 'forward', 'done']);
    expect(lastOf(INVITE, START, response(0, 200), response(1, 487), response(0, 200))).toEqual(['forward']);
    expect(lastOf(INVITE, START, response(0, 486), response(0, 486))).toEqual([]);
    expect(lastOf(INVITE, START, response(0, 486), response(0, 300))).toEqual([]);
    expect(lastOf(OPTIONS, START, response(0, 200))).toEqual(['stop-timers 0', 'forward']);
    expect(lastOf(OPTIONS, START, response(0, 200), response(1, 200))).toEqual(['stop-timers 1', 'done']);
    expect(lastOf(OPTIONS, START, response(0, 200), response(0, 200))).toEqual([]);
  });
});

describe('the final response that the caller gets', () => {
  const answered = (first: number, second: number): string | undefined =>
    lastOf(INVITE, START, response(0, first), response(1, second))?.find((word) => word.startsWith('answer'));

  it.each([
    [486, 404, 'answer 486 of 0'],
    [404, 302, 'answer 302 of 1'],
    [399, 401, 'answer 399 of 0'],
    [404, 401, 'answer 401 of 1'],
    [404, 407, 'answer 407 of 1'],
    [404, 415, 'answer 415 of 1'],
    [404, 420, 'answer 420 of 1'],
    [404, 484, 'answer 484 of 1'],
    [408, 404, 'answer 404 of 1'],
    [500, 408, 'answer 408 of 1'],
    [500, 499, 'answer 499 of 1'],
    [503, 500, 'answer 500 of 0'],
    [500, 503, 'answer 500 of 0'],
  ])('of %i and %i is %s (RFC 3261 §16.7 step 6)', (first, second, expected) => {
    expect(answered(first, second)).toBe(expected);
  });

  it('is a 6xx, which ends the others', () => {
    expect(lastOf(INVITE, START, response(0, 600))).toEqual(['stop-timers 0', 'cancel 1']);
    expect(lastOf(INVITE, START, response(0, 603), response(1, 487))).toEqual(['stop-timers 1', 'answer 603 of 0', 'done']);
    expect(lastOf(SERIAL, START, response(0, 600))).toEqual(['stop-timers 0', 'answer 600 of 0', 'done']);
    expect(lastOf(SERIAL, START, response(0, 599))).toEqual(['stop-timers 0', 'launch sip:b as 1']);
  });

  it('is sent once all branches have theirs', () => {
    expect(effectsOf(INVITE, START, response(1, 404), response(0, 486)).slice(1)).toEqual([
      ['stop-timers 1'],
      ['stop-timers 0', 'answer 486 of 0', 'done'],
    ]);
  });
});

describe('a redirection', () => {
  const FOLLOWED = { ...SERIAL, followsRedirects: true };

  it('is followed before the waiting targets, where that is set', () => {
    const { effects, state } = played(FOLLOWED, START, response(0, 302, ['sip:c', 'sip:d']));
    expect(effects.at(-1)).toEqual(['stop-timers 0', 'launch sip:c as 1']);
    expect(state.waiting).toEqual(['sip:d', 'sip:b']);
    expect(played(SERIAL, START, response(0, 302, ['sip:c'])).state.waiting).toEqual([]);
    expect(played(FOLLOWED, START, response(0, 400, ['sip:c'])).state.waiting).toEqual([]);
  });

  it('is not followed once the caller has a final response', () => {
    const both = { ...INVITE, followsRedirects: true };
    expect(lastOf(both, START, response(0, 200), response(1, 302, ['sip:c']))).toEqual(['stop-timers 1', 'done']);
  });

  it('adds no more than 32 targets in all', () => {
    const many = Array.from({ length: 40 }, (_, index) => `sip:${String(index)}`);
    const { state } = played(FOLLOWED, START, response(0, 302, many));
    // One tried, one waited; the first of the new ones is being called.
    expect(state.branches.length + state.waiting.length).toBe(32);
    expect(state.waiting.at(-1)).toBe('sip:b');
    const full = { ...FOLLOWED, targets: many };
    expect(played(full, START, response(0, 302, ['sip:x'])).state.waiting).not.toContain('sip:x');
  });
});

describe('a target that does not answer', () => {
  it('or cannot be reached gives way to the next one; the caller gets the best response', () => {
    expect(effectsOf(SERIAL, START, failed(0, 408), failed(1, 503)).slice(1)).toEqual([
      ['stop-timers 0', 'launch sip:b as 1'],
      ['stop-timers 1', 'answer 408 of 0', 'done'],
    ]);
    expect(lastOf({ ...SERIAL, targets: ['sip:a'] }, START, failed(0, 503))).toEqual(['stop-timers 0', 'answer 500 of 0', 'done']);
    expect(lastOf(INVITE, START, response(0, 486), failed(0, 408))).toEqual([]);
    expect(lastOf(INVITE, START, failed(7, 408))).toEqual([]);
  });

  it('is abandoned by its timer, and cancelled when it is an INVITE', () => {
    expect(lastOf(SERIAL, START, timer(0, 'provisional'))).toEqual(['stop-timers 0', 'cancel 0', 'launch sip:b as 1']);
    expect(lastOf(SERIAL, START, response(0, 180), timer(0, 'final'))).toEqual(['stop-timers 0', 'cancel 0', 'launch sip:b as 1']);
    expect(lastOf({ ...SERIAL, isInvite: false }, START, timer(0, 'final'))).toEqual(['stop-timers 0', 'launch sip:b as 1']);
  });

  it('has sent a provisional response, which stops the short timer', () => {
    expect(lastOf(SERIAL, START, response(0, 180), timer(0, 'provisional'))).toEqual([]);
    expect(lastOf(SERIAL, START, timer(0, 'final'), timer(0, 'final'))).toEqual([]);
    expect(lastOf(INVITE, START, response(0, 486), timer(0, 'final'))).toEqual([]);
    expect(lastOf(INVITE, START, timer(7, 'final'))).toEqual([]);
  });

  it('and was cancelled by us answers 487, which counts as 408', () => {
    const { effects, state } = played(INVITE, START, timer(0, 'final'), response(1, 404), response(0, 487));
    expect(effects.slice(2)).toEqual([
      ['stop-timers 1', 'answer 404 of 1'],
      ['stop-timers 0', 'done'],
    ]);
    expect(state.branches.map(({ status }) => status)).toEqual([408, 404]);
    expect(played(INVITE, START, timer(0, 'final'), response(0, 486)).state.branches[0]?.status).toBe(486);
    expect(played(INVITE, START, CANCEL, response(0, 487)).state.branches[0]?.status).toBe(487);
  });
});

describe('a CANCEL of the caller', () => {
  it('cancels all that ring, starts no other, and is answered by their responses', () => {
    expect(effectsOf(SERIAL, START, response(0, 180), CANCEL, response(0, 487)).slice(2)).toEqual([
      ['cancel 0'],
      ['stop-timers 0', 'answer 487 of 0', 'done'],
    ]);
    expect(lastOf(INVITE, START, response(0, 486), response(1, 180), CANCEL)).toEqual(['cancel 1']);
    expect(lastOf(OPTIONS, START, CANCEL)).toEqual([]);
  });

  it('has no effect after the end', () => {
    expect(lastOf(SERIAL, START, response(0, 200), CANCEL)).toEqual([]);
    expect(lastOf(SERIAL, START, response(0, 200), START)).toEqual([]);
  });
});

describe('a response to no branch', () => {
  it('is ignored', () => {
    for (const status of [180, 200, 404]) expect(lastOf(INVITE, START, response(9, status))).toEqual([]);
  });
});

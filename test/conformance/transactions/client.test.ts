import { describe, expect, it } from 'vitest';
import { inviteClientStart, stepInviteClient, type InviteClientEvent } from '../../../src/sip/transaction/invite-client.js';
import { nonInviteClientStart, stepNonInviteClient, type NonInviteClientEvent } from '../../../src/sip/transaction/non-invite-client.js';
import { DEFAULT_TIMERS } from '../../../src/sip/transaction/timers.js';

const UDP = { ...DEFAULT_TIMERS, reliable: false };
const TLS = { ...DEFAULT_TIMERS, reliable: true };
const START = { type: 'start' } as const;
const response = (status: number) => ({ type: 'response', status, ack: '<ACK>' }) as const;
const timer = <T extends string>(name: T) => ({ type: 'timer', timer: name }) as const;

const CLIENT_EVENTS = {
  start: START,
  cancelled: { type: 'cancelled' },
  abandoned: { type: 'abandoned' },
  r100: response(100),
  r200: response(200),
  r299: response(299),
  r300: response(300),
  r486: response(486),
  A: timer('A'),
  B: timer('B'),
  D: timer('D'),
  M: timer('M'),
  cancel: timer('cancel'),
  error: { type: 'transport-error' },
} as const satisfies Record<string, InviteClientEvent>;

function invite(events: readonly InviteClientEvent[], context = UDP) {
  let state = inviteClientStart('<INVITE>');
  let effects: readonly unknown[] = [];
  for (const event of events) ({ state, effects } = stepInviteClient(state, event, context));
  return { name: state.name, effects };
}

function other(events: readonly NonInviteClientEvent[], context = UDP) {
  let state = nonInviteClientStart('<BYE>');
  let effects: readonly unknown[] = [];
  for (const event of events) ({ state, effects } = stepNonInviteClient(state, event, context));
  return { name: state.name, effects };
}

const delays = (effects: readonly unknown[]): unknown[] =>
  (effects as { do: string; delayMs?: number }[]).filter((e) => e.do === 'start').map((e) => e.delayMs);

describe('an INVITE client transaction', () => {
  it('[3261 §17.1.1.2] in Calling doubles timer A without bound, ends on timer B, and starts no timer A on reliable transports', () => {
    expect(invite([START]).effects).toEqual([
      { do: 'send', text: '<INVITE>' },
      { do: 'start', timer: 'B', delayMs: 32_000 },
      { do: 'start', timer: 'A', delayMs: 500 },
    ]);
    expect(delays(invite([START, timer('A')]).effects)).toEqual([1_000]);
    expect(delays(invite([START, timer('A'), timer('A'), timer('A'), timer('A'), timer('A')]).effects)).toEqual([16_000]);
    expect(delays(invite([START], TLS).effects)).toEqual([32_000]);
    expect(invite([START, timer('B')])).toEqual({
      name: 'Terminated',
      effects: [{ do: 'stop', timer: 'A' }, { do: 'notify', user: 'timeout' }, { do: 'terminate' }],
    });
  });

  it('[3261 §17.1.1.2] in Proceeding stops retransmitting and passes every provisional response on', () => {
    expect(invite([START, response(180)])).toMatchObject({ name: 'Proceeding' });
    expect(invite([START, response(180), response(183)]).effects).toContainEqual({ do: 'notify', user: 'response' });
    for (const name of ['A', 'B'] as const) expect(invite([START, response(180), timer(name)]).effects).toEqual([]);
  });

  it('[3261 §17.1.1.2] in Completed acknowledges each repetition of a final error for at least 32 s, and tells the user of none', () => {
    const first = invite([START, response(486)]);
    expect(first.name).toBe('Completed');
    expect(first.effects).toEqual([
      { do: 'stop', timer: 'A' },
      { do: 'stop', timer: 'B' },
      { do: 'send', text: '<ACK>' },
      { do: 'notify', user: 'response' },
      { do: 'start', timer: 'D', delayMs: 32_000 },
    ]);
    expect(invite([START, response(486), response(486)]).effects).toEqual([{ do: 'send', text: '<ACK>' }]);
    expect(invite([START, response(486), timer('D')])).toMatchObject({ name: 'Terminated' });
    expect(invite([START, response(486)], TLS)).toMatchObject({ name: 'Terminated' });
  });

  it.each([
    [100, 32_000],
    [500, 32_000],
    [1_000, 64_000],
  ])('[3261 §17.1.1.2] in Completed sets timer D to 64 times T1 and at least 32 s (T1 of %i ms)', (t1Ms, delayMs) => {
    expect(delays(invite([START, response(486)], { ...UDP, t1Ms }).effects)).toEqual([delayMs]);
  });

  it.each([100, 180, 200, 299])('[3261 §17.1.1.2] in Completed acknowledges no %i that comes after a final error', (status) => {
    expect(invite([START, response(486), response(status)])).toEqual({ name: 'Completed', effects: [] });
  });

  it.each([300, 486, 699])('[3261 §17.1.1.2] in Completed acknowledges a %i again with the ACK to the first response', (status) => {
    const again = { type: 'response', status, ack: '<another ACK>' } as const;
    expect(invite([START, response(486), again])).toEqual({ name: 'Completed', effects: [{ do: 'send', text: '<ACK>' }] });
  });

  it('[6026 §7.2] in Accepted passes every 2xx on until timer M', () => {
    expect(invite([START, response(200)])).toMatchObject({ name: 'Accepted' });
    expect(invite([START, response(200), response(200)]).effects).toEqual([{ do: 'notify', user: 'response' }]);
    expect(invite([START, response(200), response(486)]).effects).toEqual([]);
    expect(invite([START, response(200), timer('M')])).toMatchObject({ name: 'Terminated' });
  });

  it('[3261 §17.1.4] tells the user of a transport error', () => {
    expect(invite([START, { type: 'transport-error' }]).effects).toEqual([{ do: 'notify', user: 'transport-error' }, { do: 'terminate' }]);
  });

  it('[3261 §17.1.1.2] tells the user of a transport error in Completed as well, as in figure 5', () => {
    expect(invite([START, response(486), { type: 'transport-error' }]).effects).toEqual([
      { do: 'notify', user: 'transport-error' },
      { do: 'terminate' },
    ]);
  });

  it('does not repeat an INVITE that is abandoned, and still ends on timer B', () => {
    expect(invite([START, { type: 'abandoned' }])).toEqual({ name: 'Calling', effects: [{ do: 'stop', timer: 'A' }] });
    expect(invite([START, response(180), { type: 'abandoned' }])).toEqual({ name: 'Proceeding', effects: [] });
    expect(invite([START, { type: 'abandoned' }, timer('B')]).effects).toContainEqual({ do: 'notify', user: 'timeout' });
  });
});

describe('an INVITE client transaction in each state', () => {
  const states = {
    Calling: [],
    Proceeding: ['r100'],
    Accepted: ['r200'],
    Completed: ['r486'],
    Terminated: ['r486', 'D'],
  } as const satisfies Record<string, readonly (keyof typeof CLIENT_EVENTS)[]>;

  it.each<[keyof typeof states, readonly (keyof typeof CLIENT_EVENTS)[]]>([
    ['Calling', ['cancelled', 'D', 'M', 'cancel']],
    ['Proceeding', ['abandoned', 'A', 'B', 'D', 'M']],
    ['Accepted', ['cancelled', 'abandoned', 'r100', 'r300', 'r486', 'A', 'B', 'D', 'cancel', 'error']],
    ['Completed', ['cancelled', 'abandoned', 'r100', 'r200', 'r299', 'A', 'B', 'M', 'cancel']],
    ['Terminated', ['cancelled', 'abandoned', 'r100', 'r200', 'r300', 'r486', 'A', 'B', 'D', 'M', 'cancel', 'error']],
  ])('in %s ignores the events that do not belong there', (name, ignored) => {
    let state = inviteClientStart('<INVITE>');
    for (const event of ['start', ...states[name]] as const) ({ state } = stepInviteClient(state, CLIENT_EVENTS[event], UDP));
    expect(state.name).toBe(name);
    for (const event of ignored)
      expect([event, stepInviteClient(state, CLIENT_EVENTS[event], UDP)]).toEqual([event, { state, effects: [] }]);
  });

  it('keeps no copy of the INVITE after the final response', () => {
    for (const events of [['r200'], ['r486'], ['r486', 'D']] as const) {
      let state = inviteClientStart('<INVITE>');
      for (const event of ['start', ...events] as const) ({ state } = stepInviteClient(state, CLIENT_EVENTS[event], UDP));
      expect(state.request).toBe('');
    }
    expect(stepInviteClient(inviteClientStart('<INVITE>'), timer('B'), UDP).state.request).toBe('');
  });

  it('[3261 §17.1.1.2] sends the INVITE again on timer A, takes 300 for the first final error, and waits 64 times T1 for further 2xx', () => {
    expect(invite([START, timer('A')]).effects[0]).toEqual({ do: 'send', text: '<INVITE>' });
    expect(invite([START, response(299)])).toMatchObject({ name: 'Accepted' });
    expect(invite([START, response(300)])).toMatchObject({ name: 'Completed' });
    expect(delays(invite([START, response(200)]).effects)).toEqual([32_000]);
  });
});

describe('a non-INVITE client transaction', () => {
  it('[3261 §17.1.2.2] doubles timer E to T2 in Trying, sets it to T2 in Proceeding, and ends both on timer F', () => {
    expect(delays(other([START]).effects)).toEqual([32_000, 500]);
    for (const [count, delayMs] of [1_000, 2_000, 4_000, 4_000].entries())
      expect(delays(other([START, ...Array.from({ length: count + 1 }, () => timer('E'))]).effects)).toEqual([delayMs]);
    expect(delays(other([START, response(100), timer('E')]).effects)).toEqual([4_000]);
    for (const before of [[START], [START, response(100)]]) {
      expect(other([...before, timer('F')])).toEqual({
        name: 'Terminated',
        effects: [{ do: 'stop', timer: 'E' }, { do: 'notify', user: 'timeout' }, { do: 'terminate' }],
      });
    }
    expect(delays(other([START], TLS).effects)).toEqual([32_000]);
  });

  it('[3261 §17.1.2.2] in Completed absorbs repetitions until timer K, which is zero on reliable transports', () => {
    expect(other([START, response(200)])).toMatchObject({ name: 'Completed' });
    expect(delays(other([START, response(200)]).effects)).toEqual([5_000]);
    expect(other([START, response(200), response(200)]).effects).toEqual([]);
    expect(other([START, response(200), timer('K')])).toMatchObject({ name: 'Terminated' });
    expect(other([START, response(200)], TLS)).toMatchObject({ name: 'Terminated' });
  });

  it('[3261 §17.1.2.2] sends the request again on timer E, and stops both timers at a final response, which it gives to the user', () => {
    expect(other([START, timer('E')]).effects[0]).toEqual({ do: 'send', text: '<BYE>' });
    const done = [
      { do: 'stop', timer: 'E' },
      { do: 'stop', timer: 'F' },
      { do: 'notify', user: 'response' },
    ];
    expect(other([START, response(200)]).effects).toEqual([...done, { do: 'start', timer: 'K', delayMs: 5_000 }]);
    expect(other([START, response(200)], TLS).effects).toEqual([...done, { do: 'terminate' }]);
    expect(other([START, response(199)])).toEqual({ name: 'Proceeding', effects: [{ do: 'notify', user: 'response' }] });
  });

  it('[3261 §17.1.4] tells the user of a transport error before the final response', () => {
    for (const before of [[START], [START, response(100)]]) {
      expect(other([...before, { type: 'transport-error' }])).toEqual({
        name: 'Terminated',
        effects: [{ do: 'notify', user: 'transport-error' }, { do: 'terminate' }],
      });
    }
  });

  it.each([
    ['Trying', [], [timer('K')]],
    ['Proceeding', [response(100)], [timer('K')]],
    ['Completed', [response(200)], [response(100), response(200), timer('E'), timer('F'), { type: 'transport-error' }]],
    [
      'Terminated',
      [response(200), timer('K')],
      [response(100), response(200), timer('E'), timer('F'), timer('K'), { type: 'transport-error' }],
    ],
  ] as const)('in %s ignores the events that do not belong there', (name, before, ignored) => {
    let state = nonInviteClientStart('<BYE>');
    for (const event of [START, ...before]) ({ state } = stepNonInviteClient(state, event, UDP));
    expect(state.name).toBe(name);
    expect(state.request).toBe(name === 'Completed' || name === 'Terminated' ? '' : '<BYE>');
    for (const event of ignored) expect([event, stepNonInviteClient(state, event, UDP)]).toEqual([event, { state, effects: [] }]);
  });
});

import { describe, expect, it } from 'vitest';
import {
  INVITE_SERVER_START,
  stepInviteServer,
  type InviteServerEvent,
  type InviteServerState,
} from '../../../src/sip/transaction/invite-server.js';
import {
  NON_INVITE_SERVER_START,
  stepNonInviteServer,
  type NonInviteServerEvent,
  type NonInviteServerState,
} from '../../../src/sip/transaction/non-invite-server.js';
import { DEFAULT_TIMERS } from '../../../src/sip/transaction/timers.js';

const UDP = { ...DEFAULT_TIMERS, reliable: false };
const TLS = { ...DEFAULT_TIMERS, reliable: true };
const respond = (status: number, text = `<${String(status)}>`) => ({ type: 'respond', status, text }) as const;
const timer = <T extends string>(name: T) => ({ type: 'timer', timer: name }) as const;

function invite(events: readonly InviteServerEvent[], context = UDP) {
  let state: InviteServerState = INVITE_SERVER_START;
  let effects: readonly unknown[] = [];
  for (const event of events) ({ state, effects } = stepInviteServer(state, event, context));
  return { name: state.name, effects, state };
}

function other(events: readonly NonInviteServerEvent[], context = UDP) {
  let state: NonInviteServerState = NON_INVITE_SERVER_START;
  let effects: readonly unknown[] = [];
  for (const event of events) ({ state, effects } = stepNonInviteServer(state, event, context));
  return { name: state.name, effects };
}

describe('an INVITE server transaction', () => {
  it('[3261 §17.2.1] in Proceeding sends provisional responses and repeats the last one', () => {
    expect(invite([respond(100)])).toMatchObject({ name: 'Proceeding', effects: [{ do: 'send', text: '<100>' }] });
    expect(invite([respond(100), respond(180), { type: 'invite' }])).toMatchObject({
      name: 'Proceeding',
      effects: [{ do: 'send', text: '<180>' }],
    });
    expect(invite([{ type: 'invite' }])).toMatchObject({ effects: [] });
  });

  it('[6026 §7.1] in Accepted absorbs INVITEs, passes ACKs and further 2xx on, and ends on timer L', () => {
    expect(invite([respond(200)])).toMatchObject({
      name: 'Accepted',
      effects: [
        { do: 'send', text: '<200>' },
        { do: 'start', timer: 'L', delayMs: 32_000 },
      ],
    });
    expect(invite([respond(200), { type: 'invite' }])).toMatchObject({ name: 'Accepted', effects: [] });
    expect(invite([respond(200), { type: 'ack' }])).toMatchObject({ name: 'Accepted', effects: [{ do: 'notify', user: 'ack' }] });
    expect(invite([respond(200), respond(200)])).toMatchObject({ name: 'Accepted', effects: [{ do: 'send' }] });
    expect(invite([respond(200), respond(486)])).toMatchObject({ name: 'Accepted', effects: [] });
    expect(invite([respond(200), { type: 'transport-error' }])).toMatchObject({ name: 'Accepted', effects: [] });
    expect(invite([respond(200), timer('L')])).toMatchObject({ name: 'Terminated', effects: [{ do: 'terminate' }] });
  });

  it('[3261 §17.2.1] in Completed retransmits 486 on timer G, doubling to T2, on unreliable transports', () => {
    expect(invite([respond(486)])).toMatchObject({
      name: 'Completed',
      effects: [
        { do: 'send', text: '<486>' },
        { do: 'start', timer: 'H', delayMs: 32_000 },
        { do: 'start', timer: 'G', delayMs: 500 },
      ],
    });
    const intervals = [];
    let { state } = invite([respond(486)]);
    for (let round = 0; round < 5; round += 1) {
      const step = stepInviteServer(state, timer('G'), UDP);
      state = step.state;
      expect(step.effects).toEqual([
        { do: 'send', text: '<486>' },
        { do: 'start', timer: 'G', delayMs: state.intervalMs },
      ]);
      intervals.push(state.intervalMs);
    }
    expect(intervals).toEqual([1_000, 2_000, 4_000, 4_000, 4_000]);
  });

  it('[3261 §17.2.1] takes 299 for the last success and 300 for the first error, and in Accepted sends neither 1xx nor errors', () => {
    expect(invite([respond(299)])).toMatchObject({ name: 'Accepted' });
    expect(invite([respond(300)])).toMatchObject({ name: 'Completed' });
    for (const status of [100, 199, 300]) expect(invite([respond(200), respond(status)])).toMatchObject({ name: 'Accepted', effects: [] });
  });

  it('[3261 §17.2.1] in Completed starts no timer G on reliable transports', () => {
    expect(invite([respond(486)], TLS).effects).toEqual([
      { do: 'send', text: '<486>' },
      { do: 'start', timer: 'H', delayMs: 32_000 },
    ]);
  });

  it('[3261 §17.2.1] in Completed answers a retransmitted INVITE with the final response, and takes no other response', () => {
    for (const context of [UDP, TLS]) {
      expect(invite([respond(180), respond(486), { type: 'invite' }], context)).toMatchObject({
        name: 'Completed',
        effects: [{ do: 'send', text: '<486>' }],
      });
    }
    for (const status of [180, 200, 503]) {
      expect(invite([respond(486), respond(status)])).toMatchObject({ name: 'Completed', effects: [] });
      expect(invite([respond(486), respond(status), { type: 'invite' }]).effects).toEqual([{ do: 'send', text: '<486>' }]);
    }
  });

  it('[3261 §17.2.1] in Completed goes to Confirmed with timer I on ACK, and ends at once on reliable transports', () => {
    expect(invite([respond(486), { type: 'ack' }])).toMatchObject({
      name: 'Confirmed',
      effects: [
        { do: 'stop', timer: 'G' },
        { do: 'stop', timer: 'H' },
        { do: 'start', timer: 'I', delayMs: 5_000 },
      ],
    });
    expect(invite([respond(486), { type: 'ack' }], TLS)).toMatchObject({ name: 'Terminated' });
    for (const event of [{ type: 'invite' }, { type: 'ack' }, timer('G')] as const) {
      expect(invite([respond(486), { type: 'ack' }, event])).toMatchObject({ name: 'Confirmed', effects: [] });
    }
    expect(invite([respond(486), { type: 'ack' }, timer('I')])).toMatchObject({ name: 'Terminated' });
  });

  it('[3261 §17.2.1] in Completed tells the user when timer H fires without an ACK', () => {
    expect(invite([respond(486), timer('H')])).toMatchObject({
      name: 'Terminated',
      effects: [{ do: 'stop', timer: 'G' }, { do: 'notify', user: 'ack-timeout' }, { do: 'terminate' }],
    });
  });

  it('[3261 §17.2.4] tells the user of a transport error before and after an error response', () => {
    for (const before of [[], [respond(486)]]) {
      expect(invite([...before, { type: 'transport-error' }])).toMatchObject({
        name: 'Terminated',
        effects: [{ do: 'notify', user: 'transport-error' }, { do: 'terminate' }],
      });
    }
  });

  it('does nothing more once terminated', () => {
    const events = [
      respond(200),
      respond(486),
      { type: 'invite' },
      { type: 'ack' },
      timer('G'),
      timer('H'),
      timer('I'),
      timer('L'),
      { type: 'transport-error' },
    ] as const;
    for (const event of events) {
      const { effects } = invite([respond(486), timer('H'), event]);
      expect([event, effects]).toEqual([event, []]);
    }
  });
});

describe('a non-INVITE server transaction', () => {
  it('[3261 §17.2.2] in Trying absorbs repetitions until there is a response', () => {
    expect(other([{ type: 'request' }])).toEqual({ name: 'Trying', effects: [] });
    expect(other([respond(182), { type: 'request' }])).toEqual({ name: 'Proceeding', effects: [{ do: 'send', text: '<182>' }] });
  });

  it('[3261 §17.2.2] in Completed repeats the final response until timer J, which is zero on reliable transports', () => {
    expect(other([respond(200)])).toEqual({
      name: 'Completed',
      effects: [
        { do: 'send', text: '<200>' },
        { do: 'start', timer: 'J', delayMs: 32_000 },
      ],
    });
    expect(other([respond(200), { type: 'request' }]).effects).toEqual([{ do: 'send', text: '<200>' }]);
    expect(other([respond(200), respond(500)])).toEqual({ name: 'Completed', effects: [] });
    expect(other([respond(200), timer('J')])).toEqual({ name: 'Terminated', effects: [{ do: 'terminate' }] });
    expect(other([respond(200)], TLS)).toEqual({ name: 'Terminated', effects: [{ do: 'send', text: '<200>' }, { do: 'terminate' }] });
  });

  it('does nothing with timer J before the final response, nor with anything once terminated', () => {
    expect(other([timer('J')])).toEqual({ name: 'Trying', effects: [] });
    for (const event of [{ type: 'request' }, respond(500), { type: 'abandon' }, timer('J'), { type: 'transport-error' }] as const) {
      expect([event, other([respond(200), timer('J'), event])]).toEqual([event, { name: 'Terminated', effects: [] }]);
    }
  });

  it('[4320 §4.2] ends without a response when it is abandoned in Trying or Proceeding, and keeps a final response', () => {
    expect(other([{ type: 'abandon' }])).toEqual({ name: 'Terminated', effects: [{ do: 'terminate' }] });
    expect(other([respond(100), { type: 'abandon' }])).toEqual({ name: 'Terminated', effects: [{ do: 'terminate' }] });
    expect(other([respond(200), { type: 'abandon' }])).toEqual({ name: 'Completed', effects: [] });
  });

  it('[3261 §17.2.4] tells the user of a transport error, once', () => {
    expect(other([{ type: 'transport-error' }])).toEqual({
      name: 'Terminated',
      effects: [{ do: 'notify', user: 'transport-error' }, { do: 'terminate' }],
    });
    expect(other([{ type: 'transport-error' }, { type: 'transport-error' }]).effects).toEqual([]);
  });
});

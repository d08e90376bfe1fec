import { describe, expect, it } from 'vitest';
import { TimerQueue } from '../../../../src/lib/timers.js';
import type { DialogEntry } from '../../../../src/sip/dialog/dialog-table.js';
import { header, type Header, type SipRequest, type SipResponse } from '../../../../src/sip/message/message.js';
import { SessionRefresher, type RefreshActions } from '../../../../src/sip/user-agent/session-refresher.js';
import { VirtualClock } from '../../../support/virtual-clock.js';

const OURS = '1800;refresher=uac';
const PEERS = '1800;refresher=uas';
const INTERVAL_MS = 1_800_000;
const REFRESH_MS = 900_000;
/** 32 s before the interval's end. */
const EXPIRY_MS = 1_768_000;

const response = (status: number, headers: readonly Header[] = []): SipResponse => ({
  kind: 'response',
  status,
  reason: '',
  headers,
  body: '',
});
const request = (headers: readonly Header[] = []): SipRequest => ({
  kind: 'request',
  method: 'INVITE',
  uri: 'sip:a@b',
  headers,
  body: '',
});
const settling = (sessionExpires: string): SipResponse => response(200, [header('Session-Expires', sessionExpires)]);

class Bench {
  readonly clock = new VirtualClock();
  readonly timers = new TimerQueue(this.clock);
  readonly done: string[] = [];
  readonly sent: (readonly string[])[] = [];
  mayRefresh = true;
  canSend = true;
  readonly dialog: DialogEntry;
  readonly refresher: SessionRefresher;

  constructor(over: Partial<DialogEntry> = {}) {
    const plain = { isEnded: false, hasOwnInvite: false, invite: null, awaitsAck: false, sessionTimer: null, sessionDueMs: 0 };
    const state = { role: 'uac' };
    this.dialog = { ...plain, lastContact: '<sip:us>', lastSdp: 'v=0', state, ...over } as unknown as DialogEntry;
    const actions: RefreshActions = {
      refresh: (_dialog, { method, headers, body }) => {
        this.done.push('refresh');
        this.sent.push([method, ...headers.map(({ line }) => line), body]);
        return this.canSend;
      },
      mayRefresh: () => this.mayRefresh,
      acknowledge: () => this.done.push('acknowledge'),
      expire: () => this.done.push('expire'),
    };
    this.refresher = new SessionRefresher(this.timers, this.clock, actions);
  }

  /** What was done within this time. */
  within(ms: number): string[] {
    this.clock.advance(ms);
    return this.done.splice(0);
  }
}

/** Our refresh has gone out. */
function refreshed(over: Partial<DialogEntry> = {}): Bench {
  const bench = new Bench(over);
  bench.refresher.settled(bench.dialog, settling(OURS), true);
  expect([bench.within(REFRESH_MS - 1), bench.within(1)]).toEqual([[], ['refresh']]);
  return bench;
}

describe('a session timer', () => {
  it.each([
    ['us in our request', OURS, true, REFRESH_MS, ['refresh']],
    ['us in the peer’s request', PEERS, false, REFRESH_MS, ['refresh']],
    ['the peer in our request', PEERS, true, EXPIRY_MS, ['expire']],
    ['the peer in its own', OURS, false, EXPIRY_MS, ['expire']],
  ])('that names %s is due in time', (_what, sessionExpires, isOurs, dueMs, done) => {
    const bench = new Bench();
    bench.refresher.settled(bench.dialog, settling(sessionExpires), isOurs);
    expect(bench.dialog.sessionDueMs).toBe(bench.clock.wallMs() + dueMs);
    expect([bench.within(dueMs - 1), bench.within(1)]).toEqual([[], done]);
  });

  it('restarts with each 2xx that has one, and ends with one that has none', () => {
    const bench = new Bench();
    bench.refresher.settled(bench.dialog, settling(OURS), true);
    bench.within(REFRESH_MS - 1);
    bench.refresher.settled(bench.dialog, settling(OURS), true);
    expect([bench.within(REFRESH_MS - 1), bench.timers.size]).toEqual([[], 1]);
    bench.refresher.settled(bench.dialog, response(200), true);
    expect([bench.timers.size, bench.dialog.sessionTimer, bench.dialog.sessionDueMs]).toEqual([0, null, 0]);
  });

  it('does nothing in a dialog that has ended', () => {
    const bench = new Bench();
    bench.refresher.settled(bench.dialog, settling(OURS), true);
    bench.dialog.isEnded = true;
    expect(bench.within(INTERVAL_MS)).toEqual([]);
  });
});

describe('a refresh that we send', () => {
  it('repeats our Contact and SDP, and keeps us as the refresher', () => {
    expect(refreshed().sent).toEqual([
      [
        ...['INVITE', 'Supported: timer', 'Session-Expires: 1800;refresher=uac', 'Contact: <sip:us>'],
        ...['Content-Type: application/sdp', 'v=0'],
      ],
    ]);
  });

  it('has neither where there were none', () => {
    expect(refreshed({ lastContact: undefined, lastSdp: '' }).sent).toEqual([
      ['INVITE', 'Supported: timer', 'Session-Expires: 1800;refresher=uac', ''],
    ]);
  });

  it.each([{ hasOwnInvite: true }, { invite: {} as DialogEntry['invite'] }, { awaitsAck: true }])(
    'waits until the dialog is free, two seconds at a time: %j',
    (busy) => {
      const bench = new Bench(busy);
      bench.refresher.settled(bench.dialog, settling(OURS), true);
      expect(bench.within(REFRESH_MS + 3_000)).toEqual([]);
      Object.assign(bench.dialog, { hasOwnInvite: false, invite: null, awaitsAck: false });
      expect([bench.within(999), bench.within(1)]).toEqual([[], ['refresh']]);
    },
  );

  it('waits while no refresh may be sent', () => {
    const bench = new Bench();
    bench.mayRefresh = false;
    bench.refresher.settled(bench.dialog, settling(OURS), true);
    expect(bench.within(REFRESH_MS + 1_000)).toEqual([]);
    bench.mayRefresh = true;
    expect([bench.within(999), bench.within(1)]).toEqual([[], ['refresh']]);
  });

  it('that cannot be sent ends the call', () => {
    const bench = new Bench();
    bench.canSend = false;
    bench.refresher.settled(bench.dialog, settling(OURS), true);
    expect(bench.within(REFRESH_MS)).toEqual(['refresh', 'expire']);
  });
});

describe('an answer to a refresh that we sent', () => {
  const answered = (bench: Bench, answer: SipResponse, sent = request()): string[] => {
    bench.refresher.onRefreshAnswer(bench.dialog, sent, answer);
    return bench.done.splice(0);
  };

  it('that is provisional changes nothing', () => {
    const bench = refreshed();
    expect([answered(bench, response(199)), bench.timers.size]).toEqual([[], 0]);
  });

  it('has no effect on a dialog that has ended', () => {
    const bench = refreshed();
    bench.dialog.isEnded = true;
    for (const status of [200, 481, 491, 500]) expect([answered(bench, response(status)), bench.timers.size]).toEqual([[], 0]);
  });

  it.each([200, 299])('of %i gets ACK, and the next refresh is due', (status) => {
    const bench = refreshed();
    expect(answered(bench, response(status, [header('Session-Expires', OURS)]))).toEqual(['acknowledge']);
    expect([bench.within(REFRESH_MS - 1), bench.within(1)]).toEqual([[], ['refresh']]);
  });

  it.each([408, 481])('of %i ends the call, since the peer has none', (status) => {
    expect(answered(refreshed(), response(status))).toEqual(['expire']);
  });

  it.each([
    ['uac', 2_100, 4_000],
    ['uas', 0, 2_000],
  ] as const)('of 491 makes us send another, in a call of which we were the %s, after %i to %i ms', (role, leastMs, mostMs) => {
    const bench = refreshed({ state: { role } as DialogEntry['state'] });
    expect(answered(bench, response(491))).toEqual([]);
    let waitedMs = 0;
    for (; bench.sent.length < 2 && waitedMs <= mostMs; waitedMs += 1) bench.within(1);
    expect(waitedMs).toBeGreaterThanOrEqual(leastMs);
    expect(waitedMs).toBeLessThanOrEqual(mostMs);
  });

  it.each([300, 500])('of %i leaves the call until the session expires', (status) => {
    const bench = refreshed();
    expect(answered(bench, response(status))).toEqual([]);
    expect([bench.within(EXPIRY_MS - REFRESH_MS - 1), bench.within(1)]).toEqual([[], ['expire']]);
  });

  it('that refuses it has no effect where the session has no timer any more', () => {
    const bench = new Bench();
    for (const answer of [response(500), response(422, [header('Min-SE', '3600')])])
      expect([answered(bench, answer), bench.timers.size]).toEqual([[], 0]);
  });

  it.each(['3600', ' 3600 ;x=y'])('of 422 makes us send another with the interval of its Min-SE, once: %j', (minSe) => {
    const bench = refreshed();
    expect(answered(bench, response(422, [header('Min-SE', minSe)]))).toEqual(['refresh']);
    expect(bench.sent[1]).toEqual([
      ...['INVITE', 'Supported: timer', 'Session-Expires: 3600;refresher=uac', 'Min-SE: 3600', 'Contact: <sip:us>'],
      ...['Content-Type: application/sdp', 'v=0'],
    ]);
    const again = request([header('Min-SE', '3600')]);
    expect(answered(bench, response(422, [header('Min-SE', '7200')]), again)).toEqual([]);
    expect(bench.within(2 * INTERVAL_MS)).toEqual(['expire']);
  });

  it('of 422 keeps the interval for a refresh that has to wait', () => {
    const bench = refreshed();
    bench.mayRefresh = false;
    expect(answered(bench, response(422, [header('Min-SE', '3600')]))).toEqual([]);
    bench.mayRefresh = true;
    bench.within(2_000);
    expect(bench.sent[1]).toContain('Min-SE: 3600');
  });

  it.each(['1800', '90', '', 'x3600', '3600x', '123456'])('of 422 without a longer interval makes us send none: Min-SE %j', (minSe) => {
    const bench = refreshed();
    expect(answered(bench, response(422, minSe === '' ? [] : [header('Min-SE', minSe)]))).toEqual([]);
    expect(bench.within(EXPIRY_MS - REFRESH_MS)).toEqual(['expire']);
  });

  it('of another status has no Min-SE', () => {
    const bench = refreshed();
    expect(answered(bench, response(500, [header('Min-SE', '3600')]))).toEqual([]);
  });
});

describe('the session timer of a dialog that an earlier process had', () => {
  const resumed = (weRefresh: boolean, leftMs: number): Bench => {
    const bench = new Bench();
    const sessionDueMs = bench.clock.wallMs() + leftMs;
    bench.refresher.resume(bench.dialog, { sessionTimer: { intervalMs: INTERVAL_MS, weRefresh }, sessionDueMs });
    expect(bench.dialog.sessionDueMs).toBe(sessionDueMs);
    return bench;
  };

  it.each([
    ['our refresh is due', true, 600_000, 600_000, ['refresh']],
    ['the call ends', false, 600_000, 600_000, ['expire']],
    ['the call ends that expired in between', false, -1, 32_000, ['expire']],
    ['our refresh is due, whatever the clock was set to', true, 2 * INTERVAL_MS, REFRESH_MS, ['refresh']],
    ['the call ends, whatever the clock was set to', false, 2 * INTERVAL_MS, EXPIRY_MS, ['expire']],
  ])('continues: %s', (_what, weRefresh, leftMs, dueMs, done) => {
    const bench = resumed(weRefresh, leftMs);
    expect([bench.within(dueMs - 1), bench.within(1)]).toEqual([[], done]);
  });

  it('leaves ten seconds for our overdue refreshes', () => {
    expect(resumed(true, -1).within(10_000)).toEqual(['refresh']);
  });

  it('does not exist where there was none', () => {
    const bench = new Bench();
    bench.refresher.resume(bench.dialog, { sessionTimer: null, sessionDueMs: 0 });
    expect([bench.timers.size, bench.dialog.sessionTimer]).toEqual([0, null]);
  });
});

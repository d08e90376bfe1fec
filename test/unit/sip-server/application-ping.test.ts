import { beforeEach, describe, expect, it } from 'vitest';
import { ApplicationPing } from '../../../src/sip-server/applications.js';
import { VirtualClock } from '../../support/virtual-clock.js';

let clock: VirtualClock;
let sent: string[];
let ping: ApplicationPing;

beforeEach(() => {
  clock = new VirtualClock();
  sent = [];
  ping = new ApplicationPing(clock, 150, (transactionId) => void sent.push(transactionId));
});

/** Calls at this interval. Returns how many found the application behind. */
function behind(calls: number, eachMs: number): number {
  let count = 0;
  for (let call = 0; call < calls; call += 1) {
    if (ping.isBehind()) count += 1;
    clock.advance(eachMs);
  }
  return count;
}

describe('an application that is behind', () => {
  it('gets no call while it leaves a ping unanswered for more than 150 ms', () => {
    behind(10, 5);
    expect(behind(31, 5)).toBe(1);
    expect(ping.onResponse(sent[0]!, 200, undefined)).toBe(true);
    expect(behind(10, 5)).toBe(0);
  });

  it('has the figure of its own 503 as its lag, also during the next ping, or else the time that a ping has waited', () => {
    behind(15, 5);
    ping.onResponse(sent[0]!, 503, 'audio leaves late: 95 ms, limit 40 ms');
    expect([ping.isBehind(), ping.lag]).toEqual([true, 'audio leaves late: 95 ms, limit 40 ms']);
    expect(sent).toHaveLength(2);
    clock.advance(1_000);
    expect([ping.isBehind(), ping.lag]).toEqual([true, 'the gateway has not answered a question for 1000 ms, limit 150 ms']);
    ping.onResponse(sent[1]!, 503, undefined);
    expect(ping.lag).toBe('the gateway answered that it is overloaded');
  });
});

describe('an application that hangs', () => {
  it('gets calls for as long as it may be behind, where that is more than a second', () => {
    ping = new ApplicationPing(clock, 5_000, (transactionId) => void sent.push(transactionId));
    behind(10, 200);
    expect(sent).toHaveLength(1);
    expect(behind(20, 200)).toBe(0);
    expect(behind(5, 500)).toBeGreaterThan(2);
  });

  it('gets a ping at low load too, no call two seconds later, and calls again once it answers', () => {
    expect(behind(10, 200)).toBe(0);
    expect(sent).toHaveLength(1);
    expect(behind(10, 200)).toBe(10);
    expect(ping.onResponse(sent[0]!, 200, undefined)).toBe(true);
    expect(behind(4, 50)).toBe(0);
  });

  it('gets another ping after ten seconds, and still no call', () => {
    behind(10, 200);
    clock.advance(10_000);
    expect(behind(20, 50)).toBe(20);
    expect(sent).toHaveLength(2);
    expect(ping.onResponse(sent[0]!, 200, undefined)).toBe(false);
    expect(ping.onResponse(sent[1]!, 200, undefined)).toBe(true);
    expect(behind(4, 50)).toBe(0);
  });

  it('gets no ping for a single call after a pause', () => {
    clock.advance(60_000);
    expect(behind(1, 60_000)).toBe(0);
    expect(sent).toEqual([]);
  });
});

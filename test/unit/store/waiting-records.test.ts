import { describe, expect, it } from 'vitest';
import type { CallRecord } from '../../../src/contracts/call-record.js';
import { StoreUnavailableError, type EndedCall } from '../../../src/gateway/ports.js';
import { WaitingRecords } from '../../../src/store/waiting-records.js';
import { VirtualClock } from '../../support/virtual-clock.js';
import { recordingLog, type LogLine } from '../api/api-fixture.js';
import { callOf, endedCall } from './store-contract.js';

function fixture() {
  const clock = new VirtualClock();
  const written: CallRecord[] = [];
  const lines: LogLine[] = [];
  const redis = { isAway: false };
  const store = {
    write: ({ record }: EndedCall) => {
      if (redis.isAway) return Promise.reject(new StoreUnavailableError('away'));
      written.push(record);
      return Promise.resolve();
    },
  };
  return { clock, written, lines, redis, records: new WaitingRecords(store, clock, recordingLog(lines)) };
}

const refused = (orgId: string | null) => callOf(orgId, 0, { answered_at: null, reason: 'BAD_SDP', sip_status: 488 });

describe('WaitingRecords', () => {
  it('writes 20 records a second of calls that were not answered, by organization, and says how many were left out', async () => {
    const { clock, written, lines, records } = fixture();
    for (let count = 0; count < 50; count += 1) for (const org of ['a', 'b', null]) await records.write(endedCall(refused(org)));
    await records.write(endedCall(refused('c')));
    expect(written.length).toBe(61);
    clock.advance(1_000);
    expect(lines).toEqual([{ level: 'warn', event: 'call.record.limited', fields: { leftOut: 90, orgs: 3 } }]);
    await records.write(endedCall(refused('a')));
    expect(written.length).toBe(62);
    clock.advance(10_000);
    expect([lines.length, clock.pendingTimers]).toEqual([1, 0]);
  });

  it('writes every answered call', async () => {
    const { written, records } = fixture();
    for (let count = 0; count < 100; count += 1) await records.write(endedCall(callOf('a', 0)));
    expect(written.length).toBe(100);
  });

  it('keeps 1000 records while the store is away, and writes them in their order when it is back', async () => {
    const { clock, written, redis, records } = fixture();
    const calls = Array.from({ length: 1_001 }, () => callOf('a', 0));
    redis.isAway = true;
    for (const call of calls.slice(0, 1_000)) await records.write(endedCall(call));
    await expect(records.write(endedCall(calls[1_000]!))).rejects.toBeInstanceOf(StoreUnavailableError);
    await clock.advanceAsync(3_000);
    expect(written).toEqual([]);
    redis.isAway = false;
    await clock.advanceAsync(1_000);
    await expect.poll(() => written.length).toBe(1_000);
    expect(written).toEqual(calls.slice(0, 1_000));
    await expect.poll(() => clock.pendingTimers).toBe(0);
  });

  it('closing while it writes what waited loses and repeats nothing', async () => {
    const { clock, written, redis, records } = fixture();
    const calls = Array.from({ length: 10 }, () => callOf('a', 0));
    redis.isAway = true;
    for (const call of calls) await records.write(endedCall(call));
    redis.isAway = false;
    clock.advance(1_000);
    await records.close();
    expect(written).toEqual(calls);
    expect(clock.pendingTimers).toBe(0);
  });

  it('says how many are lost when it closes without the store', async () => {
    const { clock, lines, redis, records } = fixture();
    redis.isAway = true;
    await records.write(endedCall(callOf('a', 0)));
    await records.close();
    expect(lines).toEqual([{ level: 'error', event: 'call.record.lost', fields: { lost: 1 } }]);
    expect(clock.pendingTimers).toBe(0);
  });
});

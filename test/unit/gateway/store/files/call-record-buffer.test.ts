import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { CallRecord } from '../../../../../src/gateway/model/call-record.js';
import { StoreUnavailableError, type EndedCall } from '../../../../../src/gateway/ports/ports.js';
import { CallSpool } from '../../../../../src/gateway/store/files/call-spool.js';
import { CallRecordBuffer } from '../../../../../src/gateway/store/files/call-record-buffer.js';
import { passUntil, VirtualClock } from '../../../../support/virtual-clock.js';
import { recordingLog, type LogLine } from '../../api/api-fixture.js';
import { callOf, endedCall } from '../store-contract.js';

let directory: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'trunkline-spool-'));
});
const opened = new Set<CallSpool>();
afterEach(async () => {
  // One that its records closed is closed again, which fails.
  for (const spool of opened) await spool.close().catch(() => undefined);
  opened.clear();
  rmSync(directory, { recursive: true, force: true });
});

async function fixture(reservedBytes = 0) {
  const clock = new VirtualClock();
  const written: CallRecord[] = [];
  const lines: LogLine[] = [];
  const redis = { isAway: false };
  const store = {
    write: ({ record }: EndedCall) => {
      if (record.org_id === 'bad' && !redis.isAway) return Promise.reject(new Error('refused'));
      if (redis.isAway) return Promise.reject(new StoreUnavailableError('away'));
      written.push(record);
      return Promise.resolve();
    },
  };
  const spool = await CallSpool.open(join(directory, 'waiting'), { reservedBytes });
  opened.add(spool);
  return { clock, written, lines, redis, records: new CallRecordBuffer(store, spool, clock, recordingLog(lines)) };
}

const refused = (orgId: string | null) => callOf(orgId, 0, { answered_at: null, reason: 'BAD_SDP', sip_status: 488 });

describe('CallRecordBuffer', () => {
  it('writes 20 records a second of calls that were not answered, by organization, and says how many were left out', async () => {
    const { clock, written, lines, records } = await fixture();
    for (let count = 0; count < 50; count += 1) for (const org of ['a', 'b', null]) await records.write(endedCall(refused(org)));
    await records.write(endedCall(refused('c')));
    expect(written.length).toBe(61);
    clock.advance(1_000);
    expect(lines).toEqual([{ level: 'warn', event: 'call.record.limited', fields: { left_out: 90, orgs: 3 } }]);
    await records.write(endedCall(refused('a')));
    expect(written.length).toBe(62);
    clock.advance(10_000);
    expect([lines.length, clock.pendingTimers]).toEqual([1, 0]);
  });

  it('writes every answered call', async () => {
    const { written, records } = await fixture();
    for (let count = 0; count < 100; count += 1) await records.write(endedCall(callOf('a', 0)));
    expect(written.length).toBe(100);
  });

  it('keeps calls while the store is away, and writes them in their order when it is back', async () => {
    const { clock, written, redis, records } = await fixture();
    const calls = Array.from({ length: 100 }, () => callOf('a', 0));
    redis.isAway = true;
    for (const call of calls) await records.write(endedCall(call));
    await clock.advanceAsync(3_000);
    expect([written, records.size]).toEqual([[], 100]);
    redis.isAway = false;
    await passUntil(clock, () => written.length === 100 && clock.pendingTimers === 0);
    expect(written).toEqual(calls);
  });

  it('writes what a gateway left that was killed while the store was away', async () => {
    const killed = await fixture();
    const calls = Array.from({ length: 120 }, () => callOf('a', 0));
    killed.redis.isAway = true;
    for (const call of calls) await killed.records.write(endedCall(call));
    const { written, records } = await fixture();
    expect(records.size).toBe(120);
    await records.begin();
    expect(written).toEqual(calls);
    await records.close();
    expect((await fixture()).records.size).toBe(0);
  });

  it('goes on after a call that the store refuses for good', async () => {
    const { clock, written, lines, redis, records } = await fixture();
    redis.isAway = true;
    const [bad, good] = [callOf('bad', 0), callOf('a', 0)];
    for (const call of [bad, good]) await records.write(endedCall(call));
    redis.isAway = false;
    await passUntil(clock, () => written.length > 0);
    expect(written).toEqual([good]);
    expect(lines).toEqual([{ level: 'error', event: 'call.record.lost', fields: { call_id: bad.call_id, error: 'refused' } }]);
  });

  it('closing while it writes what waited loses and repeats nothing', async () => {
    const { clock, written, redis, records } = await fixture();
    const calls = Array.from({ length: 10 }, () => callOf('a', 0));
    redis.isAway = true;
    for (const call of calls) await records.write(endedCall(call));
    redis.isAway = false;
    clock.advance(1_000);
    await records.close();
    expect(written).toEqual(calls);
    expect(clock.pendingTimers).toBe(0);
  });

  it('says how many stay in the spool when it closes without the store', async () => {
    const { clock, lines, redis, records } = await fixture();
    redis.isAway = true;
    await records.write(endedCall(callOf('a', 0)));
    await records.close();
    expect(lines).toEqual([{ level: 'warn', event: 'call.record.spooled', fields: { calls: 1 } }]);
    expect(clock.pendingTimers).toBe(0);
  });
});

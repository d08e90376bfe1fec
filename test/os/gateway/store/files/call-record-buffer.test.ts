import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { CallRecord } from '../../../../../src/gateway/model/call-record.js';
import { REASONS, type Reason } from '../../../../../src/gateway/model/reasons.js';
import { StoreUnavailableError, type EndedCall } from '../../../../../src/gateway/ports/ports.js';
import { CallSpool } from '../../../../../src/gateway/store/files/call-spool.js';
import { CallRecordBuffer } from '../../../../../src/gateway/store/files/call-record-buffer.js';
import { passUntil, VirtualClock } from '../../../../support/virtual-clock.js';
import { recordingLog, type LogLine } from '../../../../unit/gateway/api/api-fixture.js';
import { callOf, endedCall } from '../../../../unit/gateway/store/store-contract.js';

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
  const stored: EndedCall[] = [];
  const lines: LogLine[] = [];
  const redis = { isAway: false };
  const store = {
    write: (call: EndedCall) => {
      const { record } = call;
      if (record.org_id === 'bad' && !redis.isAway) return Promise.reject(new Error('refused'));
      if (redis.isAway) return Promise.reject(new StoreUnavailableError('away'));
      written.push(record);
      stored.push(call);
      return Promise.resolve();
    },
  };
  const spool = await CallSpool.open(join(directory, 'waiting'), { reservedBytes });
  opened.add(spool);
  return { clock, written, stored, lines, redis, records: new CallRecordBuffer(store, spool, clock, recordingLog(lines)) };
}

const refused = (orgId: string | null) => callOf(orgId, 0, { answered_at: null, reason: 'BAD_SDP', sip_status: 488 });

describe('CallRecordBuffer', () => {
  it('writes 20 records a second of refused calls from one address as they come, and sums the others', async () => {
    const { clock, written, lines, records } = await fixture();
    for (let count = 0; count < 50; count += 1) for (const org of ['a', 'b', null]) await records.write(endedCall(refused(org)));
    await records.write(endedCall(refused('c')));
    expect(written.length).toBe(61);
    await clock.advanceAsync(1_000);
    expect(lines).toEqual([{ level: 'warn', event: 'call.record.limited', fields: { calls: 90, records: 3 } }]);
    const sums = written.filter(({ summed_calls: summed }) => summed !== null);
    expect(sums).toMatchObject(['a', 'b', null].map((org_id) => ({ org_id, summed_calls: 30, reason: 'BAD_SDP', sip_status: 488 })));
    expect(sums[0]).toMatchObject({ to: '+15550002222', source: { ip: '203.0.113.7' }, from: '' });
    await records.write(endedCall(refused('a')));
    expect(written.length).toBe(65);
    await clock.advanceAsync(10_000);
    expect([lines.length, clock.pendingTimers]).toEqual([1, 0]);
  });

  it('sums no calls of an organization because of strangers, or of another address', async () => {
    const { clock, written, records } = await fixture();
    const source = { ip: '198.51.100.1', port: 5061, transport: 'tls', tls_version: null, tls_cipher: null };
    const stranger = callOf('a', 0, { answered_at: null, reason: 'SOURCE_NOT_ALLOWED', sip_status: 403, source });
    const flooding = callOf('a', 0, { answered_at: null, reason: 'BAD_SDP', sip_status: 488, source });
    for (let count = 0; count < 500; count += 1)
      for (const call of [stranger, flooding])
        await records.write(endedCall({ ...call, source: { ...source, ip: `198.51.100.${String(count % 4)}` } }));
    written.length = 0;
    for (let count = 0; count < 20; count += 1) await records.write(endedCall(refused('a')));
    expect(written.map(({ reason }) => reason)).toEqual(Array.from({ length: 20 }, () => 'BAD_SDP'));
    await clock.advanceAsync(1_000);
    expect(written.slice(20)).toMatchObject([
      { reason: 'SOURCE_NOT_ALLOWED', summed_calls: 420, source: { ip: '' } },
      { reason: 'BAD_SDP', summed_calls: 420 },
    ]);
  });

  it('writes the sums of the second in which it closes, and keeps those that the store does not accept', async () => {
    const { written, redis, records } = await fixture();
    for (let count = 0; count < 30; count += 1) await records.write(endedCall(refused('a')));
    redis.isAway = true;
    await records.close();
    expect(written.length).toBe(20);
    const next = await fixture();
    await next.records.begin();
    expect(next.written).toMatchObject([{ summed_calls: 10 }]);
  });

  it.each([
    ['that the gateway placed', { direction: 'outbound' }],
    ['that rang', { timings: { ring_ms: 500, answer_ms: null, first_audio_ms: null, talk_ms: null } }],
  ] as const)('writes a record, with its webhook, for each call %s, whatever its end and the rate', async (_what, fields) => {
    const { clock, stored, redis, records } = await fixture();
    const reasons = Object.keys(REASONS) as Reason[];
    const calls = Array.from({ length: 600 }, (_, at) => {
      const reason = reasons[at % reasons.length] ?? 'BUSY';
      return callOf('a', at, { answered_at: null, reason, sip_status: REASONS[reason].sipStatus, ...fields });
    });
    for (const [at, record] of calls.entries()) {
      redis.isAway = at % 100 >= 50;
      await records.write({ record, trace: [], completion: { url: 'https://a.example', payload: record as never, analysisSchema: null } });
    }
    redis.isAway = false;
    await clock.advanceAsync(1_000);
    await expect.poll(() => stored.length).toBe(600);
    expect(new Set(stored.map(({ record }) => record.call_id)).size).toBe(600);
    expect(stored.every(({ completion, record }) => completion !== null && record.summed_calls === null)).toBe(true);
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

  it('continues after a call that the store refuses for good', async () => {
    const { clock, written, lines, redis, records } = await fixture();
    redis.isAway = true;
    const [bad, good] = [callOf('bad', 0), callOf('a', 0)];
    for (const call of [bad, good]) await records.write(endedCall(call));
    redis.isAway = false;
    await passUntil(clock, () => written.length > 0);
    expect(written).toEqual([good]);
    expect(lines).toEqual([{ level: 'error', event: 'call.record.lost', fields: { call_id: bad.call_id, error: 'refused' } }]);
  });

  it('loses and repeats nothing when it closes while it writes waiting calls', async () => {
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

  it('logs how many calls stay in the spool when it closes without the store', async () => {
    const { clock, lines, redis, records } = await fixture();
    redis.isAway = true;
    await records.write(endedCall(callOf('a', 0)));
    await records.close();
    expect(lines).toEqual([{ level: 'warn', event: 'call.record.spooled', fields: { calls: 1 } }]);
    expect(clock.pendingTimers).toBe(0);
  });
});

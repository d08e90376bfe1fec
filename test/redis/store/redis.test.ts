import { randomBytes } from 'node:crypto';
import { deflateRawSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { CallRecord } from '../../../src/gateway/model/call-record.js';
import { newUuid } from '../../../src/lib/ids.js';
import type { RedisStores } from '../../../src/gateway/store/redis/redis-stores.js';
import { snapshotOf } from '../../support/begun-call.js';
import { expectExpiry } from '../../support/expiry.js';
import type { AnyRedis } from '../../support/redis.js';
import { openStores } from '../../support/redis-stores.js';
import { VirtualClock } from '../../support/virtual-clock.js';
import {
  callDetailKey,
  callKey,
  gatewayAnswersKey,
  gatewayCallsKey,
  orgThroughputKey,
  traceKey,
} from '../../../src/gateway/store/redis/keys.js';
import { describeAgentChanges } from '../../unit/gateway/store/agents-contract.js';
import { describeLogs, TEST_BATCH_RETENTION } from '../../unit/gateway/store/batches-contract.js';
import { describeCallsInProgress } from '../../unit/gateway/store/calls-contract.js';
import { describeOutbox } from '../../unit/gateway/store/outbox-contract.js';
import { describePages } from '../../unit/gateway/store/pages-contract.js';
import { callOf, describeStores, endedCall, freshNumber, TEST_RETENTION } from '../../unit/gateway/store/store-contract.js';
import { describeThroughput } from '../../unit/gateway/store/throughput-contract.js';
import { workerRedis, workerRedisCluster } from '../../support/worker-redis.js';

const DAY_MS = 86_400_000;

for (const cluster of [false, true]) {
  describe(cluster ? 'a Redis Cluster of three nodes' : 'redis-server', () => {
    const clock = new VirtualClock(Date.now());
    let redis: AnyRedis;
    let stores: RedisStores;
    const advance = (ms: number): Promise<void> => redis.advance(ms, clock);
    beforeAll(async () => {
      redis = cluster ? await workerRedisCluster() : await workerRedis();
      const retentions = { callRetention: TEST_RETENTION, batchRetention: TEST_BATCH_RETENTION };
      stores = await openStores(redis, { clock, ...retentions, instance: 'gw-1' });
    });
    afterAll(() => stores.close());
    // Before any other: what is there is older, and would go first.
    it('keeps records and traces within their byte limit: the oldest traces go first, then the oldest records', async () => {
      expect(await stores.storedCallBytes()).toBe(0);
      const maxBytes = 120_000;
      const callRetention = { ...TEST_RETENTION, maxPerOrg: 1_000, maxBytes };
      const bounded = await openStores(redis, { clock, callRetention });
      const calls = Array.from({ length: 120 }, (_, at) => callOf(newUuid(), clock.wallMs() + at));
      // Nothing compresses what is random.
      const text = (): string => randomBytes(2_000).toString('hex');
      const write = async (some: readonly CallRecord[], evicted: 'trace' | 'record'): Promise<void> => {
        for (const call of some)
          await bounded.calls.write({
            ...endedCall(call),
            trace: [{ at: call.started_at, source: 'gateway', direction: null, summary: 'noise', text: text() }],
          });
        await clock.advanceAsync(1_000);
        await expect.poll(() => bounded.figures.evicted[evicted]).toBeGreaterThan(0);
        expect(await bounded.storedCallBytes()).toBeLessThanOrEqual(maxBytes);
      };
      const kept = async (): Promise<{ readonly traces: boolean[]; readonly records: boolean[] }> => ({
        traces: await Promise.all(calls.map(async (call) => (await bounded.calls.trace(call.org_id!, call.call_id)).length > 0)),
        records: await Promise.all(calls.map(async (call) => (await bounded.calls.get(call.org_id!, call.call_id)) !== null)),
      });
      const oldestFirst = (flags: readonly boolean[]): boolean => flags.indexOf(true) === flags.lastIndexOf(false) + 1;

      await write(calls.slice(0, 40), 'trace');
      const some = await kept();
      expect(some.records.slice(0, 40)).not.toContain(false);
      expect(some.traces.slice(0, 40).filter(Boolean).length).toBeLessThan(40);
      expect(oldestFirst(some.traces.slice(0, 40))).toBe(true);

      await write(calls.slice(40), 'record');
      const all = await kept();
      expect(all.traces).not.toContain(true);
      expect(all.records.filter(Boolean).length).toBeGreaterThan(20);
      expect(all.records).toContain(false);
      expect(oldestFirst(all.records)).toBe(true);
      // What is gone is not listed either.
      expect(await bounded.calls.list(calls[0]!.org_id, { limit: 10 })).toEqual({ calls: [], next: null });
      expect(bounded.figures.evicted.record).toBe(all.records.filter((isKept) => !isKept).length);
      await bounded.close();
    });

    it('lets refused calls displace refused calls alone', async () => {
      const callRetention = { ...TEST_RETENTION, maxPerOrg: 10, maxRefusedPerOrg: 5 };
      const bounded = await openStores(redis, { clock, callRetention });
      const orgId = newUuid();
      const write = async (count: number, fields: Partial<CallRecord>): Promise<void> => {
        for (let at = 0; at < count; at += 1) await bounded.calls.write(endedCall(callOf(orgId, clock.wallMs(), fields)));
      };
      const listed = async (): Promise<readonly string[]> =>
        (await bounded.calls.list(orgId, { limit: 100 })).calls.map(({ reason }) => reason);
      await write(10, {});
      for (let second = 0; second < 10; second += 1) {
        await write(10, { answered_at: null, reason: 'SOURCE_NOT_ALLOWED', sip_status: 403 });
        await clock.advanceAsync(1_000);
      }
      const kept = await listed();
      expect(kept.filter((reason) => reason === 'CALLER_HANGUP')).toHaveLength(10);
      expect(kept.length).toBeLessThanOrEqual(10 + 5 + 2);
      await bounded.close();
    });

    describeStores('stores in Redis', () => ({ clock, stores, advance }));
    describePages('stores in Redis', () => ({ clock, stores, advance }));
    describeCallsInProgress('stores in Redis', () => ({ clock, stores, advance }));
    describeOutbox('stores in Redis', () => ({ clock, stores, advance }));
    describeAgentChanges('stores in Redis', () => ({ clock, stores, advance }));
    describeLogs('stores in Redis', () => ({ clock, stores, advance }));
    describeThroughput('stores in Redis', () => ({ clock, stores, advance }));

    it('keeps a transcript for the days of its organization, and the record and its trace for those of the operator', async () => {
      const orgId = newUuid();
      const call = callOf(orgId, clock.wallMs(), { transcript: [{ speaker: 'agent', text: 'Hello.', at_ms: 0 }] });
      const trace = [{ at: call.started_at, source: 'gateway', direction: null, summary: 'known', text: null }] as const;
      const write = (): Promise<void> => stores.calls.write({ ...endedCall(call), trace, transcriptDays: 1 });
      const [record, detail, traced] = [
        callKey(orgId, call.call_id),
        callDetailKey(orgId, call.call_id),
        traceKey(orgId, call.call_id),
      ] as const;
      await expectExpiry(redis, [record], 2 * DAY_MS, () => expectExpiry(redis, [detail, traced], DAY_MS, write));
      expect((await stores.calls.get(orgId, call.call_id))?.transcript).toHaveLength(1);
      await advance(DAY_MS);
      expect((await stores.calls.get(orgId, call.call_id))?.transcript).toEqual([]);
      expect(await stores.calls.trace(orgId, call.call_id)).toEqual([]);
      await advance(DAY_MS);
      expect(await stores.calls.get(orgId, call.call_id)).toBeNull();
    });

    it('keeps the snapshots of a process for two days, longer than any call', async () => {
      const dying = await openStores(redis, { clock, instance: 'gw-2' });
      const snapshot = snapshotOf(newUuid(), newUuid(), freshNumber());
      await expectExpiry(redis, [gatewayCallsKey('gw-2'), gatewayAnswersKey('gw-2')], 2 * DAY_MS, async () => {
        dying.snapshots.persist(snapshot);
        await dying.snapshots.flush();
      });
      await dying.close();
      await advance(2 * DAY_MS);
      const next = await openStores(redis, { clock, instance: 'gw-2' });
      expect(await next.snapshots.orphaned()).toEqual([]);
      await next.close();
    });

    it('keeps the counts of a minute for twenty, longer than any query covers', async () => {
      const orgId = newUuid();
      const minute = Math.floor(clock.wallMs() / 60_000);
      await expectExpiry(redis, [orgThroughputKey(orgId, minute)], 1_200_000, async () => {
        await stores.calls.write(endedCall(callOf(orgId, clock.wallMs())));
        await clock.advanceAsync(1_000);
        // Answered behind the counts.
        await stores.ping();
      });
    });

    it('reads a trace that an earlier version wrote', async () => {
      const [orgId, callId] = [newUuid(), newUuid()];
      const trace = [{ at: '2026-01-01T00:00:00.000Z', source: 'gateway', direction: null, summary: 'known', text: null }];
      const bytes = deflateRawSync(JSON.stringify(trace), { level: 1, windowBits: 13, memLevel: 6 });
      const quoted = `"${[...bytes].map((byte) => `\\x${byte.toString(16).padStart(2, '0')}`).join('')}"`;
      await Promise.all(redis.nodes.map((node) => node.command(`SET ${traceKey(orgId, callId)} ${quoted}`)));
      expect(await stores.calls.trace(orgId, callId)).toEqual(trace);
    });

    it('stores the digest of a key only', async () => {
      const { key } = await stores.keys.create('org', 'ci');
      const dump = (await Promise.all(redis.nodes.map((node) => node.command('KEYS *')))).join('');
      expect(dump).toContain('key:{');
      expect(dump).not.toContain(key);
    });
  });
}

import { randomBytes } from 'node:crypto';
import { deflateRawSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { CallRecord } from '../../../src/gateway/model/call-record.js';
import { newUuid } from '../../../src/lib/ids.js';
import { silentLog } from '../../../src/lib/log.js';
import { openRedisStores, type RedisStores } from '../../../src/gateway/store/redis/redis-stores.js';
import { startRedis, startRedisCluster, type TestRedis } from '../../support/redis.js';
import { VirtualClock } from '../../support/virtual-clock.js';
import { callDetailKey, callKey, traceKey } from '../../../src/gateway/store/redis/keys.js';
import { describeAgentChanges } from '../../unit/gateway/store/agents-contract.js';
import { describeLogs, TEST_BATCH_RETENTION } from '../../unit/gateway/store/batches-contract.js';
import { describeCallsInProgress } from '../../unit/gateway/store/calls-contract.js';
import { describeOutbox } from '../../unit/gateway/store/outbox-contract.js';
import { describePages } from '../../unit/gateway/store/pages-contract.js';
import { callOf, describeStores, endedCall, TEST_RETENTION } from '../../unit/gateway/store/store-contract.js';
import { describeThroughput } from '../../unit/gateway/store/throughput-contract.js';
import { HANG_GUARD_MS } from '../../support/hang-guard.js';

const alone = (node: TestRedis) => ({ url: node.url, nodes: [node], close: () => node.close() });

for (const cluster of [false, true]) {
  describe(cluster ? 'a Redis Cluster of three nodes' : 'redis-server', () => {
    // Redis expires keys by its own clock, so the virtual one starts now.
    const clock = new VirtualClock(Date.now());
    let redis: { readonly url: string; readonly nodes: readonly TestRedis[]; readonly close: () => Promise<void> };
    let stores: RedisStores;
    beforeAll(async () => {
      redis = cluster ? await startRedisCluster() : alone(await startRedis());
      stores = openRedisStores({
        commandTimeoutMs: HANG_GUARD_MS,
        url: redis.url,
        cluster,
        clock,
        log: silentLog,
        callRetention: TEST_RETENTION,
        batchRetention: TEST_BATCH_RETENTION,
        instance: 'gw-1',
      });
      await stores.ready(HANG_GUARD_MS);
    });
    afterAll(async () => {
      await stores.close();
      await redis.close();
    });
    // Before any other: what is there is older, and would go first.
    it('keeps records and traces within their bytes: the oldest traces go first, then the oldest records', async () => {
      expect(await stores.storedCallBytes()).toBe(0);
      const maxBytes = 120_000;
      const callRetention = { ...TEST_RETENTION, maxPerOrg: 1_000, maxBytes };
      const bounded = openRedisStores({ commandTimeoutMs: HANG_GUARD_MS, url: redis.url, cluster, clock, log: silentLog, callRetention });
      await bounded.ready(HANG_GUARD_MS);
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

    it('refused calls push out refused calls alone', async () => {
      const callRetention = { ...TEST_RETENTION, maxPerOrg: 10, maxRefusedPerOrg: 5 };
      const bounded = openRedisStores({ url: redis.url, cluster, clock, log: silentLog, callRetention });
      await bounded.ready();
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

    describeStores('stores in Redis', () => ({ clock, stores }));
    describePages('stores in Redis', () => ({ clock, stores }));
    describeCallsInProgress('stores in Redis', () => ({ clock, stores }));
    describeOutbox('stores in Redis', () => ({ clock, stores }));
    describeAgentChanges('stores in Redis', () => ({ clock, stores }));
    describeLogs('stores in Redis', () => ({ clock, stores }));
    describeThroughput('stores in Redis', () => ({ clock, stores }));

    it('keeps a transcript for the days of its organization, and the record longer', async () => {
      const orgId = newUuid();
      const call = callOf(orgId, clock.wallMs(), { transcript: [{ speaker: 'agent', text: 'Hello.', at_ms: 0 }] });
      const days = TEST_RETENTION.days / 2;
      await stores.calls.write({ ...endedCall(call), transcriptDays: days });
      expect((await stores.calls.get(orgId, call.call_id))?.transcript).toHaveLength(1);
      const keys = [callKey(orgId, call.call_id), callDetailKey(orgId, call.call_id)];
      const ofNodes = await Promise.all(keys.map((key) => Promise.all(redis.nodes.map((node) => node.command(`TTL ${key}`)))));
      const [record, detail] = ofNodes.map((answers) => Math.max(...answers.map((answer) => Number(/^:(-?\d+)/.exec(answer)?.[1] ?? -2))));
      expect(record).toBeGreaterThan(detail ?? 0);
      expect(Math.abs((detail ?? 0) - days * 86_400)).toBeLessThan(60);
    });

    it('reads a trace that an earlier version wrote', async () => {
      const [orgId, callId] = [newUuid(), newUuid()];
      const trace = [{ at: '2026-01-01T00:00:00.000Z', source: 'gateway', direction: null, summary: 'known', text: null }];
      const bytes = deflateRawSync(JSON.stringify(trace), { level: 1, windowBits: 13, memLevel: 6 });
      const quoted = `"${[...bytes].map((byte) => `\\x${byte.toString(16).padStart(2, '0')}`).join('')}"`;
      await Promise.all(redis.nodes.map((node) => node.command(`SET ${traceKey(orgId, callId)} ${quoted}`)));
      expect(await stores.calls.trace(orgId, callId)).toEqual(trace);
    });

    it('keeps the digest of a key only', async () => {
      const { key } = await stores.keys.create('org', 'ci');
      const dump = (await Promise.all(redis.nodes.map((node) => node.command('KEYS *')))).join('');
      expect(dump).toContain('key:{');
      expect(dump).not.toContain(key);
    });
  });
}

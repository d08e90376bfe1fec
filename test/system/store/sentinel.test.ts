import type { EventEmitter } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { E164 } from '../../../src/gateway/model/e164.js';
import { silentLog } from '../../../src/lib/log.js';
import { systemClock } from '../../../src/lib/system-clock.js';
import { CallSpool } from '../../../src/gateway/store/files/call-spool.js';
import { RedisConnection } from '../../../src/gateway/store/redis/redis.js';
import { openRedisStores, type RedisStores } from '../../../src/gateway/store/redis/redis-stores.js';
import { HANG_GUARD_MS } from '../../support/hang-guard.js';
import { startRedisSentinels, type TestSentinels } from '../../support/redis.js';
import { callOf, endedCall, freshNumber, inboundSetting } from '../../unit/gateway/store/store-contract.js';
import { eventually } from '../../redis/api/http-fixture.js';

/** What the product promises: service is back by itself within 5 s of the loss. */

describe('a store on a primary with a replica and three Sentinels', () => {
  let redis: TestSentinels;
  let stores: RedisStores;
  let other: RedisStores;
  let directory: string;
  beforeEach(async () => {
    directory = mkdtempSync(join(tmpdir(), 'trunkline-spool-'));
    redis = await startRedisSentinels();
    [stores, other] = await Promise.all([open('gw-1'), open('gw-2')]);
  });
  afterEach(async () => {
    await Promise.all([stores.close(), other.close()]);
    await redis.close();
    rmSync(directory, { recursive: true });
  });

  async function open(instance: string): Promise<RedisStores> {
    const sentinel = { name: redis.name, password: null };
    const spool = await CallSpool.open(join(directory, instance));
    const one = openRedisStores({ url: redis.url, sentinel, clock: systemClock, log: silentLog, instance, spool });
    await one.ready();
    return one;
  }

  const works = (work: () => Promise<unknown>): Promise<boolean> =>
    work().then(
      () => true,
      () => false,
    );

  it.each<[string, () => void | Promise<void>]>([
    ['dies', () => redis.primary.stopServer()],
    ['hangs', () => redis.primary.freeze()],
  ])('fails over to the replica when the primary %s: its data is there, and all gateways get changes', async (_how, lose) => {
    const { org_id: orgId } = await stores.orgs.create({ name: 'one', sip_enabled: true });
    const number: E164 = freshNumber();
    await stores.numbers.attach(orgId, number, { inbound: inboundSetting({}) });
    expect((await other.routes.lookup(number, null)).route).not.toBeNull();
    await lose();
    const lostMs = performance.now();
    // What is known is answered meanwhile.
    expect((await other.routes.lookup(number, null)).route).not.toBeNull();
    // Records of calls wait by themselves; a change is refused until it is kept.
    const record = callOf(orgId, Date.now());
    await stores.calls.write(endedCall(record));
    await eventually(
      () => works(() => stores.numbers.attach(orgId, freshNumber(), { inbound: inboundSetting({}) })),
      (isTaken) => isTaken,
    );
    console.log(`primary lost: writes are taken again after ${String(Math.round(performance.now() - lostMs))} ms`);
    expect(await redis.replica.command('INFO replication')).toContain('role:master');
    await eventually(
      () => works(() => other.ping()),
      (isServed) => isServed,
    );
    expect((await other.routes.lookup(number, null)).staleMs).toBeNull();
    // What the API asks goes over a connection of its own, which comes back by itself.
    await eventually(
      () => other.calls.get(orgId, record.call_id).catch(() => null),
      (found) => found !== null,
    );
    await stores.numbers.update(orgId, number, { type: 'inbound', options: { ...inboundSetting({}).options, max_concurrent_calls: 7 } });
    await eventually(
      async () => (await other.routes.lookup(number, null)).route?.number.inbound?.options.max_concurrent_calls,
      (limit) => limit === 7,
    );
  });

  it('fails over also when the message about it comes while it is connecting', async () => {
    const sentinel = { name: redis.name, password: null };
    const connection = new RedisConnection({ url: redis.url, sentinel, clock: systemClock, log: silentLog });
    await connection.ready(HANG_GUARD_MS);
    // What ioredis's FailoverDetector does when a Sentinel tells it of the new primary.
    const client = connection.client as unknown as EventEmitter & { readonly connector: { disconnect(): void } };
    const told = new Promise<void>((resolve) => {
      client.once('connecting', () => {
        client.connector.disconnect();
        resolve();
      });
    });
    await redis.primary.killServer();
    await told;
    await eventually(
      () => works(() => connection.ping()),
      (isServed) => isServed,
    );
    await connection.close();
  });
});

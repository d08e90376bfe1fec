import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { batchAttemptsKey } from '../../../src/gateway/store/redis/keys.js';
import { openRedisStores, type RedisStores } from '../../../src/gateway/store/redis/redis-stores.js';
import { silentLog } from '../../../src/lib/log.js';
import { BatchWorld } from '../../support/batch-world.js';
import { startRedis, startRedisReplica, type TestRedis } from '../../support/redis.js';
import { VirtualClock } from '../../support/virtual-clock.js';
import { HANG_GUARD_MS } from '../../support/hang-guard.js';

let primary: TestRedis;
let replica: TestRedis;
let stores: RedisStores;
let world: BatchWorld;
const clock = new VirtualClock();

beforeAll(async () => {
  primary = await startRedis();
  replica = await startRedisReplica(primary);
  stores = openRedisStores({ commandTimeoutMs: HANG_GUARD_MS, url: primary.url, clock, log: silentLog, confirmedBy: 1 });
  await stores.ready(HANG_GUARD_MS);
  world = await BatchWorld.open(stores, clock);
});
afterAll(async () => {
  await world.close();
  await stores.close();
  await replica.close();
  await primary.close();
});

const attemptsAt = async (node: TestRedis, batchId: string): Promise<string> =>
  (await node.command(`HLEN ${batchAttemptsKey(batchId)}`)).trim();

/** A primary counts a replica only from its first report on, up to a second after the link is up: until then nothing is dialled. */
async function ticksUntil(instance: string, calls: number): Promise<void> {
  const gateway = world.gateway(instance);
  const dialled = async (): Promise<number> => {
    clock.advance(1_000);
    await gateway.tick();
    return world.open.size;
  };
  await expect.poll(dialled).toBe(calls);
}

describe('a batch whose attempts a replica confirms (WAIT 1)', () => {
  it('dials once the replica has confirmed the attempt', async () => {
    const batchId = await world.batch(3);
    await ticksUntil('a', 3);
    expect(await attemptsAt(replica, batchId)).toBe(':3');
    for (const callId of [...world.open.keys()]) world.end(callId, 'CALLEE_HANGUP');
  });

  it('dials nothing while the replica does not answer, and all numbers once it does', async () => {
    const batchId = await world.batch(4);
    const gateway = world.gateway('b');
    const before = world.invites.size;
    replica.freeze();
    await gateway.tick();
    expect([world.open.size, world.invites.size]).toEqual([0, before]);
    // Not as an attempt that may have been made: they wait as before.
    expect((await world.run(batchId)).counts).toMatchObject({ waiting: 4, dialling: 0, ambiguous: 0 });
    expect(await attemptsAt(primary, batchId)).toBe(':0');
    replica.thaw();
    await ticksUntil('b', 4);
    expect(await attemptsAt(replica, batchId)).toBe(':4');
    for (const callId of [...world.open.keys()]) world.end(callId, 'CALLEE_HANGUP');
  });

  it('dials nothing without a replica', async () => {
    await replica.stopServer();
    await world.batch(2);
    const before = world.invites.size;
    const gateway = world.gateway('c');
    for (let round = 0; round < 3; round += 1) {
      clock.advance(1_000);
      await gateway.tick();
    }
    expect([world.open.size, world.invites.size]).toEqual([0, before]);
  });
});

import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import type { Attempt } from '../../../src/gateway/webhooks/post.js';
import { WebhookSender } from '../../../src/gateway/webhooks/sender.js';
import { openRedisStores, type RedisStores } from '../../../src/gateway/store/redis/redis-stores.js';
import { OUTBOX_LANES, outboxLane } from '../../../src/gateway/ports/stores.js';
import { newUuid } from '../../../src/lib/ids.js';
import { silentLog } from '../../../src/lib/log.js';
import { startRedis, type TestRedis } from '../../support/redis.js';
import { VirtualClock } from '../../support/virtual-clock.js';
import { TEST_BATCH_RETENTION } from '../../unit/gateway/store/batches-contract.js';
import { deliveryOf } from '../../unit/gateway/store/outbox-contract.js';
import { TEST_RETENTION } from '../../unit/gateway/store/store-contract.js';
import { HANG_GUARD_MS } from '../../support/hang-guard.js';

// What a gateway asks Redis for its webhooks: the gateway's time is virtual, Redis has its own.

let redis: TestRedis;
let stores: RedisStores;
const clock = new VirtualClock(Date.now());

beforeAll(async () => {
  redis = await startRedis();
  stores = openRedisStores({
    commandTimeoutMs: HANG_GUARD_MS,
    url: redis.url,
    cluster: false,
    clock,
    log: silentLog,
    callRetention: TEST_RETENTION,
    batchRetention: TEST_BATCH_RETENTION,
  });
  await stores.ready(HANG_GUARD_MS);
});
afterAll(async () => {
  await stores.close();
  await redis.close();
});

const sent: string[] = [];

function newSender(): WebhookSender {
  const post = (_url: string, body: string): Promise<Attempt> => {
    sent.push(body);
    return Promise.resolve({ kind: 'delivered' });
  };
  return new WebhookSender({
    outbox: stores.outbox,
    orgs: stores.orgs,
    calls: stores.calls,
    analyst: { find: () => Promise.reject(new Error('no analysis is due')) },
    post,
    schedule: { firstMs: 5_000, maxMs: 3_600_000, giveUpMs: 86_400_000 },
    clock,
    log: silentLog,
    claimMs: 60_000,
    chance: () => 0,
  });
}

async function scriptsRun(): Promise<number> {
  const text = await redis.command('INFO commandstats');
  return ['evalsha', 'eval'].reduce((sum, name) => sum + Number(new RegExp(`cmdstat_${name}:calls=(\\d+)`).exec(text)?.[1] ?? 0), 0);
}

async function newOrg(): Promise<string> {
  return (await stores.orgs.create({ name: newUuid(), sip_enabled: true })).org_id;
}

/** Lets the sender's time pass until it is so. */
async function until(isSo: () => boolean | Promise<boolean>, stepMs: number, steps: number): Promise<number> {
  for (let step = 0; step < steps; step += 1) {
    if (await isSo()) return step;
    await clock.advanceAsync(stepMs);
    // The answers to what was asked, and to what was asked then: those of one connection come in order, but several may come at once.
    for (let answers = 0; answers < 6; answers += 1) await stores.outbox.waiting();
  }
  throw new Error('it did not become so');
}

describe('a sender of webhooks', () => {
  it('asks Redis less than twice a second when nothing is due', async () => {
    const sender = newSender();
    const claim = vi.spyOn(stores.outbox, 'claim');
    sender.start();
    // Each lane once at the start. The first claims run two commands each: Redis does not have the scripts yet.
    await expect.poll(() => claim.mock.settledResults.filter(({ type }) => type === 'fulfilled')).toHaveLength(OUTBOX_LANES);
    const before = await scriptsRun();
    for (let second = 0; second < 60; second += 1) {
      await clock.advanceAsync(1_000);
      await stores.outbox.waiting();
    }
    await sender.close();
    const asked = (await scriptsRun()) - before;
    expect(asked).toBeGreaterThanOrEqual(60);
    expect(asked).toBeLessThan(90);
  });

  it('takes within a second what another process put there, and leaves nothing in the index', async () => {
    const sender = newSender();
    sender.start();
    await clock.advanceAsync(0);
    const delivery = deliveryOf(await newOrg(), { body: 'of another process' });
    await stores.outbox.add(delivery);
    await until(() => sent.includes(delivery.body), 500, 4);
    await until(async () => (await stores.outbox.waiting()) === 0, 100, 50);
    // The claim's end stays in the index, and goes when the lane is looked at then.
    expect(await redis.command('ZCARD outbox:lanes')).toMatch(/1/);
    await redis.command(`ZADD outbox:lanes 1 ${String(outboxLane(delivery.org_id))}`);
    await until(async () => (await redis.command('ZCARD outbox:lanes')).includes('0'), 1_000, 20);
    await sender.close();
  });

  it('finds what a process that died put into its lane only', async () => {
    const sender = newSender();
    sender.start();
    await clock.advanceAsync(0);
    const delivery = deliveryOf(await newOrg(), { body: 'without index' });
    await stores.outbox.add(delivery);
    await redis.command('DEL outbox:lanes');
    await until(() => sent.includes(delivery.body), 10_000, OUTBOX_LANES + 1);
    await sender.close();
  });

  it('takes what a process had claimed that died, once the claim ends', async () => {
    const delivery = deliveryOf(await newOrg(), { body: 'claimed' });
    await stores.outbox.add(delivery);
    expect(await stores.outbox.claim(outboxLane(delivery.org_id), 10, 300)).toEqual([delivery]);
    const sender = newSender();
    sender.start();
    await clock.advanceAsync(0);
    expect(sent).not.toContain(delivery.body);
    // The claim ends by the time of Redis, while the sender's own goes on.
    const sentAfterASecond = async (): Promise<readonly string[]> => {
      await clock.advanceAsync(1_000);
      await stores.outbox.waiting();
      return sent;
    };
    await expect.poll(sentAfterASecond).toContain(delivery.body);
    await sender.close();
  });
});

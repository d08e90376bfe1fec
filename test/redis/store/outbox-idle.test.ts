import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import type { Attempt } from '../../../src/gateway/webhooks/post.js';
import { WebhookSender } from '../../../src/gateway/webhooks/sender.js';
import type { RedisStores } from '../../../src/gateway/store/redis/redis-stores.js';
import { OUTBOX_LANES, outboxLane } from '../../../src/gateway/ports/stores.js';
import { newUuid } from '../../../src/lib/ids.js';
import { silentLog } from '../../../src/lib/log.js';
import { openStores } from '../../support/redis-stores.js';
import { VirtualClock } from '../../support/virtual-clock.js';
import { workerRedis, type WorkerRedis } from '../../support/worker-redis.js';
import { deliveryOf } from '../../unit/gateway/store/outbox-contract.js';

// What a gateway asks Redis for its webhooks.

const CLAIM_MS = 60_000;
let redis: WorkerRedis;
let stores: RedisStores;
const clock = new VirtualClock(Date.now());

beforeAll(async () => {
  redis = await workerRedis();
  stores = await openStores(redis, { clock });
});
afterAll(() => stores.close());

const sent: string[] = [];

function newSender(): WebhookSender {
  const post = (_url: string, body: string): Promise<Attempt> => {
    sent.push(body);
    return Promise.resolve({ kind: 'delivered', status: 200 });
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
    claimMs: CLAIM_MS,
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

/**
 * What the sender asked is answered, and what it asked then: answers of one connection come in order, but several may come at once. A script
 * is asked for twice when its time was moved.
 */
async function answersCome(): Promise<void> {
  for (let answers = 0; answers < 12; answers += 1) await stores.outbox.waiting();
}

/** Lets the time of Redis and of the sender pass until it is so. */
async function until(isSo: () => boolean | Promise<boolean>, stepMs: number, steps: number): Promise<number> {
  for (let step = 0; step < steps; step += 1) {
    if (await isSo()) return step;
    await redis.advance(stepMs, clock);
    await answersCome();
  }
  throw new Error('it did not become so');
}

describe('a sender of webhooks', () => {
  it('queries Redis less than twice a second when nothing is due', async () => {
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

  it('claims within a second what another process added, and leaves nothing in the index', async () => {
    const sender = newSender();
    sender.start();
    await clock.advanceAsync(0);
    const delivery = deliveryOf(await newOrg(), { body: 'of another process' });
    await stores.outbox.add(delivery);
    await until(() => sent.includes(delivery.body), 500, 4);
    await until(async () => (await stores.outbox.waiting()) === 0, 100, 50);
    // The claim's end stays in the index, and goes when the lane is looked at then.
    expect(await redis.command('ZCARD outbox:lanes')).toMatch(/1/);
    await redis.advance(CLAIM_MS, clock);
    await until(async () => (await redis.command('ZCARD outbox:lanes')).includes('0'), 1_000, 20);
    await sender.close();
  });

  it('finds what a process that died added to its lane only', async () => {
    const sender = newSender();
    sender.start();
    await clock.advanceAsync(0);
    const delivery = deliveryOf(await newOrg(), { body: 'without index' });
    await stores.outbox.add(delivery);
    await redis.command('DEL outbox:lanes');
    await until(() => sent.includes(delivery.body), 10_000, OUTBOX_LANES + 1);
    await sender.close();
  });

  it('claims what a process that died had claimed, once that claim ends', async () => {
    const delivery = deliveryOf(await newOrg(), { body: 'claimed' });
    await stores.outbox.add(delivery);
    expect(await stores.outbox.claim(outboxLane(delivery.org_id), 10, CLAIM_MS)).toEqual([delivery]);
    const sender = newSender();
    sender.start();
    await clock.advanceAsync(1_000);
    // The lane was looked at, and the index too.
    await answersCome();
    expect(sent).not.toContain(delivery.body);
    await redis.advance(CLAIM_MS, clock);
    await until(() => sent.includes(delivery.body), 1_000, 3);
    await sender.close();
  });
});

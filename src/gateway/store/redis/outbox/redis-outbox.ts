import type { AddressedDelivery, DeadLetter, Delivery } from '../../../model/delivery.js';
import { isoNow, type Clock } from '../../../../lib/clock.js';
import { OUTBOX_LANES_KEY, outboxDueKey, outboxJobsKey, orgDeadLettersKey, orgDeadOrderKey } from '../keys.js';
import { idOfMember, recordMember } from '../../../ports/listing.js';
import { RedisScript, type RedisCommand, type RedisConnection } from '../redis.js';
import { MAX_DEAD_LETTERS, MAX_PAGE_BYTES, OUTBOX_LANES, outboxLane, type DeadLetterPage, type Outbox } from '../../../ports/stores.js';

const ADD = new RedisScript('outbox/add');
const CLAIM = new RedisScript('outbox/claim');
const DEFER = new RedisScript('outbox/defer');
const DUE_LANES = new RedisScript('outbox/due-lanes');
const SCHEDULE_LANE = new RedisScript('outbox/schedule-lane');
/** Letters that are read in one round trip: one may have a long transcript. */
const READ_AT_ONCE = 10;

/**
 * Each lane is a hash slot of its own; dead letters beside their organization. One index has the lanes by the time at which their first job
 * is due. It is another slot, so it is written after the lane: a process that dies between leaves a job that only a claim of its lane finds.
 */
export class RedisOutbox implements Outbox {
  constructor(
    private readonly redis: RedisConnection,
    private readonly clock: Clock,
  ) {}

  async add(delivery: Delivery): Promise<void> {
    const dueMs = await this.redis.script(ADD, keysOf(delivery), [delivery.delivery_id, JSON.stringify(delivery)]);
    await this.#note(delivery, Number(dueMs));
  }

  async dueLanes(): Promise<readonly number[]> {
    const lanes = await this.redis.script(DUE_LANES, [OUTBOX_LANES_KEY], []);
    if (!Array.isArray(lanes)) throw new Error('outbox/due-lanes.lua answered no array');
    return lanes.map(Number);
  }

  async claim(lane: number, limit: number, claimMs: number): Promise<readonly Delivery[]> {
    const answer = await this.redis.script(CLAIM, [outboxDueKey(lane), outboxJobsKey(lane)], [String(limit), String(claimMs)]);
    const [nowMs, nextMs, jobs] = Array.isArray(answer) ? (answer as unknown[]) : [];
    if (!Array.isArray(jobs)) throw new Error('outbox/claim.lua answered no jobs');
    // The jobs are claimed whatever becomes of this: the lane is looked at once more then.
    await this.redis.script(SCHEDULE_LANE, [OUTBOX_LANES_KEY], [lane, nowMs, nextMs].map(String)).catch(() => undefined);
    return jobs.map((job) => JSON.parse(String(job)) as Delivery);
  }

  async settle(delivery: Delivery): Promise<void> {
    const [due, jobs] = keysOf(delivery);
    const id = delivery.delivery_id;
    await this.redis.run((client) => client.multi().hdel(jobs, id).zrem(due, id).exec());
  }

  async defer(delivery: Delivery, delayMs: number): Promise<void> {
    const job = [delivery.delivery_id, JSON.stringify(delivery), String(Math.round(delayMs))];
    await this.#note(delivery, Number(await this.redis.script(DEFER, keysOf(delivery), job)));
  }

  async bury(delivery: AddressedDelivery): Promise<void> {
    const { org_id: orgId, delivery_id: id } = delivery;
    const letter: DeadLetter = { ...delivery, died_at: isoNow(this.clock) };
    const [order, letters] = [orgDeadOrderKey(orgId), orgDeadLettersKey(orgId)];
    // There first, then here no more: it is twice rather than nowhere.
    await this.redis.run((client) => client.multi().hset(letters, id, JSON.stringify(letter)).zadd(order, 0, memberOf(letter)).exec());
    await this.#trim(orgId);
    await this.settle(delivery);
  }

  async waiting(): Promise<number> {
    const lanes = Array.from({ length: OUTBOX_LANES }, (_, lane): RedisCommand => ['zcard', outboxDueKey(lane)]);
    return (await this.redis.pipeline(lanes)).reduce((sum: number, count) => sum + Number(count), 0);
  }

  async dead(orgId: string, limit: number, before: string | null): Promise<DeadLetterPage> {
    const letters: DeadLetter[] = [];
    let last = before;
    for (let bytes = 0; letters.length < limit && bytes < MAX_PAGE_BYTES;) {
      const to = last === null ? '+' : `(${last}`;
      const count = Math.min(READ_AT_ONCE, limit - letters.length);
      const found = await this.redis.run((client) => client.zrange(orgDeadOrderKey(orgId), to, '-', 'BYLEX', 'REV', 'LIMIT', 0, count + 1));
      const page = found.slice(0, count);
      const texts =
        page.length === 0 ? [] : await this.redis.run((client) => client.hmget(orgDeadLettersKey(orgId), ...page.map(idOfMember)));
      for (const text of texts) if (text !== null) letters.push(JSON.parse(text) as DeadLetter);
      bytes += texts.reduce((sum, text) => sum + (text?.length ?? 0), 0);
      last = page.at(-1) ?? last;
      if (found.length <= count) return { letters, next: null };
    }
    return { letters, next: last };
  }

  async revive(orgId: string, deliveryId: string): Promise<boolean> {
    const [order, letters] = [orgDeadOrderKey(orgId), orgDeadLettersKey(orgId)];
    const text = await this.redis.run((client) => client.hget(letters, deliveryId));
    if (text === null) return false;
    const letter = JSON.parse(text) as DeadLetter;
    const { died_at: _diedAt, ...delivery } = letter;
    await this.add({ ...delivery, created_at: isoNow(this.clock), attempts: 0, last_error: null });
    await this.redis.run((client) => client.multi().hdel(letters, deliveryId).zrem(order, memberOf(letter)).exec());
    return true;
  }

  /** A job of the delivery's lane is due then; 0: none was written. */
  async #note({ org_id: orgId }: Delivery, dueMs: number): Promise<void> {
    if (dueMs > 0) await this.redis.run((client) => client.zadd(OUTBOX_LANES_KEY, 'LT', dueMs, String(outboxLane(orgId))));
  }

  async #trim(orgId: string): Promise<void> {
    const [order, letters] = [orgDeadOrderKey(orgId), orgDeadLettersKey(orgId)];
    const over = (await this.redis.run((client) => client.zcard(order))) - MAX_DEAD_LETTERS;
    if (over <= 0) return;
    const popped = await this.redis.run((client) => client.zpopmin(order, over));
    const ids = popped.filter((_value, index) => index % 2 === 0).map(idOfMember);
    if (ids.length > 0) await this.redis.run((client) => client.hdel(letters, ...ids));
  }
}

function keysOf({ org_id: orgId }: Delivery): [string, string] {
  const lane = outboxLane(orgId);
  return [outboxDueKey(lane), outboxJobsKey(lane)];
}

function memberOf({ died_at: diedAt, delivery_id: id }: DeadLetter): string {
  return recordMember(diedAt, id);
}

import type { E164 } from '../../../model/e164.js';
import { MAX_DO_NOT_CALL, type DoNotCallList } from '../../../ports/batches.js';
import type { Page } from '../../../ports/stores.js';
import type { Clock } from '../../../../lib/clock.js';
import { orgDoNotCallKey } from '../keys.js';
import type { RedisConnection } from '../redis.js';

/** One sorted set an organization. dials/reserve.lua looks into it before each call. */
export class RedisDoNotCallList implements DoNotCallList {
  constructor(
    private readonly redis: RedisConnection,
    private readonly clock: Clock,
  ) {}

  async add(orgId: string, numbers: readonly E164[]): Promise<number | null> {
    const key = orgDoNotCallKey(orgId);
    // Two at once may overshoot the limit a little.
    if ((await this.redis.run((client) => client.zcard(key))) + numbers.length > MAX_DO_NOT_CALL) return null;
    const nowMs = this.clock.wallMs();
    return this.redis.run((client) => client.zadd(key, 'NX', ...numbers.flatMap((number) => [nowMs, number])));
  }

  async remove(orgId: string, number: E164): Promise<boolean> {
    return (await this.redis.run((client) => client.zrem(orgDoNotCallKey(orgId), number))) === 1;
  }

  async find(orgId: string, numbers: readonly E164[]): Promise<ReadonlySet<E164>> {
    if (numbers.length === 0) return new Set();
    const scores = await this.redis.run((client) => client.zmscore(orgDoNotCallKey(orgId), ...numbers));
    return new Set(numbers.filter((_number, index) => scores[index] !== null));
  }

  async list(orgId: string, { take, skip }: Page): Promise<readonly { readonly phone_number: E164; readonly added_at: string }[]> {
    const found = await this.redis.run((client) => client.zrevrange(orgDoNotCallKey(orgId), skip, skip + take - 1, 'WITHSCORES'));
    return found.flatMap((number, index) =>
      index % 2 === 0 ? [{ phone_number: number as E164, added_at: new Date(Number(found[index + 1])).toISOString() }] : [],
    );
  }
}

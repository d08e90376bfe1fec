import { createHash } from 'node:crypto';
import type { PlacementStore, Placement } from '../../../ports/stores.js';
import { orgPlacementKey } from '../keys.js';
import type { RedisConnection } from '../redis.js';

const KEPT_S = 86_400;

/** Idempotency keys of requests to place calls, for a day. */
export class RedisPlacements implements PlacementStore {
  constructor(private readonly redis: RedisConnection) {}

  async find(orgId: string, key: string): Promise<Placement | null> {
    const text = await this.redis.run((client) => client.get(keyOf(orgId, key)));
    const [digest = '', callId = ''] = text?.split(' ') ?? [];
    return text === null ? null : { digest, callId };
  }

  async claim(orgId: string, { key, digest, callId }: Placement & { readonly key: string }): Promise<Placement | null> {
    const set = await this.redis.run((client) => client.set(keyOf(orgId, key), `${digest} ${callId}`, 'EX', KEPT_S, 'NX'));
    // One that expires in between belongs to nobody: the caller asks again.
    return set === 'OK' ? null : this.find(orgId, key);
  }

  async release(orgId: string, key: string): Promise<void> {
    await this.redis.run((client) => client.del(keyOf(orgId, key)));
  }
}

/** A customer's text of any form. */
function keyOf(orgId: string, key: string): string {
  return orgPlacementKey(orgId, createHash('sha256').update(key).digest('hex'));
}

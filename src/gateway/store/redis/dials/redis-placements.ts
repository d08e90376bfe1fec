import { createHash } from 'node:crypto';
import type { PlacementStore, Placement } from '../../../ports/stores.js';
import { orgPlacementKey } from '../keys.js';
import { RedisScript, type RedisConnection } from '../redis.js';

const KEEP = new RedisScript('dials/keep-placement');
/** Longer than a gateway takes to place the call, or to write a batch's numbers. */
const CLAIMED_S = 60;
export const PLACEMENT_KEPT_S = 86_400;
const CLAIMED = 'claimed';

/** Idempotency keys, each its own string. */
export class RedisPlacements implements PlacementStore {
  constructor(private readonly redis: RedisConnection) {}

  async find(orgId: string, key: string): Promise<(Placement & { readonly isKept: boolean }) | null> {
    const text = await this.redis.run((client) => client.get(placementKey(orgId, key)));
    const [digest = '', callId = '', state] = text?.split(' ') ?? [];
    return text === null ? null : { digest, callId, isKept: state !== CLAIMED };
  }

  async claim(orgId: string, { key, digest, callId }: Placement & { readonly key: string }): ReturnType<PlacementStore['claim']> {
    const text = `${digest} ${callId} ${CLAIMED}`;
    const set = await this.redis.run((client) => client.set(placementKey(orgId, key), text, 'EX', CLAIMED_S, 'NX'));
    // One that expires in between belongs to nobody: the caller asks again.
    return set === 'OK' ? null : this.find(orgId, key);
  }

  async keep(orgId: string, { key, callId }: Pick<Placement, 'callId'> & { readonly key: string }): Promise<boolean> {
    return (await this.redis.script(KEEP, [placementKey(orgId, key)], [callId, PLACEMENT_KEPT_S])) === 1;
  }

  async release(orgId: string, key: string): Promise<void> {
    await this.redis.run((client) => client.del(placementKey(orgId, key)));
  }
}

/** @param key a customer's text of any form */
export function placementKey(orgId: string, key: string): string {
  return orgPlacementKey(orgId, createHash('sha256').update(key).digest('hex'));
}

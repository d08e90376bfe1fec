import type { E164 } from '../contracts/e164.js';
import { agentKey, numberKey, numberLeasesKey, numberRecentKey, orgKey, orgLeasesKey, orgRecentKey } from './keys.js';
import type { CountedCall } from './own-calls.js';
import { isMissingScript, RedisScript, type RedisConnection } from './redis.js';

/** A number or an organization: both have a record with limits and, in the same hash slot, the calls that count against them. */
export interface Limited {
  readonly kind: 'number' | 'org';
  readonly recordKey: string;
  readonly leasesKey: string;
  readonly recentKey: string;
}

export function limitedNumber(number: E164): Limited {
  return { kind: 'number', recordKey: numberKey(number), leasesKey: numberLeasesKey(number), recentKey: numberRecentKey(number) };
}

export function limitedOrg(orgId: string): Limited {
  return { kind: 'org', recordKey: orgKey(orgId), leasesKey: orgLeasesKey(orgId), recentKey: orgRecentKey(orgId) };
}

/** What a number or an organization told, this call not counted. */
export interface Seat {
  /** `null`: there is no record. */
  readonly record: string | null;
  readonly calls: number;
  readonly lastSecond: number;
  readonly isTaken: boolean;
}

const TAKE_PLACE = new RedisScript('take-place');
const RENEW_PLACES = new RedisScript('renew-places');

// In one script or one pipeline: Redis serves nobody else meanwhile.
const RENEWED_AT_ONCE = 500;

/** Places of calls in progress, counted over all gateways. One lives `leaseMs` and is renewed, so that those of a gateway that died are free again. */
export class Leases {
  readonly #redis: RedisConnection;
  readonly #leaseMs: number;

  constructor(redis: RedisConnection, leaseMs: number) {
    this.#redis = redis;
    this.#leaseMs = leaseMs;
  }

  /** Reads records and takes a place on each that has one left, in one round trip; beside them an agent's record. */
  async take(
    limited: readonly Limited[],
    callId: string | null,
    agentId: string | null,
  ): Promise<{ readonly seats: readonly Seat[]; readonly agent: string | null }> {
    let answers: readonly unknown[];
    try {
      answers = await this.#ask(limited, callId, agentId, (script) => ['evalsha', script.sha1]);
    } catch (error) {
      if (!isMissingScript(error)) throw error;
      answers = await this.#ask(limited, callId, agentId, (script) => ['eval', script.source]);
    }
    const agent = agentId === null ? null : answers.at(-1);
    return { seats: limited.map((_one, index) => seatOf(answers[index])), agent: typeof agent === 'string' ? agent : null };
  }

  /** Gives places back; `isRecent`: they still count as calls of the last second. What fails expires by itself. */
  giveBack(limited: readonly Limited[], callId: string, isRecent: boolean): void {
    if (limited.length === 0) return;
    this.#redis
      .pipeline((pipeline) => {
        for (const { leasesKey, recentKey } of limited) {
          pipeline.zrem(leasesKey, callId);
          if (!isRecent) pipeline.zrem(recentKey, callId);
        }
      })
      .catch(() => undefined);
  }

  /** Keeps the places of these calls for another lease; takes again those that Redis lost. */
  async renew(calls: ReadonlyMap<string, CountedCall>): Promise<void> {
    const byKey = new Map<string, string[]>();
    for (const [callId, { number, orgId }] of calls) {
      for (const key of [numberLeasesKey(number), orgLeasesKey(orgId)]) {
        const ids = byKey.get(key);
        if (ids === undefined) byKey.set(key, [callId]);
        else ids.push(callId);
      }
    }
    const batches = [...byKey].flatMap(([key, ids]) => chunks(ids, RENEWED_AT_ONCE).map((chunk) => ({ key, chunk })));
    // All pipelines go out at once: a call that is released from now on is released behind them.
    await Promise.all(
      chunks(batches, RENEWED_AT_ONCE).map((some) =>
        this.#redis.pipeline((pipeline) => {
          // Loaded each time: to send it again after NOSCRIPT would bring back a call that was released in between.
          pipeline.script('LOAD', RENEW_PLACES.source);
          for (const { key, chunk } of some) pipeline.evalsha(RENEW_PLACES.sha1, 1, key, this.#leaseMs, ...chunk);
        }),
      ),
    );
  }

  #ask(
    limited: readonly Limited[],
    callId: string | null,
    agentId: string | null,
    call: (script: RedisScript) => ['evalsha' | 'eval', string],
  ): Promise<readonly unknown[]> {
    const [command, script] = call(TAKE_PLACE);
    return this.#redis.pipeline((pipeline) => {
      for (const { kind, recordKey, leasesKey, recentKey } of limited) {
        pipeline[command](script, 3, recordKey, leasesKey, recentKey, kind, callId ?? '', this.#leaseMs);
      }
      if (agentId !== null) pipeline.get(agentKey(agentId));
    });
  }
}

function seatOf(answer: unknown): Seat {
  if (!Array.isArray(answer)) throw new Error('take-place.lua answered no array');
  const [record, calls, lastSecond, taken] = answer as unknown[];
  return { record: typeof record === 'string' ? record : null, calls: Number(calls), lastSecond: Number(lastSecond), isTaken: taken === 1 };
}

function chunks<T>(all: readonly T[], size: number): T[][] {
  return Array.from({ length: Math.ceil(all.length / size) }, (_, index) => all.slice(index * size, (index + 1) * size));
}

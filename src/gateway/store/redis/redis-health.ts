/** What one Redis, of a cluster the fullest primary, says of its memory; `null`: it does not say. */
export interface RedisMemory {
  readonly usedBytes: number | null;
  /** `null`: no limit. */
  readonly maxBytes: number | null;
  /** `maxmemory-policy`. */
  readonly policy: string | null;
}

/** What a write showed. */
export interface RedisHealth extends RedisMemory {
  /** Why Redis takes no writes, in its own words; `null`: it does. */
  readonly refusal: string | null;
  /** How long the write took, or its refusal. */
  readonly tookMs: number;
}

/** A call waits for several answers of Redis before the caller hears anything. */
const SLOW_MS = 100;
const NEARLY_FULL = 0.9;
const MIB = 1 << 20;

/** Reads `INFO memory`. */
export function memoryOf(info: string): RedisMemory {
  const field = (name: string): string | null => new RegExp(`^${name}:(.*?)\\r?$`, 'm').exec(info)?.[1] ?? null;
  const bytes = (name: string): number | null => {
    const text = field(name);
    return text === null ? null : Number(text);
  };
  const maxBytes = bytes('maxmemory');
  return { usedBytes: bytes('used_memory'), maxBytes: maxBytes === 0 ? null : maxBytes, policy: field('maxmemory_policy') };
}

/** The one with the least memory left, as a share of its limit. */
export function fullest(memories: readonly RedisMemory[]): RedisMemory {
  const none: RedisMemory = { usedBytes: null, maxBytes: null, policy: null };
  return memories.reduce((most, one) => (shareOf(one) >= shareOf(most) ? one : most), none);
}

function shareOf({ usedBytes, maxBytes }: RedisMemory): number {
  return usedBytes === null ? -1 : maxBytes === null ? 0 : usedBytes / maxBytes;
}

/** What an operator should do something about while Redis still takes writes, for a person; empty: nothing. */
export function redisWarnings(health: RedisHealth): string[] {
  const { tookMs, usedBytes, maxBytes, policy } = health;
  const mib = (bytes: number): string => String(Math.round(bytes / MIB));
  return [
    ...(tookMs > SLOW_MS ? [`Redis is slow: a write took ${String(Math.round(tookMs))} ms`] : []),
    ...(shareOf(health) > NEARLY_FULL && usedBytes !== null && maxBytes !== null
      ? [`Redis is nearly full: ${mib(usedBytes)} of ${mib(maxBytes)} MB are used, and a full one takes no writes`]
      : []),
    ...(maxBytes !== null && policy !== null && policy !== 'noeviction'
      ? [`Redis deletes keys when it is full: its maxmemory-policy is ${policy}, and must be noeviction`]
      : []),
  ];
}

import type { RedisConnection } from '../redis.js';
import type { RouteCache } from './route-cache.js';

const READ_AT_ONCE = 500;

/** After a gap in what Redis tells of changes: forgets what is remembered of records that are others now. */
export async function dropOutdated(redis: RedisConnection, remembered: RouteCache): Promise<void> {
  const records = [...remembered.records()];
  for (let from = 0; from < records.length; from += READ_AT_ONCE) {
    const batch = records.slice(from, from + READ_AT_ONCE);
    const texts = await redis.pipeline(batch.map(([key]) => ['get', key]));
    batch.forEach(([key, text], index) => {
      if (texts[index] !== text) remembered.onChange(key);
    });
  }
}

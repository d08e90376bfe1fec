import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { RedisScript } from '../../../../../src/gateway/store/redis/redis.js';

const FOLDER = join(import.meta.dirname, '../../../../../src/gateway/store/redis');
const read = (file: string): string => readFileSync(join(FOLDER, file), 'utf8');

describe('a Redis script', () => {
  it('reads the time through one function alone', () => {
    const files = readdirSync(FOLDER, { recursive: true, encoding: 'utf8' });
    expect(files.filter((file) => file.endsWith('.lua') && read(file).includes("'TIME'"))).toEqual(['now-ms.lua']);
  });

  it('begins with that function if it needs the time', () => {
    expect(new RedisScript('leases/renew-slots').source).toBe(read('now-ms.lua') + read('leases/renew-slots.lua'));
    expect(new RedisScript('write-together').source).toBe(read('write-together.lua'));
  });
});

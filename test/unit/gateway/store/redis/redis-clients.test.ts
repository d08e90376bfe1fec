import { setFlagsFromString } from 'node:v8';
import { expect, it } from 'vitest';
import '../../../../../src/gateway/store/redis/redis-clients.js';

it('the Redis clients leave the methods of strings as fast as they were', () => {
  setFlagsFromString('--allow-natives-syntax');
  // eslint-disable-next-line @typescript-eslint/no-implied-eval -- not a syntax that TypeScript reads
  const isFast = new Function('object', 'return %HasFastProperties(object)') as (object: object) => boolean;
  expect(isFast(String.prototype)).toBe(true);
});

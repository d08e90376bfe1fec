import { once } from 'node:events';
import { expect, it } from 'vitest';
import { startThread } from '../../../src/lib/thread.js';

const MB = 2 ** 20;

it('a thread has a small young generation, so that no collection stops it for long', async () => {
  const thread = startThread(new URL('../../support/young-objects', import.meta.url), null);
  const [bytes] = (await once(thread, 'message')) as [number];
  // Both halves.
  expect(bytes).toBeGreaterThan(4 * MB);
  expect(bytes).toBeLessThanOrEqual(16 * MB);
  await thread.terminate();
});

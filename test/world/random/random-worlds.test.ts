import fc from 'fast-check';
import { describe, it } from 'vitest';
import { play } from './play.js';
import { script } from './steps.js';

/** Each takes a second or two. `npm run test:system` plays more of them, with a seed of its own for each run. */
const WORLDS = Number(process.env['WORLDS'] ?? 12);
const SEED = Number(process.env['SEED'] ?? 1);

describe('no call is lost, doubled or stuck, and nothing of it is left', () => {
  it.each(Array.from({ length: WORLDS }, (_, index) => index + 1))('whatever happens in world %i', async (index) => {
    await fc.assert(fc.asyncProperty(script, play), { numRuns: 1, seed: 10_000 * SEED + index });
  });
});

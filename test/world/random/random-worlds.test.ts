import fc from 'fast-check';
import { describe, it } from 'vitest';
import { play } from './play.js';
import { script } from './steps.js';

/** `npm run test:system` plays more of them, with a seed of its own for each run. */
const WORLDS = Number(process.env['WORLDS'] ?? 20);
const SEED = Number(process.env['SEED'] ?? 1);

/** A world takes seconds. One that fails is played again, shorter and shorter, until the script that is left can be read. */
const SHRUNK_MS = 1_800_000;

describe('a random world', () => {
  const worlds = Array.from({ length: WORLDS }, (_, index) => 10_000 * SEED + index + 1);
  it.each(worlds)(
    'loses and doubles no call, and leaves none stuck and nothing behind, with the seed %i',
    async (seed) => {
      await fc.assert(fc.asyncProperty(script, play), { numRuns: 1, seed, plugins: [fc.unbiased()] });
    },
    SHRUNK_MS,
  );
});

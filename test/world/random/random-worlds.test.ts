import fc from 'fast-check';
import { describe, it } from 'vitest';
import { play } from './play.js';
import { script } from './steps.js';

/** Each world takes a second. */
const WORLDS = Number(process.env['WORLDS'] ?? 20);

describe('whatever happens in a world', () => {
  it('no call is lost, doubled or stuck, and nothing of it is left', async () => {
    await fc.assert(
      fc.asyncProperty(script, async (steps) => play(steps)),
      { numRuns: WORLDS, endOnFailure: false },
    );
  });
});

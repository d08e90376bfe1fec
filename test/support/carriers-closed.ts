import { afterAll, expect } from 'vitest';
import { CarrierAudio } from './carrier-audio.js';

// After all other hooks of a file. A worker outlives its files: what one of them leaves would send to the calls of the files after it.
afterAll(() => {
  const left = [...CarrierAudio.unclosed];
  for (const audio of left) audio.close();
  expect(left.length, 'calls that this file left open').toBe(0);
});

import { afterAll } from 'vitest';
import { CarrierAudio } from './carrier-audio.js';

// After all other hooks of a file. A worker outlives its files: what one of them leaves would send to the calls of the files after it.
afterAll(() => {
  for (const audio of CarrierAudio.unclosed) audio.close();
});

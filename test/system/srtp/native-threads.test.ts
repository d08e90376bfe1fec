import { resolve } from 'node:path';
import { expect, it } from 'vitest';
import { stressInThreads } from '../../support/media/native-stress.mjs';

// Several media workers load the addon at once. `npm run sanitize` runs this under the address sanitizer.

const THREADS = 4;
const SESSIONS = 400;
const PACKETS = 40;

it('SRTP sessions of several threads protect and unprotect every packet at once without disturbing each other', async () => {
  const good = await stressInThreads(resolve('native/build/Release/srtp.node'), THREADS, SESSIONS, PACKETS);
  expect(good).toEqual(Array.from({ length: THREADS }, () => SESSIONS * PACKETS));
});

import { beforeAll } from 'vitest';
import { closeDatagrams } from './driver/datagrams.js';
import { closeNetwork } from './driver/network.js';
import { WorldTime } from './driver/time.js';

/** Time is virtual while the tests of a file run, for parts of the product without a whole world. To be asked for before any hook of the file. */
export function withWorldTime(): void {
  beforeAll(() => {
    const time = new WorldTime();
    return async () => {
      await time.close();
      closeNetwork();
      closeDatagrams();
    };
  });
}

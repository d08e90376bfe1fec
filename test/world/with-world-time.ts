import { beforeAll } from 'vitest';
import { closeDatagrams } from './driver/datagrams.js';
import { closeNetwork } from './driver/network.js';
import { WorldTime } from './driver/time.js';

/** Virtual time, and the network in this process, for the tests of a file that start parts of the product themselves. */
export function withWorldTime(take: (time: WorldTime) => void = () => undefined): void {
  beforeAll(() => {
    const time = new WorldTime();
    take(time);
    return async () => {
      await time.close();
      closeNetwork();
      closeDatagrams();
    };
  });
}

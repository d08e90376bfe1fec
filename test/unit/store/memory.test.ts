import { createMemoryStores } from '../../../src/store/memory.js';
import { VirtualClock } from '../../support/virtual-clock.js';
import { describeStores, TEST_RETENTION } from './store-contract.js';

describeStores('stores in memory', () => {
  const clock = new VirtualClock();
  return { clock, stores: createMemoryStores({ clock, callRetention: TEST_RETENTION }) };
});

import { createMemoryStores } from '../../../support/store/memory.js';
import { VirtualClock } from '../../../support/virtual-clock.js';
import { describeAgentChanges } from './agents-contract.js';
import { describeLogs, TEST_BATCH_RETENTION } from './batches-contract.js';
import { describeCallsInProgress } from './calls-contract.js';
import { describeOutbox } from './outbox-contract.js';
import { describePages } from './pages-contract.js';
import { describeStores, TEST_RETENTION } from './store-contract.js';
import { describeThroughput } from './throughput-contract.js';

const open = () => {
  const clock = new VirtualClock();
  const stores = createMemoryStores({ clock, callRetention: TEST_RETENTION, batchRetention: TEST_BATCH_RETENTION });
  return { clock, stores, advance: (ms: number) => clock.advanceAsync(ms) };
};
describeStores('stores in memory', open);
describePages('stores in memory', open);
describeCallsInProgress('stores in memory', open);
describeOutbox('stores in memory', open);
describeAgentChanges('stores in memory', open);
describeLogs('stores in memory', open);
describeThroughput('stores in memory', open);

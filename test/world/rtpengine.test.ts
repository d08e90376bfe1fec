import { silentLog } from '../../src/lib/log.js';
import { systemClock } from '../../src/lib/system-clock.js';
import { RtpengineNode } from '../../src/gateway/relay/node.js';
import { openRelayPool } from '../../src/gateway/relay/pool.js';
import { describeJoinedCalls, describeOffers, describeRelayCommands } from '../support/relay-contract.js';
import { withRelay } from '../support/relay-site.js';
import { WorldRtpengine } from './rtpengine.js';
import { withWorldTime } from './with-world-time.js';

// The rtpengine that the world plays; test/system/rtpengine/contract.test.ts has the same of the real one.

const NG_PORT = 22_222;

withWorldTime();
const relay = withRelay(() => {
  const rtpengine = new WorldRtpengine(NG_PORT, 30_000);
  rtpengine.start();
  const options = { clock: systemClock, log: silentLog, timeoutMs: 1_000 };
  return Promise.resolve({
    pool: () =>
      openRelayPool({
        ...options,
        nodes: [{ address: '127.0.0.1', port: NG_PORT }],
        interfaces: { outside: 'outside', inside: 'inside' },
        instance: 'test',
        maxDelayMs: 250,
        own: { capacity: 25, instances: ['test'] },
      }),
    node: () => new RtpengineNode({ ...options, address: '127.0.0.1', port: NG_PORT }),
    stop: () => {
      rtpengine.kill();
      return Promise.resolve();
    },
  });
});

describeRelayCommands(relay);
describeOffers(relay);
describeJoinedCalls(relay);

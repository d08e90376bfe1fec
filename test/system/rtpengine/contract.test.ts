import { describeJoinedCalls, describeOffers, describeRelayCommands } from '../../support/relay-contract.js';
import { withRelay } from '../../support/relay-site.js';
import { RunningRtpengine } from '../../support/rtpengine.js';

// The real rtpengine; test/world/rtpengine.test.ts has the same of the one that the world plays.

const relay = withRelay(() => RunningRtpengine.start(100));

describeRelayCommands(relay);
describeOffers(relay);
describeJoinedCalls(relay);

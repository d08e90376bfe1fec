import { describe, it } from 'vitest';
import { HandMadeCall } from '../../support/hand-made-call.js';
import { CallEnd } from '../../support/media/call-end.js';
import type { SipPeer } from '../../support/sip-peer.js';
import { withGateway } from '../../support/with-gateway.js';

// Which keys are taken, and which not, is in test/world: here rtpengine decrypts what is sent with them.

const NUMBER = '+15550100100';

let peer: SipPeer;
withGateway((site) => ({ peer } = site));

describe('a carrier', () => {
  it.each([
    ['none', Buffer.alloc(0)],
    ['of 1 byte', Buffer.from([1])],
    ['of 4 bytes', Buffer.from([0, 0, 0, 1])],
  ])('[3711 §3.1] hears the agent, and the agent the carrier, when the MKI of its key is: %s', async (_what, mki) => {
    const end = await CallEnd.open({ mki });
    const call = new HandMadeCall(peer, NUMBER);
    const ok = await call.answered(end.sdp());
    end.connect(ok.body);
    await end.hearsAgent();
    await end.hearsEcho(4_000);
    await call.hangUp(ok);
    await end.close();
  });
});

import { describe, expect, it } from 'vitest';
import type { RunningGateway } from '../../support/gateway.js';
import { HandMadeCall } from '../../support/hand-made-call.js';
import { offerSdp } from '../../support/sdp.js';
import { SipPeer } from '../../support/sip-peer.js';
import { withGateway } from '../../support/with-gateway.js';

const NUMBER = '+15550100100';

let gateway: RunningGateway;
withGateway((site) => ({ gateway } = site));

describe('the record of an answered call', () => {
  it.each([
    ['TLSv1.2', /^TLS_ECDHE_/],
    ['TLSv1.3', /^TLS_AES_/],
  ] as const)('has the TLS version and cipher of its %s connection', async (version, cipher) => {
    const peer = await SipPeer.connect(gateway.sipPort, gateway.ca, { minVersion: version, maxVersion: version });
    const call = new HandMadeCall(peer, NUMBER);
    await call.hangUp(await call.answered(offerSdp()));
    peer.close();
    expect((await gateway.record(call.callId))['source']).toMatchObject({
      tls_version: version,
      tls_cipher: expect.stringMatching(cipher) as string,
    });
  });
});

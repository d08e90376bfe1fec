import { describe, expect, it } from 'vitest';
import type { RunningGateway } from '../../support/gateway.js';
import { HandMadeCall } from '../../support/hand-made-call.js';
import { freePorts } from '../../support/ports.js';
import { offerSdp } from '../../support/sdp.js';
import { SipPeer } from '../../support/sip-peer.js';
import { withGateway } from '../../support/with-gateway.js';

const NUMBER = '+15550100100';

let gateway: RunningGateway;
let tcpPort: number;
withGateway(
  (site) => ({ gateway } = site),
  async () => {
    [tcpPort = 0] = await freePorts(1);
    return { TRUNKLINE_SIP_TCP_PORT: String(tcpPort) };
  },
);

describe('the gateway', () => {
  it('names at its start the ports of media and how many calls fit', () => {
    const [first, last] = ['MIN', 'MAX'].map((end) => gateway.environment[`TRUNKLINE_RTPENGINE_PORT_${end}`] ?? '');
    expect(gateway.output).toContain(`250 calls: UDP ${first ?? ''} to ${last ?? ''} `);
  });

  it.each([['sip'], ['http/1.1', 'h2']])('serves a peer that offers the ALPN %s', async (...protocols) => {
    const other = await SipPeer.connect(gateway.sipPort, gateway.ca, { ALPNProtocols: protocols });
    const call = new HandMadeCall(other, NUMBER);
    await call.hangUp(await call.answered(offerSdp()));
    other.close();
  });

  it('warns at its start of keys in clear over TCP, and answers such a call', async () => {
    await gateway.logged('sip-server', 'sip.transport.cleartext');
    const other = await SipPeer.connectTcp(tcpPort);
    const call = new HandMadeCall(other, NUMBER);
    const ok = await call.answered(offerSdp());
    expect(ok.header('Contact')).toMatch(/;transport=tcp>$/);
    await call.hangUp(ok);
    other.close();
    expect((await gateway.record(call.callId))['source']).toMatchObject({ transport: 'tcp', tls_version: null });
  });
});

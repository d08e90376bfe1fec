import { expect, it } from 'vitest';
import { placeTestCall } from '../../../src/loadtest/test-caller/test-call.js';
import { systemClock } from '../../../src/lib/system-clock.js';
import type { RunningGateway } from '../../support/gateway.js';
import { HandMadeCall } from '../../support/hand-made-call.js';
import { offerSdp, OTHER_KEY } from '../../support/sdp.js';
import type { SipPeer } from '../../support/sip-peer.js';
import { withGateway } from '../../support/with-gateway.js';

let gateway: RunningGateway;
let peer: SipPeer;

withGateway((site) => ({ gateway, peer } = site), { TRUNKLINE_MEDIA_AGENT_LEG: 'srtp' });

const inlineKey = (sdp: string): string => /^a=crypto:1 AES_CM_128_HMAC_SHA1_80 inline:(\S+)/m.exec(sdp)?.[1] ?? '';

it('a gateway with SRTP inside encrypts a whole call end to end: it reads digits back, echoes, and hangs up on #', async () => {
  const report = await placeTestCall(
    {
      target: { host: '127.0.0.1', port: gateway.sipPort, ca: gateway.ca },
      called: gateway.ready.phone_number,
      caller: '+15550100999',
      digits: '19#',
      seconds: 25,
      language: 'ENG',
      isBot: false,
      codecs: ['PCMU'],
    },
    systemClock,
  );
  expect(report.outcome, JSON.stringify(report)).toBe('answered, heard, and ended as expected');
  expect(report.media).toMatchObject({ packetsBad: 0, packetsLost: 0 });
});

it('[3264 §8] a gateway with SRTP inside answers a re-INVITE with a key of its own, whether or not the carrier changes its key', async () => {
  const call = new HandMadeCall(peer, gateway.ready.phone_number);
  call.invite(offerSdp());
  const ok = await call.final();
  expect(inlineKey(ok.body)).toHaveLength(40);
  call.ack(ok);
  const held = await call.request('INVITE', ok, offerSdp({ direction: 'sendonly' }));
  expect([held.status, inlineKey(held.body)]).toEqual([200, inlineKey(ok.body)]);
  call.ack(held);
  const rekeyed = await call.request('INVITE', ok, offerSdp({ crypto: [`1 AES_CM_128_HMAC_SHA1_80 inline:${OTHER_KEY}`] }));
  expect(rekeyed.status).toBe(200);
  expect(inlineKey(rekeyed.body)).toHaveLength(40);
  call.ack(rekeyed);
  expect((await call.request('BYE', ok)).status).toBe(200);
});

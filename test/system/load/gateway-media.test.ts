import { afterAll, beforeAll, expect, it } from 'vitest';
import type { RunningGateway } from '../../support/gateway.js';
import { HandMadeCall } from '../../support/hand-made-call.js';
import { MediaGenerator } from '../../support/load/media-generator.js';
import { freePorts } from '../../support/ports.js';
import { offerSdp } from '../../support/sdp.js';
import type { SipPeer } from '../../support/sip-peer.js';
import { withGateway } from '../../support/with-gateway.js';

let gateway: RunningGateway;
let peer: SipPeer;
let generator: MediaGenerator;
// Two threads of rtpengine may swap packets that arrive together, as they do when this machine stood still.
withGateway((site) => ({ gateway, peer } = site), { TRUNKLINE_RTPENGINE_THREADS: '1' });

beforeAll(async () => {
  const [port = 0] = await freePorts(1);
  generator = await MediaGenerator.start(1, port);
});

afterAll(() => {
  generator.kill();
});

it('the test line echoes through rtpengine and answers a digit; nothing is lost, and both ends send reports', async () => {
  const { port, key } = generator.slot(0);
  const call = new HandMadeCall(peer, gateway.ready.phone_number);
  const ok = await call.answered(offerSdp({ port, crypto: [`1 AES_CM_128_HMAC_SHA1_80 inline:${key}`] }));
  const far = {
    port: Number(/^m=audio (\d+) /m.exec(ok.body)?.[1]),
    key: /^a=crypto:1 \S+ inline:(\S{40})/m.exec(ok.body)?.[1] ?? '',
  };
  generator.call(0, far, { digits: '7' });
  // The digit is read back, and after that each packet that comes back has its stamp.
  for (let echoes = 0; echoes < 2;) if ((await generator.next('second'))['delay_ms'] !== null) echoes += 1;
  const said = await generator.stop(0);
  await call.hangUp(ok);
  expect(said).toMatchObject({
    tone: 'heard',
    digits: '7',
    digits_answered: 1,
    lost: 0,
    out_of_order: 0,
    duplicates: 0,
    rejected: 0,
    strangers: 0,
    remote_lost: 0,
  });
  expect(said['received']).toBe(said['expected']);
  expect(said['rtcp_received']).toBeGreaterThan(0);
  expect(said['mos']).toBeGreaterThan(4.2);
  expect(await gateway.record(call.callId)).toMatchObject({
    reason: 'CALLER_HANGUP',
    quality: { endpoint: { packets_lost: 0, digits_received: 1 } },
  });
});

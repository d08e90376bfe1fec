import { afterEach, describe, expect, it } from 'vitest';
import { CarrierCall } from '../../support/carrier-call.js';
import type { RunningGateway } from '../../support/gateway.js';
import { SipPeer } from '../../support/sip-peer.js';
import { nothingLeft, recordOf, timesLogged } from '../../support/trunk.js';
import { withGateway } from '../../support/with-gateway.js';

// A real process that ends; test/world/gateway/sip-server-killed.test.ts has the rest.

let gateway: RunningGateway;
let call: CarrierCall;
withGateway((site) => ({ gateway } = site));

afterEach(() => call.close());

describe('a SIP server that ends with calls up', () => {
  it.each(['SIGKILL', 'SIGTERM'] as const)(
    'by %s lets a carrier that comes back only with a request send every request in its call',
    async (signal) => {
      call = await CarrierCall.talking(gateway, gateway.ready.phone_number);
      const connected = (): Promise<number> => timesLogged(gateway, 'gateway', '"msg":"gateway.sip_server.connected"');
      const before = await connected();
      process.kill(await gateway.pidOf('sip-server'), signal);
      await expect.poll(connected).toBe(before + 1);
      await call.heardAfter(performance.now());
      call.over(await SipPeer.connect(gateway.sipPort, gateway.ca));
      expect((await call.request('OPTIONS')).status).toBe(200);
      expect((await call.request('INVITE', call.audio.sdp({ direction: 'sendonly' }))).body).toContain('a=recvonly');
      expect((await call.request('UPDATE', call.audio.sdp())).body).toContain('a=sendrecv');
      await call.echoedAfter(performance.now());
      expect([call.audio.ssrcs.length, call.audio.lost]).toEqual([1, 0]);
      expect((await call.request('BYE')).status).toBe(200);
      expect(await recordOf(gateway, call)).toMatchObject({ reason: 'CALLER_HANGUP', resumed: 0 });
      await nothingLeft(Number(gateway.environment['TRUNKLINE_RTPENGINE_NG_PORT']));
    },
  );
});

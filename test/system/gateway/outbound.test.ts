import { beforeAll, describe, expect, it } from 'vitest';
import type { RunningGateway } from '../../support/gateway.js';
import { CallEnd } from '../../support/media/call-end.js';
import { FROM, OutboundSite, TO } from '../../support/outbound-site.js';
import type { OutboundTrunk } from '../../support/outbound-trunk.js';

// A placed call over real TLS and the real rtpengine; test/world/gateway/outbound.test.ts has the rest.

let site: OutboundSite;
let gateway: RunningGateway;
let trunk: OutboundTrunk;

beforeAll(async () => {
  site = await OutboundSite.start();
  ({ gateway, trunk } = site);
  return () => site.destroy();
});

describe('a call that is placed', () => {
  it('[3261 §13.2.1] [4568 §5.1] offers SRTP, and whoever answers hears the agent', async () => {
    const { callId, call } = await site.placed({ metadata: { order: 7 } });
    expect(call.invite.startLine).toBe(`INVITE sip:${TO}@${trunk.endpoint};transport=tls SIP/2.0`);
    expect(call.invite.header('From')).toMatch(new RegExp(`^<sip:\\${FROM}@127.0.0.1>;tag=`));
    expect(call.invite.body).toMatch(/m=audio \d+ RTP\/SAVP 0 8 101\r\n/);
    expect(await site.callOf(callId)).toMatchObject({
      state: 'ringing',
      direction: 'outbound',
      from: FROM,
      to: TO,
      sip_call_id: call.callId,
    });
    call.respond('180 Ringing');
    const end = (await CallEnd.open()).connect(call.invite.body);
    await call.answer(end.sdp());
    await end.hearsAgent();
    await end.hearsEcho(5_000);
    expect(await site.callOf(callId)).toMatchObject({ state: 'in_progress', codec: 'PCMU', crypto_suite: 'AES_CM_128_HMAC_SHA1_80' });
    expect((await call.dialog.ask('BYE')).status).toBe(200);
    const record = await site.ended(callId);
    expect(record).toMatchObject({
      reason: 'CALLEE_HANGUP',
      sip_status: 200,
      direction: 'outbound',
      quality: { relay: { from_carrier: { errors: 0 } } },
    });
    expect(record.timings.ring_ms).not.toBeNull();
    await end.close();
  });
});

describe('a trunk that cannot be used', () => {
  it.each([
    ['with a certificate for another name', () => `127.0.0.2:${String(trunk.port)}`],
    ['without TLS', () => `127.0.0.1:${gateway.ready.http.split(':')[2] ?? ''}`],
  ])('[5922 §7] %s fails a call with TRUNK_UNREACHABLE', async (_what, endpoint) => {
    const updates = { type: 'outbound', sip_endpoint: endpoint() };
    await gateway.api('POST', '/sip/update', { phone_number: FROM, updates });
    const { json } = await site.place();
    expect(await site.ended(String(json['call_id']))).toMatchObject({ reason: 'TRUNK_UNREACHABLE', sip_status: null });
  });
});

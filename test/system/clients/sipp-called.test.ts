import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { CallEnd } from '../../support/media/call-end.js';
import { FROM, OutboundSite, TO } from '../../support/outbound-site.js';
import { SippCarrier } from '../../support/sipp-carrier.js';
import { nothingLeft } from '../../support/trunk.js';

let site: OutboundSite;
let carrier: SippCarrier;

beforeAll(async () => {
  site = await OutboundSite.start();
});
afterAll(() => site.destroy());
afterEach(async () => {
  await carrier.stop();
  await nothingLeft(Number(site.gateway.environment['TRUNKLINE_RTPENGINE_NG_PORT']));
});

const CONTACT = 'sip:switch@192.0.2.7:5070;transport=tcp';

async function start(...given: Parameters<typeof SippCarrier.start>): Promise<void> {
  carrier = await SippCarrier.start(...given);
  await site.attach(carrier.endpoint);
}

async function placed(): Promise<string> {
  const { status, json } = await site.place();
  expect(status, JSON.stringify(json)).toBe(200);
  return String(json['call_id']);
}

/** Every call of the scenario went as it should. */
async function passed(calls = 1): Promise<void> {
  const { code, successful, failed, output } = await carrier.outcome;
  expect([code, successful, failed], output.slice(-3_000)).toEqual([0, calls, 0]);
}

describe('SIPp behind a TLS tunnel, as the carrier of outbound calls,', () => {
  it('[3261 §12.2.1.1] [4568 §5.1] answers with SRTP: both sides hear each other, ACK and BYE follow its Record-Route', async () => {
    const end = await CallEnd.open();
    const { rtpPort, rtcpPort } = end.peer.address;
    const srtp_key = Buffer.from(end.key!).toString('base64');
    await start('called', 1, { rtp_port: String(rtpPort), rtcp_port: String(rtcpPort), srtp_key });
    const callId = await placed();
    const [invite] = await carrier.requests('INVITE');
    expect(invite!.startLine).toBe(`INVITE sip:${TO}@${carrier.endpoint};transport=tls SIP/2.0`);
    end.connect(invite!.body);
    await end.hearsAgent();
    await end.hearsEcho(4_000);
    expect(await site.callOf(callId)).toMatchObject({ state: 'in_progress', codec: 'PCMU', crypto_suite: 'AES_CM_128_HMAC_SHA1_80' });
    await end.peer.press(11);
    await passed();
    const [[ack], [bye]] = [await carrier.requests('ACK'), await carrier.requests('BYE')];
    for (const [method, request] of Object.entries({ ACK: ack!, BYE: bye! })) {
      expect(request.startLine).toBe(`${method} ${CONTACT} SIP/2.0`);
      expect(request.headers('Route')).toEqual([`<sip:${carrier.endpoint};transport=tls;lr>`]);
    }
    expect(bye!.header('Reason')).toBe('Q.850;cause=16;text="AGENT_HANGUP"');
    expect(await site.ended(callId)).toMatchObject({
      reason: 'AGENT_HANGUP',
      sip_status: 200,
      quality: { relay: { from_carrier: { errors: 0 } } },
    });
    await end.close();
  });

  it('[3261 §15.1] hangs up 20 calls over the connection that the gateway opened', async () => {
    await start('called-hangs-up', 20);
    const callIds = await Promise.all(Array.from({ length: 20 }, placed));
    await passed(20);
    const records = await Promise.all(callIds.map((callId) => site.ended(callId)));
    expect(records.map(({ reason, sip_status: status }) => [reason, status])).toEqual(Array(20).fill(['CALLEE_HANGUP', 200]));
    expect(new Set((await carrier.requests('INVITE', 20)).map((invite) => invite.header('Call-ID'))).size).toBe(20);
  });

  it('[3261 §21.4.24] rejects a call with 486, which ends as BUSY', async () => {
    await start('called-busy');
    const callId = await placed();
    await passed();
    expect(await site.ended(callId)).toMatchObject({ reason: 'BUSY', sip_status: 486, answered_at: null });
  });

  it('[3261 §9.1] rings until the API stops the call', async () => {
    await start('called-cancelled');
    const callId = await placed();
    await carrier.requests('INVITE');
    await site.gateway.api('POST', `/v1/calls/${callId}/stop`, {});
    await passed();
    expect(await site.ended(callId)).toMatchObject({ reason: 'API_STOPPED', sip_status: 487, answered_at: null });
  });

  describe('with credentials', () => {
    beforeAll(async () => {
      const updates = { type: 'outbound', sip_endpoint: site.trunk.endpoint, username: 'acme', password: 'p4ss' };
      expect((await site.gateway.api('POST', '/sip/update', { phone_number: FROM, updates })).status).toBe(200);
    });

    /** Credentials stay: another endpoint alone. */
    async function startChallenged(secret: string): Promise<void> {
      carrier = await SippCarrier.start('called-challenged', 1, { secret });
      await site.gateway.api('POST', '/sip/update', { phone_number: FROM, updates: { type: 'outbound', sip_endpoint: carrier.endpoint } });
    }

    it('[3261 §22.2] gets the right ones in INVITE and BYE', async () => {
      await startChallenged('p4ss');
      const callId = await placed();
      await carrier.requests('ACK', 2);
      await expect.poll(async () => (await site.callOf(callId)).state).toBe('in_progress');
      await site.gateway.api('POST', `/v1/calls/${callId}/stop`, {});
      await passed();
      const byes = await carrier.requests('BYE', 2);
      expect(byes.map((bye) => bye.header('Authorization') !== undefined)).toEqual([false, true]);
      expect(await site.ended(callId)).toMatchObject({ reason: 'API_STOPPED', sip_status: 200 });
    });

    it('[3261 §22.1] refuses a wrong password', async () => {
      await startChallenged('other');
      const callId = await placed();
      await passed();
      expect((await carrier.requests('INVITE')).map((invite) => invite.header('Authorization') !== undefined)).toEqual([false, true]);
      expect(await site.ended(callId)).toMatchObject({ reason: 'TRUNK_REFUSED', sip_status: 403, answered_at: null });
    });
  });
});

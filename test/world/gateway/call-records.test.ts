import { describe, expect, it } from 'vitest';
import { HandMadeCall } from '../../support/hand-made-call.js';
import { CallEnd } from '../../support/media/call-end.js';
import { offerSdp } from '../../support/sdp.js';
import type { SipPeer } from '../../support/sip-peer.js';
import { withWorld } from '../with-world.js';
import type { World } from '../world.js';

const NUMBER = '+15550100100';
const ANY_COUNT = expect.any(Number) as number;
const ANY_TIME = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/) as string;

let gateway: World;
let peer: SipPeer;
withWorld((site) => ({ gateway, peer } = site));

describe('the record of an answered call', () => {
  it('has reason, timings, codec, suite, connection and the figures of both sides, in the list and by itself', async () => {
    const end = await CallEnd.open();
    const call = new HandMadeCall(peer, NUMBER);
    // A name of the SIP server's own, which no caller may use.
    const ok = await call.answered(end.sdp(), ['X-Trunkline-Tls: TLSv1.0 NONE', 'X-Trunkline-Tls-Identity: DNS:forged.example.com']);
    end.connect(ok.body);
    await end.hearsAgent();
    await end.hearsEcho(4_000);
    const [live] = (await gateway.api('GET', '/v1/calls?state=live')).json['calls'] as { call_id: string }[];
    const sounded = async () =>
      (await gateway.api('GET', `/v1/calls/${String(live?.call_id)}/quality`)).json as { live: boolean; samples: readonly object[] };
    const sample: unknown = expect.objectContaining({ from_caller: { lost_percent: 0, jitter_ms: ANY_COUNT, mos: ANY_COUNT } });
    await gateway.until(async () => (await sounded()).samples.length > 0);
    const during = await sounded();
    expect(during).toMatchObject({ status: 'success', live: true });
    // The sample at the end is of what is heard now.
    await end.peer.speak(new Int16Array(1_600));
    await call.hangUp(ok);
    await end.close();
    const record = await gateway.record(call.callId);
    // One more at the end.
    expect(await sounded()).toEqual({ status: 'success', live: false, samples: [...during.samples, sample] });
    expect(record).toMatchObject({
      org_id: gateway.ready.org_id,
      agent_id: gateway.ready.agent_id,
      from: '+15550100999',
      to: NUMBER,
      source: {
        ip: '127.0.0.1',
        port: peer.localPort,
        transport: 'tls',
        tls_version: 'TLSv1.3',
        tls_cipher: expect.stringMatching(/^TLS_AES_/) as string,
      },
      reason: 'CALLER_HANGUP',
      sip_status: 200,
      codec: 'PCMU',
      crypto_suite: 'AES_CM_128_HMAC_SHA1_80',
      started_at: ANY_TIME,
      answered_at: ANY_TIME,
      ended_at: ANY_TIME,
      timings: { ring_ms: null, answer_ms: ANY_COUNT, first_audio_ms: ANY_COUNT, talk_ms: ANY_COUNT },
      quality: { endpoint: { packets_lost: 0, digits_received: 1 }, relay: { from_carrier: { errors: 0 }, from_agent: { errors: 0 } } },
      stale_route: false,
      resumed: 0,
    });
    const { quality, caller } = record as { quality: Record<string, Record<string, Record<string, number>>>; caller: object };
    expect(quality['relay']?.['from_carrier']?.['packets']).toBeGreaterThan(20);
    expect(quality['relay']?.['from_agent']?.['packets']).toBeGreaterThanOrEqual(end.peer.received.length);
    expect(JSON.stringify(caller)).not.toContain('forged');
    // By itself it has the transcript too: what the test line said, the key, and the key read back.
    const said = ['welcome to Trunkline', '1', ''].map((text) => expect.stringContaining(text) as unknown);
    const transcript = said.map((text, turn) => ({ speaker: turn === 1 ? 'caller' : 'agent', text, at_ms: expect.any(Number) as unknown }));
    expect((await gateway.api('GET', `/v1/calls/${String(record['call_id'])}`)).json['call']).toEqual({
      ...record,
      transcript,
      analysis_rejected: null,
    });
  });

  it('[3325 §9.1] [5806 §5] [7044 §5] [7433 §4] has the caller as the headers name them', async () => {
    const call = new HandMadeCall(peer, NUMBER, '"Smith, J." <sip:+15550100333;cpc=ordinary@carrier.example.com;user=phone>');
    const ok = await call.answered(offerSdp(), [
      'P-Asserted-Identity: "Main" <sip:+15550100334@carrier.example.com>, <tel:+15550100335>',
      'Remote-Party-ID: "J" <sip:+15550100336@carrier.example.com>;party=calling;privacy=off',
      'Diversion: <sip:+15550100337@carrier.example.com>;reason=user-busy;counter=1',
      'History-Info: <sip:+15550100338@carrier.example.com?Reason=SIP%3Bcause%3D486>;index=1',
      'History-Info: <sip:+15550100339@carrier.example.com>;index=1.1',
      'User-to-User: 56a390f3;encoding=hex',
      'X-Campaign: spring',
    ]);
    await call.hangUp(ok);
    expect((await gateway.record(call.callId))['caller']).toEqual({
      number: '+15550100333',
      display_name: 'Smith, J.',
      asserted: ['sip:+15550100334@carrier.example.com', 'tel:+15550100335'],
      remote_party: 'sip:+15550100336@carrier.example.com',
      diversions: [{ uri: 'sip:+15550100337@carrier.example.com', reason: 'user-busy' }],
      history: [
        { uri: 'sip:+15550100338@carrier.example.com?Reason=SIP%3Bcause%3D486', index: '1' },
        { uri: 'sip:+15550100339@carrier.example.com', index: '1.1' },
      ],
      privacy: [],
      user_to_user: '56a390f3;encoding=hex',
      headers: { 'x-campaign': 'spring' },
    });
  });

  it('[3323 §4.2] [3325 §7] leaves out what Privacy: id keeps private, and an anonymous From has no number', async () => {
    const call = new HandMadeCall(peer, NUMBER, '"Anonymous" <sip:anonymous@anonymous.invalid>');
    const ok = await call.answered(offerSdp(), ['Privacy: id', 'P-Asserted-Identity: <sip:+15550100444@carrier.example.com>']);
    await call.hangUp(ok);
    const record = await gateway.record(call.callId);
    expect(record).toMatchObject({ from: 'anonymous', caller: { number: 'anonymous', display_name: null, asserted: [], privacy: ['id'] } });
    expect(JSON.stringify(record)).not.toContain('5550100444');
    expect(await gateway.log('gateway')).not.toContain('5550100444');
  });

  it('is found by number, caller and reason', async () => {
    // After all others.
    await gateway.pass(1_000);
    const call = new HandMadeCall(peer, NUMBER, '<sip:+15550100555@carrier>');
    await call.hangUp(await call.answered(offerSdp()));
    await gateway.record(call.callId);
    const found = async (query: string): Promise<unknown[]> => {
      const { json } = await gateway.api('GET', `/v1/calls?${query}`);
      return (json['calls'] as Record<string, unknown>[]).map((record) => record['sip_call_id']);
    };
    expect(await found('from=15550100555')).toEqual([call.callId]);
    expect(await found('phone_number=15550100100&reason=CALLER_HANGUP&limit=1')).toEqual([call.callId]);
    expect(await found('from=15550100555&reason=BAD_SDP')).toEqual([]);
  });
});

describe('the record of a refused call', () => {
  it('has the reason, status and connection, but neither answer nor media', async () => {
    const call = new HandMadeCall(peer, NUMBER);
    call.invite(offerSdp({ profile: 'RTP/AVP', crypto: [] }));
    expect((await call.final()).status).toBe(488);
    expect(await gateway.record(call.callId)).toMatchObject({
      reason: 'SRTP_REQUIRED',
      sip_status: 488,
      codec: null,
      crypto_suite: null,
      answered_at: null,
      timings: { ring_ms: null, answer_ms: null, first_audio_ms: null, talk_ms: null },
      quality: { endpoint: null, relay: null },
      source: { transport: 'tls', tls_version: 'TLSv1.3' },
    });
  });

  it('exists for a call above the limit of a number too', async () => {
    const number = '+15550100661';
    const options = { max_concurrent_calls: 0 };
    await gateway.api('POST', '/sip/attach', { phone_number: number, directions: ['inbound'], service: 'sip', options });
    const call = new HandMadeCall(peer, number);
    call.invite(offerSdp());
    expect((await call.final()).status).toBe(486);
    expect(await gateway.record(call.callId)).toMatchObject({ reason: 'NUMBER_CALL_LIMIT', sip_status: 486, to: number });
  });
});

import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { World } from '../world.js';
import { HandMadeCall } from '../../support/hand-made-call.js';
import { KEY, offerSdp } from '../../support/sdp.js';
import { SipPeer } from '../../support/sip-peer.js';

const OPEN = '+15550103001';
const NARROW = '+15550103002';
const FULL = '+15550103003';
const AWAY = '+15550103009';

const DTLS = offerSdp({ profile: 'UDP/TLS/RTP/SAVP', crypto: [] });
const MKI = offerSdp({ crypto: [`5 AES_CM_128_HMAC_SHA1_80 inline:${KEY}|2^31|1:4`] });

let gateway: World;
const peers = new Map<string, SipPeer>();

beforeAll(async () => {
  gateway = await World.start();
  for (const localAddress of ['127.0.0.1', '127.0.0.2'])
    peers.set(localAddress, await SipPeer.connect(gateway.sipPort, gateway.ca, { localAddress }));
  for (const [number, options] of [
    [OPEN, {}],
    [NARROW, { allowed_sources: ['127.0.0.2'] }],
    [FULL, { max_concurrent_calls: 0 }],
  ] as const) {
    const body = { phone_number: number, directions: ['inbound'], service: 'sip', options };
    expect((await gateway.api('POST', '/sip/attach', body)).status).toBe(200);
  }
});

afterAll(async () => {
  for (const peer of peers.values()) peer.close();
  await gateway.destroy();
});

interface Verdict {
  readonly status: unknown;
  readonly reason: unknown;
  readonly codec: unknown;
  readonly tag: unknown;
}

async function checked(number: string, source: string, sdp: string): Promise<Verdict> {
  const { json } = await gateway.api('POST', '/sip/check', { phone_number: number, source_ip: source, sdp });
  const data = json['data'] as Record<string, unknown>;
  return { status: data['sip_status'], reason: data['reason'], codec: data['codec'], tag: data['crypto_tag'] };
}

async function invited(number: string, source: string, sdp: string): Promise<Verdict> {
  const call = new HandMadeCall(peers.get(source)!, number);
  call.invite(sdp);
  const answer = await call.final();
  if (answer.status !== 200) {
    const reason = /"(\w+):/.exec(answer.header('Warning') ?? '')?.[1];
    return { status: answer.status, reason, codec: null, tag: null };
  }
  call.ack(answer);
  await call.hangUp(answer);
  const codec = / RTP\/SAVP 8 /.test(answer.body) ? 'PCMA' : 'PCMU';
  return { status: 200, reason: null, codec, tag: Number(/^a=crypto:(\d+)/m.exec(answer.body)?.[1]) };
}

describe('POST /sip/check', () => {
  it.each([
    ['a usual offer', OPEN, '127.0.0.1', offerSdp()],
    ['PCMA first', OPEN, '127.0.0.1', offerSdp({ payloads: '8 0 101' })],
    ['an MKI', OPEN, '127.0.0.1', MKI],
    ['on hold', OPEN, '127.0.0.1', offerSdp({ direction: 'inactive' })],
    ['a number that nobody has', AWAY, '127.0.0.1', offerSdp()],
    ['a number at its limit', FULL, '127.0.0.1', offerSdp()],
    ['an allowed source', NARROW, '127.0.0.2', offerSdp()],
    ['another source', NARROW, '127.0.0.1', offerSdp()],
    ['another source and a bad offer', NARROW, '127.0.0.1', DTLS],
    ['DTLS', OPEN, '127.0.0.1', DTLS],
    ['plain RTP', OPEN, '127.0.0.1', offerSdp({ profile: 'RTP/AVP', crypto: [] })],
    ['another suite', OPEN, '127.0.0.1', offerSdp({ crypto: [`1 AES_CM_128_HMAC_SHA1_32 inline:${KEY}`] })],
    ['G.722', OPEN, '127.0.0.1', offerSdp({ payloads: '9', rtpmap: ['9 G722/8000'] })],
    ['an address of IPv6, where the relay has none', OPEN, '127.0.0.1', offerSdp().replaceAll('IN IP4 127.0.0.1', 'IN IP6 ::1')],
    ['no SDP at all', OPEN, '127.0.0.1', 'hello'],
  ])('returns what an INVITE gets: %s, to %s from %s', async (_what, number, source, sdp) => {
    const verdict = await checked(number, source, sdp);
    expect(verdict).toEqual(await invited(number, source, sdp));
    expect(verdict.status === 200).toBe(verdict.reason === null);
  });

  it('returns what an INVITE gets when the organization is at its limit', async () => {
    const org = gateway.ready.org_id;
    expect((await gateway.cli('org', 'set-limits', org, '--max-concurrent-calls', '0')).code).toBe(0);
    expect(await checked(OPEN, '127.0.0.1', offerSdp())).toMatchObject({ status: 486, reason: 'ORG_CALL_LIMIT' });
    expect(await invited(OPEN, '127.0.0.1', offerSdp())).toMatchObject({ status: 486, reason: 'ORG_CALL_LIMIT' });
    expect((await gateway.cli('org', 'set-limits', org, '--max-concurrent-calls', 'none')).code).toBe(0);
    expect(await checked(OPEN, '127.0.0.1', offerSdp())).toEqual(await invited(OPEN, '127.0.0.1', offerSdp()));
  });

  it('counts as no call', async () => {
    const body = { phone_number: OPEN, directions: ['inbound'], service: 'sip', options: { max_concurrent_calls: 1 } };
    await gateway.api('POST', '/sip/attach', body);
    for (let ask = 0; ask < 5; ask += 1) expect((await checked(OPEN, '127.0.0.1', offerSdp())).status).toBe(200);
    expect((await invited(OPEN, '127.0.0.1', offerSdp())).status).toBe(200);
  });
});

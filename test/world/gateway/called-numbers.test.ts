import { describe, expect, it } from 'vitest';
import type { World } from '../world.js';
import { HandMadeCall } from '../../support/hand-made-call.js';
import { offerSdp } from '../../support/sdp.js';
import type { SipPeer, WireMessage } from '../../support/sip-peer.js';
import { withWorld } from '../with-world.js';

const NUMBER = '+15550100100';

let gateway: World;
let peer: SipPeer;

const takenFrom = (from: string): void => withWorld((site) => ({ gateway, peer } = site), { TRUNKLINE_SIP_CALLED_NUMBER_FROM: from });

/** The answer, and the number that its record names. */
async function called(
  uri: string,
  extra: readonly string[] = [],
): Promise<{ answer: WireMessage; status: number; code: string; to: string }> {
  const call = new HandMadeCall(peer, uri);
  call.invite(offerSdp(), extra);
  const answer = await call.final();
  const code = /"(\w+):/.exec(answer.header('Warning') ?? '')?.[1] ?? '';
  if (answer.status !== 200) return { answer, status: answer.status, code, to: '' };
  call.ack(answer);
  await call.hangUp(answer);
  return { answer, status: 200, code, to: String((await gateway.record(call.callId))['to']) };
}

describe('the called number in the Request-URI', () => {
  takenFrom('request-uri');

  it.each([
    'sip:+15550100100@127.0.0.1',
    'sip:15550100100@127.0.0.1;user=phone',
    'sip:%2B15550100100@127.0.0.1',
    'sip:+1-555-010-0100@127.0.0.1',
    'sip:+1.555.010.0100@127.0.0.1:5061;transport=tls',
    'sip:+15550100100;npdi;rn=+1555@127.0.0.1',
    'sip:+15550100100;cpc=ordinary:secret@127.0.0.1',
    'sips:+15550100100@127.0.0.1',
    'SIP:+15550100100@[::1]',
    'tel:+15550100100',
    'tel:+1-555-010-0100;isub=1',
    'tel:5550100100;phone-context=+1',
  ])('[3261 §19.1.6] [3966 §5.1] names +15550100100 when it is %s', async (uri) => {
    expect(await called(uri)).toMatchObject({ status: 200, to: NUMBER });
  });

  it.each([
    [404, 'INVALID_NUMBER', 'sip:alice@127.0.0.1'],
    [404, 'INVALID_NUMBER', 'sip:127.0.0.1'],
    [404, 'INVALID_NUMBER', 'sip:+0155501001@127.0.0.1'],
    [404, 'INVALID_NUMBER', 'sip:+1555010010012345@127.0.0.1'],
    [404, 'INVALID_NUMBER', 'sip:%zz15550100100@127.0.0.1'],
    [484, 'NUMBER_TOO_SHORT', 'sip:+155501@127.0.0.1'],
    [484, 'NUMBER_TOO_SHORT', 'tel:911;phone-context=127.0.0.1'],
    [404, 'NUMBER_NOT_ATTACHED', 'tel:5550100100;phone-context=+44'],
    [404, 'NUMBER_NOT_ATTACHED', 'sip:+15550100999@127.0.0.1'],
  ])('[3261 §8.2.2.1] gets %i %s when it is %s', async (status, code, uri) => {
    expect(await called(uri)).toMatchObject({ status, code });
  });

  it('[3261 §12.1.1] a call to sips: is answered with a Contact of sips:', async () => {
    expect((await called('sips:+15550100100@127.0.0.1')).answer.header('Contact')).toMatch(/^<sips:/);
    expect((await called('sip:+15550100100@127.0.0.1')).answer.header('Contact')).toMatch(/^<sip:/);
  });

  it('decides alone, whatever other headers say', async () => {
    const others = ['P-Called-Party-ID: <sip:+15550100999@127.0.0.1>', 'Diversion: <sip:+15550100999@127.0.0.1>'];
    expect(await called('sip:+15550100100@127.0.0.1', others)).toMatchObject({ status: 200, to: NUMBER });
  });
});

// A PBX that sends all calls to one pilot number, which is not attached here.
const PILOT = 'sip:+15550100999@127.0.0.1';

describe.each([
  ['p-called-party-id', 'P-Called-Party-ID: "Sales" <sip:+15550100100@pbx.example.com>;np=1'],
  ['diversion', 'Diversion: <tel:+15550100100>;reason=unconditional'],
])('[7315 §4.2] [5806 §5] called_number_from: %s', (source, header) => {
  takenFrom(source);

  it('takes the number from the header', async () => {
    expect(await called(PILOT, [header])).toMatchObject({ status: 200, code: '', to: NUMBER });
  });

  it('takes the number from the Request-URI when the header is missing or cannot be read', async () => {
    expect(await called(PILOT)).toMatchObject({ status: 404, code: 'NUMBER_NOT_ATTACHED' });
    expect(await called('sip:+15550100100@127.0.0.1', [`${header.split(':')[0] ?? ''}: nobody`])).toMatchObject({ status: 200 });
  });
});

describe('called_number_from: to', () => {
  takenFrom('to');

  it('takes the number from To, whatever the Request-URI says', async () => {
    const lines = [
      `INVITE ${PILOT} SIP/2.0`,
      `Via: SIP/2.0/TLS 127.0.0.1:${String(peer.localPort)};branch=z9hG4bKpilot;rport`,
      'Max-Forwards: 70',
      'From: <sip:+15550100998@pbx.example.com>;tag=pilot',
      'To: "Support" <sip:+1-555-010-0100@pbx.example.com;user=phone>',
      'Call-ID: pilot@pbx',
      'CSeq: 1 INVITE',
      `Contact: <sip:pbx@127.0.0.1:${String(peer.localPort)};transport=tls>`,
      'Content-Type: application/sdp',
    ];
    peer.send(lines, offerSdp({ profile: 'RTP/AVP', crypto: [] }));
    // The number was found: what is refused is the offer.
    expect((await peer.final()).header('Warning')).toContain('SRTP_REQUIRED');
    expect((await gateway.record('pilot@pbx'))['to']).toBe(NUMBER);
  });
});

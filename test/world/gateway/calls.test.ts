import { describe, expect, it } from 'vitest';
import { HandMadeCall } from '../../support/hand-made-call.js';
import { offerSdp } from '../../support/sdp.js';
import { SipPeer, type WireMessage } from '../../support/sip-peer.js';
import { addressed } from '../../support/wire-peer.js';
import { withWorld } from '../with-world.js';
import type { World } from '../world.js';

const NUMBER = '+15550100100';

let gateway: World;
let peer: SipPeer;
withWorld((site) => ({ gateway, peer } = site));

async function refused(number: string, sdp: string, extra: readonly string[] = []): Promise<WireMessage> {
  const call = new HandMadeCall(peer, number);
  call.invite(sdp, extra);
  return call.final();
}

describe('the gateway', () => {
  it.each([
    ['an unknown number', '+15550199999', offerSdp(), 404, 'NUMBER_NOT_ATTACHED'],
    ['a name', 'alice', offerSdp(), 404, 'INVALID_NUMBER'],
    ['too few digits', '911', offerSdp(), 484, 'NUMBER_TOO_SHORT'],
    ['no SRTP', NUMBER, offerSdp({ profile: 'RTP/AVP', crypto: [] }), 488, 'SRTP_REQUIRED'],
    [
      'another suite',
      NUMBER,
      offerSdp({ crypto: ['1 AES_CM_128_HMAC_SHA1_32 inline:d0RmdmcmVCspeEc3QGZiNWpVLFJhQX1cfHAwJSoj'] }),
      488,
      'SRTP_SUITE_UNSUPPORTED',
    ],
    ['only G722', NUMBER, offerSdp({ payloads: '9', rtpmap: ['9 G722/8000'] }), 488, 'NO_COMMON_CODEC'],
    ['an SDP that is none', NUMBER, 'hello', 488, 'BAD_SDP'],
  ])('refuses an INVITE with a Warning and a Reason for %s', async (_what, number, sdp, status, reason) => {
    const answer = await refused(number, sdp);
    expect(answer.status).toBe(status);
    expect(answer.header('Warning')).toMatch(new RegExp(`^399 \\S+ "${reason}: .+"$`));
    expect(answer.header('Reason')).toMatch(new RegExp(`^Q\\.850;cause=\\d+;text="${reason}"$`));
  });

  it('[3261 §8.2.2.3] sends Unsupported with 420 and Accept with 415, and 400 to an INVITE without Contact', async () => {
    expect(await refused(NUMBER, offerSdp(), ['Require: precondition'])).toMatchObject({ status: 420 });
    const type = await refused(NUMBER, '{}', ['Content-Type: application/json']);
    expect([type.status, type.header('Accept')]).toEqual([415, 'application/sdp']);
    const packed = await refused(NUMBER, offerSdp(), ['Content-Encoding: gzip']);
    expect([packed.status, packed.header('Accept-Encoding')]).toEqual([415, 'identity']);
    const call = new HandMadeCall(peer, NUMBER);
    call.invite(offerSdp(), [], null);
    expect((await call.final()).header('Warning')).toContain('MALFORMED_REQUEST');
  });

  it.each([
    ['in two lines', ['Contact: <sip:a@127.0.0.1:5061;transport=tls>'], 'Contact: <sip:b@192.0.2.1>'],
    ['in one', [], 'Contact: <sip:a@127.0.0.1:5061;transport=tls>, <sip:b@192.0.2.1>'],
  ])('takes the first of two Contacts, %s', async (_how, extra, contact) => {
    const call = new HandMadeCall(peer, NUMBER);
    call.invite(offerSdp(), extra, contact);
    const ok = await call.final();
    expect(ok.status).toBe(200);
    call.ack(ok);
    await call.hangUp(ok);
  });

  it('logs a refusal with reason and source, but not the number', async () => {
    const answer = await refused('+15550198765', offerSdp());
    await gateway.logged('gateway', answer.header('Call-ID') ?? '');
    const log = await gateway.log('gateway');
    expect(log.split('\n').find((line) => line.includes(answer.header('Call-ID') ?? ''))).toContain('"reason":"NUMBER_NOT_ATTACHED"');
    expect(log).not.toContain('15550198765');
  });
});

describe('the answer to an INVITE', () => {
  it('[3264 §6] [3711] has SAVP with one key of the offered tag, RTCP on RTP+1, no mux, and our Contact', async () => {
    const call = new HandMadeCall(peer, NUMBER);
    call.invite(offerSdp({ extra: ['a=rtcp-mux'] }));
    const ok = await call.final();
    expect(ok.status).toBe(200);
    const port = Number(/^m=audio (\d+) RTP\/SAVP 0 101\r$/m.exec(ok.body)?.[1]);
    expect(port % 2).toBe(0);
    expect(ok.body).toContain(`a=rtcp:${String(port + 1)}\r\n`);
    expect(ok.body).not.toContain('rtcp-mux');
    expect(ok.body.match(/^a=crypto:.*$/gm)).toEqual([
      expect.stringMatching(/^a=crypto:1 AES_CM_128_HMAC_SHA1_80 inline:[A-Za-z0-9+/]{40}\r?$/),
    ]);
    expect(ok.header('Contact')).toBe(`<sip:127.0.0.1:${String(gateway.sipPort)};transport=tls>`);
    expect(ok.header('Allow')).toContain('INVITE');
    call.ack(ok);
    expect((await call.request('BYE', ok)).status).toBe(200);
  });

  it('[3264 §8] to hold has recvonly and the next version in o=, and is the same when the offer is repeated', async () => {
    const call = new HandMadeCall(peer, NUMBER);
    call.invite(offerSdp());
    const ok = await call.final();
    call.ack(ok);
    const held = await call.request('INVITE', ok, offerSdp({ direction: 'sendonly' }));
    expect(held.body).toContain('a=recvonly\r\n');
    expect(held.body).toMatch(/^o=trunkline \d+ 2 IN/m);
    call.ack(held);
    const again = await call.request('INVITE', ok, offerSdp({ direction: 'sendonly' }));
    expect(again.body).toBe(held.body);
    call.ack(again);
    expect((await call.request('INVITE', ok, offerSdp({ profile: 'RTP/AVP', crypto: [] }))).status).toBe(488);
    expect((await call.request('BYE', ok)).status).toBe(200);
  });

  it('[3261 §15] precedes no BYE before the ACK has come', async () => {
    const call = new HandMadeCall(peer, NUMBER);
    call.invite(offerSdp());
    const ok = await call.final();
    expect(peer.received.some((message) => message.startLine.startsWith('BYE ') && message.header('Call-ID') === call.callId)).toBe(false);
    call.ack(ok);
    expect((await call.request('BYE', ok)).status).toBe(200);
  });
});

describe('the gateway, for CANCEL, OPTIONS and REGISTER,', () => {
  it('[3261 §9] ends a call with 487 when CANCEL comes right behind the INVITE', async () => {
    const call = new HandMadeCall(peer, NUMBER);
    call.invite(offerSdp());
    call.cancel();
    expect((await call.final()).status).toBe(487);
  });

  it('[3261 §9.1] ignores a CANCEL that crosses the 200, and the carrier hangs up', async () => {
    const call = new HandMadeCall(peer, NUMBER);
    call.invite(offerSdp());
    const ok = await call.final();
    expect(ok.status).toBe(200);
    call.cancel();
    call.ack(ok);
    expect((await call.request('OPTIONS', ok)).status).toBe(200);
    expect((await call.request('BYE', ok)).status).toBe(200);
  });

  it('[3261 §11] answers OPTIONS with Allow, Accept and Supported', async () => {
    const call = new HandMadeCall(peer, 'sip:127.0.0.1');
    const ok = await call.request('OPTIONS', addressed('<sip:127.0.0.1>'));
    expect([ok.status, ok.header('Accept'), ok.header('Supported')]).toEqual([200, 'application/sdp', 'timer, 100rel']);
    expect(ok.header('Allow')).toContain('BYE');
  });

  it('answers REGISTER with 405 and Allow', async () => {
    const call = new HandMadeCall(peer, 'sip:127.0.0.1');
    const answer = await call.request('REGISTER', addressed('<sip:127.0.0.1>'));
    expect([answer.status, answer.header('Allow')]).toEqual([405, expect.stringContaining('INVITE')]);
  });
});

describe('the gateway, when the API changes its settings,', () => {
  it('refuses a detached number and answers it again when it is attached', async () => {
    const number = '+15550100777';
    const attach = { phone_number: number, directions: ['inbound'], service: 'sip' };
    expect((await gateway.api('POST', '/sip/attach', attach)).status).toBe(200);
    const call = new HandMadeCall(peer, number);
    call.invite(offerSdp());
    const ok = await call.final();
    expect(ok.status).toBe(200);
    call.ack(ok);
    expect((await gateway.api('POST', '/sip/detach', { phone_number: number, directions: 'inbound', service: 'sip' })).status).toBe(200);
    expect((await refused(number, offerSdp())).status).toBe(404);
    // A call in progress goes on.
    expect((await call.request('BYE', ok)).status).toBe(200);
  });

  it('refuses a source that the number does not list', async () => {
    const number = '+15550100778';
    const body = { phone_number: number, directions: ['inbound'], service: 'sip', options: { allowed_sources: ['203.0.113.0/24'] } };
    expect((await gateway.api('POST', '/sip/attach', body)).status).toBe(200);
    const answer = await refused(number, offerSdp(), ['X-Forwarded-For: 203.0.113.7']);
    expect([answer.status, answer.header('Warning')]).toEqual([403, expect.stringContaining('SOURCE_NOT_ALLOWED')]);
  });

  it('refuses the call above the limit of a number with 486 and Retry-After, and takes one when another has ended', async () => {
    const number = '+15550100779';
    const body = { phone_number: number, directions: ['inbound'], service: 'sip', options: { max_concurrent_calls: 1 } };
    expect((await gateway.api('POST', '/sip/attach', body)).status).toBe(200);
    const first = new HandMadeCall(peer, number);
    first.invite(offerSdp());
    const ok = await first.final();
    first.ack(ok);
    const busy = await refused(number, offerSdp());
    expect([busy.status, busy.header('Warning'), Number(busy.header('Retry-After')) > 0]).toEqual([
      486,
      expect.stringContaining('NUMBER_CALL_LIMIT'),
      true,
    ]);
    expect((await first.request('BYE', ok)).status).toBe(200);
    await gateway.record(first.callId);
    const second = new HandMadeCall(peer, number);
    second.invite(offerSdp());
    const again = await second.final();
    expect(again.status).toBe(200);
    second.ack(again);
    expect((await second.request('BYE', again)).status).toBe(200);
  });

  it('refuses calls and requests of an organization without the entitlement', async () => {
    expect((await gateway.cli('org', 'disable-sip', gateway.ready.org_id)).code).toBe(0);
    expect((await refused(NUMBER, offerSdp())).header('Warning')).toContain('ORG_NOT_ENTITLED');
    expect((await gateway.api('GET', '/sip')).status).toBe(403);
    expect((await gateway.cli('org', 'enable-sip', gateway.ready.org_id)).code).toBe(0);
    expect((await gateway.api('GET', '/sip')).status).toBe(200);
  });
});

describe('the gateway, when a peer is hostile or broken,', () => {
  it('closes a connection that sends garbage, and serves the others', async () => {
    const bad = await SipPeer.connect(gateway.sipPort, gateway.ca);
    bad.raw('GET / HTTP/1.1\r\nHost: x\r\n\r\n');
    await bad.whenClosed();
    expect((await refused('+15550199999', offerSdp())).status).toBe(404);
  });

  it('[5626 §4.4.1] answers a double CRLF with a single one', async () => {
    const other = await SipPeer.connect(gateway.sipPort, gateway.ca);
    other.raw('\r\n\r\n');
    await other.next('pong', (message) => message.startLine === 'PONG');
    other.close();
  });

  it('refuses each malformed INVITE with a reason and stays up', async () => {
    const other = await SipPeer.connect(gateway.sipPort, gateway.ca);
    other.send([
      'INVITE sip:+15550100100@h SIP/2.0',
      'Via: SIP/2.0/TLS h;branch=z9hG4bKbad1',
      'From: <sip:a@b>;tag=1',
      'To: <sip:c@d>',
      'Call-ID: bad1',
    ]);
    expect((await other.final()).startLine).toBe('SIP/2.0 400 Bad CSeq Header');
    other.send([
      'INVITE mailto:x@y SIP/2.0',
      'Via: SIP/2.0/TLS h;branch=z9hG4bKbad2',
      'From: <sip:a@b>;tag=1',
      'To: <sip:c@d>',
      'Call-ID: bad2',
      'CSeq: 1 INVITE',
    ]);
    expect((await other.final()).status).toBe(416);
    other.close();
  });
});

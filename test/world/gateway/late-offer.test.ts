import { describe, expect, it } from 'vitest';
import { HandMadeCall } from '../../support/hand-made-call.js';
import { CallEnd } from '../../support/media/call-end.js';
import { offerSdp } from '../../support/sdp.js';
import type { SipPeer, WireMessage } from '../../support/sip-peer.js';
import { withWorld } from '../with-world.js';
import type { World } from '../world.js';
import { respond } from '../../support/sip-message.js';

const NUMBER = '+15550100100';

let gateway: World;
let peer: SipPeer;
withWorld((site) => ({ gateway, peer } = site));

/** An INVITE without SDP, and its 200. */
async function offered(): Promise<{ call: HandMadeCall; ok: WireMessage }> {
  const call = new HandMadeCall(peer, NUMBER);
  call.invite('');
  const ok = await call.final();
  expect(ok.status).toBe(200);
  return { call, ok };
}

describe('an INVITE without SDP', () => {
  it('[3261 §13.2.1] [3264 §5] gets an offer in the 200, with both codecs, telephone-event, one key and both directions', async () => {
    const { call, ok } = await offered();
    const lines = ok.body.split('\r\n');
    const port = Number(/^m=audio (\d+) RTP\/SAVP 0 8 101$/.exec(lines[5] ?? '')?.[1]);
    expect(lines.slice(6, 10)).toEqual([
      'a=rtpmap:0 PCMU/8000',
      'a=rtpmap:8 PCMA/8000',
      'a=rtpmap:101 telephone-event/8000',
      'a=fmtp:101 0-15',
    ]);
    expect(lines[10]).toMatch(/^a=crypto:1 AES_CM_128_HMAC_SHA1_80 inline:[A-Za-z0-9+/]{40}$/);
    expect(lines.slice(11)).toEqual([`a=rtcp:${String(port + 1)}`, 'a=ptime:20', 'a=sendrecv', '']);
    call.ack(ok, offerSdp({ payloads: '8 101' }));
    await call.hangUp(ok);
    expect(await gateway.record(call.callId)).toMatchObject({
      reason: 'CALLER_HANGUP',
      codec: 'PCMA',
      crypto_suite: 'AES_CM_128_HMAC_SHA1_80',
    });
  });

  it('may have its answer in an ACK that comes together with the BYE', async () => {
    const { call, ok } = await offered();
    await peer.together(() => {
      call.ack(ok, offerSdp({ payloads: '8 101' }));
      return call.hangUp(ok);
    });
    expect(await gateway.record(call.callId)).toMatchObject({ reason: 'CALLER_HANGUP', codec: 'PCMA' });
  });

  it('[3261 §13.2.2.4] [3264 §4] opens audio both ways with the answer in the ACK', async () => {
    const { call, ok } = await offered();
    const end = (await CallEnd.open()).connect(ok.body);
    call.ack(ok, end.sdp());
    await end.hearsAgent();
    await end.hearsEcho(5_000);
    await call.hangUp(ok);
    await end.close();
    expect(await gateway.record(call.callId)).toMatchObject({
      reason: 'CALLER_HANGUP',
      quality: { relay: { from_carrier: { errors: 0 } } },
    });
  });

  it.each([
    ['without an answer', ''],
    ['with one that is no SDP', 'hello'],
    ['with the audio refused', offerSdp({ port: 0 })],
    [
      'with another tag',
      offerSdp({ payloads: '0', crypto: ['2 AES_CM_128_HMAC_SHA1_80 inline:d0RmdmcmVCspeEc3QGZiNWpVLFJhQX1cfHAwJSoj'] }),
    ],
    ['with plain RTP', offerSdp({ profile: 'RTP/AVP', crypto: [] })],
    ['with a codec that was not offered', offerSdp({ payloads: '18', rtpmap: ['18 G729/8000'] })],
    ['at an IPv6 address', offerSdp({ payloads: '0' }).replaceAll('IN IP4 127.0.0.1', 'IN IP6 ::1')],
  ])('[3264 §4] [3326 §2] gets BYE with BAD_ANSWER, also in the record, after an ACK %s', async (_what, sdp) => {
    const { call, ok } = await offered();
    call.ack(ok, sdp);
    const bye = await call.incoming('BYE');
    expect(bye.header('Reason')).toBe('Q.850;cause=58;text="BAD_ANSWER"');
    respond(peer, bye, '200 OK');
    expect(await gateway.record(call.callId)).toMatchObject({ reason: 'BAD_ANSWER', sip_status: 200 });
  });

  it('[3261 §9.2] gets 487 and leaves nothing when it is cancelled while rtpengine makes the offer', async () => {
    gateway.rtpengine.hold('offer');
    const call = new HandMadeCall(peer, NUMBER);
    call.invite('');
    await gateway.until(() => gateway.rtpengine.heldCount === 1);
    call.cancel();
    expect((await call.final()).status).toBe(487);
    gateway.rtpengine.goOn();
    expect(await gateway.record(call.callId)).toMatchObject({ reason: 'CALLER_CANCELLED', sip_status: 487, answered_at: null });
    expect(gateway.rtpengine.sessions.size).toBe(0);
  });

  it('[5407 §3.1.4] gets 491 to a re-INVITE before the ACK, since our offer is not answered yet', async () => {
    const { call, ok } = await offered();
    expect((await call.request('INVITE', ok, offerSdp())).status).toBe(491);
    call.ack(ok, offerSdp({ payloads: '0 101' }));
    expect((await call.request('UPDATE', ok)).status).toBe(200);
    await call.hangUp(ok);
  });
});

describe('a re-INVITE without SDP', () => {
  it('[3261 §14.2] [6337 §5.2.5] gets the offer of a new call; the same answer in the ACK changes nothing', async () => {
    const end = await CallEnd.open();
    const call = new HandMadeCall(peer, NUMBER);
    const ok = await call.answered(end.sdp());
    end.connect(ok.body);
    const again = await call.request('INVITE', ok);
    expect([again.status, again.body]).toEqual([200, expect.stringMatching(/^m=audio \d+ RTP\/SAVP 0 8 101\r$/m)]);
    call.ack(again, end.sdp());
    await end.hearsEcho(2_000);
    await call.hangUp(ok);
    await end.close();
  });

  it('[3261 §14.2] changes the codec of both sides when its ACK has the other one, as in third-party call control', async () => {
    const first = await CallEnd.open();
    const call = new HandMadeCall(peer, NUMBER);
    const ok = await call.answered(first.sdp());
    first.connect(ok.body);
    await first.hearsAgent();
    const other = await CallEnd.open({ codec: 'PCMA' });
    const again = await call.request('INVITE', ok);
    other.connect(again.body);
    call.ack(again, other.sdp());
    await other.hearsEcho(6_000);
    const refreshed = await call.request('INVITE', ok, other.sdp());
    expect(refreshed.status).toBe(200);
    call.ack(refreshed);
    await call.hangUp(ok);
    expect(await gateway.record(call.callId)).toMatchObject({ reason: 'CALLER_HANGUP' });
    await Promise.all([first.close(), other.close()]);
  });

  it('[3264 §8.3.1] moves audio to the address in its ACK', async () => {
    const [first, second] = [await CallEnd.open(), await CallEnd.open()];
    const call = new HandMadeCall(peer, NUMBER);
    const ok = await call.answered(first.sdp());
    first.connect(ok.body);
    await first.hearsAgent();
    const again = await call.request('INVITE', ok);
    second.connect(again.body);
    call.ack(again, second.sdp());
    await second.hearsEcho(6_000);
    await call.hangUp(ok);
    await Promise.all([first.close(), second.close()]);
  });

  it('[6337 §5.3] takes a call off hold: the offer has both directions', async () => {
    const end = await CallEnd.open();
    const call = new HandMadeCall(peer, NUMBER);
    const ok = await call.answered(end.sdp());
    end.connect(ok.body);
    await end.hearsAgent();
    const held = await call.request('INVITE', ok, end.sdp({ direction: 'sendonly' }));
    call.ack(held);
    expect(held.body).toContain('a=recvonly\r\n');
    const again = await call.request('INVITE', ok);
    expect(again.body).toContain('a=sendrecv\r\n');
    expect(again.body).toMatch(/^o=trunkline \d+ 3 /m);
    call.ack(again, end.sdp());
    await end.hearsEcho(7_000);
    await call.hangUp(ok);
    await end.close();
  });

  it('[3264 §4] leaves the session as it was when the ACK has no answer', async () => {
    const end = await CallEnd.open();
    const call = new HandMadeCall(peer, NUMBER);
    const ok = await call.answered(end.sdp());
    end.connect(ok.body);
    call.ack(await call.request('INVITE', ok));
    await end.hearsEcho(1_500);
    await call.hangUp(ok);
    await end.close();
  });
});

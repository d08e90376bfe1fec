import { describe, expect, it } from 'vitest';
import type { World } from '../world.js';
import { HandMadeCall } from '../../support/hand-made-call.js';
import { CallEnd } from '../../support/media/call-end.js';
import { offerSdp, OTHER_KEY } from '../../support/sdp.js';
import { SipPeer, type WireMessage } from '../../support/sip-peer.js';
import { withWorld } from '../with-world.js';
import { respond } from '../../support/sip-message.js';

const NUMBER = '+15550100100';
const T1_MS = 500;
const POUND: [string, string[]] = ['Signal=#\r\nDuration=100\r\n', ['Content-Type: application/dtmf-relay']];

let gateway: World;
let peer: SipPeer;
withWorld((site) => ({ gateway, peer } = site));

const answersOf = (call: HandMadeCall): WireMessage[] =>
  peer.received.filter(
    (message) => message.status === 200 && message.header('CSeq') === '1 INVITE' && message.header('Call-ID') === call.callId,
  );

describe('a carrier that hangs up', () => {
  it('[3261 §15] before its ACK gets 200 to the BYE, and the call is gone', async () => {
    const call = new HandMadeCall(peer, NUMBER);
    call.invite(offerSdp());
    const ok = await call.final();
    await call.hangUp(ok);
    expect(await gateway.record(call.callId)).toMatchObject({ reason: 'CALLER_HANGUP', sip_status: 200 });
    expect((await call.request('OPTIONS', ok)).status).toBe(481);
  });

  it('[3261 §12.2.2] over another connection than the INVITE ends the call', async () => {
    const first = await SipPeer.connect(gateway.sipPort, gateway.ca);
    const call = new HandMadeCall(first, NUMBER);
    const ok = await call.answered(offerSdp());
    first.close();
    await first.whenClosed();
    await call.over(peer).hangUp(ok);
    expect(await gateway.record(call.callId)).toMatchObject({ reason: 'CALLER_HANGUP' });
  });
});

describe('an answer that is not acknowledged', () => {
  it('[3261 §13.3.1.4] is sent again over TLS too until the ACK comes, each time the same', async () => {
    const call = new HandMadeCall(peer, NUMBER);
    call.invite(offerSdp());
    const ok = await call.final();
    // After T1, 3·T1 and 7·T1.
    await gateway.pass(8 * T1_MS);
    expect(answersOf(call)).toHaveLength(4);
    expect(new Set(answersOf(call).map(({ text }) => text))).toEqual(new Set([ok.text]));
    call.ack(ok);
    await call.hangUp(ok);
  });

  it('[3261 §13.3.1.4] ends the call with BYE after 64·T1, and the record has ACK_TIMEOUT', async () => {
    const call = new HandMadeCall(peer, NUMBER);
    call.invite(offerSdp());
    await call.final();
    const bye = await call.incoming('BYE');
    expect(bye.header('Reason')).toBe('SIP;cause=200;text="ACK timeout"');
    respond(peer, bye, '200 OK');
    expect(await gateway.record(call.callId)).toMatchObject({ reason: 'ACK_TIMEOUT', sip_status: 200 });
  });

  it('[3261 §13.2.2.4] leaves a trace with the CSeq of an ACK that had another one than the INVITE', async () => {
    const call = new HandMadeCall(peer, NUMBER);
    call.invite(offerSdp());
    const ok = await call.final();
    call.ack({ ...ok, header: (name) => (name === 'CSeq' ? '2 INVITE' : ok.header(name)), headers: (name) => ok.headers(name) });
    const bye = await call.incoming('BYE');
    expect(bye.header('Reason')).toBe('SIP;cause=200;text="ACK timeout: an ACK had CSeq 2, not 1"');
    respond(peer, bye, '200 OK');
    const { call_id: id, reason } = await gateway.record(call.callId);
    expect(reason).toBe('ACK_TIMEOUT');
    const { json } = await gateway.api('GET', `/v1/calls/${String(id)}/trace`);
    expect((json['trace'] as { summary: string }[]).map(({ summary }) => summary)).toContain(
      'the SIP server sent BYE: ACK timeout: an ACK had CSeq 2, not 1',
    );
  });
});

describe('an agent that hangs up', () => {
  it.each([
    [200, 0],
    [481, 0],
    [500, 0],
    // The SIP server waits 64·T1 for another BYE, with credentials.
    [407, 65 * T1_MS],
  ])('[3261 §15.1.1] ends the call when the BYE gets %i', async (status, afterMs) => {
    const end = await CallEnd.open();
    const call = new HandMadeCall(peer, NUMBER);
    const ok = await call.answered(end.sdp());
    end.connect(ok.body);
    await call.request('INFO', ok, ...POUND);
    const bye = await call.incoming('BYE');
    expect(bye.header('Reason')).toBe('Q.850;cause=16;text="AGENT_HANGUP"');
    const copied = ['Via', 'From', 'To', 'Call-ID', 'CSeq'].map((name) => `${name}: ${bye.header(name) ?? ''}`);
    const challenge = status === 407 ? ['Proxy-Authenticate: Digest realm="carrier", nonce="n"'] : [];
    peer.send([`SIP/2.0 ${String(status)} Answer`, ...copied, ...challenge]);
    expect(await gateway.record(call.callId)).toMatchObject({ reason: 'AGENT_HANGUP', sip_status: 200 });
    await gateway.pass(afterMs);
    expect((await call.request('OPTIONS', ok)).status).toBe(481);
    const byes = peer.received.filter((message) => message.startLine.startsWith('BYE ') && message.header('Call-ID') === call.callId);
    expect(byes).toHaveLength(1);
    await end.close();
  });
});

describe('a carrier that sends no audio', () => {
  it('gets BYE with MEDIA_TIMEOUT, unless it has the call on hold', async () => {
    const [held, silent] = [new HandMadeCall(peer, NUMBER), new HandMadeCall(peer, NUMBER)];
    const heldOk = await held.answered(offerSdp({ direction: 'sendonly' }));
    await silent.answered(offerSdp());
    const bye = await silent.incoming('BYE');
    expect(bye.header('Reason')).toBe('Q.850;cause=41;text="MEDIA_TIMEOUT"');
    respond(peer, bye, '200 OK');
    expect(await gateway.record(silent.callId)).toMatchObject({ reason: 'MEDIA_TIMEOUT', timings: { first_audio_ms: null } });
    expect((await held.request('OPTIONS', heldOk)).status).toBe(200);
    await held.hangUp(heldOk);
  });

  it('gets a record with the cause: packets arrive and do not decrypt, or none arrive', async () => {
    const end = await CallEnd.open();
    const [mistaken, silent] = [new HandMadeCall(peer, NUMBER), new HandMadeCall(peer, NUMBER)];
    // It sends with another key than it says.
    const ok = await mistaken.answered(end.sdp({ crypto: [`1 AES_CM_128_HMAC_SHA1_80 inline:${OTHER_KEY}`] }));
    await silent.answered(offerSdp());
    end.connect(ok.body);
    await end.peer.speak(new Int16Array(1_600).fill(1_000));
    for (const call of [mistaken, silent]) respond(peer, await call.incoming('BYE'), '200 OK');
    const details = [await gateway.record(mistaken.callId), await gateway.record(silent.callId)].map((record) => record['reason_detail']);
    expect(details).toEqual([
      "10 packets arrived, and none decrypts with the key of the carrier's description: wrong key, MKI or rollover counter",
      null,
    ]);
    await end.close();
  });
});

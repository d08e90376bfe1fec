import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { invite, PEER_SDP, PeerDialog, sdpOf, type SentRequest } from '../../support/peer-dialog.js';
import { SipSite } from '../../support/sip-site.js';
import { eventOf, type SrfDialog } from '../../support/srf.js';
import type { UdpPeer } from '../../support/udp-peer.js';
import type { WireMessage } from '../../support/wire-peer.js';
import { withWorldTime } from '../world-time.js';
import { respond } from '../../support/sip-message.js';

withWorldTime();

let site: SipSite;
let caller: UdpPeer;
let callee: UdpPeer;
let outcome: Promise<{ uas: SrfDialog; uac: SrfDialog }>;

beforeAll(async () => {
  site = await SipSite.start();
  await site.application((srf) => {
    srf.invite((req, res) => {
      const reliable = req.has('Supported') ? { headers: { Supported: '100rel' }, proxyResponseHeaders: ['require'] } : {};
      outcome = srf.createB2BUA(req, res, `sip:callee@127.0.0.1:${String(callee.localPort)}`, {
        localSdpB: req.body,
        proxyRequestHeaders: ['X-Account'],
        ...reliable,
      });
      outcome.catch(() => undefined);
    });
  });
});
beforeEach(async () => {
  [caller, callee] = [await site.udp(), await site.udp()];
});
afterEach(() => site.settled());
afterAll(() => site.close());

const ANSWER = sdpOf(43_000);

interface Call {
  readonly sent: SentRequest;
  readonly invite: WireMessage;
}

/** The caller's INVITE, and the one that the callee got of it. */
async function placed(extra: readonly string[] = []): Promise<Call> {
  const sent = invite(caller, 'callee', { extra });
  return { sent, invite: await callee.request('INVITE') };
}

interface Legs {
  readonly a: PeerDialog;
  readonly b: PeerDialog;
  readonly uas: SrfDialog;
  readonly uac: SrfDialog;
}

async function connected(): Promise<Legs> {
  const { sent, invite: offered } = await placed();
  respond(callee, offered, '180 Ringing', { tag: 'b' });
  await sent.status(180);
  respond(callee, offered, '200 OK', { tag: 'b', body: ANSWER });
  const ok = await sent.status(200);
  expect(ok.body).toBe(ANSWER);
  const a = PeerDialog.caller(caller, ok);
  const b = PeerDialog.callee(callee, offered, 'b');
  await b.request('ACK');
  a.acknowledge();
  const { uas, uac } = await outcome;
  uas.on('destroy', () => void uac.destroy());
  uac.on('destroy', () => void uas.destroy());
  return { a, b, uas, uac };
}

describe('createB2BUA', () => {
  it('passes offer, headers, 180 and answer, and sends BYE to the callee when the caller hangs up', async () => {
    const { a, b, uas } = await connected();
    const gone = eventOf(uas, 'destroy');
    expect((await a.ask('BYE')).status).toBe(200);
    await gone;
    respond(callee, await b.request('BYE'), '200 OK');
  });

  it('[3261 §8.1.1] gives both legs Call-ID, tags and CSeq of their own, and copies the named headers', async () => {
    const { sent, invite: offered } = await placed(['X-Account: 42', 'X-Other: 1']);
    expect(offered.header('Call-ID')).not.toBe(sent.callId);
    expect([offered.header('X-Account'), offered.header('X-Other'), offered.body]).toEqual(['42', undefined, PEER_SDP]);
    expect(offered.header('Max-Forwards')).toBe('70');
    respond(callee, offered, '480 Temporarily Unavailable', { tag: 'b' });
    sent.acknowledgeRefusal(await sent.status(480));
    await callee.request('ACK');
  });

  it('sends BYE to the caller when the callee hangs up', async () => {
    const { a, b, uac } = await connected();
    const gone = eventOf(uac, 'destroy');
    expect((await b.ask('BYE')).status).toBe(200);
    await gone;
    respond(caller, await a.request('BYE'), '200 OK');
  });

  it.each(['486 Busy Here', '603 Decline'])('passes the refusal %s of the callee to the caller', async (status) => {
    const { sent, invite: offered } = await placed();
    respond(callee, offered, status, { tag: 'b' });
    const refusal = await sent.status(Number(status.slice(0, 3)));
    expect(refusal.startLine).toBe(`SIP/2.0 ${status}`);
    sent.acknowledgeRefusal(refusal);
    await expect(outcome).rejects.toMatchObject({ status: refusal.status });
    await callee.request('ACK');
  });

  it('[3261 §9] sends 487 to a caller who cancels, and CANCEL to the callee', async () => {
    const { sent, invite: offered } = await placed();
    respond(callee, offered, '180 Ringing', { tag: 'b' });
    await sent.status(180);
    sent.cancel();
    sent.acknowledgeRefusal(await sent.status(487));
    const cancel = await callee.request('CANCEL');
    respond(callee, cancel, '200 OK', { tag: 'b' });
    respond(callee, offered, '487 Request Terminated', { tag: 'b' });
    await callee.request('ACK');
    await expect(outcome).rejects.toMatchObject({ status: 487 });
  });

  it('sends ACK and BYE to a callee who answers as the caller cancels', async () => {
    const { sent, invite: offered } = await placed();
    respond(callee, offered, '180 Ringing', { tag: 'b' });
    await sent.status(180);
    sent.cancel();
    sent.acknowledgeRefusal(await sent.status(487));
    respond(callee, await callee.request('CANCEL'), '200 OK', { tag: 'b' });
    respond(callee, offered, '200 OK', { tag: 'b', body: ANSWER });
    const b = PeerDialog.callee(callee, offered, 'b');
    await b.request('ACK');
    respond(callee, await b.request('BYE'), '200 OK');
    await expect(outcome).rejects.toBeDefined();
  });

  it('[3262 §3] [3262 §4] passes a reliable 183 with an RSeq and a PRACK of each leg, then the 200', async () => {
    const { sent, invite: offered } = await placed(['Supported: 100rel']);
    respond(callee, offered, '183 Session Progress', { tag: 'b', extra: ['Require: 100rel', 'RSeq: 9'], body: ANSWER });
    const prackB = await callee.request('PRACK');
    expect(prackB.header('RAck')).toBe(`9 ${offered.header('CSeq')!}`);
    respond(callee, prackB, '200 OK');
    const progress = await sent.status(183);
    expect([progress.header('Require'), progress.body]).toEqual(['100rel', ANSWER]);
    expect(Number(progress.header('RSeq'))).toBeGreaterThan(0);
    const a = PeerDialog.caller(caller, progress);
    const answer = await a.ask('PRACK', { extra: [`RAck: ${progress.header('RSeq')!} 1 INVITE`] });
    expect(answer.status).toBe(200);
    respond(callee, offered, '200 OK', { tag: 'b', body: ANSWER });
    await sent.status(200);
    a.acknowledge();
    const { uac } = await outcome;
    const b = PeerDialog.callee(callee, offered, 'b');
    await b.request('ACK');
    const ended = uac.destroy();
    respond(callee, await b.request('BYE'), '200 OK');
    await ended;
    expect((await a.ask('BYE')).status).toBe(200);
  });
});

import { createServer } from 'node:net';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { until } from '../../support/carrier-call.js';
import { PEER_SDP, PeerDialog, sdpOf } from '../../support/peer-dialog.js';
import { SipSite } from '../../support/sip-site.js';
import { eventOf, type SrfApplication, type SrfDialog, type SrfMessage, type SrfRequest } from '../../support/srf.js';
import type { UdpPeer } from '../../support/udp-peer.js';
import { withWorldTime } from '../world-time.js';
import { contactOf, respond } from '../../support/sip-message.js';

withWorldTime();

let site: SipSite;
let srf: SrfApplication;
let peer: UdpPeer;

beforeAll(async () => {
  site = await SipSite.start();
  srf = await site.application();
});
afterEach(() => site.settled());
afterAll(() => site.close());

const SDP = sdpOf(40_000);
const uri = (): string => `sip:bob@127.0.0.1:${String(peer.localPort)}`;
const refused = async (call: Promise<SrfDialog>): Promise<object> => call.catch((error: unknown) => error as object);

async function called(): Promise<{ call: Promise<SrfDialog>; sent: Promise<SrfRequest>; provisional: SrfMessage[] }> {
  peer = await site.udp();
  const provisional: SrfMessage[] = [];
  let onSent: (request: SrfRequest) => void;
  const sent = new Promise<SrfRequest>((resolve) => (onSent = resolve));
  const progress = {
    cbRequest: (_error: unknown, request: SrfRequest) => onSent(request),
    cbProvisional: (response: SrfMessage) => void provisional.push(response),
  };
  const call = srf.createUAC(uri(), { localSdp: SDP, headers: { 'X-Custom': 'abc' }, callingNumber: '+4930' }, progress);
  call.catch(() => undefined);
  return { call, sent, provisional };
}

describe('createUAC', () => {
  it('[3261 §13.2.2.4] gets 180 and 200, sends ACK, and sends BYE when the application hangs up', async () => {
    const { call, provisional } = await called();
    const invite = await peer.request('INVITE');
    expect([invite.startLine, invite.header('X-Custom'), invite.body]).toEqual([`INVITE ${uri()} SIP/2.0`, 'abc', SDP]);
    expect(invite.header('From')).toMatch(/^<sip:\+4930@127\.0\.0\.1:\d+>;tag=\w{13}$/);
    respond(peer, invite, '180 Ringing', { tag: 'b1' });
    respond(peer, invite, '200 OK', { tag: 'b1', body: PEER_SDP });
    const dialog = await call;
    expect(provisional.map(({ status }) => status)).toEqual([180]);
    expect([dialog.remote.sdp, dialog.sip.remoteTag]).toEqual([PEER_SDP, 'b1']);
    const theirs = PeerDialog.callee(peer, invite, 'b1');
    const ack = await theirs.request('ACK');
    expect([ack.startLine, ack.header('CSeq')]).toEqual([
      `ACK sip:peer@127.0.0.1:${String(peer.localPort)};transport=udp SIP/2.0`,
      invite.header('CSeq')!.replace('INVITE', 'ACK'),
    ]);
    const ended = dialog.destroy({ headers: { 'X-Reason': 'enough' } });
    const bye = await theirs.request('BYE');
    expect([bye.header('X-Reason'), bye.header('To')]).toEqual(['enough', `${invite.header('To')!};tag=b1`]);
    respond(peer, bye, '200 OK');
    await ended;
    expect(dialog.connected).toBe(false);
  });

  it('[3261 §15] emits destroy when the peer hangs up', async () => {
    const { call } = await called();
    const invite = await peer.request('INVITE');
    respond(peer, invite, '200 OK', { tag: 'b2', body: PEER_SDP });
    const gone = eventOf(await call, 'destroy');
    const theirs = PeerDialog.callee(peer, invite, 'b2');
    await theirs.request('ACK');
    expect((await theirs.ask('BYE', { extra: ['Reason: Q.850;cause=16'] })).status).toBe(200);
    expect((await gone).get('Reason')).toBe('Q.850;cause=16');
  });

  it('returns the SDP of a 183 before the 200', async () => {
    const { call, provisional } = await called();
    const invite = await peer.request('INVITE');
    respond(peer, invite, '183 Session Progress', { tag: 'b3', body: sdpOf(42_000) });
    await until(() => provisional.length > 0, 'no provisional answer came');
    expect(provisional.map(({ status, body }) => [status, body])).toEqual([[183, sdpOf(42_000)]]);
    respond(peer, invite, '200 OK', { tag: 'b3', body: PEER_SDP });
    const dialog = await call;
    expect(dialog.remote.sdp).toBe(PEER_SDP);
    const theirs = PeerDialog.callee(peer, invite, 'b3');
    await theirs.request('ACK');
    expect((await theirs.ask('BYE')).status).toBe(200);
  });

  it('[3262 §4] sends PRACK for a reliable 183 without the application', async () => {
    const { call } = await called();
    const invite = await peer.request('INVITE');
    respond(peer, invite, '183 Session Progress', { tag: 'b4', extra: ['Require: 100rel', 'RSeq: 7'], body: PEER_SDP });
    const prack = await peer.request('PRACK');
    expect(prack.header('RAck')).toBe(`7 ${invite.header('CSeq')!}`);
    respond(peer, prack, '200 OK');
    respond(peer, invite, '200 OK', { tag: 'b4', body: PEER_SDP });
    await call;
    const theirs = PeerDialog.callee(peer, invite, 'b4');
    expect((await theirs.request('ACK')).header('CSeq')).toBe(invite.header('CSeq')!.replace('INVITE', 'ACK'));
    expect((await theirs.ask('BYE')).status).toBe(200);
  });

  it('[3262 §4] [3261 §12.1.2] sends each fork its own PRACK, and ACK to the one that answers', async () => {
    const { call } = await called();
    const invite = await peer.request('INVITE');
    const early = (tag: string, rseq: number): void =>
      respond(peer, invite, '183 Session Progress', { tag, extra: ['Require: 100rel', `RSeq: ${String(rseq)}`], body: PEER_SDP });
    const pracked = async (): Promise<string[]> => {
      const prack = await peer.request('PRACK');
      respond(peer, prack, '200 OK');
      return [prack.header('To')!.split(';tag=')[1]!, prack.header('RAck')!.split(' ')[0]!];
    };
    early('f1', 3);
    early('f2', 90);
    expect([await pracked(), await pracked()]).toEqual([
      ['f1', '3'],
      ['f2', '90'],
    ]);
    early('f1', 4);
    expect(await pracked()).toEqual(['f1', '4']);
    early('f2', 91);
    expect(await pracked()).toEqual(['f2', '91']);
    respond(peer, invite, '200 OK', { tag: 'f1', body: PEER_SDP });
    await call;
    const theirs = PeerDialog.callee(peer, invite, 'f1');
    expect((await theirs.request('ACK')).header('To')).toContain(';tag=f1');
    expect((await theirs.ask('BYE')).status).toBe(200);
  });

  it('[3261 §13.2.2.4] [3261 §22.3] sends the credentials of the INVITE in the ACK of another fork', async () => {
    peer = await site.udp();
    const headers = { 'Proxy-Authorization': 'Digest username="a", realm="p"', Authorization: 'Digest username="a", realm="u"' };
    const call = srf.createUAC(uri(), { localSdp: SDP, headers });
    const invite = await peer.request('INVITE');
    respond(peer, invite, '200 OK', { tag: 'c1', body: PEER_SDP });
    await call;
    const first = PeerDialog.callee(peer, invite, 'c1');
    await first.request('ACK');
    respond(peer, invite, '200 OK', { tag: 'c2', body: PEER_SDP });
    const fork = PeerDialog.callee(peer, invite, 'c2');
    const ack = await fork.request('ACK');
    expect([ack.headers('Proxy-Authorization'), ack.headers('Authorization')]).toEqual(Object.values(headers).map((value) => [value]));
    respond(peer, await fork.request('BYE'), '200 OK');
    expect((await first.ask('BYE')).status).toBe(200);
  });

  it('[3261 §13.2.1] with noAck sends no offer in the INVITE, and the answer in the ACK', async () => {
    peer = await site.udp();
    const offered = srf.createUAC(uri(), { noAck: true }) as unknown as Promise<{
      sdp: string;
      ack: (sdp: string) => Promise<SrfDialog>;
    }>;
    const invite = await peer.request('INVITE');
    expect(invite.body).toBe('');
    respond(peer, invite, '200 OK', { tag: 'b5', body: PEER_SDP });
    const { sdp, ack } = await offered;
    expect(sdp).toBe(PEER_SDP);
    const dialog = await ack(SDP);
    const theirs = PeerDialog.callee(peer, invite, 'b5');
    const acknowledged = await theirs.request('ACK');
    expect([acknowledged.body, acknowledged.header('Content-Type')]).toEqual([SDP, 'application/sdp']);
    const gone = eventOf(dialog, 'destroy');
    expect((await theirs.ask('BYE')).status).toBe(200);
    await gone;
  });

  it('[3261 §9.1] sends CANCEL after 180', async () => {
    const { call, sent } = await called();
    const invite = await peer.request('INVITE');
    respond(peer, invite, '180 Ringing', { tag: 'b6' });
    (await sent).cancel({ headers: { Reason: 'SIP;cause=200;text="Call completed elsewhere"' } });
    const cancel = await peer.request('CANCEL');
    expect([cancel.header('Via'), cancel.header('Reason')]).toEqual([
      invite.header('Via'),
      'SIP;cause=200;text="Call completed elsewhere"',
    ]);
    respond(peer, cancel, '200 OK', { tag: 'b6' });
    respond(peer, invite, '487 Request Terminated', { tag: 'b6' });
    expect(await refused(call)).toMatchObject({ status: 487, reason: 'Request Terminated' });
    expect((await peer.request('ACK')).header('To')).toContain(';tag=b6');
  });

  it('[3261 §9.1] delays the CANCEL until a response has come', async () => {
    const { call, sent } = await called();
    const invite = await peer.request('INVITE');
    const cancelled = new Promise((resolve) => void sent.then((request) => request.cancel({}, resolve)));
    expect(await cancelled).toBeNull();
    expect(peer.received.map(({ startLine }) => startLine)).toEqual([invite.startLine]);
    respond(peer, invite, '100 Trying');
    const cancel = await peer.request('CANCEL');
    respond(peer, cancel, '200 OK', { tag: 'b7' });
    respond(peer, invite, '487 Request Terminated', { tag: 'b7' });
    expect(await refused(call)).toMatchObject({ status: 487 });
    await peer.request('ACK');
  });

  it.each(['404 Not Found', '486 Busy Here', '603 Decline'])(
    '[3261 §17.1.1.2] rejects with %s and sends ACK to the peer',
    async (status) => {
      const { call } = await called();
      const invite = await peer.request('INVITE');
      respond(peer, invite, status, { tag: 'b8', extra: ['Retry-After: 7'] });
      const error = (await refused(call)) as { status: number; reason: string; res: SrfMessage };
      expect([`${String(error.status)} ${error.reason}`, error.res.get('Retry-After')]).toEqual([status, '7']);
      expect((await peer.request('ACK')).header('Via')).toBe(invite.header('Via'));
    },
  );

  it('[3261 §8.1.3.4] rejects with 302 without followRedirects, and follows it with', async () => {
    const { call } = await called();
    const second = await site.udp();
    const moved = { tag: 'b9', extra: [`Contact: ${contactOf(second)}`] };
    respond(peer, await peer.request('INVITE'), '302 Moved Temporarily', moved);
    expect(await refused(call)).toMatchObject({ status: 302 });
    await peer.request('ACK');
    const following = srf.createUAC(uri(), { localSdp: SDP, followRedirects: true });
    respond(peer, await peer.request('INVITE'), '302 Moved Temporarily', moved);
    const invite = await second.request('INVITE');
    expect(invite.startLine).toBe(`INVITE sip:peer@127.0.0.1:${String(second.localPort)};transport=udp SIP/2.0`);
    respond(second, invite, '200 OK', { tag: 'b10', body: PEER_SDP });
    await following;
    const theirs = PeerDialog.callee(second, invite, 'b10');
    await theirs.request('ACK');
    expect((await theirs.ask('BYE')).status).toBe(200);
  });

  it('[3261 §17.1.1.2] rejects with 408 when nobody answers within 64·T1', async () => {
    const { call } = await called();
    await peer.request('INVITE');
    await site.pass(32_000);
    expect(await refused(call)).toMatchObject({ status: 408, reason: 'Request Timeout' });
  });

  it('[3261 §8.1.3.1] rejects with 503 when the connection is refused', async () => {
    const listener = createServer();
    const port = await new Promise<number>((resolve) =>
      listener.listen(0, '127.0.0.1', () => resolve((listener.address() as { port: number }).port)),
    );
    await new Promise((resolve) => listener.close(resolve));
    const call = srf.createUAC(`sip:bob@127.0.0.1:${String(port)};transport=tcp`, { localSdp: SDP });
    expect(await refused(call)).toMatchObject({ status: 503, reason: 'Service Unavailable' });
  });

  it('sends to the outbound proxy, whatever the Request-URI names', async () => {
    peer = await site.udp();
    const call = srf.createUAC('sip:bob@elsewhere.invalid', { localSdp: SDP, proxy: `sip:127.0.0.1:${String(peer.localPort)}` });
    const invite = await peer.request('INVITE');
    expect(invite.startLine).toBe('INVITE sip:bob@elsewhere.invalid SIP/2.0');
    respond(peer, invite, '486 Busy Here', { tag: 'b11' });
    expect(await refused(call)).toMatchObject({ status: 486 });
    await peer.request('ACK');
  });

  it('rejects a URI without a host, and one of its own server, at once', async () => {
    const own = `sip:bob@127.0.0.1:${String(site.server.portOf('UDP')!)}`;
    expect(await refused(srf.createUAC('sip:bob@', { localSdp: SDP }))).toMatchObject({
      message: 'invalid request-uri: INVITE sip:bob@ SIP/2.0',
    });
    expect(await refused(srf.createUAC(own, { localSdp: SDP }))).toMatchObject({ message: 'can not send request to myself' });
  });
});

import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { invite, PEER_SDP, PeerDialog, SentRequest } from '../../support/peer-dialog.js';
import { SipSite } from '../../support/sip-site.js';
import type { ProxyResult } from '../../support/srf.js';
import type { UdpPeer } from '../../support/udp-peer.js';
import type { WireMessage } from '../../support/wire-peer.js';
import { withWorldTime } from '../world-time.js';
import { contactOf, respond } from '../../support/sip-message.js';

withWorldTime();

let site: SipSite;
let caller: UdpPeer;
let one: UdpPeer;
let two: UdpPeer;
let order: { readonly to: () => UdpPeer[]; readonly options: object };
let result: Promise<ProxyResult>;
let shown: string[] = [];

beforeAll(async () => {
  site = await SipSite.start();
  await site.application((srf) => {
    srf.invite((req) => {
      shown.push(req.method);
      const targets = order.to().map(uriOf);
      result = srf.proxyRequest(req, targets.length === 1 ? targets[0]! : targets, { ...order.options });
      result.catch(() => undefined);
    });
    srf.message((req) => {
      result = srf.proxyRequest(req, uriOf(one));
    });
  });
});
beforeEach(async () => {
  [caller, one, two] = [await site.udp(), await site.udp(), await site.udp()];
  shown = [];
});
afterEach(() => site.settled());
afterAll(() => site.close());

const uriOf = (peer: UdpPeer): string => `sip:target@127.0.0.1:${String(peer.localPort)}`;
const recordRoute = (message: WireMessage): string | undefined => message.header('Record-Route');

function placed(options: object = {}, to: () => UdpPeer[] = () => [one]): SentRequest {
  order = { to, options };
  return invite(caller, 'x');
}

/** Statuses as the application gets them. (drachtio-srf puts the responses of one address together, whatever their ports.) */
const summary = ({ connected, finalStatus, responses }: ProxyResult): object => ({
  connected,
  finalStatus,
  statuses: responses.flatMap(({ msgs }) => msgs.map(({ status }) => status)),
});

async function refusedBy(peer: UdpPeer, status: string, extra: readonly string[] = []): Promise<void> {
  respond(peer, await peer.request('INVITE'), status, { tag: 't', extra });
  await peer.request('ACK');
}

/** ACK and BYE between the ends themselves. */
async function endsDirectly(sent: SentRequest, target: UdpPeer): Promise<void> {
  const ok = await sent.status(200);
  // The caller sends to the Contact of the callee: here by its own socket, as no Record-Route stands between.
  expect(ok.header('Contact')).toBe(contactOf(target));
}

describe('proxyRequest', () => {
  it('[3261 §16] sends the offer to one target, and passes back 180 and 200', async () => {
    const sent = placed();
    const forwarded = await one.request('INVITE');
    expect([forwarded.startLine, forwarded.header('Max-Forwards'), forwarded.body]).toEqual([
      `INVITE ${uriOf(one)} SIP/2.0`,
      '69',
      PEER_SDP,
    ]);
    expect(recordRoute(forwarded)).toBeUndefined();
    respond(one, forwarded, '180 Ringing', { tag: 't' });
    await sent.status(180);
    respond(one, forwarded, '200 OK', { tag: 't', body: PEER_SDP });
    await endsDirectly(sent, one);
    const told = await result;
    expect(summary(told)).toEqual({ connected: true, finalStatus: 200, statuses: [200] });
    expect(told.responses).toMatchObject([{ address: '127.0.0.1', port: one.localPort }]);
  });

  it('[3261 §16.7] tries one target after the other until the second answers', async () => {
    const sent = placed({}, () => [one, two]);
    await refusedBy(one, '486 Busy Here');
    respond(two, await two.request('INVITE'), '200 OK', { tag: 't2', body: PEER_SDP });
    await endsDirectly(sent, two);
    expect(summary(await result)).toEqual({ connected: true, finalStatus: 200, statuses: [486, 200] });
  });

  it('[3261 §16.7] sends the best refusal to the caller when no target answers', async () => {
    const sent = placed({}, () => [one, two]);
    await refusedBy(one, '404 Not Found');
    await refusedBy(two, '503 Service Unavailable');
    sent.acknowledgeRefusal(await sent.status(404));
    expect(summary(await result)).toEqual({ connected: false, finalStatus: 503, statuses: [404, 503] });
  });

  it('[3261 §16.7] rings both targets with simultaneous, connects the one that answers and sends CANCEL to the other', async () => {
    const sent = placed({ forking: 'simultaneous' }, () => [one, two]);
    const [first, second] = [await one.request('INVITE'), await two.request('INVITE')];
    respond(one, first, '180 Ringing', { tag: 't1' });
    await sent.status(180);
    respond(two, second, '200 OK', { tag: 't2', body: PEER_SDP });
    await endsDirectly(sent, two);
    respond(one, await one.request('CANCEL'), '200 OK', { tag: 't1' });
    respond(one, first, '487 Request Terminated', { tag: 't1' });
    await one.request('ACK');
    expect(summary(await result)).toEqual({ connected: false, finalStatus: 487, statuses: [200, 487] });
  });

  it.each([{ remainInDialog: true }, { recordRoute: true }])(
    '[3261 §16.6] [3261 §16.12] with %o adds Record-Route, and later requests pass the server without the application',
    async (options) => {
      const sent = placed(options);
      const forwarded = await one.request('INVITE');
      expect(recordRoute(forwarded)).toMatch(/^<sip:[^>]+;lr[^>]*>$/);
      respond(one, forwarded, '200 OK', { tag: 't', body: PEER_SDP });
      const ok = await sent.status(200);
      const route = [`Route: ${recordRoute(ok)!}`];
      const target = new RegExp('<([^>]*)>').exec(ok.header('Contact')!)![1]!;
      const inDialog = (method: string, cseq: number): void =>
        caller.send([
          `${method} ${target} SIP/2.0`,
          `Via: SIP/2.0/UDP 127.0.0.1:${String(caller.localPort)};branch=z9hG4bK-${method}-${sent.callId}`,
          'Max-Forwards: 70',
          ...['From', 'To', 'Call-ID'].map((name) => `${name}: ${ok.header(name)!}`),
          `CSeq: ${String(cseq)} ${method}`,
          ...route,
        ]);
      inDialog('ACK', 1);
      const ack = await one.request('ACK');
      expect([ack.startLine, ack.header('Route')]).toEqual([`ACK ${target} SIP/2.0`, undefined]);
      inDialog('BYE', 2);
      respond(one, await one.request('BYE'), '200 OK');
      expect((await caller.next('answer to BYE', (message) => message.header('CSeq') === '2 BYE')).status).toBe(200);
      // The callee's way back is the same.
      expect(recordRoute(ok)).toBe(recordRoute(forwarded));
      expect(shown).toEqual(['INVITE']);
      expect((await result).connected).toBe(true);
    },
  );

  it('[3261 §16.5] passes a redirection to the caller without followRedirects, and follows it with', async () => {
    const moved = [`Contact: ${contactOf(two)}`];
    const back = placed();
    await refusedBy(one, '302 Moved Temporarily', moved);
    const refusal = await back.status(302);
    expect(refusal.header('Contact')).toBe(contactOf(two));
    back.acknowledgeRefusal(refusal);
    expect(summary(await result)).toEqual({ connected: false, finalStatus: 302, statuses: [302] });
    const followed = placed({ followRedirects: true });
    await refusedBy(one, '302 Moved Temporarily', moved);
    respond(two, await two.request('INVITE'), '200 OK', { tag: 't2', body: PEER_SDP });
    await endsDirectly(followed, two);
    expect(summary(await result)).toEqual({ connected: true, finalStatus: 200, statuses: [302, 200] });
  });

  it('tries the next target when one sends nothing within provisionalTimeout', async () => {
    const sent = placed({ provisionalTimeout: '1s' }, () => [one, two]);
    await one.request('INVITE');
    await site.pass(1_000);
    respond(two, await two.request('INVITE'), '200 OK', { tag: 't2', body: PEER_SDP });
    await endsDirectly(sent, two);
    // It is asked until 64·T1.
    await site.pass(32_000);
    expect(await result).toMatchObject({ connected: true, finalStatus: 200 });
  });

  it('[3261 §16.8] cancels a target that only rings at finalTimeout, and tries the next', async () => {
    const sent = placed({ finalTimeout: '1500ms' }, () => [one, two]);
    const ringing = await one.request('INVITE');
    respond(one, ringing, '180 Ringing', { tag: 't1' });
    await sent.status(180);
    await site.pass(1_500);
    const cancel = await one.request('CANCEL');
    respond(one, cancel, '200 OK', { tag: 't1' });
    respond(one, ringing, '487 Request Terminated', { tag: 't1' });
    respond(two, await two.request('INVITE'), '486 Busy Here', { tag: 't2' });
    sent.acknowledgeRefusal(await sent.status(486));
    expect(summary(await result)).toEqual({ connected: false, finalStatus: 486, statuses: [487, 486] });
  });

  it('[3261 §16.10] sends CANCEL to the target and 487 to a caller who cancels', async () => {
    const sent = placed();
    const forwarded = await one.request('INVITE');
    respond(one, forwarded, '180 Ringing', { tag: 't' });
    await sent.status(180);
    sent.cancel();
    await caller.next('200 to CANCEL', (message) => message.status === 200 && message.header('CSeq') === '1 CANCEL');
    respond(one, await one.request('CANCEL'), '200 OK', { tag: 't' });
    respond(one, forwarded, '487 Request Terminated', { tag: 't' });
    sent.acknowledgeRefusal(await sent.status(487));
    expect(summary(await result)).toEqual({ connected: false, finalStatus: 487, statuses: [487] });
  });

  it('[3261 §16.11] passes a MESSAGE', async () => {
    const sent = new SentRequest(caller, 'MESSAGE', 'sip:x@127.0.0.1', { body: 'hello', extra: ['Content-Type: text/plain'] });
    const forwarded = await one.request('MESSAGE');
    expect(forwarded.body).toBe('hello');
    respond(one, forwarded, '202 Accepted', { tag: 't' });
    await sent.status(202);
    // drachtio-srf calls nothing but a 200 connected.
    expect(summary(await result)).toEqual({ connected: false, finalStatus: 202, statuses: [202] });
  });

  it('[3261 §16.3] answers Max-Forwards 0 with 483, and returns that to the application', async () => {
    order = { to: () => [one], options: {} };
    const id = `hops-${String(caller.localPort)}`;
    caller.send([
      'INVITE sip:x@127.0.0.1 SIP/2.0',
      `Via: SIP/2.0/UDP 127.0.0.1:${String(caller.localPort)};branch=z9hG4bK-${id}`,
      'Max-Forwards: 0',
      'From: <sip:a@test>;tag=f',
      'To: <sip:x@127.0.0.1>',
      `Call-ID: ${id}`,
      'CSeq: 1 INVITE',
      `Contact: ${contactOf(caller)}`,
    ]);
    const refusal = await caller.status(483);
    await expect(result).rejects.toBe('Rejected with 483 Too Many Hops due to Max-Forwards value of 0');
    expect(PeerDialog.caller(caller, refusal).callId).toBe(id);
    caller.send([
      'ACK sip:x@127.0.0.1 SIP/2.0',
      `Via: SIP/2.0/UDP 127.0.0.1:${String(caller.localPort)};branch=z9hG4bK-${id}`,
      ...['From', 'To', 'Call-ID'].map((name) => `${name}: ${refusal.header(name)!}`),
      'CSeq: 1 ACK',
    ]);
    expect(one.received).toEqual([]);
  });
});

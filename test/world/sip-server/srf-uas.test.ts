import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { invite, PEER_SDP, PeerDialog, sdpOf } from '../../support/peer-dialog.js';
import { SipSite } from '../../support/sip-site.js';
import { eventOf, type SrfDialog, type SrfRequest } from '../../support/srf.js';
import { withWorldTime } from '../world-time.js';

withWorldTime();

let site: SipSite;
let called: Promise<SrfDialog> = Promise.reject(new Error('nobody has called'));
called.catch(() => undefined);
let pracks: string[] = [];

const SDP = sdpOf(40_000);

beforeAll(async () => {
  site = await SipSite.start();
  await site.application((srf) => {
    srf.invite((req, res) => {
      const user = /sip:(\w+)@/.exec(req.uri)?.[1] ?? '';
      const answer = (): Promise<SrfDialog> => srf.createUAS(req, res, { localSdp: SDP, headers: { 'X-Own': 'yes' } });
      if (user === 'direct') called = answer();
      else if (user === 'ringing') {
        res.send(180, { headers: { 'X-Ring': '1' } });
        called = answer();
      } else if (user === 'reliable') {
        called = new Promise((resolve) => {
          const progress = { headers: { Require: '100rel' }, body: SDP };
          res.send(
            183,
            progress,
            () => undefined,
            (prack) => {
              pracks.push(prack.get('RAck'));
              resolve(answer());
            },
          );
        });
      } else cancelled(req);
      called.catch(() => undefined);
    });
  });
});
afterEach(() => {
  pracks = [];
  return site.settled();
});
afterAll(() => site.close());

let whenCancelled: Promise<string>;
function cancelled(req: SrfRequest): void {
  whenCancelled = new Promise((resolve) => req.on('cancel', (message) => resolve(message.has('Reason') ? message.get('Reason') : '')));
}

describe.each([
  ['UDP', () => site.udp()],
  ['TCP', () => site.tcp()],
  ['TLS', () => site.tls()],
])('createUAS over %s', (transport, connect) => {
  it.each(['direct', 'ringing'])('[3261 §13.3.1] sends its answer, gets ACK, and ends: %s', async (user) => {
    const peer = await connect();
    const sent = invite(peer, user);
    if (user === 'ringing') expect((await sent.status(180)).header('X-Ring')).toBe('1');
    const ok = await sent.status(200);
    expect([ok.body, ok.header('X-Own'), ok.header('Content-Type')]).toEqual([SDP, 'yes', 'application/sdp']);
    if (transport !== 'UDP') expect(ok.header('Contact')).toContain(`transport=${transport.toLowerCase()}`);
    const theirs = PeerDialog.caller(peer, ok);
    const ours = await called;
    const acknowledged = eventOf(ours, 'ack');
    theirs.acknowledge();
    await acknowledged;
    expect([ours.remote.sdp, ours.sip.callId]).toEqual([PEER_SDP, sent.callId]);
    const gone = eventOf(ours, 'destroy');
    expect((await theirs.ask('BYE')).status).toBe(200);
    await gone;
  });

  it('[3262 §3] sends a reliable 183 with an answer, gets its PRACK, then sends the 200', async () => {
    const peer = await connect();
    const sent = invite(peer, 'reliable', { extra: ['Supported: 100rel'] });
    const progress = await sent.status(183);
    expect([progress.header('Require'), progress.body]).toEqual(['100rel', SDP]);
    const theirs = PeerDialog.caller(peer, progress);
    const rack = `${progress.header('RSeq') ?? ''} 1 INVITE`;
    expect((await theirs.ask('PRACK', { extra: [`RAck: ${rack}`] })).status).toBe(200);
    await sent.status(200);
    theirs.acknowledge();
    expect(pracks).toEqual([rack]);
    await called;
    expect((await theirs.ask('BYE')).status).toBe(200);
  });

  it('[3261 §9.2] emits CANCEL at the request, and nothing is left to answer', async () => {
    const peer = await connect();
    const sent = invite(peer, 'silent');
    await sent.status(100);
    sent.cancel();
    const refusal = await sent.status(487);
    sent.acknowledgeRefusal(refusal);
    expect(await whenCancelled).toBe('');
  });
});

import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { until } from '../../support/carrier-call.js';
import { answered, PEER_SDP, PeerDialog, sdpOf } from '../../support/peer-dialog.js';
import { SipSite } from '../../support/sip-site.js';
import { eventOf, type SrfApplication, type SrfDialog } from '../../support/srf.js';
import type { WirePeer } from '../../support/wire-peer.js';
import { withWorldTime } from '../world-time.js';
import { respond } from '../../support/sip-message.js';

withWorldTime();

let site: SipSite;
let srf: SrfApplication;
const dialogs = new Map<string, SrfDialog>();

beforeAll(async () => {
  site = await SipSite.start();
  srf = await site.application((application) => {
    application.invite((req, res) => {
      application.createUAS(req, res, { localSdp: SDP }, (_error, dialog) => dialogs.set(dialog.sip.callId, dialog));
    });
  });
});
afterEach(() => site.settled());
afterAll(() => site.close());

const SDP = sdpOf(40_000);

interface Ends {
  readonly ours: SrfDialog;
  readonly theirs: PeerDialog;
  readonly peer: WirePeer;
}

/** The application was called. */
async function asUas(): Promise<Ends> {
  const peer = await site.tls();
  const theirs = await answered(peer, 'x');
  await until(() => dialogs.has(theirs.callId), 'the application has no dialog');
  return { ours: dialogs.get(theirs.callId)!, theirs, peer };
}

/** The application has called. */
async function asUac(): Promise<Ends> {
  const peer = await site.udp();
  const call = srf.createUAC(`sip:bob@127.0.0.1:${String(peer.localPort)}`, { localSdp: SDP });
  const invite = await peer.request('INVITE');
  respond(peer, invite, '200 OK', { tag: 'bob', body: PEER_SDP });
  const theirs = PeerDialog.callee(peer, invite, 'bob');
  await theirs.request('ACK');
  return { ours: await call, theirs, peer };
}

async function hungUp({ ours, theirs }: Ends): Promise<void> {
  const gone = eventOf(ours, 'destroy');
  expect((await theirs.ask('BYE')).status).toBe(200);
  await gone;
}

describe.each([
  ['UAS', asUas],
  ['UAC', asUac],
])('a dialog as %s', (_role, connect) => {
  it('[3261 §14.1] sends the new SDP in a re-INVITE on modify, returns its answer and sends ACK', async () => {
    const ends = await connect();
    const modified = ends.ours.modify(sdpOf(40_002));
    const reInvite = await ends.theirs.request('INVITE');
    expect([reInvite.body, reInvite.header('Contact')]).toEqual([sdpOf(40_002), expect.stringContaining('127.0.0.1')]);
    respond(ends.peer, reInvite, '200 OK', { body: sdpOf(41_002) });
    expect(await modified).toBe(sdpOf(41_002));
    const ack = await ends.theirs.request('ACK');
    expect(ack.header('CSeq')).toBe(reInvite.header('CSeq')!.replace('INVITE', 'ACK'));
    await hungUp(ends);
  });

  it('[3261 §14.1] rejects a modify that the peer refuses, and the call continues', async () => {
    const ends = await connect();
    const modified = ends.ours.modify(sdpOf(40_002)).catch((error: unknown) => error);
    respond(ends.peer, await ends.theirs.request('INVITE'), '488 Not Acceptable Here');
    expect(await modified).toMatchObject({ status: 488 });
    await ends.theirs.request('ACK');
    await hungUp(ends);
  });

  it('[3261 §14.2] emits the peer’s re-INVITE as a modify event, or answers it itself', async () => {
    const ends = await connect();
    expect((await ends.theirs.ask('INVITE', { body: sdpOf(41_004) })).body).toBe(SDP);
    expect(ends.ours.remote.sdp).toBe(sdpOf(41_004));
    ends.ours.on('modify', (_req, res) => res.send(200, { body: sdpOf(40_004) }));
    expect((await ends.theirs.ask('INVITE', { body: sdpOf(41_006) })).body).toBe(sdpOf(40_004));
    await hungUp(ends);
  });

  it('[3264 §8.4] emits hold and unhold of the peer', async () => {
    const ends = await connect();
    const events: string[] = [];
    for (const name of ['hold', 'unhold']) ends.ours.on(name, () => events.push(name));
    const held = await ends.theirs.ask('INVITE', { body: sdpOf(41_000, 'sendonly') });
    expect([held.body, ends.ours.onHold]).toEqual([sdpOf(40_000, 'recvonly'), true]);
    const back = await ends.theirs.ask('INVITE', { body: sdpOf(41_000) });
    expect([back.body, ends.ours.onHold, events]).toEqual([SDP, false, ['hold', 'unhold']]);
    await hungUp(ends);
  });

  it('[3264 §8.4] sends hold and unhold of the application', async () => {
    const ends = await connect();
    for (const [order, direction] of [
      ['hold', 'inactive'],
      ['unhold', 'sendrecv'],
    ] as const) {
      const modified = ends.ours.modify(order);
      const reInvite = await ends.theirs.request('INVITE');
      expect(reInvite.body).toBe(sdpOf(40_000, direction));
      respond(ends.peer, reInvite, '200 OK', { body: sdpOf(41_000, direction) });
      await modified;
      await ends.theirs.request('ACK');
    }
    await hungUp(ends);
  });

  it.each([
    ['INFO', 'application/dtmf-relay', 'Signal=5\r\nDuration=160\r\n'],
    ['MESSAGE', 'text/plain', 'hello'],
    ['OPTIONS', '', ''],
    ['REFER', '', ''],
    ['NOTIFY', 'message/sipfrag', 'SIP/2.0 200 OK\r\n'],
    ['UPDATE', 'application/sdp', PEER_SDP],
  ])('[3261 §12.2.1] sends the application’s %s', async (method, type, body) => {
    const ends = await connect();
    const headers = {
      'X-Own': '1',
      ...(type === '' ? {} : { 'Content-Type': type }),
      ...(method === 'REFER' ? { 'Refer-To': '<sip:c@test>' } : {}),
    };
    const asked = ends.ours.request({ method, headers, ...(body === '' ? {} : { body }) });
    const request = await ends.theirs.request(method);
    expect([request.body, request.header('X-Own'), request.header('Content-Type')]).toEqual([body, '1', type === '' ? undefined : type]);
    if (method === 'REFER') expect(request.header('Refer-To')).toBe('<sip:c@test>');
    respond(ends.peer, request, '202 Accepted');
    expect((await asked).status).toBe(202);
    await hungUp(ends);
  });

  it.each(['INFO', 'MESSAGE', 'OPTIONS', 'REFER', 'NOTIFY', 'UPDATE', 'PUBLISH'])(
    '[3261 §12.2.2] emits the peer’s %s, and answers 200 without a listener',
    async (method) => {
      const ends = await connect();
      expect((await ends.theirs.ask(method)).status).toBe(200);
      ends.ours.on(method.toLowerCase(), (req, res) => res.send(202, { headers: { 'X-Saw': `${req.get('X-Sent')} ${req.body}` } }));
      const answer = await ends.theirs.ask(method, { extra: ['X-Sent: this', 'Content-Type: text/plain'], body: 'that' });
      expect([answer.status, answer.header('X-Saw')]).toEqual([202, 'this that']);
      await hungUp(ends);
    },
  );

  it('[3261 §14.1] answers 491 to the peer’s INVITE that crosses that of the application, which continues', async () => {
    const ends = await connect();
    const modified = ends.ours.modify(sdpOf(40_008));
    const reInvite = await ends.theirs.request('INVITE');
    expect((await ends.theirs.ask('INVITE', { body: sdpOf(41_008) })).status).toBe(491);
    respond(ends.peer, reInvite, '200 OK', { body: sdpOf(41_008) });
    expect(await modified).toBe(sdpOf(41_008));
    await ends.theirs.request('ACK');
    await hungUp(ends);
  });

  it('[3261 §15] sends headers with destroy, and nothing more afterwards', async () => {
    const { ours, theirs, peer } = await connect();
    const ended = ours.destroy({ headers: { Reason: 'Q.850;cause=31', 'X-Why': 'done' } });
    const bye = await theirs.request('BYE');
    expect([bye.header('Reason'), bye.header('X-Why')]).toEqual(['Q.850;cause=31', 'done']);
    respond(peer, bye, '200 OK');
    await ended;
    expect((await theirs.ask('INFO')).status).toBe(481);
    await expect(ours.request({ method: 'INFO' })).rejects.toMatchObject({ code: 'ENODIALOG' });
  });

  it('[3261 §15.1.1] ends also when the peer answers 481 to the BYE', async () => {
    const { ours, theirs, peer } = await connect();
    const ended = ours.destroy();
    respond(peer, await theirs.request('BYE'), '481 Call/Transaction Does Not Exist');
    await ended;
    expect(site.server.counts['calls']).toBe(0);
  });
});

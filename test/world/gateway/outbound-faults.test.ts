import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { CallEnd } from '../../support/media/call-end.js';
import { FROM, OutboundSite } from '../../support/outbound-site.js';
import { TakenCall } from '../../support/outbound-trunk.js';
import { isKept } from '../../support/trunk.js';
import { World } from '../world.js';
import { respond } from '../../support/sip-message.js';

let site: OutboundSite<World>;
let world: World;

beforeEach(async () => {
  site = await OutboundSite.startOn((settings) => World.start(settings));
  world = site.gateway;
});
afterEach(() => site.destroy());

const invites = (): number =>
  site.trunk.peers.flatMap(({ received }) => received).filter(({ startLine }) => startLine.startsWith('INVITE ')).length;

describe('a SIP server that is killed while a number rings', () => {
  it('[3261 §13.2.2.4] still sends ACK and BYE within a second of the answer that comes meanwhile', async () => {
    const { callId, call } = await site.placed();
    call.respond('180 Ringing');
    await world.until(async () => (await site.callOf(callId)).state === 'ringing');
    world.killSipServer();
    await call.peer.whenClosed();
    await world.startSipServer();
    // RFC 3261 §18.2.2: over a connection to what the Via says.
    const answered = new TakenCall(await world.carrier(), call.invite);
    const end = await CallEnd.open();
    await answered.answer(end.sdp());
    respond(answered.peer, await answered.request('BYE'), '200 OK');
    expect(await site.ended(callId)).toMatchObject({ reason: 'DIAL_AMBIGUOUS', answered_at: null });
    expect(invites()).toBe(1);
    answered.peer.close();
    await end.close();
  });
});

describe('a gateway that is killed', () => {
  it('[3261 §9.1] while a number rings dials it no second time: it sends CANCEL and records DIAL_AMBIGUOUS', async () => {
    const { callId, call } = await site.placed();
    call.respond('180 Ringing');
    await world.until(async () => (await site.callOf(callId)).state === 'ringing');
    world.killGateway();
    await world.startGateway();
    await call.cancelled();
    expect(await site.ended(callId)).toMatchObject({ reason: 'DIAL_AMBIGUOUS', direction: 'outbound', answered_at: null });
    expect(invites()).toBe(1);
    expect(world.rtpengine.sessions.size).toBe(0);
  });

  it('[3262 §4] while a number rings reliably also sends CANCEL, and the early dialog is gone', async () => {
    const { callId, call } = await site.placed();
    call.respond('180 Ringing', { extra: ['Require: 100rel', 'RSeq: 1'] });
    respond(call.peer, await call.request('PRACK'), '200 OK');
    await world.until(async () => (await site.callOf(callId)).state === 'ringing');
    world.killGateway();
    await world.startGateway();
    await call.cancelled();
    expect(await site.ended(callId)).toMatchObject({ reason: 'DIAL_AMBIGUOUS', answered_at: null });
    expect(call.peer.received.filter(({ startLine }) => startLine.startsWith('BYE '))).toEqual([]);
    expect((await call.dialog.ask('INFO')).status).toBe(481);
  });

  it('[3261 §13.2.2.4] while the call is answered sends ACK and BYE within a second', async () => {
    const { callId, call } = await site.placed();
    call.respond('180 Ringing');
    await world.until(async () => (await site.callOf(callId)).state === 'ringing');
    world.killGateway();
    await world.startGateway();
    respond(call.peer, await call.request('CANCEL'), '200 OK', { tag: call.tag });
    const end = await CallEnd.open();
    await call.answer(end.sdp());
    respond(call.peer, await call.request('BYE'), '200 OK');
    expect(await site.ended(callId)).toMatchObject({ reason: 'DIAL_AMBIGUOUS' });
    expect(invites()).toBe(1);
    await end.close();
  });

  it('[3261 §13.2.2.4] between its ACK and its write to Redis leaves the call to its successor, which sends BYE', async () => {
    const { callId, call } = await site.placed();
    call.respond('180 Ringing');
    await isKept(world, `${call.callId};from-tag=`);
    world.killRedis();
    const end = await CallEnd.open();
    await call.answer(end.sdp());
    world.killGateway();
    world.startRedis();
    await world.startGateway();
    const bye = await call.request('BYE');
    respond(call.peer, bye, '200 OK');
    expect(bye.header('Reason')).toContain('DIAL_AMBIGUOUS');
    expect(await site.ended(callId)).toMatchObject({ reason: 'DIAL_AMBIGUOUS', resumed: 1 });
    expect(invites()).toBe(1);
    expect(world.rtpengine.sessions.size).toBe(0);
    await end.close();
  });

  it('[4028 §7.4] [3261 §22] in a call that it placed refreshes the session with credentials', async () => {
    const updates = { type: 'outbound', sip_endpoint: site.trunk.endpoint, username: 'acme', password: 'secret' };
    await site.gateway.api('POST', '/sip/update', { phone_number: FROM, updates });
    const { callId, call } = await site.placed();
    const end = (await CallEnd.open()).connect(call.invite.body);
    const timer = 'Session-Expires: 1800;refresher=uac';
    call.respond('200 OK', { body: end.sdp(), extra: ['Allow: INVITE, ACK, BYE, UPDATE', timer] });
    await call.request('ACK');
    await end.hearsAgent();
    await isKept(world, call.callId);
    world.killGateway();
    await world.startGateway();
    respond(call.peer, await call.request('OPTIONS'), '200 OK');
    const update = await call.request('UPDATE');
    expect(update.header('Session-Expires')).toBe('1800;refresher=uac');
    const challenge = 'Proxy-Authenticate: Digest realm="carrier", qop="auth", algorithm=SHA-256, nonce="u1"';
    respond(call.peer, update, '407 Proxy Authentication Required', { tag: call.tag, extra: [challenge] });
    const again = await call.request('UPDATE');
    expect(again.header('Proxy-Authorization')).toMatch(/nonce="u1"/);
    respond(call.peer, again, '200 OK', { extra: [timer] });
    expect((await call.dialog.ask('BYE')).status).toBe(200);
    expect(await site.ended(callId)).toMatchObject({ reason: 'CALLEE_HANGUP', resumed: 1 });
    await end.close();
  });

  it('in a call that it placed resumes it in the same dialog, with audio both ways', async () => {
    const { callId, call } = await site.placed();
    const end = (await CallEnd.open()).connect(call.invite.body);
    await call.answer(end.sdp());
    await end.hearsAgent();
    await isKept(world, call.callId);
    world.killGateway();
    await world.startGateway();
    respond(call.peer, await call.request('OPTIONS'), '200 OK');
    await end.hearsEcho(4_000, 20);
    expect(await site.callOf(callId)).toMatchObject({ state: 'in_progress', direction: 'outbound', resumed: 1 });
    expect((await call.dialog.ask('BYE')).status).toBe(200);
    expect(await site.ended(callId)).toMatchObject({ reason: 'CALLEE_HANGUP', resumed: 1, direction: 'outbound' });
    await end.close();
  });
});

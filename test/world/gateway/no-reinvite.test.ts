import { afterEach, describe, expect, it } from 'vitest';
import { CarrierCall } from '../../support/carrier-call.js';
import { HandMadeCall } from '../../support/hand-made-call.js';
import { CallEnd } from '../../support/media/call-end.js';
import { FROM, OutboundSite } from '../../support/outbound-site.js';
import { offerSdp } from '../../support/sdp.js';
import type { WireMessage } from '../../support/sip-peer.js';
import { recordOf } from '../../support/trunk.js';
import { World } from '../world.js';
import { respond } from '../../support/sip-message.js';

// A carrier, or a trunk, that refuses every re-INVITE, UPDATE and session timer.

let world: World;
const cleanups: (() => unknown)[] = [];

afterEach(async () => {
  for (const clean of cleanups.splice(0).toReversed()) await clean();
});

async function started(): Promise<string> {
  world = await World.start({}, { relays: 2 });
  cleanups.push(() => world.destroy());
  const number = world.ready.phone_number;
  const updates = { type: 'inbound', options: { no_reinvite: true } };
  expect((await world.api('POST', '/sip/update', { phone_number: number, updates })).status).toBe(200);
  return number;
}

const killBusyRelay = (): void => world.rtpengines.find(({ sessions }) => sessions.size > 0)?.kill();
const NOT_SENT = 'INVITE: not sent, as the number has no_reinvite';

describe('a call that comes in on a number with no_reinvite', () => {
  it.each([
    [['Supported: timer', 'Session-Expires: 1800'], undefined],
    [['Session-Expires: 1800'], undefined],
    // Its sender refreshes what it demands.
    [['Require: timer', 'Session-Expires: 1800;refresher=uas'], '1800;refresher=uac'],
  ])('[4028 §9] that asks for a session timer by %j is answered with Session-Expires %s', async (extra, expires) => {
    const number = await started();
    const peer = await world.carrier();
    cleanups.push(() => peer.close());
    const call = new HandMadeCall(peer, number);
    call.invite(offerSdp(), extra);
    const ok = await call.final();
    expect([ok.status, ok.header('Session-Expires'), ok.header('Supported')]).toEqual([200, expires, '100rel']);
    call.ack(ok);
    await call.hangUp(ok);
  });

  it('ends when its media has to move, without a re-INVITE, and its record says why', async () => {
    const call = await CarrierCall.open(world, await started());
    cleanups.push(() => call.close());
    await call.connect();
    killBusyRelay();
    expect((await call.theirs('BYE')).header('Reason')).toContain('MEDIA_MOVE_REFUSED');
    expect(await recordOf(world, call)).toMatchObject({ reason: 'MEDIA_MOVE_REFUSED', signalling_error: NOT_SENT });
  });
});

describe('a call that is placed with no_reinvite', () => {
  let site: OutboundSite<World>;

  /** @param expires of the trunk's 200 */
  async function answered(
    expires: string,
  ): Promise<{ readonly invite: WireMessage; readonly requests: () => readonly string[]; readonly callId: string }> {
    site = await OutboundSite.startOn((settings) => World.start(settings, { relays: 2 }));
    world = site.gateway;
    cleanups.push(() => site.destroy());
    const updates = { type: 'outbound', sip_endpoint: site.trunk.endpoint, no_reinvite: true, username: 'acme', password: 'p4ss' };
    expect((await world.api('POST', '/sip/update', { phone_number: FROM, updates })).status).toBe(200);
    const { callId, call } = await site.placed();
    const end = (await CallEnd.open()).connect(call.invite.body);
    cleanups.push(() => end.close());
    call.respond('200 OK', {
      body: end.sdp(),
      extra: [`Session-Expires: ${expires}`, 'Require: timer', 'Allow: INVITE, ACK, BYE, UPDATE'],
    });
    await call.request('ACK');
    const methods = (): readonly string[] => call.peer.received.flatMap(({ startLine }) => /^([A-Z]+) /.exec(startLine)?.[1] ?? []);
    const bye = call.request('BYE');
    void bye.then((request) => respond(call.peer, request, '200 OK'));
    return { invite: call.invite, requests: methods, callId };
  }

  it('[4028 §7.2] offers no session timer, and does not refresh one that the trunk names anyway', async () => {
    const { invite, requests, callId } = await answered('90;refresher=uac');
    expect([invite.header('Supported'), invite.header('Session-Expires')]).toEqual(['100rel', undefined]);
    await world.pass(80_000);
    await world.api('POST', `/v1/calls/${callId}/stop`, {});
    expect(await site.ended(callId)).toMatchObject({ reason: expect.stringMatching(/API_STOPPED|MEDIA_TIMEOUT/) as unknown });
    expect(requests()).toEqual(['INVITE', 'ACK', 'BYE']);
  });

  it('ends when its media has to move, without a re-INVITE', async () => {
    const { requests, callId } = await answered('1800;refresher=uas');
    killBusyRelay();
    expect(await site.ended(callId)).toMatchObject({ reason: 'MEDIA_MOVE_REFUSED', signalling_error: NOT_SENT });
    expect(requests()).toEqual(['INVITE', 'ACK', 'BYE']);
  });
});

import { describe, expect, it } from 'vitest';
import { HandMadeCall } from '../support/hand-made-call.js';
import { offerSdp } from '../support/sdp.js';
import { startWorld } from './world.js';
import { respond } from '../support/sip-message.js';

const NUMBER = '+15550100100';

describe('a call in progress', () => {
  it('continues in the next gateway after its gateway was killed', async () => {
    const world = await startWorld();
    const call = new HandMadeCall(await world.carrier(), NUMBER);
    const ok = await call.answered(offerSdp());
    await world.pass(1_000);
    world.killGateway();
    await world.pass(500);
    await world.startGateway();
    await call.hangUp(ok);
    expect(await world.record(call.callId)).toMatchObject({ reason: 'CALLER_HANGUP', resumed: 1 });
    expect(world.rtpengine.sessions.size).toBe(0);
  });

  it('continues over a new connection after the SIP server was killed', async () => {
    const world = await startWorld();
    const call = new HandMadeCall(await world.carrier(), NUMBER);
    const ok = await call.answered(offerSdp());
    await world.pass(1_000);
    world.killSipServer();
    await world.pass(500);
    await world.startSipServer();
    await call.over(await world.carrier()).hangUp(ok);
    expect(await world.record(call.callId)).toMatchObject({ reason: 'CALLER_HANGUP' });
  });

  it('moves to the other rtpengine by a re-INVITE after its own was killed', async () => {
    const world = await startWorld({}, { relays: 2 });
    const call = new HandMadeCall(await world.carrier(), NUMBER);
    const ok = await call.answered(offerSdp());
    await world.pass(1_000);
    world.rtpengines.find(({ sessions }) => sessions.size > 0)?.kill();
    const reinvite = await call.incoming('INVITE');
    expect(/^m=audio (\d+)/m.exec(reinvite.body)?.[1]).not.toBe(/^m=audio (\d+)/m.exec(ok.body)?.[1]);
    respond(await world.carrier(), reinvite, '200 OK', { body: offerSdp() });
    await call.hangUp(ok);
    expect(await world.record(call.callId)).toMatchObject({ reason: 'CALLER_HANGUP' });
  });

  it('continues while Redis is away, and leaves its record when Redis is back', async () => {
    const world = await startWorld();
    const call = new HandMadeCall(await world.carrier(), NUMBER);
    const ok = await call.answered(offerSdp());
    await world.pass(1_000);
    world.killRedis();
    await world.pass(5_000);
    await call.hangUp(ok);
    world.startRedis();
    expect(await world.record(call.callId)).toMatchObject({ reason: 'CALLER_HANGUP' });
  });
});

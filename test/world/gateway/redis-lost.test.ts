import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { CarrierCall } from '../../support/carrier-call.js';
import { attach, isKept, recordOf } from '../../support/trunk.js';
import { World } from '../world.js';

const NUMBER = '+15550100110';
/** Attached, but not called while Redis was there. */
const UNKNOWN = '+15550100111';

let world: World;
let calls: CarrierCall[];

beforeEach(async () => {
  world = await World.start();
  await attach(world, NUMBER, { max_concurrent_calls: 2 });
  await attach(world, UNKNOWN);
  calls = [];
});

afterEach(async () => {
  for (const call of calls) call.close();
  await world.destroy();
});

async function opened(number = NUMBER): Promise<CarrierCall> {
  const call = await CarrierCall.open(world, number);
  calls.push(call);
  return call;
}

async function talking(): Promise<CarrierCall> {
  const call = await opened();
  await call.connect();
  return call;
}

async function warningOf(number: string): Promise<string | undefined> {
  const call = await opened(number);
  call.signalling.invite(call.audio.sdp());
  return (await call.signalling.final()).header('Warning');
}

describe('the gateway, when Redis dies,', () => {
  it('continues calls, answers known numbers within their limits, refuses unknown ones, and writes the records later', async () => {
    const first = await talking();
    world.killRedis();
    await world.until(() => world.events('redis.connection.lost').length > 0);
    expect((await first.request('INVITE', first.audio.sdp())).status).toBe(200);
    const second = await talking();
    expect(await warningOf(NUMBER)).toContain('NUMBER_CALL_LIMIT');
    expect(await warningOf(UNKNOWN)).toContain('STORE_UNAVAILABLE');
    expect((await first.request('BYE')).status).toBe(200);
    expect((await second.request('BYE')).status).toBe(200);
    await world.until(() => world.rtpengine.sessions.size === 0);
    world.startRedis();
    expect(await recordOf(world, first)).toMatchObject({ reason: 'CALLER_HANGUP', stale_route: false });
    expect(await recordOf(world, second)).toMatchObject({ reason: 'CALLER_HANGUP', stale_route: true });
  });

  it('and itself too, continues the call once both are back in time', async () => {
    const call = await talking();
    await isKept(world, call.signalling.callId);
    world.killRedis();
    world.killGateway();
    const starting = world.startGateway();
    world.startRedis();
    await starting;
    await call.heardAfter(performance.now());
    expect((await call.request('BYE')).status).toBe(200);
    expect(await recordOf(world, call)).toMatchObject({ reason: 'CALLER_HANGUP', resumed: 1 });
    await world.until(() => world.rtpengine.sessions.size === 0);
  });
});

import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { CarrierCall } from '../../support/carrier-call.js';
import { ControlProxy } from '../../support/control-proxy.js';
import { recordOf } from '../../support/trunk.js';
import { CONTROL_PORT, World } from '../world.js';

const NUMBER = '+15550100100';

let world: World;
let proxy: ControlProxy;
let current: CarrierCall | undefined;

beforeEach(async () => {
  proxy = await ControlProxy.open(CONTROL_PORT);
  const settings = {
    TRUNKLINE_DRACHTIO_URL: `127.0.0.1:${String(proxy.port)}`,
    // Before the SIP server ends the calls of a gateway that stays away.
    TRUNKLINE_MEDIA_TIMEOUT_MS: '4000',
  };
  world = await World.start(settings, { relays: 2 });
  current = undefined;
});

afterEach(async () => {
  current?.close();
  proxy.close();
  await world.destroy();
});

const nothingLeft = (): Promise<void> => world.until(() => world.rtpengines.every(({ sessions }) => sessions.size === 0));

async function talking(): Promise<CarrierCall> {
  current = await CarrierCall.open(world, NUMBER);
  await current.connect();
  return current;
}

/** Resolves when the gateway knows that the connection is gone. */
async function cut(): Promise<void> {
  proxy.cut();
  await world.until(() => world.events('gateway.sip_server.lost').length === 1);
}

/** Resolves when it is back. */
async function mend(): Promise<void> {
  proxy.mend();
  await world.until(() => world.events('gateway.sip_server.connected').length === 2);
}

describe('a broken connection between gateway and SIP server', () => {
  it('leaves no gap in a call, whose requests all work again when the connection is back', async () => {
    const call = await talking();
    const cutMs = performance.now();
    await cut();
    await mend();
    // The gateway asks the carrier whether the call is still there.
    await call.theirs('OPTIONS');
    expect((await call.request('INVITE', call.audio.sdp({ direction: 'sendonly' }))).body).toContain('a=recvonly');
    expect((await call.request('UPDATE', call.audio.sdp())).body).toContain('a=sendrecv');
    expect((await call.request('OPTIONS')).status).toBe(200);
    expect([call.audio.ssrcs.length, call.audio.lost]).toEqual([1, 0]);
    expect(call.audio.isHeardAfter(cutMs)).toBe(true);
    expect((await call.request('BYE')).status).toBe(200);
    expect(await recordOf(world, call)).toMatchObject({ reason: 'CALLER_HANGUP', resumed: 0 });
    await nothingLeft();
  });

  it('does not hide that the caller ended a call during it', async () => {
    const call = await talking();
    await cut();
    expect((await call.request('BYE')).status).toBe(200);
    await mend();
    expect(await recordOf(world, call)).toMatchObject({ reason: 'INTERNAL_ERROR' });
    await nothingLeft();
  });

  it('delays the BYE of a call that the gateway ended until the connection is back', async () => {
    const call = await talking();
    await cut();
    call.audio.mute();
    await world.until(() => world.events('call.ended').length === 1);
    expect(call.has('BYE')).toBe(false);
    await mend();
    expect((await call.theirs('BYE')).header('Reason')).toContain('MEDIA_TIMEOUT');
    await nothingLeft();
  });

  it('delays the move of a call whose rtpengine died until the connection is back', async () => {
    const call = await talking();
    await cut();
    world.rtpengines.find(({ sessions }) => sessions.size > 0)?.kill();
    await world.until(() => world.events('rtpengine.node.lost').length === 1);
    const mendedMs = performance.now();
    await mend();
    await call.theirs('INVITE');
    await call.heardAfter(mendedMs);
    await call.echoedAfter(performance.now());
    expect((await call.request('BYE')).status).toBe(200);
    await nothingLeft();
  });
});

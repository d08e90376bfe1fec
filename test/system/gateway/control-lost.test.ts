import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { CarrierCall } from '../../support/carrier-call.js';
import { ControlProxy } from '../../support/control-proxy.js';
import { GatewaySite, type Service } from '../../support/gateway-site.js';
import { nothingLeft } from '../../support/trunk.js';

const NUMBER = '+15550100100';
const CONNECTED = '"msg":"gateway.sip_server.connected"';

let site: GatewaySite;
let proxy: ControlProxy;
let gateway: Service;
let current: CarrierCall | undefined;

beforeEach(async () => {
  site = await GatewaySite.start({ relays: 2, settings: { TRUNKLINE_MEDIA_TIMEOUT_MS: '4000' } });
  await site.attach(NUMBER);
  proxy = await ControlProxy.open(site.controlPort);
  gateway = await site.gateway('a', proxy.port);
  current = undefined;
});

afterEach(async () => {
  current?.close();
  await site.destroy();
  proxy.close();
});

const nothingLeftAnywhere = (): Promise<unknown> => Promise.all(site.relays.map(({ port }) => nothingLeft(port)));

async function talking(): Promise<CarrierCall> {
  current = await CarrierCall.open(site, NUMBER);
  await current.connect();
  return current;
}

/** Resolves when the gateway knows that the connection is gone. */
async function cut(): Promise<void> {
  proxy.cut();
  await gateway.logged('"msg":"gateway.sip_server.lost"');
}

/** Resolves when it is back. */
async function mend(): Promise<number> {
  const atMs = performance.now();
  const before = gateway.times(CONNECTED);
  proxy.mend();
  await expect.poll(() => gateway.times(CONNECTED)).toBe(before + 1);
  return performance.now() - atMs;
}

describe('the connection between gateway and SIP server breaks, and both live', () => {
  it('the call goes on without a gap, and everything in it works when the connection is back', async () => {
    const call = await talking();
    const cutMs = performance.now();
    await cut();
    const backMs = await mend();
    // The gateway asks the carrier whether the call is still there.
    await call.theirs('OPTIONS');
    console.log(`control connection back after ${String(Math.round(backMs))} ms`);
    expect((await call.request('INVITE', call.audio.sdp({ direction: 'sendonly' }))).body).toContain('a=recvonly');
    expect((await call.request('UPDATE', call.audio.sdp())).body).toContain('a=sendrecv');
    expect((await call.request('OPTIONS')).status).toBe(200);
    expect([call.audio.ssrcs.length, call.audio.lost]).toEqual([1, 0]);
    expect(call.audio.isHeardAfter(cutMs)).toBe(true);
    expect((await call.request('BYE')).status).toBe(200);
    expect(await site.recordOf(call)).toMatchObject({ reason: 'CALLER_HANGUP', resumed: 0 });
    await nothingLeftAnywhere();
  });

  it('a call that its caller ended meanwhile is noticed', async () => {
    const call = await talking();
    await cut();
    expect((await call.request('BYE')).status).toBe(200);
    await mend();
    expect(await site.recordOf(call)).toMatchObject({ reason: 'INTERNAL_ERROR' });
    await nothingLeftAnywhere();
  });

  it('a call that the gateway ended meanwhile gets its BYE when the connection is back', async () => {
    const call = await talking();
    await cut();
    call.audio.mute();
    await gateway.logged('"msg":"call.ended"');
    expect(call.has('BYE')).toBe(false);
    await mend();
    expect((await call.theirs('BYE')).header('Reason')).toContain('MEDIA_TIMEOUT');
    await nothingLeftAnywhere();
  });

  it('a call whose rtpengine died meanwhile moves when the connection is back', async () => {
    const call = await talking();
    const [first, second] = site.relays;
    await cut();
    await first?.kill();
    await gateway.logged('"msg":"rtpengine.node.lost"');
    const mendedMs = performance.now();
    await mend();
    await call.theirs('INVITE');
    await call.heardAfter(mendedMs);
    await call.echoedAfter(performance.now());
    expect((await call.request('BYE')).status).toBe(200);
    await nothingLeft(second?.port ?? 0);
  });
});

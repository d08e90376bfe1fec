import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { gatewayCallsKey } from '../../../src/gateway/store/redis/keys.js';
import { CarrierCall, until } from '../../support/carrier-call.js';
import { GatewaySite, type Service } from '../../support/gateway-site.js';
import { nothingLeft } from '../../support/trunk.js';

const NUMBER = '+15550100100';
/** Attached, but not called while Redis was there. */
const UNKNOWN = '+15550100101';

let site: GatewaySite;
let gateway: Service;
let calls: CarrierCall[];

beforeEach(async () => {
  site = await GatewaySite.start();
  await site.attach(NUMBER, { max_concurrent_calls: 2 });
  await site.attach(UNKNOWN);
  gateway = await site.gateway('a');
  calls = [];
});

afterEach(async () => {
  for (const call of calls) call.close();
  await site.destroy();
});

async function opened(number = NUMBER): Promise<CarrierCall> {
  const call = await CarrierCall.open(site, number);
  calls.push(call);
  return call;
}

async function talking(): Promise<CarrierCall> {
  const call = await opened();
  await call.connect();
  return call;
}

/** Redis has what is kept of a call: it is written a moment after the 200. */
function isKept({ signalling }: CarrierCall): Promise<void> {
  return until(async () => (await site.redis.command(`HGETALL ${gatewayCallsKey('a')}`)).includes(signalling.callId), 'not kept');
}

async function warningOf(number: string): Promise<string | undefined> {
  const call = await opened(number);
  call.signalling.invite(call.audio.sdp());
  return (await call.signalling.final()).header('Warning');
}

describe('Redis dies', () => {
  it('calls go on, known numbers are answered within their limits, unknown ones refused, and records come later', async () => {
    const first = await talking();
    await site.redis.stopServer();
    await gateway.logged('redis.connection.lost');
    expect((await first.request('INVITE', first.audio.sdp())).status).toBe(200);
    const second = await talking();
    expect(await warningOf(NUMBER)).toContain('NUMBER_CALL_LIMIT');
    expect(await warningOf(UNKNOWN)).toContain('STORE_UNAVAILABLE');
    expect((await first.request('BYE')).status).toBe(200);
    expect((await second.request('BYE')).status).toBe(200);
    await nothingLeft(site.relays[0]?.port ?? 0);
    await site.redis.startServer();
    expect(await site.recordOf(first)).toMatchObject({ reason: 'CALLER_HANGUP', stale_route: false });
    expect(await site.recordOf(second)).toMatchObject({ reason: 'CALLER_HANGUP', stale_route: true });
  });

  it('and the gateway too: the call goes on when both are back in time', async () => {
    const call = await talking();
    await isKept(call);
    await site.redis.stopServer();
    const killedMs = performance.now();
    await gateway.end('SIGKILL');
    const starting = site.gateway('a');
    await site.redis.startServer();
    await starting;
    await call.heardAfter(killedMs + 200);
    console.log(`gateway killed while Redis was away: ${String(call.audio.longestGapSince(killedMs))} ms of silence`);
    expect((await call.request('BYE')).status).toBe(200);
    expect(await site.recordOf(call)).toMatchObject({ reason: 'CALLER_HANGUP', resumed: 1 });
    await nothingLeft(site.relays[0]?.port ?? 0);
  });
});

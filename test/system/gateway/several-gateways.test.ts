import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { CarrierCall, until } from '../../support/carrier-call.js';
import { numberLeasesKey } from '../../../src/gateway/store/redis/keys.js';
import type { E164 } from '../../../src/gateway/model/e164.js';
import { leaseEnd } from '../../support/redis.js';
import { GatewaySite, type Service } from '../../support/gateway-site.js';
import { nothingLeft, sessionsOf } from '../../support/trunk.js';

const NUMBERS = ['+15550100100', '+15550100101'] as const;

let site: GatewaySite;
let first: Service;
let calls: CarrierCall[];

beforeEach(async () => {
  // No bot is there: the test line stands in, and each call has an agent_error.
  const agents = {
    TRUNKLINE_AGENTS_URL: 'ws://127.0.0.1:1/',
    TRUNKLINE_AGENTS_ALLOW_PRIVATE: 'true',
    TRUNKLINE_AGENTS_ON_FAILURE: 'test-line',
  };
  site = await GatewaySite.start({ settings: { TRUNKLINE_DRACHTIO_GRACE_MS: '500', ...agents } });
  for (const number of NUMBERS) await site.attach(number, { max_concurrent_calls: 1 });
  first = await site.gateway('a');
  await site.gateway('b');
  calls = [];
});

afterEach(async () => {
  for (const call of calls) call.close();
  await site.destroy();
});

async function opened(number: string): Promise<CarrierCall> {
  const call = await CarrierCall.open(site, number);
  calls.push(call);
  return call;
}

async function talking(number: string): Promise<CarrierCall> {
  const call = await opened(number);
  await call.connect();
  return call;
}

async function statusOf(number: string): Promise<number> {
  const call = await opened(number);
  call.signalling.invite(call.audio.sdp());
  call.answer = await call.signalling.final();
  if (call.answer.status === 200) {
    call.signalling.ack(call.answer);
    await call.request('BYE');
    // With the record its place is free.
    await site.recordOf(call);
  }
  call.close();
  calls.pop();
  return call.answer.status;
}

const relayPort = (): number => site.relays[0]?.port ?? 0;

describe('two gateways on one SIP server, one Redis and one rtpengine', () => {
  it('count calls together, whichever of them takes the next one', async () => {
    const call = await talking(NUMBERS[0]);
    // Applications take turns: both are asked.
    expect([await statusOf(NUMBERS[0]), await statusOf(NUMBERS[0])]).toEqual([486, 486]);
    expect((await call.request('BYE')).status).toBe(200);
    await site.recordOf(call);
    expect([await statusOf(NUMBERS[0]), await statusOf(NUMBERS[0])]).toEqual([200, 200]);
    await nothingLeft(relayPort());
  });

  it('list, read and stop each other’s calls', async () => {
    const pair = [await talking(NUMBERS[0]), await talking(NUMBERS[1])] as const;
    for (const [index, instance] of ['a', 'b'].entries()) {
      const listed = async (): Promise<Record<string, unknown>[]> =>
        (await site.api(instance, 'GET', '/v1/calls?state=live')).json['calls'] as Record<string, unknown>[];
      await until(async () => (await listed()).every(({ state }) => state === 'in_progress'), 'not answered');
      expect((await listed()).map(({ sip_call_id: id }) => id)).toEqual(
        pair
          .slice(index)
          .map(({ signalling }) => signalling.callId)
          .reverse(),
      );
      const other = pair[index];
      const call = (await listed()).find(({ sip_call_id: id }) => id === other?.signalling.callId);
      const path = `/v1/calls/${String(call?.['call_id'])}`;
      expect((await site.api(instance, 'GET', path)).json['call']).toMatchObject({
        state: 'in_progress',
        codec: 'PCMU',
        reason: null,
        agent_error: expect.stringContaining('ECONNREFUSED') as string,
      });
      // One of the two is asked for a call of the other.
      expect((await site.api(instance, 'POST', `${path}/stop`)).status).toBe(200);
      await until(() => other?.has('BYE') === true, 'no BYE');
      expect(await site.recordOf(other!)).toMatchObject({ reason: 'API_STOPPED' });
      expect((await site.api(instance, 'POST', `${path}/stop`)).json).toMatchObject({ message: 'The call has ended' });
    }
    await nothingLeft(relayPort());
  });

  it('one is killed: the other’s calls go on, its own places are free after a lease, and what it left is freed when it is back', async () => {
    const pair = [await talking(NUMBERS[0]), await talking(NUMBERS[1])] as const;
    const all = (await site.api('b', 'GET', '/v1/calls?state=live')).json['calls'] as { call_id: string; sip_call_id: string }[];
    const killedMs = performance.now();
    await first.end('SIGKILL');
    const deadMs = Date.now();
    await until(() => pair.some((call) => call.has('BYE')), 'no BYE');
    const [lost, kept] = pair[0].has('BYE') ? pair : [pair[1], pair[0]];
    const number = lost === pair[0] ? NUMBERS[0] : NUMBERS[1];
    const { call_id: lostId } = all.find(({ sip_call_id: id }) => id === lost.signalling.callId)!;
    // Nobody renews its lease of 30 s.
    expect(await leaseEnd(site.redis, numberLeasesKey(number as E164), lostId)).toBeLessThanOrEqual(deadMs + 30_000);
    await kept.echoedAfter(performance.now());
    expect([kept.has('BYE'), await sessionsOf(relayPort())]).toEqual([false, 2]);

    await until(async () => (await statusOf(number)) === 200, 'the place is taken', { everyMs: 1_000 });
    console.log(`places of a killed gateway: free after ${String(Math.round(performance.now() - killedMs))} ms`);

    await site.gateway('a');
    expect(await site.recordOf(lost)).toMatchObject({ reason: 'GATEWAY_RESTARTED' });
    await until(async () => (await sessionsOf(relayPort())) === 1, 'its session is left');
    expect(kept.audio.ssrcs).toHaveLength(1);
    expect((await kept.request('BYE')).status).toBe(200);
    expect(await site.recordOf(kept)).toMatchObject({ reason: 'CALLER_HANGUP', resumed: 0 });
    await nothingLeft(relayPort());
  });
});

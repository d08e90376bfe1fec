import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { CarrierCall, until } from '../../support/carrier-call.js';
import { numberLeasesKey } from '../../../src/gateway/store/redis/keys.js';
import type { E164 } from '../../../src/gateway/model/e164.js';
import { leaseEnd, send } from '../../support/redis.js';
import { attach } from '../../support/trunk.js';
import { World } from '../world.js';

const NUMBERS = ['+15550100110', '+15550100111'] as const;
const OTHER = 'other';

let world: World;
let calls: CarrierCall[];

beforeEach(async () => {
  // No bot is there: the test line stands in, and each call has an agent_error.
  const agents = {
    TRUNKLINE_AGENTS_URL: 'ws://127.0.0.1:1/',
    TRUNKLINE_AGENTS_ALLOW_PRIVATE: 'true',
    TRUNKLINE_AGENTS_ON_FAILURE: 'test-line',
  };
  world = await World.start(agents, { hasGateway: false });
  await world.startGateway();
  await world.startGateway(OTHER);
  for (const number of NUMBERS) await attach(world, number, { max_concurrent_calls: 1 });
  calls = [];
});

afterEach(async () => {
  for (const call of calls) call.close();
  await world.destroy();
});

async function opened(number: string): Promise<CarrierCall> {
  const call = await CarrierCall.open(world, number);
  calls.push(call);
  return call;
}

async function talking(number: string): Promise<CarrierCall> {
  const call = await opened(number);
  await call.connect();
  return call;
}

/** By the gateway that lives through all. */
async function recordOf({ signalling }: CarrierCall): Promise<Record<string, unknown>> {
  for (;;) {
    const { json } = await world.api('GET', '/v1/calls?limit=100', undefined, { gateway: OTHER });
    const record = (json['calls'] as Record<string, unknown>[]).find(({ sip_call_id: id }) => id === signalling.callId);
    if (record !== undefined) return record;
    await world.pass(20);
  }
}

async function statusOf(number: string): Promise<number> {
  const call = await opened(number);
  call.signalling.invite(call.audio.sdp());
  call.answer = await call.signalling.final();
  if (call.answer.status === 200) {
    call.signalling.ack(call.answer);
    await call.request('BYE');
    // With the record its place is free.
    await recordOf(call);
  }
  call.close();
  calls.pop();
  return call.answer.status;
}

const sessions = (): number => world.rtpengine.sessions.size;
const nothingLeft = (): Promise<void> => world.until(() => sessions() === 0);

describe('two gateways on one SIP server, one Redis and one rtpengine', () => {
  it('count calls together, whichever of them takes the next one', async () => {
    const call = await talking(NUMBERS[0]);
    // Applications take turns: both are asked.
    expect([await statusOf(NUMBERS[0]), await statusOf(NUMBERS[0])]).toEqual([486, 486]);
    expect((await call.request('BYE')).status).toBe(200);
    await recordOf(call);
    expect([await statusOf(NUMBERS[0]), await statusOf(NUMBERS[0])]).toEqual([200, 200]);
    await nothingLeft();
  });

  it('list, read and stop each other’s calls', async () => {
    const pair = [await talking(NUMBERS[0]), await talking(NUMBERS[1])] as const;
    for (const [index, gateway] of ['gateway', OTHER].entries()) {
      const listed = async (): Promise<Record<string, unknown>[]> =>
        (await world.api('GET', '/v1/calls?state=live', undefined, { gateway })).json['calls'] as Record<string, unknown>[];
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
      expect((await world.api('GET', path, undefined, { gateway })).json['call']).toMatchObject({
        state: 'in_progress',
        codec: 'PCMU',
        reason: null,
        agent_error: expect.stringContaining('ECONNREFUSED') as string,
      });
      // One of the two is asked for a call of the other.
      expect((await world.api('POST', `${path}/stop`, {}, { gateway })).status).toBe(200);
      await until(() => other?.has('BYE') === true, 'no BYE');
      expect(await recordOf(other!)).toMatchObject({ reason: 'API_STOPPED' });
      expect((await world.api('POST', `${path}/stop`, {}, { gateway })).json).toMatchObject({ message: 'The call has ended' });
    }
    await nothingLeft();
  });

  it('survive the end of one: the other’s calls continue, its slots are free after a lease, and the rest when it is back', async () => {
    const pair = [await talking(NUMBERS[0]), await talking(NUMBERS[1])] as const;
    const all = (await world.api('GET', '/v1/calls?state=live', undefined, { gateway: OTHER })).json['calls'] as {
      call_id: string;
      sip_call_id: string;
    }[];
    world.killGateway();
    const deadMs = Date.now();
    await until(() => pair.some((call) => call.has('BYE')), 'no BYE');
    const [lost, kept] = pair[0].has('BYE') ? pair : [pair[1], pair[0]];
    const number = lost === pair[0] ? NUMBERS[0] : NUMBERS[1];
    const { call_id: lostId } = all.find(({ sip_call_id: id }) => id === lost.signalling.callId)!;
    const redis = { command: (text: string) => send(Number(world.environment['TRUNKLINE_REDIS_PORT']), text) };
    // Nobody renews its lease of 30 s.
    expect(await leaseEnd(redis, numberLeasesKey(number as E164), lostId)).toBeLessThanOrEqual(deadMs + 30_000);
    await kept.echoedAfter(performance.now());
    expect([kept.has('BYE'), sessions()]).toEqual([false, 2]);

    await until(async () => (await statusOf(number)) === 200, 'the place is taken', { everyMs: 1_000 });

    await world.startGateway();
    expect(await recordOf(lost)).toMatchObject({ reason: 'GATEWAY_RESTARTED' });
    await world.until(() => sessions() === 1);
    expect(kept.audio.ssrcs).toHaveLength(1);
    expect((await kept.request('BYE')).status).toBe(200);
    expect(await recordOf(kept)).toMatchObject({ reason: 'CALLER_HANGUP', resumed: 0 });
    await nothingLeft();
  });
});

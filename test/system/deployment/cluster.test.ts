import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { CallRecord } from '../../../src/gateway/model/call-record.js';
import { parseE164, type E164 } from '../../../src/gateway/model/e164.js';
import { DEFAULT_INBOUND_OPTIONS } from '../../../src/gateway/model/records.js';
import { silentLog } from '../../../src/lib/log.js';
import { systemClock } from '../../../src/lib/system-clock.js';
import { openRedisStores, type RedisStores } from '../../../src/gateway/store/redis/redis-stores.js';
import { CarrierCall, until } from '../../support/carrier-call.js';
import { ComposeSite } from '../../support/compose-site.js';
import { sessionsOf } from '../../support/trunk.js';
import { HANG_GUARD_MS } from '../../support/hang-guard.js';

// docker/compose.cluster.yaml with real processes: Kamailio, two SIP servers, three gateways, two rtpengines, Redis with a replica and
// three Sentinels. The carrier sees one address.

const ORG = '7f3b5f0e-5d0c-4b0e-9a51-1c52ce0b4a22';
const NUMBER = parseE164('+15550100100') as E164;
const LIMITED = parseE164('+15550100101') as E164;
const GATEWAYS = ['gateway-1', 'gateway-2', 'gateway-3'] as const;

let site: ComposeSite;
let stores: RedisStores;
let key: string;
let calls: CarrierCall[] = [];

beforeAll(async () => {
  site = await ComposeSite.start('127.30.0');
  stores = openRedisStores({
    commandTimeoutMs: HANG_GUARD_MS,
    url: ['sentinel-1', 'sentinel-2', 'sentinel-3'].map((name) => `redis://${site.addressOf(name)}:26379`).join(','),
    sentinel: { name: 'trunkline', password: null },
    clock: systemClock,
    log: silentLog,
  });
  await stores.ready(HANG_GUARD_MS);
  await stores.orgs.create({ name: 'Cluster', sip_enabled: true, org_id: ORG });
  key = (await stores.keys.create(ORG, 'cluster')).key;
  for (const number of [NUMBER, LIMITED])
    await stores.numbers.attach(ORG, number, { inbound: { agent_id: null, options: DEFAULT_INBOUND_OPTIONS } });
  // Both SIP servers answer the balancer's health check.
  await until(async () => new Set(await contactsOf(4)).size === 2, 'the balancer uses one server only');
});

afterAll(async () => {
  await stores.close();
  await site.destroy();
});

afterEach(() => {
  for (const call of calls) call.close();
  calls = [];
});

async function opened(number: string = NUMBER): Promise<CarrierCall> {
  const call = await CarrierCall.open(site, number);
  calls.push(call);
  return call;
}

async function talking(number: string = NUMBER): Promise<CarrierCall> {
  const call = await opened(number);
  await call.connect();
  return call;
}

const serverOf = (call: CarrierCall): string => /@?([\d.]+):5061/.exec(call.answer.header('Contact') ?? '')?.[1] ?? '';

/** Where short calls were answered; '' where one was refused. */
async function contactsOf(count: number): Promise<string[]> {
  const servers: string[] = [];
  for (let index = 0; index < count; index += 1) {
    const call = await opened();
    call.signalling.invite(call.audio.sdp());
    call.answer = await call.signalling.final();
    servers.push(call.answer.status === 200 ? serverOf(call) : '');
    if (call.answer.status !== 200) continue;
    call.signalling.ack(call.answer);
    await call.request('BYE');
  }
  return servers;
}

async function api(
  gateway: string,
  method: string,
  path: string,
  body?: object,
): Promise<{ status: number; json: Record<string, unknown> }> {
  const answer = await fetch(site.url(gateway, path), {
    method,
    headers: { authorization: key, ...(body === undefined ? {} : { 'content-type': 'application/json' }) },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  return { status: answer.status, json: (await answer.json()) as Record<string, unknown> };
}

async function recordOf(call: CarrierCall): Promise<CallRecord> {
  let record: CallRecord | undefined;
  await until(async () => {
    record = (await stores.calls.list(ORG, { limit: 200 })).calls.find(({ sip_call_id: id }) => id === call.signalling.callId);
    return record !== undefined;
  }, 'no record');
  if (record === undefined) throw new Error('no record');
  return record;
}

const sessions = async (): Promise<number> =>
  (await Promise.all(['rtpengine-1', 'rtpengine-2'].map((name) => sessionsOf(2223, site.addressOf(name))))).reduce<number>(
    (sum, count) => sum + (count ?? Infinity),
    0,
  );

describe('a layout of many machines', () => {
  it('shares calls among the SIP servers; a call stays with its server, both sides hear each other, and nothing is left', async () => {
    const four = [await talking(), await talking(), await talking(), await talking()];
    expect(new Set(four.map(serverOf))).toEqual(new Set([site.addressOf('sip-1'), site.addressOf('sip-2')]));
    await Promise.all(four.map((call) => call.echoedAfter(performance.now())));
    // A re-INVITE, and the BYE, go by the balancer to the same server.
    for (const call of four) expect((await call.request('INVITE', call.audio.sdp())).status).toBe(200);
    const ids = new Map(
      ((await api('gateway-2', 'GET', '/v1/calls?state=live')).json['calls'] as { call_id: string; sip_call_id: string }[]).map((one) => [
        one.sip_call_id,
        one.call_id,
      ]),
    );
    expect(ids.size).toBe(4);
    for (const call of four) expect((await call.request('BYE')).status).toBe(200);
    for (const call of four)
      expect(await recordOf(call)).toMatchObject({ reason: 'CALLER_HANGUP', call_id: ids.get(call.signalling.callId) });
    await until(async () => (await sessions()) === 0, 'sessions are left');
  });

  it('counts limits over all of it, and applies a change of a number on every gateway within a second', async () => {
    const set = (options: object) =>
      api('gateway-1', 'POST', '/sip/update', { phone_number: LIMITED, updates: { type: 'inbound', options } });
    expect((await set({ max_concurrent_calls: 3 })).status).toBe(200);
    const three = [await talking(LIMITED), await talking(LIMITED), await talking(LIMITED)];
    const refusals: string[] = [];
    for (let index = 0; index < 4; index += 1) {
      const call = await opened(LIMITED);
      call.signalling.invite(call.audio.sdp());
      refusals.push((await call.signalling.final()).header('Warning') ?? '');
    }
    expect(refusals.filter((warning) => warning.includes('NUMBER_CALL_LIMIT'))).toHaveLength(4);
    const changedMs = performance.now();
    expect((await set({ max_concurrent_calls: 3, allowed_sources: ['203.0.113.0/24'] })).status).toBe(200);
    const seen = await Promise.all(
      GATEWAYS.map(async (gateway) => {
        const check = { phone_number: LIMITED, source_ip: '198.51.100.1' };
        await until(
          async () => JSON.stringify((await api(gateway, 'POST', '/sip/check', check)).json).includes('SOURCE_NOT_ALLOWED'),
          `${gateway} does not know of the change`,
        );
        return performance.now() - changedMs;
      }),
    );
    console.log(`a changed number is known to all gateways after ${String(Math.round(Math.max(...seen)))} ms`);
    for (const call of three) expect((await call.request('BYE')).status).toBe(200);
  });

  it('reads record, trace and quality of a call on any node, and stops it from any', async () => {
    const call = await talking();
    const [live] = (await api('gateway-3', 'GET', '/v1/calls?state=live')).json['calls'] as { call_id: string }[];
    const path = `/v1/calls/${String(live?.call_id)}`;
    const traces = await Promise.all(GATEWAYS.map(async (gateway) => (await api(gateway, 'GET', `${path}/trace`)).json['trace']));
    for (const trace of traces) expect((trace as { summary: string }[])[0]?.summary).toContain('INVITE');
    expect((await api('gateway-2', 'POST', `${path}/stop`)).status).toBe(200);
    await call.theirs('BYE');
    await recordOf(call);
    for (const gateway of GATEWAYS) {
      expect((await api(gateway, 'GET', path)).json['call']).toMatchObject({ reason: 'API_STOPPED' });
      expect((await api(gateway, 'GET', `${path}/trace`)).json['trace']).not.toEqual([]);
      expect((await api(gateway, 'GET', `${path}/quality`)).status).toBe(200);
    }
  });

  it('loses no other call when one gateway is killed and one drains; a SIP server without a gateway gets no more calls', async () => {
    const here = site.addressOf('sip-1');
    const all = [await talking(), await talking(), await talking(), await talking(), await talking(), await talking()];
    const others = all.filter((call) => serverOf(call) === here);
    expect(others.length).toBeGreaterThan(1);
    await site.end('gateway-2', 'SIGKILL');
    const drained = site.end('gateway-3', 'SIGINT');
    const goneMs = performance.now();
    await until(async () => (await contactsOf(4)).every((server) => server === here), 'calls are refused');
    console.log(
      `without its gateways a SIP server is left out, and every call answered, after ${String(Math.round(performance.now() - goneMs))} ms`,
    );
    for (const call of others) {
      await call.echoedAfter(performance.now());
      expect([call.audio.ssrcs.length, call.audio.lost]).toEqual([1, 0]);
      expect((await call.request('BYE')).status).toBe(200);
      expect(await recordOf(call)).toMatchObject({ reason: 'CALLER_HANGUP' });
    }
    // What drains waits for its calls.
    for (const call of all) if (!others.includes(call)) await call.request('BYE');
    await drained;
    expect(site.outputOf('gateway-3')).not.toContain('"reason":"SHUTDOWN"');
    await Promise.all(['gateway-2', 'gateway-3'].map((gateway) => site.up(gateway)));
    await until(async () => new Set(await contactsOf(2)).size === 2, 'the server is not taken in again');
  });

  it('moves the calls of an rtpengine that is killed to the other', async () => {
    const four = [await talking(), await talking(), await talking(), await talking()];
    const killedMs = performance.now();
    await site.end('rtpengine-1');
    await Promise.all(four.map((call) => call.heardAfter(killedMs + 1_500)));
    for (const call of four) await call.echoedAfter(performance.now());
    const silences = four.map(({ audio }) => audio.longestGapSince(killedMs));
    console.log(`rtpengine killed: ${String(Math.max(...silences))} ms of silence at most`);
    for (const call of four) expect((await call.request('BYE')).status).toBe(200);
    await site.up('rtpengine-1');
  });

  it('keeps calls and answers new ones when the primary of Redis is killed, and the replica takes over', async () => {
    const call = await talking();
    const killedMs = performance.now();
    await site.end('redis-primary');
    // Known numbers are answered meanwhile.
    expect((await contactsOf(2)).every((server) => server !== '')).toBe(true);
    await until(
      async () =>
        (await api('gateway-1', 'POST', '/sip/update', { phone_number: LIMITED, updates: { type: 'inbound', options: {} } })).status ===
        200,
      'no change is taken',
    );
    console.log(`primary of Redis killed: changes are taken again after ${String(Math.round(performance.now() - killedMs))} ms`);
    expect(await site.redis('INFO replication', 'redis-replica')).toContain('role:master');
    await call.echoedAfter(performance.now());
    expect((await call.request('BYE')).status).toBe(200);
    expect(await recordOf(call)).toMatchObject({ reason: 'CALLER_HANGUP' });
  });
});

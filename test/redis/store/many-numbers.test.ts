import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { E164 } from '../../../src/gateway/model/e164.js';
import { newUuid } from '../../../src/lib/ids.js';
import { workerRedis, type WorkerRedis } from '../../support/worker-redis.js';
import { agentOf, inboundSetting } from '../../unit/gateway/store/store-contract.js';
import { openHttpApi, type HttpApi } from '../api/http-fixture.js';

// Ten thousand numbers of one organization: what a request costs does not grow with them.

const NUMBERS = 10_000;
const numberAt = (index: number): E164 => `+1555${String(1_000_000 + index)}` as E164;

describe('ten thousand numbers over one Redis', () => {
  let redis: WorkerRedis;
  let api: HttpApi;
  let orgId: string;
  let key: string;
  const agentId = newUuid();
  beforeAll(async () => {
    redis = await workerRedis();
    api = await openHttpApi(redis.url);
    orgId = (await api.stores.orgs.create({ name: 'many', sip_enabled: true })).org_id;
    key = (await api.stores.keys.create(orgId, 'k')).key;
    await api.stores.agents.put(agentOf(orgId, { agent_id: agentId }));
    await api.request('GET', '/sip?take=1', key);
    await redis.command('CONFIG RESETSTAT');
    const all = Array.from({ length: NUMBERS }, (_, index) => index);
    // One of them all has an agent.
    const setting = (index: number) => ({ inbound: inboundSetting({}, index === NUMBERS / 2 ? agentId : null) });
    await inLanes(all, 64, (index) => api.stores.numbers.attach(orgId, numberAt(index), setting(index)));
  });
  afterAll(() => api.close());

  /** Calls of each command since the last time. Commands within scripts count too. */
  async function commands(): Promise<Record<string, number>> {
    const info = await redis.command('INFO commandstats');
    await redis.command('CONFIG RESETSTAT');
    return Object.fromEntries(
      [...info.matchAll(/^cmdstat_([\w|]+):calls=(\d+)/gm)]
        .map(([, name = '', calls]) => [name, Number(calls)] as const)
        .filter(([name]) => !/^(?:info|config|ping)/.test(name)),
    );
  }

  const total = (counted: Readonly<Record<string, number>>): number => Object.values(counted).reduce((sum, one) => sum + one, 0);

  /** What the work costs. Nothing of it looks through all keys, or all members. */
  async function costOf(work: () => Promise<unknown>): Promise<number> {
    await commands();
    await work();
    const counted = await commands();
    for (const name of ['keys', 'scan', 'sscan', 'zscan', 'hscan', 'smembers', 'sort']) expect(counted).not.toHaveProperty(name);
    return total(counted);
  }

  it('took a bounded number of commands each to attach', async () => {
    const counted = await commands();
    expect(counted).not.toHaveProperty('keys');
    expect(counted).not.toHaveProperty('scan');
    expect(counted).not.toHaveProperty('smembers');
    expect(total(counted)).toBeGreaterThan(NUMBERS);
    expect(total(counted) / NUMBERS).toBeLessThan(15);
  });

  it('are listed in sorted pages, each once, and a page costs its own records', async () => {
    const seen: string[] = [];
    for (let skip = 0; skip < NUMBERS; skip += 1_000) {
      const cost = await costOf(async () => {
        const answer = await api.request('GET', `/sip?take=1000&skip=${String(skip)}`, key);
        seen.push(...(answer.body.data as readonly { readonly phone_number: string }[]).map((one) => one.phone_number));
      });
      expect(cost, `skip ${String(skip)}`).toBeLessThan(1_000 + 20);
    }
    expect(seen).toEqual(Array.from({ length: NUMBERS }, (_, index) => numberAt(index)));
    expect((await api.request('GET', `/sip?take=1000&skip=${String(NUMBERS)}`, key)).body.data).toEqual([]);
  });

  it.each([
    ['the look-up of a call', () => api.stores.routes.lookup(numberAt(7_777), null)],
    ['a read by number', () => api.request('GET', `/sip?inbound_id=${numberAt(7_777)}`, key)],
    ['a page of ten at the end', () => api.request('GET', '/sip?take=10&skip=9990', key)],
    [
      'an update',
      () =>
        api.request('POST', '/sip/update', key, { phone_number: numberAt(42), updates: { type: 'outbound', sip_endpoint: 'a.example' } }),
    ],
    ['a detach', () => api.request('POST', '/sip/detach', key, { phone_number: numberAt(42), directions: 'outbound', service: 'sip' })],
    ['an attach', () => api.request('POST', '/sip/attach', key, { phone_number: '+15550000007', directions: ['inbound'], service: 'sip' })],
    [
      'the detach of the last direction',
      () => api.request('POST', '/sip/detach', key, { phone_number: '+15550000007', directions: 'inbound', service: 'sip' }),
    ],
  ])('need few commands for %s', async (_what, work) => {
    const cost = await costOf(async () => {
      const answer = await work();
      if ('status' in answer) expect(answer.status).toBe(200);
    });
    expect(cost).toBeGreaterThan(0);
    expect(cost).toBeLessThan(40);
  });

  it('are searched by agent with few commands, and the agent of one of them cannot be deleted', async () => {
    const found = await costOf(async () => {
      const refused = await api.request('DELETE', `/v1/agents/${agentId}`, key);
      expect([refused.status, refused.failure.errors[0]?.error]).toEqual([409, 'AGENT_IN_USE']);
      expect(refused.failure.message).toContain(numberAt(NUMBERS / 2));
    });
    expect(found).toBeLessThan(40);
    expect(await api.stores.numbers.findByAgent(orgId, newUuid())).toBeNull();
  });
});

/** Does the work for each, `lanes` at a time. */
async function inLanes<T>(all: readonly T[], lanes: number, work: (one: T) => Promise<unknown>): Promise<void> {
  const left = [...all];
  const lane = async (): Promise<void> => {
    for (let next = left.pop(); next !== undefined; next = left.pop()) await work(next);
  };
  await Promise.all(Array.from({ length: lanes }, lane));
}

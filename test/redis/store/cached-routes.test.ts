import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { brokenLimit } from '../../../src/gateway/admission/admission.js';
import type { E164 } from '../../../src/gateway/model/e164.js';
import { StoreUnavailableError, type Lookup } from '../../../src/gateway/ports/ports.js';
import { CHANGES_CHANNEL, GATEWAYS_KEY, numberAheadKey, numberKey, numberLeasesKey } from '../../../src/gateway/store/redis/keys.js';
import type { RedisStores, RedisStoresOptions } from '../../../src/gateway/store/redis/redis-stores.js';
import { newUuid } from '../../../src/lib/ids.js';
import { begun } from '../../support/begun-call.js';
import { startRedis, type AnyRedis, type TestRedis } from '../../support/redis.js';
import { openStores } from '../../support/redis-stores.js';
import { VirtualClock } from '../../support/virtual-clock.js';
import { workerRedis, workerRedisCluster } from '../../support/worker-redis.js';
import { agentOf, freshNumber, inboundSetting } from '../../unit/gateway/store/store-contract.js';
import { eventually } from '../api/http-fixture.js';

/** For how long Redis keeps a slot that is leased ahead. */
const AHEAD_MS = 500;
const opened: RedisStores[] = [];

async function open(redis: Pick<AnyRedis, 'url' | 'isCluster' | 'inTime'>, options: Partial<RedisStoresOptions>): Promise<RedisStores> {
  const stores = await openStores(redis, options);
  opened.push(stores);
  return stores;
}

async function closeAll(): Promise<void> {
  await Promise.all(opened.splice(0).map((stores) => stores.close()));
}

const lookUp = (stores: RedisStores, number: E164): Promise<Lookup> => stores.routes.lookup(number, begun(newUuid()));

/** Resolves when a call to this number needs no answer of Redis: its route is there at once. The calls are over then. */
async function isRemembered(stores: RedisStores, number: E164, clock?: VirtualClock): Promise<void> {
  let tries = 0;
  await eventually(
    async () => {
      // On a busy machine a beat may be lost: the next one has to come.
      tries += 1;
      if (tries % 100 === 0) clock?.advance(200);
      const callId = newUuid();
      let isThere = false;
      const looked = stores.routes.lookup(number, begun(callId)).then(() => (isThere = true));
      for (let turn = 0; turn < 5; turn += 1) await Promise.resolve();
      const wasThere = isThere;
      await looked;
      stores.routes.release(callId);
      await stores.ping();
      return wasThere;
    },
    (isThere) => isThere,
  );
}

describe('a cached route', () => {
  let redis: AnyRedis;
  let clock: VirtualClock;
  let stores: RedisStores;
  let orgId: string;
  let number: E164;
  beforeEach(async () => {
    await begin(await workerRedis());
  });
  afterEach(closeAll);

  async function begin(on: AnyRedis): Promise<void> {
    redis = on;
    clock = new VirtualClock(Date.now());
    stores = await open(redis, { clock, instance: 'gw-1' });
    orgId = (await stores.orgs.create({ name: 'one', sip_enabled: true })).org_id;
    number = await attached();
  }

  /** Lets the stores' time pass, a second at a time, until then. */
  const afterSeconds = (holds: () => boolean): Promise<unknown> =>
    eventually(
      () => {
        clock.advance(1_000);
        return Promise.resolve(holds());
      },
      (is) => is,
    );

  async function attached(options: Parameters<typeof inboundSetting>[0] = {}, agentId: string | null = null): Promise<E164> {
    const made = freshNumber();
    await stores.numbers.attach(orgId, made, { inbound: inboundSetting(options, agentId) });
    return made;
  }

  it('leaves the slots of its calls, and its call in the list, in Redis', async () => {
    await isRemembered(stores, number, clock);
    const callId = newUuid();
    await stores.routes.lookup(number, begun(callId));
    // At the latest: the write of its snapshot would take it along.
    clock.advance(10);
    const listed = await eventually(
      () => stores.live.get(orgId, callId),
      (call) => call !== null,
    );
    expect(listed).toMatchObject({ gateway: 'gw-1', to: number });
    expect(await redis.command(`ZSCORE ${numberLeasesKey(number)} ${callId}`)).toMatch(/\d{13}/);
    stores.routes.release(callId);
    await eventually(
      () => redis.command(`ZSCORE ${numberLeasesKey(number)} ${callId}`),
      (answer) => answer.startsWith('$-1'),
    );
    expect(await stores.live.get(orgId, callId)).toBeNull();
  });

  it('leaves no slot of a call that is given up in the turn in which it was admitted', async () => {
    await isRemembered(stores, number, clock);
    const callId = newUuid();
    const looked = stores.routes.lookup(number, begun(callId));
    stores.routes.release(callId, true);
    await looked;
    await stores.routes.lookup(number, null);
    expect(await redis.command(`ZSCORE ${numberLeasesKey(number)} ${callId}`)).toMatch(/^\$-1/);
    expect(await stores.live.get(orgId, callId)).toBeNull();
  });

  it('never exists for an unknown number', async () => {
    const unknown = freshNumber();
    expect((await lookUp(stores, unknown)).route).toBeNull();
    // Without a word on the channel.
    const record = { ...(await stores.numbers.get(orgId, number)), phone_number: unknown };
    await redis.command(`SET ${numberKey(unknown)} ${JSON.stringify(JSON.stringify(record))}`);
    expect((await lookUp(stores, unknown)).route?.number.phone_number).toBe(unknown);
  });

  it('is read again when the channel was cut, and each time while it is cut', async () => {
    await redis.command('ACL SETUSER gw on >pw ~* +@all allchannels');
    const gateway = await open({ ...redis, url: redis.url.replace('//', '//gw:pw@') }, { clock, instance: 'gw-2' });
    await isRemembered(gateway, number, clock);
    // The channel is cut, and cannot be opened again.
    await redis.command('ACL SETUSER gw resetchannels');
    await eventually(
      () => redis.command(`PUBSUB NUMSUB ${CHANGES_CHANNEL}`),
      (answer) => answer.includes(':1\r\n'),
    );
    const record = await stores.numbers.get(orgId, number);
    await redis.command(`DEL ${numberKey(number)}`);
    await eventually(
      () => lookUp(gateway, number),
      ({ route }) => route === null,
    );
    await redis.command(`SET ${numberKey(number)} ${JSON.stringify(JSON.stringify(record))}`);
    expect((await lookUp(gateway, number)).route).not.toBeNull();
    await redis.command(`DEL ${numberKey(number)}`);
    expect((await lookUp(gateway, number)).route).toBeNull();
    await gateway.close();
    await redis.command('ACL DELUSER gw');
  });

  it('is read again when the channel is back', async () => {
    await isRemembered(stores, number, clock);
    await redis.command('CLIENT KILL TYPE pubsub');
    const other = await attached();
    await isRemembered(stores, other, clock);
    // The new subscription is proved by the other number.
    await redis.command(`DEL ${numberKey(number)}`);
    expect((await lookUp(stores, number)).route).toBeNull();
  });

  it('is dropped within 1 s of a change by a program without a channel, such as the CLI, while a gateway is alive', async () => {
    const cli = await open(redis, { clock });
    await isRemembered(stores, number, clock);
    let isAnswered = false;
    const disabled = cli.orgs.change(orgId, { disabled: true }).then(() => (isAnswered = true));
    await eventually(
      async () => (await lookUp(stores, number)).route?.org.disabled,
      (is) => is === true,
    );
    await cli.ping();
    expect(isAnswered).toBe(false);
    await afterSeconds(() => isAnswered);
    await disabled;
    // Nobody has to be waited for.
    await stores.close();
    await cli.orgs.change(orgId, { disabled: false });
  });

  it('is dropped before a change is answered: every live gateway has confirmed it, or 1 s has passed', async () => {
    await redis.command(`ZADD ${GATEWAYS_KEY} ${String(redis.now() + 60_000)} hangs`);
    let isAnswered = false;
    const detached = stores.numbers.detach(orgId, number, ['inbound']).then(() => (isAnswered = true));
    await eventually(
      () => redis.command(`EXISTS ${numberKey(number)}`),
      (answer) => answer === ':0\r\n',
    );
    // The question to the other gateway is through.
    await eventually(
      () => redis.command('INFO commandstats'),
      (answer) => Number(/cmdstat_publish:calls=(\d+)/.exec(answer)?.[1]) > 2,
    );
    await stores.ping();
    expect(isAnswered).toBe(false);
    await afterSeconds(() => isAnswered);
    await detached;
  });

  it('lets each of two gateways exceed a limit by one slot at most', async () => {
    const limited = await attached({ max_concurrent_calls: 40 });
    const gateways = await Promise.all(['gw-3', 'gw-4'].map((instance) => open(redis, { instance })));
    const [first, second] = [gateways[0]!, gateways[1]!];
    const admitted = async (gateway: RedisStores, calls: number): Promise<number> => {
      const looked = await Promise.all(Array.from({ length: calls }, () => lookUp(gateway, limited)));
      return looked.filter(({ route, load }) => route !== null && brokenLimit(route, load) === null).length;
    };
    // Both know it, and that it is far from its limit.
    for (const gateway of gateways) await isRemembered(gateway, limited);
    const [one, two] = await Promise.all([admitted(first, 60), admitted(second, 60)]);
    expect(one + two).toBeGreaterThanOrEqual(40);
    expect(one + two).toBeLessThanOrEqual(42);
    expect((await stores.routes.lookup(limited, null)).load.numberCalls).toBe(one + two);
  });

  it('leaves the slots that a gateway leased ahead to others when it was killed', async () => {
    const limited = await attached({ max_concurrent_calls: 40 });
    const dying = await open(redis, { instance: 'gw-3' });
    const expiresMs = await eventually(
      async () => {
        await isRemembered(dying, limited);
        return redis.expiresMs(numberAheadKey(limited));
      },
      (ms) => ms > 0,
    );
    expect(expiresMs).toBeLessThanOrEqual(Date.now() + AHEAD_MS);
    await dying.close();
    await redis.advance(AHEAD_MS);
    expect((await stores.routes.lookup(limited, null)).load.numberCalls).toBe(0);
    const gateway = await open(redis, { instance: 'gw-4' });
    const looked = await Promise.all(Array.from({ length: 60 }, () => lookUp(gateway, limited)));
    expect(looked.filter(({ route, load }) => route !== null && brokenLimit(route, load) === null)).toHaveLength(40);
  });

  describe('a cached route of a Redis that goes away', () => {
    let own: TestRedis;
    beforeEach(async () => {
      await closeAll();
      own = await startRedis();
      await begin(own);
    });
    afterEach(async () => {
      await closeAll();
      await own.close();
    });

    it('needs no Redis while the heartbeat is younger than 0.5 s; then the number is read', async () => {
      const agent = agentOf(orgId);
      await stores.agents.put(agent);
      const known = await attached({}, agent.agent_id);
      // As long as a call waits for Redis.
      const gateway = await open(own, { clock, instance: 'gw-2', commandTimeoutMs: 500 });
      await eventually(
        () =>
          isRemembered(gateway, known, clock).then(
            () => true,
            () => false,
          ),
        (isThere) => isThere,
      );
      own.freeze();
      clock.advance(499);
      const looked = await lookUp(gateway, known);
      expect(looked).toMatchObject({ staleMs: null, route: { number: { phone_number: known }, org: { org_id: orgId } } });
      expect(looked.route?.agent).toEqual(agent);
      clock.advance(1);
      // It is asked, and does not answer.
      expect((await lookUp(gateway, known)).staleMs).toBe(1);
      own.thaw();
      clock.advance(200);
      await isRemembered(stores, known, clock);
    });

    it('is stale while Redis is away, with the age of its last confirmation', async () => {
      await isRemembered(stores, number, clock);
      clock.advance(300);
      await isRemembered(stores, number, clock);
      await own.stopServer();
      clock.advance(5_000);
      expect((await lookUp(stores, number)).staleMs).toBe(5_000);
      clock.advance(595_000);
      await expect(lookUp(stores, number)).rejects.toBeInstanceOf(StoreUnavailableError);
    });
  });
});

for (const cluster of [false, true]) {
  describe(`changes and two gateways, ${cluster ? 'a Redis Cluster of three nodes' : 'redis-server'}`, () => {
    let orgId: string;
    let one: RedisStores;
    let two: RedisStores;
    beforeEach(async () => {
      const redis = cluster ? await workerRedisCluster() : await workerRedis();
      one = await open(redis, { instance: 'gw-1' });
      two = await open(redis, { instance: 'gw-2' });
      orgId = (await one.orgs.create({ name: 'one', sip_enabled: true })).org_id;
    });
    afterEach(closeAll);

    it('let no call use the old route once a detach, a disabling or a list of sources was answered', async () => {
      for (let round = 0; round < 10; round += 1) {
        const number = freshNumber();
        await one.numbers.attach(orgId, number, { inbound: inboundSetting() });
        await isRemembered(two, number);
        await one.orgs.change(orgId, { disabled: round % 2 === 0 });
        expect((await lookUp(two, number)).route?.org.disabled).toBe(round % 2 === 0);
        await isRemembered(two, number);
        await one.numbers.update(orgId, number, {
          type: 'inbound',
          options: inboundSetting({ allowed_sources: ['192.0.2.0/24'] }).options,
        });
        expect((await lookUp(two, number)).route?.number.inbound?.options.allowed_sources).toEqual(['192.0.2.0/24']);
        await isRemembered(two, number);
        await one.numbers.detach(orgId, number, ['inbound']);
        expect((await lookUp(two, number)).route).toBeNull();
      }
    });
  });
}

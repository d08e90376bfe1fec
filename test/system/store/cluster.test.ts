import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { E164 } from '../../../src/gateway/model/e164.js';
import { StoreUnavailableError } from '../../../src/gateway/ports/ports.js';
import { silentLog } from '../../../src/lib/log.js';
import { systemClock } from '../../../src/lib/system-clock.js';
import { CHANGES_CHANNEL, numberKey, orgKey } from '../../../src/gateway/store/redis/keys.js';
import { openRedisStores, type RedisStores, type RedisStoresOptions } from '../../../src/gateway/store/redis/redis-stores.js';
import { startRedisCluster, type TestRedisCluster } from '../../support/redis.js';
import { freshNumber, inboundSetting } from '../../unit/gateway/store/store-contract.js';
import { eventually } from '../../redis/api/http-fixture.js';

// What the contracts do not ask: nodes that come and go, and what one of them tells of another.

describe('a Redis Cluster of three nodes', () => {
  let redis: TestRedisCluster;
  let stores: RedisStores;
  const opened: RedisStores[] = [];
  beforeEach(async () => {
    redis = await startRedisCluster();
    stores = await open({});
  });
  afterEach(async () => {
    await Promise.all(opened.splice(0).map((one) => one.close()));
    await redis.close();
  });

  async function open(options: Partial<RedisStoresOptions>): Promise<RedisStores> {
    const one = openRedisStores({ url: redis.url, cluster: true, clock: systemClock, log: silentLog, ...options });
    opened.push(one);
    await one.ready();
    return one;
  }

  /** A node that takes the others for dead for a moment, on a busy machine, answers CLUSTERDOWN for keys of all. */
  const isOn = async (key: string, node: number): Promise<boolean> => (await redis.nodes[node]!.command(`GET ${key}`)).startsWith('$');

  async function orgOn(isRight: (orgId: string) => Promise<boolean>): Promise<string> {
    for (;;) {
      const { org_id: orgId } = await stores.orgs.create({ name: 'one', sip_enabled: true });
      if (await isRight(orgKey(orgId))) return orgId;
    }
  }

  async function numberOn(isRight: (key: string) => Promise<boolean>): Promise<E164> {
    for (let number = freshNumber(); ; number = freshNumber()) if (await isRight(numberKey(number))) return number;
  }

  const works = (work: () => Promise<unknown>): Promise<boolean> =>
    work().then(
      () => true,
      () => false,
    );

  /** @param which named in a failure: the errors of the look-ups of a test are alike */
  const isServed = (number: E164, which: string): Promise<void> =>
    expect(
      stores.routes.lookup(number, null).then(({ route }) => route?.number.phone_number),
      which,
    ).resolves.toBe(number);

  it('serves the keys of the other nodes while one is down, and all of them when it is back', async () => {
    const orgId = await orgOn((key) => isOn(key, 1));
    const [there, away] = [await numberOn((key) => isOn(key, 1)), await numberOn((key) => isOn(key, 2))];
    for (const number of [there, away]) await stores.numbers.attach(orgId, number, { inbound: inboundSetting({}) });
    await redis.nodes[2]!.stopServer();
    await expect(stores.routes.lookup(away, null)).rejects.toBeInstanceOf(StoreUnavailableError);
    await expect(stores.ping()).rejects.toBeInstanceOf(StoreUnavailableError);
    await isServed(there, 'there, while a node is away');
    await redis.nodes[2]!.startServer();
    await eventually(
      () => works(() => stores.routes.lookup(away, null)),
      (hasWorked) => hasWorked,
    );
    await isServed(away, 'away, after it is back');
    await stores.ping();
  });

  it('sends a gateway changes on any node, also when the one that it listened to is gone', async () => {
    const isOnLast = (key: string): Promise<boolean> => isOn(key, 2);
    const orgId = await orgOn(isOnLast);
    const number = await numberOn(isOnLast);
    await stores.numbers.attach(orgId, number, { inbound: inboundSetting({}) });
    const gateway = await open({ instance: 'gw-1' });
    expect((await gateway.routes.lookup(number, null)).route).not.toBeNull();
    await redis.nodes[0]!.stopServer();
    await eventually(
      async () => (await Promise.all([1, 2].map((node) => redis.nodes[node]!.command(`PUBSUB NUMSUB ${CHANGES_CHANNEL}`)))).join(''),
      (subscribers) => subscribers.includes(':1\r\n'),
    );
    await stores.numbers.detach(orgId, number, ['inbound']);
    // Would answer with what it remembers, had it not heard.
    await redis.nodes[2]!.stopServer();
    await expect(gateway.routes.lookup(number, null)).rejects.toBeInstanceOf(StoreUnavailableError);
  });

  it('has the numbers of all its nodes found when indexes are repaired', async () => {
    const { org_id: orgId } = await stores.orgs.create({ name: 'one', sip_enabled: true });
    for (const node of [0, 1, 2]) {
      const number = await numberOn((key) => isOn(key, node));
      await stores.numbers.attach(orgId, number, { inbound: inboundSetting({}) });
    }
    await redis.command(`DEL org:{${orgId}}:numbers`);
    expect(await stores.numbers.sweep()).toEqual({ numbers: 3, added: 3, removed: 0 });
    expect(await stores.numbers.list(orgId, { take: 10, skip: 0 })).toHaveLength(3);
  });
});

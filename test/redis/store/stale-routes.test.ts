import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { Redis } from 'ioredis';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { E164 } from '../../../src/gateway/model/e164.js';
import { brokenLimit } from '../../../src/gateway/admission/admission.js';
import { StoreUnavailableError } from '../../../src/gateway/ports/ports.js';
import { newUuid } from '../../../src/lib/ids.js';
import { CHANGES_CHANNEL, numberKey, numberLeasesKey } from '../../../src/gateway/store/redis/keys.js';
import { CallSpool } from '../../../src/gateway/store/files/call-spool.js';
import type { RedisStores, RedisStoresOptions } from '../../../src/gateway/store/redis/redis-stores.js';
import { begun, snapshotOf } from '../../support/begun-call.js';
import { startRedis, type TestRedis } from '../../support/redis.js';
import { openStores } from '../../support/redis-stores.js';
import { VirtualClock } from '../../support/virtual-clock.js';
import { recordingLog, type LogLine } from '../../unit/gateway/api/api-fixture.js';
import { agentOf, callOf, endedCall, freshNumber, inboundSetting } from '../../unit/gateway/store/store-contract.js';
import { eventually } from '../api/http-fixture.js';

describe('a gateway whose Redis is away', () => {
  let redis: TestRedis;
  let clock: VirtualClock;
  let stores: RedisStores;
  let orgId: string;
  let number: E164;
  const opened: RedisStores[] = [];
  beforeEach(async () => {
    redis = await startRedis();
    clock = new VirtualClock(Date.now());
    stores = await open({ instance: 'gw-1' });
    orgId = (await stores.orgs.create({ name: 'one', sip_enabled: true })).org_id;
    number = await attached();
  });
  afterEach(async () => {
    await Promise.all(opened.splice(0).map((one) => one.close()));
    await redis.close();
  });

  async function open(options: Partial<RedisStoresOptions>): Promise<RedisStores> {
    const one = await openStores(redis, { clock, ...options });
    opened.push(one);
    // The subscription is made after the connection.
    if (options.instance !== undefined) await isSubscribed(opened.length);
    return one;
  }

  async function isSubscribed(count: number): Promise<void> {
    await eventually(
      () => redis.command(`PUBSUB NUMSUB ${CHANGES_CHANNEL}`),
      (answer) => answer.includes(`:${count}\r\n`),
    );
  }

  async function attached(options: Parameters<typeof inboundSetting>[0] = {}): Promise<E164> {
    const made = freshNumber();
    await stores.numbers.attach(orgId, made, { inbound: inboundSetting(options) });
    return made;
  }

  async function answersAgain(): Promise<void> {
    await redis.startServer();
    await eventually(
      () =>
        stores.ping().then(
          () => true,
          () => false,
        ),
      (isThere) => isThere,
    );
  }

  const expectNothing = (looked: Promise<unknown>) => expect(looked).rejects.toBeInstanceOf(StoreUnavailableError);

  it('answers a known number with its last route and the age of that, and no number that it never looked up', async () => {
    const agent = agentOf(orgId);
    await stores.agents.put(agent);
    await stores.numbers.update(orgId, number, { type: 'inbound', agent_id: agent.agent_id });
    const { route } = await stores.routes.lookup(number, null);
    const never = await attached();
    clock.advance(5_000);
    await redis.stopServer();
    const looked = await stores.routes.lookup(number, null);
    expect(looked).toMatchObject({ route, staleMs: 5_000 });
    expect(looked.route?.agent).toEqual(agent);
    await expectNothing(stores.routes.lookup(never, null));
    await expectNothing(stores.routes.lookup(freshNumber(), begun(newUuid())));
    clock.advance(594_999);
    expect((await stores.routes.lookup(number, null)).staleMs).toBe(599_999);
    clock.advance(1);
    await expectNothing(stores.routes.lookup(number, null));
  });

  it('answers no number when stale answers are switched off', async () => {
    const strict = await open({ instance: 'gw-2', staleRouteMs: 0 });
    await strict.routes.lookup(number, null);
    await redis.stopServer();
    await expectNothing(strict.routes.lookup(number, null));
  });

  it('frees the slots of a call that Redis counted too late to answer', async () => {
    // As long as a call waits for Redis.
    const strict = await open({ instance: 'gw-2', staleRouteMs: 0, commandTimeoutMs: 500 });
    await eventually(
      () => strict.routes.lookup(number, null).catch(() => null),
      (looked) => looked !== null,
    );
    redis.freeze();
    // The heartbeat is overdue: Redis is asked.
    clock.advance(500);
    await expectNothing(strict.routes.lookup(number, begun(newUuid())));
    redis.thaw();
    const places = () => redis.command(`ZCARD ${numberLeasesKey(number)}`);
    // What was sent before is served before.
    await eventually(
      () =>
        strict.ping().then(
          () => true,
          () => false,
        ),
      (isThere) => isThere,
    );
    expect(await eventually(places, (answer) => answer === ':0\r\n')).toBe(':0\r\n');
    expect((await stores.routes.lookup(number, null)).load.orgCalls).toBe(0);
  });

  it('counts its calls, earlier ones too, and Redis counts them when it is back', async () => {
    const limited = await attached({ max_concurrent_calls: 2 });
    const [before, during, refused] = [newUuid(), newUuid(), newUuid()];
    await stores.routes.lookup(limited, begun(before));
    await redis.stopServer();
    expect((await stores.routes.lookup(limited, begun(during))).load).toMatchObject({ numberCalls: 1, orgCalls: 1 });
    const { route, load } = await stores.routes.lookup(limited, begun(refused));
    expect(route === null || brokenLimit(route, load)).toBe('NUMBER_CALL_LIMIT');
    stores.routes.release(before);
    expect((await stores.routes.lookup(limited, null)).load.numberCalls).toBe(1);
    await answersAgain();
    clock.advance(10_000);
    await eventually(
      () => redis.command(`ZSCORE ${numberLeasesKey(limited)} ${during}`),
      (answer) => !answer.startsWith('$-1'),
    );
    const fresh = await stores.routes.lookup(limited, null);
    expect(fresh.staleMs).toBeNull();
  });

  /** Resolves with what the next change of a record is told as. */
  async function nextChange(work: () => Promise<unknown>): Promise<string> {
    const listener = new Redis(redis.url);
    await listener.subscribe(CHANGES_CHANNEL);
    const told = new Promise<string>((resolve) => listener.once('message', (_channel, key) => resolve(key)));
    await work();
    const key = await told;
    listener.disconnect();
    return key;
  }

  it('does not answer a number that another gateway detached just before', async () => {
    const other = await open({ instance: 'gw-2' });
    await other.routes.lookup(number, null);
    expect(await nextChange(() => stores.numbers.detach(orgId, number, ['inbound']))).toBe(numberKey(number));
    await redis.stopServer();
    await expectNothing(other.routes.lookup(number, null));
  });

  it('does not answer a number whose organization or agent another gateway changed just before', async () => {
    const other = await open({ instance: 'gw-2' });
    const agent = agentOf(orgId);
    const second = freshNumber();
    const otherOrg = (await stores.orgs.create({ name: 'two', sip_enabled: true })).org_id;
    await stores.agents.put(agent);
    await stores.numbers.attach(otherOrg, second, { inbound: inboundSetting() });
    await stores.numbers.update(orgId, number, { type: 'inbound', agent_id: agent.agent_id });
    await other.routes.lookup(number, null);
    await other.routes.lookup(second, null);
    await nextChange(() => stores.agents.put({ ...agent, first_sentence: 'Changed.' }));
    await nextChange(() => stores.orgs.change(otherOrg, { disabled: true }));
    await redis.stopServer();
    await expectNothing(other.routes.lookup(number, null));
    await expectNothing(other.routes.lookup(second, null));
  });

  it('learns what changed while the subscription was cut when it is back', async () => {
    const unchanged = await attached();
    await stores.routes.lookup(number, null);
    await stores.routes.lookup(unchanged, null);
    const reads = async () => Number(/cmdstat_get:calls=(\d+)/.exec(await redis.command('INFO commandstats'))?.[1] ?? 0);
    const readsBefore = await reads();
    await redis.command(`DEL ${numberKey(number)}`);
    await redis.command('CLIENT KILL TYPE pubsub');
    await eventually(reads, (count) => count > readsBefore);
    await isSubscribed(1);
    await stores.ping();
    await redis.stopServer();
    await expectNothing(stores.routes.lookup(number, null));
    expect((await stores.routes.lookup(unchanged, null)).route?.number.phone_number).toBe(unchanged);
  });

  it('logs once that it may not subscribe, and subscribes as soon as it may', async () => {
    const lines: LogLine[] = [];
    await redis.command('ACL SETUSER gw on >pw ~* +@all resetchannels');
    const asUser = { ...redis, url: redis.url.replace('//', '//gw:pw@') };
    const gateway = await openStores(asUser, { clock, log: recordingLog(lines), instance: 'gw-2' });
    opened.push(gateway);
    const refused = () => lines.filter(({ event }) => event === 'redis.invalidation.refused').length;
    await eventually(
      () => Promise.resolve(refused()),
      (count) => count === 1,
    );
    clock.advance(1_000);
    await gateway.ping();
    await redis.command('ACL SETUSER gw allchannels');
    await eventually(
      () => {
        clock.advance(1_000);
        return redis.command(`PUBSUB NUMSUB ${CHANGES_CHANNEL}`);
      },
      (answer) => answer.includes(':2\r\n'),
    );
    expect(refused()).toBe(1);
  });

  it('keeps the last value of each call to write it later; a call that was never written leaves nothing', async () => {
    const snapshot = (callId: string, state: unknown) => snapshotOf(callId, orgId, number, state);
    const [kept, gone] = [newUuid(), newUuid()];
    await redis.stopServer();
    for (const state of [1, 2, 3]) stores.snapshots.persist(snapshot(kept, state));
    stores.snapshots.persist(snapshot(gone, 1));
    stores.snapshots.delete(gone);
    await answersAgain();
    clock.advance(1_000);
    const left = await eventually(
      () => stores.snapshots.orphaned(),
      (calls) => calls.length > 0,
    );
    expect(left).toEqual([snapshot(kept, 3)]);
    expect((await stores.routes.lookup(number, null)).load).toMatchObject({ numberCalls: 1, orgCalls: 1 });
    const other = await open({ instance: 'gw-2' });
    expect(await other.snapshots.orphaned()).toEqual([]);
  });

  it('writes a changed session of a call within 10 ms, and the rest with it or within 100 ms', async () => {
    const [first, second, other] = [newUuid(), newUuid(), newUuid()];
    const persist = (callId: string, step: number, mayWait = false): void =>
      stores.snapshots.persist(snapshotOf(callId, orgId, number, step), mayWait);
    const steps = async (): Promise<readonly unknown[]> => {
      const found = await stores.snapshots.orphaned();
      return [first, second].map((callId) => found.find((one) => one.call_id === callId)?.state);
    };
    const until = (wanted: readonly unknown[]): Promise<unknown> =>
      eventually(steps, (found) => JSON.stringify(found) === JSON.stringify(wanted));
    for (const callId of [first, second]) persist(callId, 1);
    await until([1, 1]);
    persist(first, 2, true);
    clock.advance(99);
    // A new call is written alone.
    stores.snapshots.persist(snapshotOf(other, orgId, number, 1));
    await eventually(
      () => stores.snapshots.orphaned(),
      (found) => found.length === 3,
    );
    expect(await steps()).toEqual([1, 1]);
    clock.advance(1);
    await until([2, 1]);
    persist(first, 3, true);
    persist(second, 3);
    clock.advance(10);
    await until([3, 3]);
    for (const callId of [first, second, other]) stores.snapshots.delete(callId);
    clock.advance(99);
    expect(await steps()).toEqual([3, 3]);
    clock.advance(1);
    await until([undefined, undefined]);
  });

  it('queues the records of calls and writes them when it is back', async () => {
    const directory = mkdtempSync(join(tmpdir(), 'trunkline-spool-'));
    const spooling = await open({ instance: 'gw-2', spool: await CallSpool.open(join(directory, 'waiting')) });
    const record = callOf(orgId, clock.wallMs());
    await redis.stopServer();
    await spooling.calls.write(endedCall(record));
    await answersAgain();
    // Each client connects again by itself: that of the records may be the last.
    const found = await eventually(
      () => {
        clock.advance(1_000);
        return spooling.calls.get(orgId, record.call_id).catch(() => null);
      },
      (one) => one !== null,
    );
    expect(found).toEqual(record);
    rmSync(directory, { recursive: true });
  });

  it('leaves no call whose record was queued at its death to the next process, which writes that record first', async () => {
    const file = join(mkdtempSync(join(tmpdir(), 'trunkline-spool-')), 'waiting');
    const dying = await open({ instance: 'gw-2', spool: await CallSpool.open(file) });
    const ended = callOf(orgId, clock.wallMs());
    const [going, kept] = [snapshotOf(newUuid(), orgId, number), snapshotOf(ended.call_id, orgId, number)];
    for (const snapshot of [going, kept]) dying.snapshots.persist(snapshot);
    clock.advance(10);
    await eventually(
      () => dying.snapshots.orphaned(),
      ({ length }) => length === 2,
    );
    await redis.stopServer();
    await dying.calls.write(endedCall(ended));
    dying.snapshots.delete(ended.call_id);
    await dying.close();
    opened.pop();
    await answersAgain();
    const next = await open({ instance: 'gw-2', spool: await CallSpool.open(file) });
    expect(await next.snapshots.orphaned()).toEqual([going]);
    expect(await stores.calls.get(orgId, ended.call_id)).toEqual(ended);
    rmSync(dirname(file), { recursive: true });
  });
});

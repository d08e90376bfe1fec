import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { RedisCells } from '../../../src/gateway/store/redis/cells/redis-cells.js';
import { CELLS_KEY } from '../../../src/gateway/store/redis/keys.js';
import { openRedisStores } from '../../../src/gateway/store/redis/redis-stores.js';
import { silentLog } from '../../../src/lib/log.js';
import { systemClock } from '../../../src/lib/system-clock.js';
import { Cell } from '../../../src/sip-server/cell.js';
import type { DialogRecord } from '../../../src/sip/dialog/dialog-record.js';
import { startRedis, startRedisCluster, type TestRedisCluster } from '../../support/redis.js';
import { VirtualClock } from '../../support/virtual-clock.js';
import { HANG_GUARD_MS } from '../../support/hang-guard.js';

const STEP_MS = 10;

/** Counts the questions to Redis that have no answer yet. */
function counted(store: RedisCells): { readonly store: RedisCells; readonly waiting: () => number } {
  let waiting = 0;
  const proxy = new Proxy(store, {
    get: (target, name) => {
      const method = Reflect.get(target, name) as (...args: readonly unknown[]) => Promise<unknown>;
      return (...args: readonly unknown[]) => {
        waiting += 1;
        return method.apply(target, [...args]).finally(() => (waiting -= 1));
      };
    },
  });
  return { store: proxy, waiting: () => waiting };
}

/** A SIP server that has dialogs, and nothing else. */
class Server {
  readonly dialogs = new Map<string, Pick<DialogRecord, 'callId' | 'reservedSeq'>>();
  readonly dropped: string[] = [];
  /** Of the cell that was taken over. */
  awayMs = 0;
  readonly clock = new VirtualClock();
  readonly cell: Cell;
  readonly store: RedisCells;
  readonly #waiting: () => number;

  constructor(
    readonly name: string,
    address: { readonly url: string; readonly cluster: boolean },
    private readonly gateways: readonly string[] = [],
  ) {
    this.store = new RedisCells(address, systemClock, silentLog);
    const { store, waiting } = counted(this.store);
    this.#waiting = waiting;
    this.cell = new Cell(name, store, this.clock, silentLog);
  }

  open(): this {
    this.cell.open({
      record: (key) => this.dialogs.get(key) as DialogRecord | undefined,
      keys: () => [...this.dialogs.keys()],
      gateways: () => this.gateways,
      takeOver: (records, awayMs) => {
        this.awayMs = awayMs;
        for (const record of records) this.has(record.callId, record.reservedSeq);
      },
      drop: (keys) => {
        for (const key of keys) this.dialogs.delete(key);
        this.dropped.push(...keys);
      },
    });
    return this;
  }

  has(callId: string, reservedSeq = 100): void {
    this.dialogs.set(callId, { callId, reservedSeq });
    this.cell.write(callId);
  }

  ends(callId: string): void {
    this.dialogs.delete(callId);
    this.cell.end(callId);
  }

  /** Time passes, and Redis answers at once. */
  async lives(forMs: number): Promise<void> {
    for (let passedMs = 0; passedMs < forMs; passedMs += STEP_MS) {
      await this.#answered();
      this.clock.advance(STEP_MS);
    }
    await this.#answered();
  }

  async #answered(): Promise<void> {
    do await new Promise((resolve) => setImmediate(resolve));
    while (this.#waiting() > 0);
    await new Promise((resolve) => setImmediate(resolve));
  }

  get seq(): Record<string, number> {
    return Object.fromEntries([...this.dialogs].map(([key, { reservedSeq }]) => [key, reservedSeq]));
  }
}

for (const cluster of [false, true]) {
  describe(`cells, ${cluster ? 'a Redis Cluster of three nodes' : 'redis-server'}`, () => {
    let redis: Omit<TestRedisCluster, 'nodes'>;
    let servers: Server[] = [];

    beforeAll(async () => {
      redis = cluster ? await startRedisCluster() : await startRedis();
    });
    beforeEach(async () => {
      await redis.command('FLUSHALL');
    });
    afterEach(async () => {
      for (const { cell } of servers) await cell.close();
      servers = [];
    });
    afterAll(() => redis.close());

    async function server(name: string, gateways: readonly string[] = []): Promise<Server> {
      const made = new Server(name, { url: redis.url, cluster }, gateways);
      servers.push(made);
      await expect.poll(() => made.store.dialogs(name).catch(() => null)).toEqual([]);
      return made.open();
    }

    const stored = async (of: Server): Promise<string[]> => (await of.store.dialogs(of.name)).map(([key]) => key).sort();

    it('store the dialogs of each a moment after they change', async () => {
      const a = await server('a');
      await a.lives(500);
      a.has('one');
      a.has('two');
      await a.lives(250);
      expect(await stored(a)).toEqual(['one', 'two']);
      a.ends('one');
      await a.lives(250);
      expect(await stored(a)).toEqual(['two']);
    });

    it('read from the clock of Redis when a lost one was last alive', async () => {
      const a = await server('a');
      a.has('one');
      await a.lives(500);
      const text = await redis.command(`HGET ${CELLS_KEY} a`);
      const value = text.split('\r\n')[1] ?? '';
      const lived = Number(value.split('|')[3]);
      expect(Math.abs(lived - Date.now() / 1_000)).toBeLessThan(60);
      await redis.command(`HSET ${CELLS_KEY} a ${value.replace(String(lived), String(lived - 3_600))}`);
      const b = await server('b');
      await b.lives(2_500);
      expect(b.seq).toEqual({ one: 10_100 });
      expect(b.awayMs).toBeGreaterThanOrEqual(3_600_000);
      expect(b.awayMs).toBeLessThan(3_660_000);
    });

    it('take over one that falls silent after 2 s, at sequence numbers that it cannot have used', async () => {
      const [a, b] = [await server('a'), await server('b')];
      a.has('one');
      await a.lives(500);
      await b.lives(2_000);
      expect(b.seq).toEqual({});
      expect(await b.store.isElsewhere('b', 'one')).toBe(true);
      await b.lives(500);
      expect(b.seq).toEqual({ one: 10_100 });
      expect([await stored(a), await stored(b)]).toEqual([[], ['one']]);
      expect(await b.store.isElsewhere('b', 'one')).toBe(false);
      expect(a.cell.isOwner).toBe(true);
      a.clock.advance(1_800);
      expect(a.cell.isOwner).toBe(false);
    });

    it('let one that was taken over drop those dialogs, keep the others and be a cell again', async () => {
      const [a, b] = [await server('a'), await server('b')];
      a.has('one');
      await a.lives(500);
      await b.lives(2_500);
      // It does not know yet: nothing that it writes comes among the other's.
      a.has('new');
      a.has('one', 200);
      await a.lives(1_000);
      expect([a.dropped, a.seq]).toEqual([['one'], { new: 100 }]);
      expect([await stored(a), await stored(b)]).toEqual([['new'], ['one']]);
      expect(a.cell.isOwner).toBe(true);
      await b.lives(2_500);
      expect(Object.keys(b.seq).sort()).toEqual(['new', 'one']);
    });

    it('let one that starts again learn what was taken from it, and keep the rest', async () => {
      const [a, b] = [await server('a'), await server('b')];
      a.has('one');
      await a.lives(500);
      await a.cell.close();
      const again = new Server('a', { url: redis.url, cluster });
      servers.push(again);
      again.dialogs.set('one', { callId: 'one', reservedSeq: 100 });
      again.open();
      await again.lives(500);
      expect(again.dropped).toEqual([]);
      await b.lives(2_750);
      expect(b.seq).toEqual({ one: 10_100 });
      await again.lives(500);
      expect(again.dropped).toEqual(['one']);
    });

    it('keep one whose gateways are alive', async () => {
      const stores = openRedisStores({
        commandTimeoutMs: HANG_GUARD_MS,
        url: redis.url,
        cluster,
        clock: systemClock,
        log: silentLog,
        instance: 'gateway-of-a',
      });
      await stores.ready(HANG_GUARD_MS);
      const [a, b] = [await server('a', ['gateway-of-a']), await server('b')];
      a.has('one');
      await a.lives(500);
      await expect.poll(() => b.store.isAnyAlive(['gateway-of-a'])).toBe(true);
      await b.lives(3_000);
      expect(b.seq).toEqual({});
      await stores.close();
      await b.lives(500);
      expect(b.seq).toEqual({ one: 10_100 });
    });

    it('take over nothing at once after they were suspended themselves', async () => {
      const [a, b] = [await server('a'), await server('b')];
      a.has('one');
      await a.lives(500);
      await b.lives(1_000);
      b.clock.advance(30_000);
      await b.lives(1_750);
      expect(b.seq).toEqual({});
      await b.lives(1_000);
      expect(b.seq).toEqual({ one: 10_100 });
    });

    it('store everything again after Redis lost it', async () => {
      const a = await server('a');
      a.has('one');
      await a.lives(500);
      await redis.command('FLUSHALL');
      await a.lives(750);
      expect(await stored(a)).toEqual(['one']);
    });
  });
}

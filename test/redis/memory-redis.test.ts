import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { connect } from 'node:net';
import fc from 'fast-check';
import { beforeAll, describe, expect, it } from 'vitest';
import { openRedisStores } from '../../src/gateway/store/redis/redis-stores.js';
import { RedisCells } from '../../src/gateway/store/redis/cells/redis-cells.js';
import { silentLog } from '../../src/lib/log.js';
import { HANG_GUARD_MS } from '../support/hang-guard.js';
import { connectTo, serveRedis } from '../support/memory-redis.js';
import { KEYS, redisCommands, type Commands } from '../support/redis-commands.js';
import { RedisWire } from '../support/redis-wire.js';
import { startRedis, type TestRedis } from '../support/redis.js';
import { operate, OPERATION_NAMES } from '../support/store-operations.js';
import { VirtualClock } from '../support/virtual-clock.js';
import { MemoryRedis } from '../world/redis/memory-redis.js';

// A Redis in memory is as good as what it answers: the same bytes as a redis-server, to the same commands.

let server: TestRedis;
let wire: RedisWire;
beforeAll(async () => {
  server = await startRedis();
  // Small hashes are in the order in which they were written, as all are in memory.
  await server.command('CONFIG SET hash-max-listpack-value 65536 hash-max-listpack-entries 65536');
  wire = new RedisWire(connect(server.port, '127.0.0.1'));
  return async () => {
    wire.socket.destroy();
    await server.close();
  };
});

/** Their order is no promise of Redis. */
const UNORDERED = new Set(['SMEMBERS', 'KEYS', 'SCAN', 'EXEC']);
const WEEK_MS = 604_800_000;

const sha1Of = (script: string): string => createHash('sha1').update(script, 'latin1').digest('hex');

/** The script at one moment, and with a week more where a key is to expire: it does the same however slow the server is. */
function unhurried(script: string, nowMs: number): string {
  const time = `({'${String(Math.floor(nowMs / 1_000))}','${String((nowMs % 1_000) * 1_000)}'})`;
  return script
    .replaceAll("redis.call('TIME')", time)
    .replaceAll(/redis\.call\('PEXPIRE', (.+)\)$/gm, `redis.call('PEXPIRE', $1 + ${String(WEEK_MS)})`);
}

function inOrder([name = '']: readonly string[], answer: string): string {
  if (!UNORDERED.has(name.toUpperCase())) return answer;
  return answer.split('\r\n').toSorted().join('\r\n');
}

/** Both answers are one but for times: the server's clock has gone on by no more than this. */
function isSame(ofServer: string, ofMemory: string, passedMs: number): boolean {
  // Of the entries of one millisecond, the server may have some in the next.
  const [one, other] = [ofServer, ofMemory].map((answer) => answer.replaceAll(/(\d{13})-\d+/g, '$1-').split(/(\d+)/));
  return (
    one !== undefined &&
    one.length === other?.length &&
    one.every((part, at) => {
      const counterpart = other[at] ?? '';
      return part === counterpart || (Number(counterpart) > 100_000 && Math.abs(Number(part) - Number(counterpart)) <= passedMs);
    })
  );
}

/** Sends the same to both, and holds the answers against each other; then what is in these keys. */
class Comparison {
  readonly #begunMs = Date.now();
  readonly #memory = new RedisWire(connectTo(new MemoryRedis({ wallMs: () => this.#begunMs })));

  private constructor(private readonly server: RedisWire) {}

  static async begin(server: RedisWire, protocol: string): Promise<Comparison> {
    const hello = ['HELLO', protocol];
    await server.ask([hello, ['FLUSHALL'], ['SCRIPT', 'FLUSH']]);
    const comparison = new Comparison(server);
    await comparison.#memory.ask([hello]);
    return comparison;
  }

  /** Since both began. */
  get passedMs(): number {
    return Date.now() - this.#begunMs;
  }

  async both(commands: Commands): Promise<void> {
    const [ofServer, ofMemory] = await Promise.all([this.server, this.#memory].map((one) => one.ask(commands)));
    commands.forEach((command, at) => {
      const [one = '', other = ''] = [ofServer, ofMemory].map((answers) => inOrder(command, answers?.[at] ?? ''));
      if (!isSame(one, other, this.passedMs)) expect({ command, answer: other }).toEqual({ command, answer: one });
    });
  }

  async dump(keys: readonly string[]): Promise<void> {
    const types = await this.server.ask(keys.map((key) => ['TYPE', key]));
    await this.both(keys.flatMap((key, at) => [['TYPE', key], ['PEXPIRETIME', key], ...readsOf(key, types[at] ?? '')]));
  }
}

function readsOf(key: string, type: string): Commands {
  const reads: Readonly<Record<string, readonly string[]>> = {
    '+string\r\n': ['GET', key],
    '+hash\r\n': ['HGETALL', key],
    '+list\r\n': ['LRANGE', key, '0', '-1'],
    '+set\r\n': ['SMEMBERS', key],
    '+zset\r\n': ['ZRANGE', key, '0', '-1', 'WITHSCORES'],
    '+stream\r\n': ['XRANGE', key, '-', '+'],
  };
  const read = reads[type];
  return read === undefined ? [] : [read];
}

it.each(['2', '3'])('the Redis in memory answers any commands as a redis-server does, in RESP%s', async (protocol) => {
  await fc.assert(
    fc.asyncProperty(redisCommands, async (commands) => {
      const comparison = await Comparison.begin(wire, protocol);
      await comparison.both([...commands, ['DISCARD']]);
      await comparison.dump(KEYS);
    }),
    { numRuns: 300 },
  );
});

describe('the commands of the stores', () => {
  /** Their answers say nothing of the data. */
  const LEFT_OUT = new Set(['HELLO', 'CLIENT', 'INFO', 'SUBSCRIBE', 'PING', 'TIME']);
  type Step = readonly [name: string, a: number, b: number];
  const steps: fc.Arbitrary<readonly Step[]> = fc.array(
    fc.tuple(fc.constantFrom(...OPERATION_NAMES), fc.nat({ max: 63 }), fc.nat({ max: 63 })),
    { minLength: 20, maxLength: 120, size: 'max' },
  );
  /** Each operation several times, on what those before it have made. */
  const everything = Array.from({ length: 8 }, (_, round) => OPERATION_NAMES.map((name, at): Step => [name, round, at + round])).flat();

  /** The commands of these operations, and the keys that there are then. */
  async function record(operations: readonly Step[], onScript?: (script: string) => void): Promise<[Commands, readonly string[]]> {
    const commands: (readonly string[])[] = [];
    const clock = new VirtualClock(Date.now() - WEEK_MS);
    const redis = new MemoryRedis(clock);
    const scripts = new Map<string, string>();
    const url = serveRedis(redis, (words) => {
      const [word = '', script = '', ...args] = words;
      const name = word.toUpperCase();
      if (name === 'EVAL') scripts.set(sha1Of(script), script);
      const source = name === 'EVALSHA' ? scripts.get(script) : name === 'EVAL' ? script : undefined;
      if (source !== undefined) onScript?.(source);
      if (source !== undefined) commands.push(['EVAL', unhurried(source, clock.wallMs()), ...args]);
      else if (name !== 'EVALSHA' && !LEFT_OUT.has(name)) commands.push(words);
    });
    const stores = openRedisStores({ url, clock, log: silentLog, instance: 'gw-1', commandTimeoutMs: HANG_GUARD_MS });
    const cells = new RedisCells({ url }, clock, silentLog);
    await stores.ready(HANG_GUARD_MS);
    const isConnected = (): Promise<boolean> =>
      cells.beat('cell-0', 0, 'beat|gw-1').then(
        () => true,
        () => false,
      );
    while (!(await isConnected())) await new Promise(setImmediate);
    for (const [name, a, b] of operations) await operate({ stores, cells, clock }, name, a, b);
    await Promise.all([stores.close(), cells.close()]);
    return [commands, [...redis.keys.keys()].map(([key]) => key)];
  }

  it('get the answers of a redis-server', async () => {
    await fc.assert(
      fc.asyncProperty(steps, async (operations) => {
        const [commands, keys] = await record(operations);
        const comparison = await Comparison.begin(wire, '2');
        await comparison.both(commands);
        await comparison.dump(keys);
      }),
      // One that fails is made smaller for so long.
      { numRuns: 15, examples: [[everything]] },
    );
  });

  it('include all of their scripts', async () => {
    const run = new Set<string>();
    await record(everything, (script) => run.add(script));
    const folder = new URL('../../src/gateway/store/redis/', import.meta.url);
    const files = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((file) => file.endsWith('.lua'));
    expect(files.length).toBeGreaterThan(20);
    const isRun = (file: string): boolean => {
      const source = readFileSync(new URL(file, folder), 'latin1');
      // The function of the time stands before the scripts that ask for it.
      return [...run].some((script) => script.includes(source));
    };
    expect(files.filter((file) => !isRun(file))).toEqual([]);
  });
});

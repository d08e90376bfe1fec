import { once } from 'node:events';
import fc from 'fast-check';
import { beforeEach, describe, expect, it } from 'vitest';
import { connectTo } from '../../support/memory-redis.js';
import { commandBytes, RedisWire } from '../../support/redis-wire.js';
import { VirtualClock } from '../../support/virtual-clock.js';
import { MemoryRedis } from '../../world/redis/memory-redis.js';
import { turn } from '../../support/turn.js';

// What test/redis/memory-redis.test.ts cannot hold against a redis-server: time, and what befalls a server.

let clock: VirtualClock;
let redis: MemoryRedis;
let client: RedisWire;

const open = (): RedisWire => new RedisWire(connectTo(redis));
const say = (line: string): Promise<string> => client.say(line);
const evaluate = async (script: string, wire = client): Promise<string> => (await wire.ask([['EVAL', script, '0']]))[0] ?? '';

beforeEach(() => {
  clock = new VirtualClock();
  redis = new MemoryRedis(clock);
  client = open();
});

describe('the time of the Redis in memory', () => {
  it('expires a key after its last millisecond', async () => {
    await say('SET key value PX 1000');
    clock.advance(1_000);
    expect(await say('GET key')).toBe('$5\r\nvalue\r\n');
    expect(await say('PTTL key')).toBe(':0\r\n');
    clock.advance(1);
    expect(await say('DBSIZE')).toBe(':0\r\n');
    expect(await say('KEYS *')).toBe('*0\r\n');
    expect(await say('SCAN 0')).toBe('*2\r\n$1\r\n0\r\n*0\r\n');
    expect(await say('TTL key')).toBe(':-2\r\n');
    expect(await say('SET key other NX')).toBe('+OK\r\n');
  });

  it('lets a hash that expired be a new one when it is written later', async () => {
    await client.ask([
      ['HSET', 'hash', 'one', '1'],
      ['PEXPIRE', 'hash', '10'],
    ]);
    clock.advance(11);
    expect(await say('HSET hash two 2')).toBe(':1\r\n');
    expect(await say('HKEYS hash')).toBe('*1\r\n$3\r\ntwo\r\n');
    expect(await say('PTTL hash')).toBe(':-1\r\n');
  });

  it('gives TIME and the ids of a stream from the clock', async () => {
    clock.advance(1_234.567);
    const seconds = String(Math.floor(clock.wallMs() / 1_000));
    expect(await say('TIME')).toBe(`*2\r\n$${seconds.length}\r\n${seconds}\r\n$6\r\n234567\r\n`);
    const id = String(Math.floor(clock.wallMs()));
    expect(await say('XADD log * entry one')).toContain(`${id}-0`);
    expect(await say('XADD log * entry two')).toContain(`${id}-1`);
    clock.setWall(-5_000);
    expect(await say('XADD log * entry three')).toContain(`${id}-2`);
  });
});

describe('the Redis in memory, under faults,', () => {
  it.each(['READONLY', 'NOREPLICAS', 'MISCONF'] as const)('refuses writes with %s, and answers reads', async (refusal) => {
    await say('SET key value');
    redis.refusal = refusal;
    expect(await say('SET key other')).toMatch(new RegExp(`^-${refusal} `));
    expect(await evaluate("return redis.call('DEL', 'key')")).toMatch(
      new RegExp(`^-${refusal} .* script: [0-9a-f]{40}, on @user_script:1\\.\r\n$`),
    );
    expect(await say('GET key')).toBe('$5\r\nvalue\r\n');
    redis.refusal = null;
    expect(await say('SET key other')).toBe('+OK\r\n');
  });

  it('accepts, when it is full, only commands that need no memory, and lets a script finish that has begun to write', async () => {
    await say('SET key value');
    redis.memory = { usedBytes: 2_001, maxBytes: 2_000, policy: 'noeviction' };
    expect(await say('SET other value')).toBe("-OOM command not allowed when used memory > 'maxmemory'.\r\n");
    expect(await say('INFO memory')).toContain('maxmemory:2000\r\n');
    expect(await evaluate("return redis.call('SET', 'other', 1)")).toMatch(/^-OOM /);
    expect(await evaluate("redis.call('DEL', 'key') return redis.call('SET', 'other', 1)")).toBe('+OK\r\n');
    expect(await say('GET key')).toBe('$-1\r\n');
  });

  it('answers nothing while it is stalled, and then everything in order', async () => {
    redis.stall();
    const answers: string[] = [];
    for (const line of ['SET key 1', 'GET key', 'DEL key']) void say(line).then((answer) => answers.push(answer));
    const late = open().say('GET key');
    const impatient = open();
    impatient.socket.write(commandBytes(['SET', 'other', '1']));
    impatient.socket.destroy();
    await turn();
    expect(answers).toEqual([]);
    expect(redis.keys.has('key')).toBe(false);
    redis.go();
    expect(await late).toBe('$-1\r\n');
    expect(answers).toEqual(['+OK\r\n', '$1\r\n1\r\n', ':1\r\n']);
    expect(await say('GET other')).toBe('$1\r\n1\r\n');
  });

  it('loses connections and scripts in a crash, and keeps its data unless it is set to lose them', async () => {
    const sha1 = (await client.ask([['SCRIPT', 'LOAD', 'return 1']]))[0]?.split('\r\n')[1] ?? '';
    expect(await say(`EVALSHA ${sha1} 0`)).toBe(':1\r\n');
    await say('SET key value');
    redis.stall();
    client.socket.write(commandBytes(['DEL', 'key']));
    redis.crash();
    await once(client.socket, 'close');
    client = open();
    expect(await say('GET key')).toBe('$5\r\nvalue\r\n');
    expect(await say(`EVALSHA ${sha1} 0`)).toBe('-NOSCRIPT No matching script. Please use EVAL.\r\n');
    redis.crash({ forget: true });
    client = open();
    expect(await say('GET key')).toBe('$-1\r\n');
  });

  it('closes the connections of one name, and keeps the others', async () => {
    const other = open();
    await other.say('CLIENT SETNAME changes');
    redis.dropConnections('changes');
    await once(other.socket, 'close');
    expect(await say('PING')).toBe('+PONG\r\n');
  });

  it('reports that its replicas have everything', async () => {
    expect(await say('WAIT 1 1000')).toBe(':0\r\n');
    redis.replicas = 2;
    expect(await say('WAIT 1 1000')).toBe(':2\r\n');
  });

  it('counts commands, and those of scripts', async () => {
    await evaluate("redis.call('GET', 'key') return redis.call('GET', 'key')");
    expect(Object.fromEntries(redis.counts)).toEqual({ eval: 1, get: 2 });
  });
});

describe('the channels of the Redis in memory', () => {
  it.each([
    [2, '*3\r\n'],
    [3, '>3\r\n'],
  ])('deliver to subscribers in RESP%i what others publish, until they unsubscribe', async (protocol, frame) => {
    const listener = open();
    await listener.ask([['HELLO', String(protocol)]]);
    await listener.say('SUBSCRIBE changes');
    expect(await say('PUBLISH changes one')).toBe(':1\r\n');
    expect(await say('PUBLISH others two')).toBe(':0\r\n');
    expect(listener.pushed).toEqual([`${frame}$7\r\nmessage\r\n$7\r\nchanges\r\n$3\r\none\r\n`]);
    await listener.say('UNSUBSCRIBE changes');
    expect(await say('PUBLISH changes three')).toBe(':0\r\n');
    expect(listener.pushed).toHaveLength(1);
  });

  it('allow a subscriber in RESP2 no other command', async () => {
    await say('SUBSCRIBE changes');
    expect(await say('GET key')).toMatch(/^-ERR Can't execute 'get'/);
    expect(await say('PING')).toBe('*2\r\n$4\r\npong\r\n$0\r\n\r\n');
  });

  it('deliver a message of a script only after the script', async () => {
    const listener = open();
    await listener.ask([
      ['HELLO', '3'],
      ['SUBSCRIBE', 'changes'],
    ]);
    const other = open();
    // From then on each of its commands comes within the call that writes it.
    await other.say('PING');
    listener.socket.on('data', () => other.socket.write(commandBytes(['SET', 'key', 'other'])));
    expect(
      await evaluate("redis.call('SET', 'key', 'script') redis.call('PUBLISH', 'changes', 'key') return redis.call('GET', 'key')"),
    ).toBe('$6\r\nscript\r\n');
    expect(await say('GET key')).toBe('$5\r\nother\r\n');
  });
});

describe('the transactions of the Redis in memory', () => {
  it('run their commands together at EXEC, and one that fails stops no other', async () => {
    const other = open();
    expect(await say('MULTI')).toBe('+OK\r\n');
    expect(await say('SET key 1')).toBe('+QUEUED\r\n');
    expect(await other.say('GET key')).toBe('$-1\r\n');
    await say('HGET key field');
    await say('GET key');
    expect(await say('EXEC')).toBe('*3\r\n+OK\r\n-WRONGTYPE Operation against a key holding the wrong kind of value\r\n$1\r\n1\r\n');
  });

  it('do not run when they have an unknown command', async () => {
    await say('MULTI');
    await say('SET key 1');
    expect(await say('NOSUCH')).toMatch(/^-ERR unknown command 'NOSUCH'/);
    expect(await say('EXEC')).toBe('-EXECABORT Transaction discarded because of previous errors.\r\n');
    expect(await say('EXISTS key')).toBe(':0\r\n');
  });
});

describe('the protocol of the Redis in memory', () => {
  it('accepts commands in any pieces', async () => {
    const bytes = Buffer.from(
      [
        ['SET', 'key', 'a\r\n\x00\xff'],
        ['GET', 'key'],
        ['DEL', 'key'],
      ]
        .map(commandBytes)
        .join('') + 'PING "a \\x41"\r\n',
      'latin1',
    );
    await fc.assert(
      fc.asyncProperty(fc.uniqueArray(fc.nat({ max: bytes.length })), async (cuts) => {
        const socket = connectTo(redis);
        let answers = '';
        socket.on('data', (chunk: Buffer) => (answers += chunk.toString('latin1')));
        const edges = [0, ...cuts.sort((a, b) => a - b), bytes.length];
        edges.slice(1).forEach((edge, at) => socket.write(bytes.subarray(edges[at], edge)));
        await turn();
        expect(answers).toBe('+OK\r\n$5\r\na\r\n\x00\xff\r\n:1\r\n$3\r\na A\r\n');
      }),
    );
  });

  it('closes a connection that sends no commands', async () => {
    client.socket.write('*1\r\nPING\r\n');
    await once(client.socket, 'end');
    expect(client.pushed).toEqual(["-ERR Protocol error: expected '$', got 'P'\r\n"]);
  });

  it('a scan finds each key that exists throughout once, whatever else comes and goes', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.nat({ max: 30 })), fc.integer({ min: 1, max: 5 }), async (changes, count) => {
        redis.keys.clear();
        const kept = Array.from({ length: 12 }, (_, at) => `kept:${String(at)}`);
        for (const key of kept)
          await client.ask([
            ['SET', `${key}:gone`, ''],
            ['SET', key, ''],
          ]);
        const found: string[] = [];
        let cursor = '0';
        do {
          const page = await say(`SCAN ${cursor} COUNT ${String(count)}`);
          const words = page.split('\r\n').filter((line) => !/^[*$]/.test(line) && line !== '');
          cursor = words[0] ?? '0';
          found.push(...words.slice(1).filter((key) => kept.includes(key)));
          const change = changes.pop();
          if (change !== undefined)
            await client.ask([
              ['DEL', `kept:${String(change)}:gone`],
              ['SET', `new:${String(change)}`, ''],
            ]);
        } while (cursor !== '0');
        expect(found.toSorted()).toEqual(kept.toSorted());
      }),
    );
  });
});

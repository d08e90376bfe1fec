import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { rmSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { RedisScript } from '../../src/gateway/store/redis/redis.js';
import { freePorts } from './ports.js';
import type { VirtualClock } from './virtual-clock.js';

/** A redis-server or a Redis Cluster, whose time a test can move on. */
export interface AnyRedis {
  readonly url: string;
  readonly isCluster: boolean;
  readonly nodes: readonly Pick<TestRedis, 'command'>[];
  /** Sends one command in inline form; resolves with the raw answer, of a cluster that of the node which has the key. */
  command(text: string): Promise<string>;
  /** For the stores on this Redis: a script in its time. */
  inTime(script: RedisScript): RedisScript;
  /** The time of scripts, in ms. */
  now(): number;
  /** When a key expires by the server's own clock, in ms; -1: it does not, -2: there is no such key. */
  expiresMs(key: string): Promise<number>;
  /** Moves the time of scripts on, every key as much nearer to its expiry, and then these clocks. */
  advance(ms: number, ...clocks: readonly VirtualClock[]): Promise<void>;
  /** Empties it, and its time is the server's own again. */
  clear(): Promise<void>;
}

/** A real redis-server with an append-only file, on a free port and in a directory of its own. */
export interface TestRedis extends AnyRedis {
  readonly port: number;
  isRunning(): boolean;
  /** Ends the server as an operator does; what it acknowledged is on disk. */
  stopServer(): Promise<void>;
  /** Ends it as a crash does. */
  killServer(): Promise<void>;
  /** Starts it again on the same port with the same files. */
  startServer(): Promise<void>;
  /** Freezes the server: connections stay open and nothing answers. */
  freeze(): void;
  thaw(): void;
  /** Ends the server and removes its directory. */
  close(): Promise<void>;
  /** As `close`, at once. */
  discard(): void;
}

/** @param more of the configuration, which has the last word */
export async function startRedis(more: readonly string[] = []): Promise<TestRedis> {
  const [port = 0] = await freePorts(1);
  return startNode(port, more);
}

export interface TestRedisCluster extends AnyRedis, Pick<TestRedis, 'close' | 'discard' | 'stopServer' | 'startServer'> {
  readonly nodes: readonly TestRedis[];
}

/** A cluster of three nodes, each with a third of the slots. */
export async function startRedisCluster(more: readonly string[] = []): Promise<TestRedisCluster> {
  const ports = await freePorts(2 * CLUSTER_NODES);
  const nodes = await Promise.all(
    Array.from({ length: CLUSTER_NODES }, (_, index) => {
      const [port = 0, bus = 0] = ports.slice(2 * index);
      const args = ['--cluster-enabled', 'yes', '--cluster-port', String(bus), '--cluster-node-timeout', '2000'];
      return startNode(port, [...args, '--cluster-require-full-coverage', 'no', ...more]);
    }),
  );
  const [first] = nodes;
  for (const [index, node] of nodes.entries()) {
    await node.command(`CLUSTER ADDSLOTSRANGE ${String(slotsBefore(index))} ${String(slotsBefore(index + 1) - 1)}`);
    if (node !== first) await first?.command(`CLUSTER MEET 127.0.0.1 ${String(node.port)} ${String(ports[2 * index + 1])}`);
  }
  await isFormed(nodes);
  const command = async (text: string): Promise<string> => {
    const answers = await Promise.all(nodes.map((node) => node.command(text)));
    return answers.find((answer) => !answer.startsWith('-MOVED')) ?? '';
  };
  return {
    url: nodes.map(({ url }) => url).join(','),
    isCluster: true,
    nodes,
    command,
    ...movable(nodes),
    stopServer: async () => {
      await Promise.all(nodes.map((node) => node.stopServer()));
    },
    startServer: async () => {
      await Promise.all(nodes.map((node) => node.startServer()));
      await isFormed(nodes);
    },
    close: async () => {
      await Promise.all(nodes.map((node) => node.close()));
    },
    discard: () => {
      for (const node of nodes) node.discard();
    },
  };
}

export interface TestSentinels {
  /** The Sentinels' addresses. */
  readonly url: string;
  readonly name: string;
  readonly primary: TestRedis;
  readonly replica: TestRedis;
  close(): Promise<void>;
}

/** A replica that has all that the primary has. */
export async function startRedisReplica(primary: TestRedis): Promise<TestRedis> {
  const [port = 0] = await freePorts(1);
  const replica = await startNode(port, ['--replicaof', '127.0.0.1', String(primary.port)]);
  await answers(replica, 'INFO replication', /master_link_status:up/);
  return replica;
}

/** A primary with a replica, and three Sentinels that watch them. */
export async function startRedisSentinels(): Promise<TestSentinels> {
  const name = 'trunkline';
  const primary = await startRedis();
  const replica = await startRedisReplica(primary);
  const sentinelPorts = await freePorts(3);
  const sentinels = await Promise.all(sentinelPorts.map((port) => startSentinel(port, name, primary.port)));
  for (const sentinel of sentinels)
    await answers(sentinel, `SENTINEL MASTER ${name}`, /num-slaves\r\n\$1\r\n1\r\n[^]*num-other-sentinels\r\n\$1\r\n2\r\n/);
  return {
    url: sentinels.map(({ port }) => `redis://127.0.0.1:${String(port)}`).join(','),
    name,
    primary,
    replica,
    close: async () => {
      await Promise.all([...sentinels, primary, replica].map((node) => node.close()));
    },
  };
}

async function startSentinel(port: number, name: string, primaryPort: number): Promise<TestRedis> {
  const config = [
    `sentinel monitor ${name} 127.0.0.1 ${String(primaryPort)} 2`,
    `sentinel down-after-milliseconds ${name} 500`,
    `sentinel failover-timeout ${name} 3000`,
  ];
  return startNode(port, [], config);
}

async function answers(node: TestRedis, command: string, expected: RegExp): Promise<void> {
  while (!expected.test(await node.command(command))) await pause();
}

/** Between two questions: nodes take seconds to find one another, and would serve nothing but these. */
const pause = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 20));

/** Each node knows the others and their slots: a client asks any of them where the slots are. */
async function isFormed(nodes: readonly TestRedis[]): Promise<void> {
  const lines = ['cluster_state:ok', `cluster_known_nodes:${String(CLUSTER_NODES)}`, `cluster_slots_assigned:${String(SLOTS)}`];
  for (const node of nodes) {
    for (let info = ''; !lines.every((line) => info.includes(`${line}\r\n`));) {
      await pause();
      info = await node.command('CLUSTER INFO');
    }
  }
}

const CLUSTER_NODES = 3;
const SLOTS = 16_384;
const slotsBefore = (index: number): number => Math.round((index * SLOTS) / CLUSTER_NODES);

/** @param sentinel configuration of a Sentinel; without it the node keeps data */
async function startNode(port: number, more: readonly string[], sentinel: readonly string[] | null = null): Promise<TestRedis> {
  const directory = await mkdtemp(join(tmpdir(), 'trunkline-redis-'));
  const args = ['--port', String(port), '--bind', '127.0.0.1', '--dir', directory];
  if (sentinel === null) args.push('--save', '', '--appendonly', 'yes', '--appendfsync', 'always', ...more);
  else {
    await writeFile(join(directory, 'sentinel.conf'), `${sentinel.join('\n')}\n`);
    args.unshift(join(directory, 'sentinel.conf'), '--sentinel');
  }
  let server: ChildProcess | undefined;

  const startServer = async (): Promise<void> => {
    server = spawn('redis-server', args, { stdio: 'ignore' });
    await answersPing(port, server);
  };
  const stopServer = async (): Promise<void> => {
    const running = server;
    server = undefined;
    if (running === undefined || running.exitCode !== null) return;
    running.kill('SIGCONT');
    running.kill('SIGTERM');
    await once(running, 'exit');
  };
  const killServer = async (): Promise<void> => {
    const running = server;
    server = undefined;
    if (running === undefined || running.exitCode !== null) return;
    const gone = once(running, 'exit');
    running.kill('SIGKILL');
    await gone;
  };
  await startServer();
  const command = (text: string): Promise<string> => send(port, text);
  return {
    url: `redis://127.0.0.1:${port}`,
    port,
    isCluster: false,
    nodes: [{ command }],
    command,
    ...movable([{ command }]),
    isRunning: () => server !== undefined,
    startServer,
    stopServer,
    killServer,
    freeze: () => void server?.kill('SIGSTOP'),
    thaw: () => void server?.kill('SIGCONT'),
    close: async () => {
      await stopServer();
      await rm(directory, { recursive: true, force: true });
    },
    discard: () => {
      server?.kill('SIGKILL');
      rmSync(directory, { recursive: true, force: true });
    },
  };
}

const EXPIRE_SOONER = [
  `for _, key in ipairs(redis.call('KEYS', '*')) do`,
  `local expires = redis.call('PEXPIRETIME', key)`,
  `if expires > 0 then redis.call('PEXPIREAT', key, expires - ARGV[1]) end`,
  `end return 'moved'`,
].join(' ');

const nowMovedBy = (ms: number): string =>
  `local function now_ms() local time = redis.call('TIME') return time[1] * 1000 + math.floor(time[2] / 1000) + ${String(ms)} end\n`;

/** The time of a Redis, and what is asked of all its nodes. */
function movable(nodes: AnyRedis['nodes']): Pick<AnyRedis, 'inTime' | 'now' | 'expiresMs' | 'advance' | 'clear'> {
  let movedMs = 0;
  /** The scripts in the time of now. */
  const moved = new Map<RedisScript, RedisScript>();
  const ofAll = (text: string): Promise<readonly string[]> => Promise.all(nodes.map(({ command }) => command(text)));
  return {
    inTime: (script) => {
      const known = moved.get(script) ?? new RedisScript(script.name, nowMovedBy(movedMs));
      moved.set(script, known);
      return known;
    },
    now: () => Date.now() + movedMs,
    expiresMs: async (key) => Number((await ofAll(`PEXPIRETIME ${key}`)).find((answer) => answer.startsWith(':'))?.slice(1)),
    advance: async (ms, ...clocks) => {
      movedMs += ms;
      moved.clear();
      for (const answer of await ofAll(`EVAL "${EXPIRE_SOONER}" 0 ${String(ms)}`))
        if (!answer.includes('moved')) throw new Error(`the keys of Redis expire as before: ${answer}`);
      for (const clock of clocks) await clock.advanceAsync(ms);
    },
    clear: async () => {
      movedMs = 0;
      moved.clear();
      for (const text of ['FLUSHALL', 'SCRIPT FLUSH', 'CONFIG RESETSTAT']) await ofAll(text);
    },
  };
}

async function answersPing(port: number, server: ChildProcess): Promise<void> {
  // Each attempt waits for the kernel's answer to a connect; the pause between is setImmediate, so no time is fixed here.
  for (;;) {
    if (server.exitCode !== null) throw new Error(`redis-server ended with ${server.exitCode}`);
    const answer = await send(port, 'PING').catch(() => '');
    if (answer.startsWith('+PONG')) return;
    await new Promise((resolve) => setImmediate(resolve));
  }
}

/** One command in inline form; resolves with the raw answer. */
export function send(port: number, text: string, host = '127.0.0.1'): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, host, () => socket.write(`${text}\r\n`));
    socket.setEncoding('utf8');
    socket.once('data', (answer) => {
      resolve(answer.toString());
      socket.destroy();
    });
    socket.once('error', reject);
    socket.once('close', () => reject(new Error('redis-server closed the connection')));
  });
}

/** When the lease of a member of a sorted set ends, in ms of the time of scripts; 0: there is none. */
export async function leaseEnd(redis: Pick<TestRedis, 'command'>, key: string, member: string): Promise<number> {
  return Number(/\r\n(\d+)/.exec(await redis.command(`ZSCORE ${key} ${member}`))?.[1] ?? 0);
}

/** Keeps what a sorted set counts of the last second, however long the test takes: by the clock of Redis each of them comes in an hour. */
export async function holdSecond(redis: Pick<AnyRedis, 'command' | 'now'>, key: string): Promise<void> {
  const members = (await redis.command(`ZRANGE ${key} 0 -1`)).split('\r\n').filter((line) => !/^[*$]|^$/.test(line));
  for (const member of members) await redis.command(`ZADD ${key} XX ${String(redis.now() + 3_600_000)} ${member}`);
  await redis.command(`PERSIST ${key}`);
}

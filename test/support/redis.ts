import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePorts } from './ports.js';

/** A real redis-server with an append-only file, on a free port and in a directory of its own. */
export interface TestRedis {
  readonly url: string;
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
  /** Sends one command in inline form; resolves with the raw answer. */
  command(text: string): Promise<string>;
  /** Ends the server and removes its directory. */
  close(): Promise<void>;
}

export async function startRedis(): Promise<TestRedis> {
  const [port = 0] = await freePorts(1);
  return startNode(port, []);
}

export interface TestRedisCluster extends Pick<TestRedis, 'url' | 'close' | 'command' | 'stopServer' | 'startServer'> {
  readonly nodes: readonly TestRedis[];
}

/** A cluster of three nodes, each with a third of the slots. */
export async function startRedisCluster(): Promise<TestRedisCluster> {
  const ports = await freePorts(2 * CLUSTER_NODES);
  const nodes = await Promise.all(
    Array.from({ length: CLUSTER_NODES }, (_, index) => {
      const [port = 0, bus = 0] = ports.slice(2 * index);
      return startNode(port, [
        '--cluster-enabled',
        'yes',
        '--cluster-port',
        String(bus),
        '--cluster-node-timeout',
        '2000',
        '--cluster-require-full-coverage',
        'no',
      ]);
    }),
  );
  const [first] = nodes;
  for (const [index, node] of nodes.entries()) {
    await node.command(`CLUSTER ADDSLOTSRANGE ${String(slotsBefore(index))} ${String(slotsBefore(index + 1) - 1)}`);
    if (node !== first) await first?.command(`CLUSTER MEET 127.0.0.1 ${String(node.port)} ${String(ports[2 * index + 1])}`);
  }
  await isFormed(nodes);
  return {
    url: nodes.map(({ url }) => url).join(','),
    nodes,
    command: async (text) => {
      const answers = await Promise.all(nodes.map((node) => node.command(text)));
      return answers.find((answer) => !answer.startsWith('-MOVED')) ?? '';
    },
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
  while (!expected.test(await node.command(command))) await new Promise((resolve) => setImmediate(resolve));
}

async function isFormed(nodes: readonly TestRedis[]): Promise<void> {
  for (const node of nodes) {
    for (let info = ''; !info.includes('cluster_state:ok') || !info.includes(`cluster_known_nodes:${String(CLUSTER_NODES)}`);) {
      await new Promise((resolve) => setImmediate(resolve));
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
  const args = ['--port', String(port), '--bind', '127.0.0.1', '--dir', directory, ...more];
  if (sentinel === null) args.push('--save', '', '--appendonly', 'yes', '--appendfsync', 'always');
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
  return {
    url: `redis://127.0.0.1:${port}`,
    port,
    isRunning: () => server !== undefined,
    startServer,
    stopServer,
    killServer,
    freeze: () => void server?.kill('SIGSTOP'),
    thaw: () => void server?.kill('SIGCONT'),
    command: (text) => send(port, text),
    close: async () => {
      await stopServer();
      await rm(directory, { recursive: true, force: true });
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

/** The lease of a member of a sorted set ends, as it would by the clock of Redis. */
export async function endLease(redis: Pick<TestRedis, 'command'>, key: string, member: string): Promise<void> {
  const changed = await redis.command(`ZADD ${key} XX CH 1 ${member}`);
  if (!changed.startsWith(':1')) throw new Error(`${member} has no lease in ${key}: ${changed}`);
}

/** When that lease ends, in ms of the clock of Redis; 0: there is none. */
export async function leaseEnd(redis: Pick<TestRedis, 'command'>, key: string, member: string): Promise<number> {
  return Number(/\r\n(\d+)/.exec(await redis.command(`ZSCORE ${key} ${member}`))?.[1] ?? 0);
}

/** Keeps what a sorted set counts of the last second in it, however long the test takes: by the clock of Redis each of them comes in an hour. */
export async function holdSecond(redis: Pick<TestRedis, 'command'>, key: string): Promise<void> {
  const members = (await redis.command(`ZRANGE ${key} 0 -1`)).split('\r\n').filter((line) => !/^[*$]|^$/.test(line));
  for (const member of members) await redis.command(`ZADD ${key} XX ${String(Date.now() + 3_600_000)} ${member}`);
}

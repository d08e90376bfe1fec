import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePorts } from './ports.js';

/** A real redis-server with an append-only file, on a free port and in a directory of its own. */
export interface TestRedis {
  readonly url: string;
  readonly port: number;
  /** Ends the server as an operator does; what it acknowledged is on disk. */
  stopServer(): Promise<void>;
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

async function startNode(port: number, more: readonly string[]): Promise<TestRedis> {
  const directory = await mkdtemp(join(tmpdir(), 'trunkline-redis-'));
  const args = ['--port', String(port), '--bind', '127.0.0.1', '--dir', directory, '--save', '', '--appendonly', 'yes'];
  args.push('--appendfsync', 'always', ...more);
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
  await startServer();
  return {
    url: `redis://127.0.0.1:${port}`,
    port,
    startServer,
    stopServer,
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
export function send(port: number, text: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, '127.0.0.1', () => socket.write(`${text}\r\n`));
    socket.setEncoding('utf8');
    socket.once('data', (answer) => {
      resolve(answer.toString());
      socket.destroy();
    });
    socket.once('error', reject);
    socket.once('close', () => reject(new Error('redis-server closed the connection')));
  });
}

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

export interface TestRedisOptions {
  /** One node that owns all slots: a script or command over two slots is refused. */
  readonly cluster?: boolean;
}

export async function startRedis(options: TestRedisOptions = {}): Promise<TestRedis> {
  const directory = await mkdtemp(join(tmpdir(), 'trunkline-redis-'));
  const [port = 0, bus = 0] = await freePorts(2);
  const args = ['--port', String(port), '--bind', '127.0.0.1', '--dir', directory, '--save', '', '--appendonly', 'yes'];
  args.push('--appendfsync', 'always', ...(options.cluster === true ? ['--cluster-enabled', 'yes', '--cluster-port', String(bus)] : []));
  let server: ChildProcess | undefined;

  const startServer = async (): Promise<void> => {
    server = spawn('redis-server', args, { stdio: 'ignore' });
    await answersPing(port, server);
    if (options.cluster === true) await formCluster(port);
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

async function formCluster(port: number): Promise<void> {
  await send(port, 'CLUSTER ADDSLOTSRANGE 0 16383').catch(() => '');
  while (!(await send(port, 'CLUSTER INFO')).includes('cluster_state:ok')) await new Promise((resolve) => setImmediate(resolve));
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

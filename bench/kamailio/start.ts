import { spawn, type ChildProcess } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { ensureCertificates } from '../../src/tls/certificates.js';
import type { RtpengineNode } from '../../src/gateway/relay/node.js';
import { freePorts } from '../../test/support/ports.js';
import { startRedis } from '../../test/support/redis.js';
import { RunningRtpengine } from '../../test/support/rtpengine.js';
import { NUMBER, RELAY_PORTS, type Subject } from '../gateway/subject.js';

const STARTS_WITHIN_MS = 15_000;

/** Kamailio with a Redis, an rtpengine and an agent of its own (README.md beside this file). */
export interface KamailioSubject extends Subject {
  relay(): RtpengineNode;
}

/** Starts Debian's Kamailio with kamailio.cfg and all that it stands on; resolves when it takes connections. */
export async function kamailioSubject(): Promise<KamailioSubject> {
  const [tlsPort = 0, udpPort = 0, agentPort = 0] = await freePorts(3);
  const directory = await mkdtemp(join(tmpdir(), 'trunkline-kamailio-'));
  const certificates = await ensureCertificates(join(tmpdir(), 'trunkline-bench-certificates'), ['localhost', '127.0.0.1'], Date.now());
  const redis = await startRedis();
  const redisPid = Number(/process_id:(\d+)/.exec(await redis.command('INFO server'))?.[1]);
  await redis.command(`SET did:${NUMBER} sip:agent@127.0.0.1:${String(agentPort)}`);
  const rtpengine = await RunningRtpengine.start(RELAY_PORTS.min, RELAY_PORTS.max);
  const agent = spawn('sipp', sippArguments(agentPort), { stdio: 'ignore', cwd: directory });
  const file = join(directory, 'kamailio.cfg');
  const values = {
    TLS_PORT: String(tlsPort),
    UDP_PORT: String(udpPort),
    REDIS_PORT: String(redis.port),
    NG_PORT: String(rtpengine.port),
    CERTIFICATE: resolve(certificates.certFile),
    KEY: resolve(certificates.keyFile),
    MODULES: modules(),
  };
  await writeFile(file, filledIn(await readFile(resolve('bench/kamailio/kamailio.cfg'), 'utf8'), values));
  const kamailio = spawn('kamailio', ['-DD', '-E', '-f', file, '-m', '512', '-M', '16', '-Y', directory], {
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  let said = '';
  kamailio.stderr.on('data', (chunk: Buffer) => (said = (said + chunk.toString()).slice(-10_000)));
  const close = async (): Promise<void> => {
    await Promise.all([ended(kamailio, 'SIGTERM'), ended(agent, 'SIGKILL')]);
    await rtpengine.stop();
    await redis.close();
    await rm(directory, { recursive: true, force: true });
  };
  try {
    await untilOpen(tlsPort, kamailio);
  } catch (error) {
    await close();
    throw new Error(`${(error as Error).message}\n${said}`, { cause: error });
  }
  return {
    target: { port: tlsPort, transport: 'TLS', ca: await readFile(certificates.caFile, 'utf8'), messages: 'carrier' },
    processes: () => [
      { name: 'redis-server', pid: redisPid },
      { name: 'rtpengine', pid: rtpengine.pid },
      { name: 'agent (sipp)', pid: agent.pid ?? 0 },
      ...withChildren(kamailio.pid ?? 0).map((pid) => ({ name: 'kamailio', pid })),
    ],
    own: ['kamailio'],
    relay: () => rtpengine.node(),
    close,
  };
}

function sippArguments(port: number): string[] {
  const scenario = resolve('bench/kamailio/agent.xml');
  // It sends media back as it came.
  const media = ['-rtp_echo', '-mp', '29800'];
  return ['-sf', scenario, '-t', 'u1', '-i', '127.0.0.1', '-p', String(port), ...media, '-nostdin', '-l', '100000'];
}

function modules(): string {
  const found = ['x86_64', 'aarch64'].map((cpu) => `/usr/lib/${cpu}-linux-gnu/kamailio/modules/`).find((path) => existsSync(path));
  return found ?? '/usr/lib/kamailio/modules/';
}

function filledIn(template: string, values: Readonly<Record<string, string>>): string {
  return template.replace(/@([A-Z_]+)@/g, (_all, name: string) => {
    const value = values[name];
    if (value === undefined) throw new Error(`kamailio.cfg asks for ${name}`);
    return value;
  });
}

async function ended(child: ChildProcess, signal: NodeJS.Signals): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const gone = new Promise((done) => child.once('exit', done));
  child.kill(signal);
  await gone;
}

function withChildren(pid: number): number[] {
  const children = readFileSync(`/proc/${String(pid)}/task/${String(pid)}/children`, 'utf8').trim();
  return [pid, ...(children === '' ? [] : children.split(' ').flatMap((child) => withChildren(Number(child))))];
}

async function untilOpen(port: number, child: ChildProcess): Promise<void> {
  const deadlineMs = performance.now() + STARTS_WITHIN_MS;
  let failure: Error | undefined;
  child.once('error', (error) => (failure = error));
  while (!(await isOpen(port))) {
    if (failure !== undefined) throw failure;
    if (child.exitCode !== null) throw new Error(`kamailio ended with ${String(child.exitCode)}`);
    if (performance.now() > deadlineMs) throw new Error(`kamailio did not start within ${String(STARTS_WITHIN_MS)} ms`);
    await new Promise((done) => setTimeout(done, 50));
  }
}

function isOpen(port: number): Promise<boolean> {
  return new Promise((done) => {
    const socket = connect({ host: '127.0.0.1', port });
    socket.once('connect', () => {
      socket.destroy();
      done(true);
    });
    socket.once('error', () => done(false));
  });
}

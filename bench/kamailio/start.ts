import { spawn, type ChildProcess } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { ensureCertificates } from '../../src/tls/certificates.js';
import type { RtpengineNode } from '../../src/gateway/relay/node.js';
import { Kamailio } from '../../test/support/kamailio.js';
import { freePorts } from '../../test/support/ports.js';
import { startRedis } from '../../test/support/redis.js';
import { RunningRtpengine } from '../../test/support/rtpengine.js';
import { NUMBER, relayPorts, type Share, type Subject } from '../gateway/subject.js';

/** Kamailio with a Redis, an rtpengine and an agent of its own (README.md beside this file). */
export interface KamailioSubject extends Subject {
  relay(): RtpengineNode;
}

/** Starts Debian's Kamailio with kamailio.cfg and all that it stands on; resolves when it takes connections. */
export async function kamailioSubject(share: Share = 'all'): Promise<KamailioSubject> {
  const [tlsPort = 0, udpPort = 0, agentPort = 0] = await freePorts(3);
  const directory = await mkdtemp(join(tmpdir(), 'trunkline-kamailio-'));
  const certificates = await ensureCertificates(join(tmpdir(), 'trunkline-bench-certificates'), ['localhost', '127.0.0.1'], Date.now());
  const redis = await startRedis();
  const redisPid = Number(/process_id:(\d+)/.exec(await redis.command('INFO server'))?.[1]);
  await redis.command(`SET did:${NUMBER} sip:agent@127.0.0.1:${String(agentPort)}`);
  const rtpengine = await RunningRtpengine.start(relayPorts(share));
  const agent = spawn('sipp', sippArguments(agentPort), { stdio: 'ignore', cwd: directory });
  const closeOthers = async (): Promise<void> => {
    await ended(agent, 'SIGKILL');
    await rtpengine.stop();
    await redis.close();
    await rm(directory, { recursive: true, force: true });
  };
  const values = {
    TLS_PORT: String(tlsPort),
    UDP_PORT: String(udpPort),
    REDIS_PORT: String(redis.port),
    NG_PORT: String(rtpengine.port),
    CERTIFICATE: resolve(certificates.certFile),
    KEY: resolve(certificates.keyFile),
  };
  let kamailio: Kamailio;
  try {
    kamailio = await Kamailio.start(resolve('bench/kamailio/kamailio.cfg'), tlsPort, values);
  } catch (error) {
    await closeOthers();
    throw error;
  }
  return {
    target: { port: tlsPort, transport: 'TLS', ca: await readFile(certificates.caFile, 'utf8'), messages: 'carrier' },
    processes: () => [
      { name: 'redis-server', pid: redisPid },
      { name: 'rtpengine', pid: rtpengine.pid },
      { name: 'agent (sipp)', pid: agent.pid ?? 0 },
      ...withChildren(kamailio.pid).map((pid) => ({ name: 'kamailio', pid })),
    ],
    own: ['kamailio'],
    relay: () => rtpengine.node(),
    close: async () => {
      await kamailio.stop();
      await closeOthers();
    },
  };
}

function sippArguments(port: number): string[] {
  const scenario = resolve('bench/kamailio/agent.xml');
  // It sends media back as it came.
  const media = ['-rtp_echo', '-mp', '29800'];
  return ['-sf', scenario, '-t', 'u1', '-i', '127.0.0.1', '-p', String(port), ...media, '-nostdin', '-l', '100000'];
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

import { readFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ensureCertificates } from '../../src/ops/certificates.js';
import { freePorts } from '../../test/support/ports.js';
import { startRedis } from '../../test/support/redis.js';
import { RunningRtpengine } from '../../test/support/rtpengine.js';
import { kamailioNumberKey, startKamailio } from '../kamailio/start.js';
import { NUMBER, RELAY_PORTS, type Subject } from './subject.js';

/** Kamailio scripted to do the same job, with a Redis and an rtpengine of its own (bench/kamailio/README.md). */
export async function kamailioSubject(children: number): Promise<Subject> {
  const [tlsPort = 0] = await freePorts(1);
  const certificates = await ensureCertificates(join(tmpdir(), 'trunkline-bench-certificates'), ['localhost', '127.0.0.1'], Date.now());
  const redis = await startRedis();
  const rtpengine = await RunningRtpengine.start(RELAY_PORTS.min, RELAY_PORTS.max);
  const kamailio = await startKamailio({
    redisPort: redis.port,
    rtpengineNgPort: rtpengine.port,
    tlsPort,
    certificateFile: certificates.certFile,
    keyFile: certificates.keyFile,
    children,
  });
  const redisPid = Number(/process_id:(\d+)/.exec(await redis.command('INFO server'))?.[1]);
  await redis.command(`SET ${kamailioNumberKey(NUMBER)} agent`);
  return {
    target: { port: tlsPort, transport: 'TLS', ca: await readFile(certificates.caFile, 'utf8'), messages: 'carrier' },
    processes: () => [
      { name: 'redis-server', pid: redisPid },
      { name: 'rtpengine', pid: rtpengine.pid },
      ...kamailio.pids().map((pid) => ({ name: 'kamailio', pid })),
    ],
    own: ['kamailio'],
    close: async () => {
      await kamailio.close();
      await rtpengine.stop();
      await redis.close();
    },
  };
}

import { cpus, tmpdir } from 'node:os';
import { join } from 'node:path';
import { readFile } from 'node:fs/promises';
import { parseArgs } from 'node:util';
import { ensureCertificates } from '../../src/ops/certificates.js';
import { reserveMediaPorts } from '../../test/support/gateway.js';
import { HandMadeCall } from '../../test/support/invite.js';
import { freePorts } from '../../test/support/ports.js';
import { startRedis } from '../../test/support/redis.js';
import { RunningRtpengine } from '../../test/support/rtpengine.js';
import { offerSdp } from '../../test/support/sdp.js';
import { SipPeer } from '../../test/support/sip-peer.js';
import type { LoadTarget } from '../sip-server/generator.js';
import { order, startGenerator } from '../sip-server/processes.js';
import { cpuMs } from '../support/process-figures.js';
import { kamailioNumberKey, startKamailio } from './start.js';

// The baseline alone: that it does its job, and what that costs. bench/gateway holds Trunkline against it in one run.

const NUMBER = '+15550100100';

const { values } = parseArgs({
  options: {
    seconds: { type: 'string', default: '10' },
    rate: { type: 'string', default: '50' },
    children: { type: 'string', default: String(cpus().length) },
  },
});

function check(holds: boolean, what: string): void {
  if (!holds) throw new Error(what);
}

async function oneCall(port: number, ca: string): Promise<void> {
  const peer = await SipPeer.connect(port, ca);
  const refused = new HandMadeCall(peer, '+15550199999');
  refused.invite(offerSdp());
  check((await refused.final()).status === 404, 'a number that is not in Redis is refused with 404');
  const call = new HandMadeCall(peer, NUMBER);
  const ok = await call.answered(offerSdp());
  check(/^m=audio \d+ RTP\/SAVP 0 101\r$/m.test(ok.body), `the answer has SRTP:\n${ok.body}`);
  check(/^a=crypto:1 AES_CM_128_HMAC_SHA1_80 inline:\S{40}\r$/m.test(ok.body), `the answer has rtpengine’s key:\n${ok.body}`);
  await call.hangUp(ok);
  peer.close();
}

async function main(): Promise<void> {
  const { first, lock } = await reserveMediaPorts();
  const [tlsPort = 0] = await freePorts(1);
  const certificates = await ensureCertificates(join(tmpdir(), 'trunkline-bench-certificates'), ['localhost', '127.0.0.1'], Date.now());
  const redis = await startRedis();
  const rtpengine = await RunningRtpengine.start(first, first + 999);
  const kamailio = await startKamailio({
    redisPort: redis.port,
    rtpengineNgPort: rtpengine.port,
    tlsPort,
    certificateFile: certificates.certFile,
    keyFile: certificates.keyFile,
    children: Number(values.children),
  });
  try {
    await redis.command(`SET ${kamailioNumberKey(NUMBER)} agent`);
    const ca = await readFile(certificates.caFile, 'utf8');
    await oneCall(tlsPort, ca);
    const generator = await startGenerator();
    const target: LoadTarget = { port: tlsPort, transport: 'TLS', ca, messages: 'carrier' };
    const cpu = (): number => kamailio.pids().reduce((sum, pid) => sum + cpuMs(pid), 0);
    const before = [cpu(), cpuMs(rtpengine.pid)] as const;
    const result = await order(generator, { type: 'open', target, rate: Number(values.rate), seconds: Number(values.seconds) });
    const spent = [cpu() - before[0], cpuMs(rtpengine.pid) - before[1]] as const;
    generator.child.kill();
    const node = rtpengine.node();
    const { calls } = await node.command('list').finally(() => node.close());
    const keys = Number(/:(\d+)/.exec(await redis.command('DBSIZE'))?.[1]);
    check(result.failed === 0, `${String(result.failed)} calls failed`);
    check(JSON.stringify(calls) === '[]', 'rtpengine has calls left');
    check(keys === result.completed + 2, `${String(keys)} keys for ${String(result.completed)} calls, one more, and a number`);
    const { p50, p99 } = result.latencyMs;
    console.log(`${String(result.completed)} calls at ${values.rate} a second, ${String(keys - 1)} records, no session left in rtpengine`);
    console.log(`  INVITE to 200     p50 ${p50.toFixed(2)} ms, p99 ${p99.toFixed(2)} ms`);
    console.log(
      `  CPU a call        kamailio ${(spent[0] / result.completed).toFixed(3)} ms, rtpengine ${(spent[1] / result.completed).toFixed(3)} ms`,
    );
  } finally {
    await kamailio.close();
    await rtpengine.stop();
    await redis.close();
    lock.close();
  }
}

await main();

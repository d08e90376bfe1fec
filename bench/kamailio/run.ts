import { parseArgs } from 'node:util';
import { HandMadeCall } from '../../test/support/hand-made-call.js';
import { offerSdp } from '../../test/support/sdp.js';
import { SipPeer } from '../../test/support/sip-peer.js';
import { NUMBER } from '../gateway/subject.js';
import { order, startGenerator } from '../sip-server/processes.js';
import { cpuMs } from '../support/process-figures.js';
import { kamailioSubject } from './start.js';

// The baseline alone: that it does its job, and what that costs. bench/gateway holds Trunkline against it in one run.

const { values } = parseArgs({
  options: {
    seconds: { type: 'string', default: '10' },
    rate: { type: 'string', default: '50' },
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
  const subject = await kamailioSubject();
  try {
    const { target } = subject;
    await oneCall(target.port, target.ca ?? '');
    const generator = await startGenerator();
    const cpu = (): Record<string, number> => {
      const sums: Record<string, number> = {};
      for (const { name, pid } of subject.processes()) sums[name] = (sums[name] ?? 0) + cpuMs(pid);
      return sums;
    };
    const before = cpu();
    const result = await order(generator, {
      type: 'open',
      target,
      rate: Number(values.rate),
      seconds: Number(values.seconds),
      connections: 4,
    });
    const after = cpu();
    generator.child.kill();
    const node = subject.relay();
    const { calls } = await node.command('list').finally(() => node.close());
    check(result.failed === 0, `${String(result.failed)} calls failed`);
    check(JSON.stringify(calls) === '[]', 'rtpengine has calls left');
    const { p50, p99 } = result.latencyMs;
    console.log(`${String(result.completed)} calls at ${values.rate} a second, none failed, no session left in rtpengine`);
    console.log(`  INVITE to 200     p50 ${p50.toFixed(2)} ms, p99 ${p99.toFixed(2)} ms`);
    const each = Object.entries(after).map(([name, ms]) => `${name} ${((ms - (before[name] ?? 0)) / result.completed).toFixed(3)} ms`);
    console.log(`  CPU a call        ${each.join(', ')}`);
  } finally {
    await subject.close();
  }
}

await main();

import { execFile, spawn, type ChildProcess } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { promisify } from 'node:util';
import { afterEach, describe, expect, it } from 'vitest';
import type { RunningGateway } from '../../support/gateway.js';
import { HandMadeCall } from '../../support/hand-made-call.js';
import { CallEnd } from '../../support/media/call-end.js';
import { childPid } from '../../support/processes.js';
import { parseExposition } from '../../support/prometheus-text.js';
import { offerSdp } from '../../support/sdp.js';
import { SipPeer, type WireMessage } from '../../support/sip-peer.js';
import { withGateway } from '../../support/with-gateway.js';

// The media thread is late because other programs want its processor: the scheduler gives it a slice of some milliseconds now and then.

const NUMBER = '+15550100100';
const SPINNERS = 4;

let gateway: RunningGateway;
let peer: SipPeer;
withGateway((site) => ({ gateway, peer } = site), { TRUNKLINE_ADMISSION_MAX_MEDIA_DELAY_MS: '3' });

const spinners: ChildProcess[] = [];
afterEach(() => {
  for (const spinner of spinners.splice(0)) spinner.kill('SIGKILL');
});

/** One processor for all threads of the gateway, and programs that take it. */
async function crowd(): Promise<void> {
  const allowed = /^Cpus_allowed_list:\s+(\d+)/m.exec(readFileSync('/proc/self/status', 'utf8'))?.[1] ?? '0';
  await promisify(execFile)('taskset', ['-a', '-c', '-p', allowed, String(childPid(gateway.ready.pid, 'gateway'))]);
  for (let count = 0; count < SPINNERS; count += 1)
    spinners.push(spawn('taskset', ['-c', allowed, process.execPath, '-e', 'for(;;);'], { stdio: 'ignore' }));
}

async function invited(): Promise<WireMessage> {
  const call = new HandMadeCall(peer, NUMBER);
  call.invite(offerSdp());
  const answer = await call.final();
  if (answer.status === 200) {
    call.ack(answer);
    await call.hangUp(answer);
  } else call.ack(answer);
  return answer;
}

async function delaySeconds(): Promise<number> {
  return parseExposition(await (await fetch(`${gateway.ready.http}/metrics`)).text()).sum('trunkline_media_delay_seconds') ?? Number.NaN;
}

describe('a gateway whose media threads are late', () => {
  it('refuses new calls with 503 and Retry-After, continues the others, and answers calls again later', async () => {
    const end = await CallEnd.open();
    const call = new HandMadeCall(peer, NUMBER);
    const ok = await call.answered(end.sdp());
    end.connect(ok.body);
    await crowd();
    let refused = ok;
    await expect.poll(async () => (refused = await invited()).status, { interval: 250 }).toBe(503);
    expect(refused.header('Warning')).toContain('"OVERLOADED: ');
    expect(refused.header('Retry-After')).toMatch(/^(?:[1-9]|10)$/);
    await expect.poll(delaySeconds).toBeGreaterThan(0.002);
    // The call in progress.
    expect((await call.request('OPTIONS', ok)).status).toBe(200);
    const heard = end.peer.received.length;
    await expect.poll(() => end.peer.received.length).toBeGreaterThan(heard + 50);
    for (const spinner of spinners.splice(0)) spinner.kill('SIGKILL');
    await call.hangUp(ok);
    await end.close();
    await expect.poll(async () => (await invited()).status, { interval: 1_500 }).toBe(200);
    await gateway.logged('gateway', 'gateway.overload.ended');
    const logged = (await gateway.log('gateway')).match(/gateway\.overload\.\w+/g);
    expect(logged?.slice(0, 2)).toEqual(['gateway.overload.began', 'gateway.overload.ended']);
  });
});

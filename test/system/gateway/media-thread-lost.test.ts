import { resolve } from 'node:path';
import { describe, expect, it } from 'vitest';
import { CarrierCall } from '../../support/carrier-call.js';
import type { RunningGateway } from '../../support/gateway.js';
import { childPid } from '../../support/processes.js';
import { timesLogged } from '../../support/trunk.js';
import { withGateway } from '../../support/with-gateway.js';

// A thread that carries media and agents ends, as by a fault of a library that it uses.

let gateway: RunningGateway;
withGateway((site) => ({ gateway } = site), { NODE_OPTIONS: `--require ${resolve('test/support/end-media-threads.cjs')}` });

const replaced = (): Promise<number> => timesLogged(gateway, 'gateway', 'media.worker.replaced');

/** Resolves when the next thread runs. */
async function endThread(): Promise<void> {
  const before = await replaced();
  process.kill(childPid(gateway.ready.pid, 'gateway'), 'SIGUSR2');
  await expect.poll(replaced).toBe(before + 1);
}

describe('the calls of a media thread that dies', () => {
  it('continue with their agent at the same address, without re-INVITE or BYE', async () => {
    const call = await CarrierCall.talking(gateway, gateway.ready.phone_number);
    const killedMs = performance.now();
    await endThread();
    await call.echoedAfter(performance.now());
    console.log(`media thread killed: ${String(call.audio.longestGapSince(killedMs))} ms of silence`);
    expect([call.has('INVITE'), call.has('BYE')]).toEqual([false, false]);
    expect((await call.request('BYE')).status).toBe(200);
    await gateway.logged('gateway', '"reason":"CALLER_HANGUP"');
    call.close();
  });

  it('end with MEDIA_LOST when a fourth thread dies under them', async () => {
    const call = await CarrierCall.talking(gateway, gateway.ready.phone_number);
    for (let deaths = 1; deaths <= 3; deaths += 1) {
      await endThread();
      await call.heardAfter(performance.now());
    }
    process.kill(childPid(gateway.ready.pid, 'gateway'), 'SIGUSR2');
    expect((await call.theirs('BYE')).header('Reason')).toContain('MEDIA_LOST');
    call.close();
  });
});

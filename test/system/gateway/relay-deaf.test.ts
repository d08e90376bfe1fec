import { afterEach, describe, expect, it } from 'vitest';
import { burst } from '../../support/burst.js';
import { CarrierCall } from '../../support/carrier-call.js';
import { RunningGateway } from '../../support/gateway.js';
import { recordOf, timesLogged } from '../../support/trunk.js';

let gateway: RunningGateway;
let call: CarrierCall;

afterEach(async () => {
  call.close();
  await gateway.destroy();
});

/** A call whose two sides hear each other, and whose caller sends sender reports. */
async function talking(settings: Readonly<Record<string, string>> = {}): Promise<void> {
  gateway = await RunningGateway.start(settings);
  call = await CarrierCall.talking(gateway, gateway.ready.phone_number);
  call.audio.reportAlways();
  await call.echoedAfter(performance.now());
}

const second = (): Promise<void> => new Promise((resolve) => void setTimeout(resolve, 1_000));

/** Sends a burst every two seconds until the gateway says this: one may fall into two reads of rtpengine's and do nothing. */
async function burstUntil(method: 'INVITE' | 'BYE'): Promise<void> {
  const { relayPort } = call.audio;
  for (let sent = 0; !call.has(method); sent += 1) {
    if (sent % 20 === 0) await burst([relayPort], 2_000);
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

const portDeaf = (): Promise<number> => timesLogged(gateway, 'gateway', 'rtpengine.port.deaf');

async function traceOf(): Promise<string> {
  const record = await recordOf(gateway, call);
  const { json } = await gateway.api('GET', `/v1/calls/${record.call_id}/trace`);
  return JSON.stringify(json);
}

describe('an rtpengine port that receives nothing any more after a burst', () => {
  it('is replaced by another: the gateway hears the caller again, and the call continues', async () => {
    await talking();
    const before = call.audio.relayPort;
    const burstMs = performance.now();
    await burstUntil('INVITE');
    console.log(`rtpengine's port deaf: re-INVITE ${String(Math.round(performance.now() - burstMs))} ms after the first burst`);
    await call.echoedAfter(performance.now());
    expect(call.audio.relayPort.port).not.toBe(before.port);
    expect(await portDeaf()).toBe(1);
    expect((await call.request('BYE')).status).toBe(200);
    expect(await recordOf(gateway, call)).toMatchObject({ reason: 'CALLER_HANGUP' });
    expect(await traceOf()).toContain('rtpengine reads a port of the call no more');
  });

  it('costs the call, and the record has MEDIA_MOVE_REFUSED, when the trunk refuses the re-INVITE', async () => {
    await talking();
    call.refusals.push('488 Not Acceptable Here');
    await burstUntil('BYE');
    expect((await call.theirs('BYE')).header('Reason')).toContain('MEDIA_MOVE_REFUSED');
    expect(await recordOf(gateway, call)).toMatchObject({ reason: 'MEDIA_MOVE_REFUSED' });
  });
});

describe('sender reports that claim packets which do not arrive', () => {
  it('move the call, as they do for a relay on another machine', async () => {
    await talking();
    call.audio.mute();
    while (!call.has('INVITE')) {
      call.audio.report(50);
      await second();
    }
    await call.echoedAfter(performance.now());
    expect(await portDeaf()).toBe(0);
    expect((await call.request('BYE')).status).toBe(200);
    expect(await traceOf()).toContain('the sender reports claim packets of which none arrive');
  });

  it('move no call where the operator allows none to move: the media timeout ends it', async () => {
    await talking({ TRUNKLINE_RTPENGINE_ON_NODE_LOSS: 'end', TRUNKLINE_MEDIA_TIMEOUT_MS: '4000' });
    call.audio.mute();
    while (!call.has('BYE')) {
      call.audio.report(50);
      await second();
    }
    expect((await call.theirs('BYE')).header('Reason')).toContain('MEDIA_TIMEOUT');
  });
});

describe('a caller who is silent', () => {
  it('keeps the same port, however long the silence, while the sender reports claim no packets', async () => {
    await talking({ TRUNKLINE_MEDIA_TIMEOUT_MS: '2000' });
    call.audio.mute();
    // Three times the media timeout, in reports that arrived.
    for (let report = 0; report < 6; report += 1) {
      call.audio.report();
      await second();
    }
    expect([call.has('INVITE'), call.has('BYE')]).toEqual([false, false]);
    call.audio.follow(call.answer.body);
    await call.echoedAfter(performance.now());
  });
});

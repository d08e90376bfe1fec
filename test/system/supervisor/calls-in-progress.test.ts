import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { silentLog } from '../../../src/lib/log.js';
import { systemClock } from '../../../src/lib/system-clock.js';
import { CarrierCall as TestCarrierCall } from '../../../src/loadtest/test-caller/carrier-call.js';
import { RtpengineNode } from '../../../src/gateway/relay/node.js';
import { CarrierCall, until } from '../../support/carrier-call.js';
import { RunningGateway } from '../../support/gateway.js';
import { HandMadeCall } from '../../support/hand-made-call.js';
import { childPid, type ChildName } from '../../support/processes.js';
import { offerSdp } from '../../support/sdp.js';
import { SipPeer } from '../../support/sip-peer.js';
import { respond } from '../../support/sip-message.js';

const MEDIA_TIMEOUT_MS = 3_000;

let gateway: RunningGateway;
let rtpengine: RtpengineNode;

beforeAll(async () => {
  gateway = await RunningGateway.start({
    TRUNKLINE_MEDIA_TIMEOUT_MS: String(MEDIA_TIMEOUT_MS),
    TRUNKLINE_SIP_T1_MS: '50',
    // Longer than any test.
    TRUNKLINE_CALLS_DRAIN_MS: '600000',
  });
  rtpengine = new RtpengineNode({
    address: '127.0.0.1',
    port: Number(gateway.environment['TRUNKLINE_RTPENGINE_NG_PORT']),
    timeoutMs: 1_000,
    clock: systemClock,
    log: silentLog,
  });
});

afterAll(async () => {
  rtpengine.close();
  await gateway.destroy();
});

const sessions = async (): Promise<unknown> => (await rtpengine.command('list').catch(() => ({ calls: 'away' })))['calls'];
const isReady = async (): Promise<boolean> => (await fetch(`${gateway.ready.http}/readyz`).catch(() => undefined))?.status === 200;

async function answered(): Promise<{ peer: SipPeer; call: HandMadeCall }> {
  const peer = await SipPeer.connect(gateway.sipPort, gateway.ca);
  const call = new HandMadeCall(peer, gateway.ready.phone_number);
  call.invite(offerSdp());
  const answer = await call.final();
  expect(answer.status).toBe(200);
  call.ack(answer);
  return { peer, call };
}

/** Ends the process; resolves when it is back and everything is ready. */
async function kill(name: ChildName): Promise<void> {
  const restarts = (): number => gateway.output.split('supervisor.child.restarted').length;
  const before = restarts();
  process.kill(childPid(gateway.ready.pid, name), 'SIGKILL');
  await expect.poll(restarts).toBe(before + 1);
  await expect.poll(isReady).toBe(true);
}

describe('a call in progress', () => {
  it('continues until its own end when redis-server dies, and leaves nothing', async () => {
    const { peer, call } = await answered();
    await kill('redis-server');
    // No audio comes from this carrier: the gateway ends the call when the media timeout is over.
    const bye = await peer.next('BYE', (message) => message.startLine.startsWith('BYE ') && message.header('Call-ID') === call.callId);
    expect(bye.header('Reason')).toContain('MEDIA_TIMEOUT');
    respond(peer, bye, '200 OK');
    await expect.poll(sessions).toEqual([]);
    peer.close();
  });

  it('moves to the rtpengine that the supervisor starts, or ends when that takes too long', async () => {
    const call = await CarrierCall.talking(gateway, gateway.ready.phone_number);
    const killedMs = performance.now();
    await kill('rtpengine');
    await until(() => call.audio.isHeardAfter(killedMs + 200) || call.has('BYE'), 'neither audio nor BYE');
    console.log(`rtpengine killed and started again: ${String(call.audio.longestGapSince(killedMs))} ms of silence`);
    if (call.has('BYE')) expect((await call.theirs('BYE')).header('Reason')).toContain('MEDIA_LOST');
    else {
      await call.theirs('INVITE');
      expect((await call.request('BYE')).status).toBe(200);
    }
    await expect.poll(sessions).toEqual([]);
    call.close();
  });

  it('of `trunkline call` follows a re-INVITE as a carrier does: it is heard by the rtpengine that the supervisor starts', async () => {
    const target = { host: '127.0.0.1', port: gateway.sipPort, ca: gateway.ca };
    const call = new TestCarrierCall(target, ['PCMU'], systemClock);
    const leg = await call.place(gateway.ready.phone_number, '+15550100999');
    const first = call.answer;
    await until(() => leg.figures().packetsReceived > 0, 'no audio before');
    await kill('rtpengine');
    await until(() => call.answer !== first || call.isEnded, 'the call was not moved');
    const before = leg.figures();
    // More than what was on its way; the relay decrypts ours, and we its packets.
    await until(() => leg.figures().packetsReceived > before.packetsReceived + 100 || call.isEnded, 'no audio after');
    expect([call.isEnded, call.endReason]).toEqual([false, null]);
    await call.hangUp();
    call.close();
    await expect.poll(sessions).toEqual([]);
  });

  it('continues when sip-server dies, and leaves nothing when its carrier ends it over another connection', async () => {
    const call = await CarrierCall.talking(gateway, gateway.ready.phone_number);
    await kill('sip-server');
    await call.peer.whenClosed();
    await call.heardAfter(performance.now());
    call.over(await SipPeer.connect(gateway.sipPort, gateway.ca));
    expect((await call.request('BYE')).status).toBe(200);
    await expect.poll(sessions).toEqual([]);
    call.close();
  });

  it('ends with its audio when sip-server dies and its carrier neither sends a request nor can be reached', async () => {
    const { peer } = await answered();
    await kill('sip-server');
    await peer.whenClosed();
    await expect.poll(sessions).toEqual([]);
  });
});

// The last one: it stops the instance.
it('leaves nothing in the gateway, which stops before the drain time', async () => {
  expect(await gateway.stop()).toBe(0);
});

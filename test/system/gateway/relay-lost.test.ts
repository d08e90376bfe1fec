import { resolve } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { CarrierCall, until } from '../../support/carrier-call.js';
import { RunningGateway } from '../../support/gateway.js';
import { relayPorts } from '../../support/ports.js';
import { RunningRtpengine } from '../../support/rtpengine.js';
import { killAndReturn, nothingLeft, recordOf, sessionsOf, timesLogged } from '../../support/trunk.js';

let gateway: RunningGateway;
let relays: RunningRtpengine[] = [];
let calls: CarrierCall[] = [];

afterEach(async () => {
  for (const call of calls) call.close();
  await gateway.destroy();
  for (const relay of relays) await relay.stop();
  [relays, calls] = [[], []];
});

/** A gateway with so many rtpengines that are not its own. */
async function start(count: number, settings: Readonly<Record<string, string>> = {}): Promise<void> {
  for (let index = 0; index < count; index += 1) relays.push(await RunningRtpengine.start(200));
  gateway = await RunningGateway.start({ TRUNKLINE_RTPENGINE: relays.map(({ name }) => name).join(','), ...settings });
}

async function opened(): Promise<CarrierCall> {
  const call = await CarrierCall.open(gateway, gateway.ready.phone_number);
  calls.push(call);
  return call;
}

async function talking(): Promise<CarrierCall> {
  const call = await opened();
  await call.connect();
  return call;
}

/** The one that has the sessions, and the other. */
async function busyFirst(): Promise<[RunningRtpengine, RunningRtpengine]> {
  const [a, b] = relays as [RunningRtpengine, RunningRtpengine];
  return (await sessionsOf(a.port)) === 0 ? [b, a] : [a, b];
}

const origin = (sdp: string): string[] => (/^o=trunkline (\d+) (\d+) /m.exec(sdp) ?? []).slice(1);

describe('an rtpengine that dies while another one lives', () => {
  it('[3264 §8] moves its call by a re-INVITE with another address and key, o= one version higher and audio both ways', async () => {
    await start(2);
    const call = await talking();
    await call.echoedAfter(performance.now());
    const [busy, other] = await busyFirst();
    const killedMs = performance.now();
    await busy.kill();
    const invite = await call.theirs('INVITE');
    await call.heardAfter(killedMs + 200);
    console.log(`rtpengine killed: ${String(call.audio.longestGapSince(killedMs))} ms of silence`);
    const [[id, version], [sameId, nextVersion]] = [origin(call.answer.body), origin(invite.body)];
    expect([sameId, Number(nextVersion)]).toEqual([id, Number(version) + 1]);
    const key = /^a=crypto:1 \S+ \S+/m;
    expect(key.exec(invite.body)?.[0]).not.toBe(key.exec(call.answer.body)?.[0]);
    await call.echoedAfter(performance.now());
    expect(await sessionsOf(other.port)).toBe(1);
    expect((await call.request('BYE')).status).toBe(200);
    expect(await recordOf(gateway, call)).toMatchObject({ reason: 'CALLER_HANGUP' });
    await nothingLeft(other.port);
  });

  it('[3711 §3.3.1] moves long calls whose carriers keep their keys, with rollover counters of 1, 2, 3 and 5, which then continue', async () => {
    await start(2);
    const [first, other] = relays as [RunningRtpengine, RunningRtpengine];
    await other.kill();
    await gateway.logged('gateway', 'rtpengine.node.lost');
    for (const rollovers of [1, 2, 3, 5]) {
      const call = await talking();
      call.audio.rollOver(rollovers);
    }
    await Promise.all(calls.map((call) => call.echoedAfter(performance.now())));
    await other.startAgain();
    // A call whose only other rtpengine is still held for lost ends.
    await gateway.logged('gateway', 'rtpengine.node.back');
    await first.kill();
    await Promise.all(calls.map((call) => call.theirs('INVITE')));
    await Promise.all(calls.map((call) => call.echoedAfter(performance.now())));
    for (const call of calls) call.audio.rollOver(1);
    const killedMs = await killAndReturn(gateway);
    await Promise.all(calls.map((call) => call.echoedAfter(killedMs + 200)));
    // rtpengine's key, ours, and ours in the next gateway: no packet index is used twice under one of them (RFC 3711 §9.1).
    for (const call of calls) expect(new Set(call.audio.ssrcs).size).toBe(3);
    for (const call of calls) {
      expect((await call.request('BYE')).status).toBe(200);
      expect(await recordOf(gateway, call)).toMatchObject({ reason: 'CALLER_HANGUP' });
    }
    await nothingLeft(other.port);
  });

  it(
    '[3711 §9.1] uses no packet index twice under a key and SSRC, over the deaths of an rtpengine, a media thread and the gateway',
    { timeout: 120_000 },
    async () => {
      await start(2, { NODE_OPTIONS: `--require ${resolve('test/support/end-media-threads.cjs')}` });
      const call = await talking();
      const { indices } = call.audio;
      /** Whoever began anew would meet an index that is used with the first of either sort. */
      const sent = async (): Promise<void> => {
        const [rtp, rtcp] = [indices.count('rtp') + 100, indices.count('rtcp') + 1];
        await until(() => indices.count('rtp') >= rtp && indices.count('rtcp') >= rtcp, 'no RTP and RTCP');
      };
      const endThread = async (): Promise<void> => {
        const replaced = (): Promise<number> => timesLogged(gateway, 'gateway', 'media.worker.replaced');
        const before = await replaced();
        process.kill(await gateway.pidOf('gateway'), 'SIGUSR2');
        await until(async () => (await replaced()) > before, 'no thread');
      };
      // rtpengine has the keys of both sides.
      await sent();
      await endThread();
      await sent();
      await killAndReturn(gateway);
      await sent();
      // From its move on the keys of a long call pass through rtpengine.
      call.audio.rollOver(2);
      await call.echoedAfter(performance.now());
      const [busy] = await busyFirst();
      await busy.kill();
      await call.theirs('INVITE');
      await sent();
      await endThread();
      await sent();
      await killAndReturn(gateway);
      await sent();
      console.log(
        `indices: ${String(indices.count('rtp'))} of RTP, ${String(indices.count('rtcp'))} of RTCP, ${String(indices.keys)} keys`,
      );
      expect(indices.keys).toBe(2);
      expect(indices.twice).toEqual([]);
      expect((await call.request('BYE')).status).toBe(200);
    },
  );
});

describe('the only rtpengine', () => {
  it('without free ports gives INVITE and OPTIONS 503, and serves again after the first hang-up', async () => {
    const { min, max } = await relayPorts(8);
    gateway = await RunningGateway.start({ TRUNKLINE_RTPENGINE_PORT_MIN: String(min), TRUNKLINE_RTPENGINE_PORT_MAX: String(max) });
    const [first, second, third] = [await talking(), await talking(), await opened()];
    const options = async (): Promise<number> => (await third.signalling.probe('OPTIONS')).status;
    third.signalling.invite(third.audio.sdp());
    expect((await third.signalling.final()).header('Warning')).toContain('MEDIA_UNAVAILABLE');
    expect(await options()).toBe(503);
    expect((await first.request('BYE')).status).toBe(200);
    await recordOf(gateway, first);
    expect(await options()).toBe(200);
    expect((await (await talking()).request('BYE')).status).toBe(200);
    expect((await second.request('BYE')).status).toBe(200);
  });
});

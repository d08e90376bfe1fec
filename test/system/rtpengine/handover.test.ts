import { mulaw } from 'alawmulaw';
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { RelayPool } from '../../../src/gateway/relay/pool.js';
import { rtpPacket } from '../../support/media/packets.js';
import { CallEnd } from '../../support/media/call-end.js';
import { negotiate } from '../../support/relayed-call.js';
import { RunningRtpengine } from '../../support/rtpengine.js';
import { HANG_GUARD_MS } from '../../support/hang-guard.js';

/** For 3 s rtpengine learns each side's address from its packets; what is tested is the time after it. */
const SPEECH = new Int16Array(6 * 8_000);

let rtpengine: RunningRtpengine;
let relay: RelayPool;
let serial = 0;

beforeAll(async () => {
  rtpengine = await RunningRtpengine.start(100);
  relay = rtpengine.pool();
});

afterAll(async () => {
  relay.close();
  await rtpengine.stop();
});

/** Ten packets of one sample arrive. @param should else they are not waited for */
async function isHeard(from: CallEnd, to: CallEnd, sample: number, should: boolean): Promise<boolean> {
  const [byte] = mulaw.encode(new Int16Array([sample]));
  await from.peer.speak(new Int16Array(1_600).fill(sample));
  const arrived = (): number => to.peer.received.filter(({ packet }) => packet.payload.every((one) => one === byte)).length;
  return to.peer
    .until(() => arrived() === 10, should ? HANG_GUARD_MS : 1_000)
    .then(
      () => true,
      () => false,
    );
}

/** A call after six seconds of talk, and what became of it when a stranger sent it packets and then the carrier's port changed. */
async function play(offerer: 'carrier' | 'agent', carrierSideSrtp: boolean, agentSideSrtp: boolean, shouldFollow: boolean) {
  const [carrier, agent] = [
    await CallEnd.open(carrierSideSrtp ? {} : { key: null }),
    await CallEnd.open(agentSideSrtp ? {} : { key: null }),
  ];
  const call = { relayId: `handover-${String((serial += 1))}`, agentSideSrtp, carrierSideSrtp };
  const { outside } = await negotiate(relay, offerer, call, carrier, agent);
  await Promise.all([carrier.peer.speak(SPEECH), agent.peer.speak(SPEECH)]);
  const stranger = createSocket('udp4');
  let stolen = 0;
  stranger.on('message', () => (stolen += 1));
  stranger.bind(0, '127.0.0.1');
  await once(stranger, 'listening');
  for (let sequenceNumber = 100; sequenceNumber < 120; sequenceNumber += 1)
    stranger.send(Buffer.concat([rtpPacket({ sequenceNumber }), Buffer.alloc(10, 1)]), outside.rtpPort, '127.0.0.1');
  // Both ways, so that what the stranger sent has been looked at before the agent speaks.
  const staysWithCarrier = (await isHeard(carrier, agent, 2_000, true)) && (await isHeard(agent, carrier, 3_000, true));
  await carrier.peer.changePort();
  const follows = (await isHeard(carrier, agent, 4_000, shouldFollow)) && (await isHeard(agent, carrier, 5_000, shouldFollow));
  await relay.delete(call.relayId);
  await Promise.all([carrier.close(), agent.close()]);
  stranger.close();
  return { staysWithCarrier, stolen, follows };
}

describe('a carrier whose port changes without signalling after six seconds', () => {
  it.concurrent.each(['carrier', 'agent'] as const)(
    '[3711 §3.3] is followed where rtpengine ends its SRTP, and a stranger’s packet moves nothing; the %s offered',
    async (offerer) => {
      expect(await play(offerer, true, false, true)).toEqual({ staysWithCarrier: true, stolen: 0, follows: true });
    },
  );

  it.concurrent.each([
    ['plain RTP', false, false],
    ['SRTP that passes through rtpengine', true, true],
  ])('is not followed with %s, where any stranger’s packet would move its audio', async (_what, carrierSideSrtp, agentSideSrtp) => {
    expect(await play('carrier', carrierSideSrtp, agentSideSrtp, false)).toEqual({ staysWithCarrier: true, stolen: 0, follows: false });
  });
});

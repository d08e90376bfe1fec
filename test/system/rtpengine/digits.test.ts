import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { readOffer, readRelaySdp } from '../../../src/gateway/sdp/sdp-read.js';
import { canonicalSdp } from '../../../src/gateway/sdp/sdp-write.js';
import { silentLog } from '../../../src/lib/log.js';
import { RtpEndpoint } from '../../../src/gateway/media/endpoint.js';
import type { LegFigures } from '../../../src/gateway/model/media.js';
import { SampleLegAgent } from '../../../src/gateway/media/sample-leg-agent.js';
import { generateSrtpKey } from '../../../src/srtp/srtp.js';
import type { RelayPool } from '../../../src/gateway/relay/pool.js';
import { telephoneEvent } from '../../support/media/packets.js';
import { TestPeer } from '../../support/media/test-peer.js';
import { freeRange } from '../../support/ports.js';
import { RunningRtpengine } from '../../support/rtpengine.js';
import { offerSdp } from '../../support/sdp.js';
import { VirtualClock } from '../../support/virtual-clock.js';

// Key presses between a carrier, whose packets werift-rtp makes and reads, and the endpoint, through the real rtpengine and SRTP.

const FRAME_TICKS = 160;
const LOUD = 0x10;

/** Of the endpoint alone: one that stood still would leave out frames. */
const clock = new VirtualClock();
const FRAME_MS = 20;
let rtpengine: RunningRtpengine;
let pool: RelayPool;
let endpoint: RtpEndpoint;
/** Keys that reached the agent of each call. */
const digits = new Map<string, number[]>();
let calls = 0;
const peers: TestPeer[] = [];

beforeAll(async () => {
  rtpengine = await RunningRtpengine.start(100);
  pool = rtpengine.pool();
  let random = 1;
  endpoint = RtpEndpoint.open(
    { address: '127.0.0.1', rtpPorts: [await freeRange(2)], mediaTimeoutMs: 60_000 },
    {
      clock,
      log: silentLog,
      random32: () => (random = (Math.imul(random, 69_069) + 12_345) >>> 0),
      newAgent: (description) =>
        new SampleLegAgent({
          connect: () => Promise.resolve(),
          start: () => undefined,
          digit: (event) => digits.get(description.kind === 'test-line' ? description.firstSentence : '')?.push(event),
          frame: (_heard, spoken) => spoken.fill(1_000),
          notify: () => undefined,
          close: () => undefined,
        }),
    },
  );
});

afterAll(async () => {
  endpoint.close();
  for (const peer of peers) await peer.close();
  pool.close();
  await rtpengine.stop();
});

function figuresOf(callId: string): LegFigures {
  let figures: LegFigures | undefined;
  endpoint.with(callId, (leg) => (figures = leg.figures()));
  if (figures === undefined) throw new Error('the call has no leg');
  return figures;
}

/** Lets the endpoint send a frame after the other, each when all before have arrived, until it is so. */
async function goesOn(callId: string, peer: TestPeer, until: () => boolean): Promise<void> {
  while (!until()) {
    clock.advance(FRAME_MS);
    await peer.until(() => peer.received.length === figuresOf(callId).packetsSent);
  }
}

/**
 * A call that was answered, with telephone-events at these types: the clock of 8 kHz, and that of 48 kHz if there is one.
 * @param toldType the type that rtpengine gets to know
 */
async function answered(
  type: number,
  otherType: number | null = null,
  toldType = type,
): Promise<{ readonly callId: string; readonly peer: TestPeer }> {
  const callId = `digits-${String((calls += 1))}`;
  const key = generateSrtpKey();
  const peer = await TestPeer.open({ telephoneEventPayloadType: type });
  peers.push(peer);
  const events = [...(otherType === null ? [] : [`${String(otherType)} telephone-event/48000`]), `${String(type)} telephone-event/8000`];
  const sdp = offerSdp({
    payloads: `0 ${events.map((event) => event.split(' ')[0]).join(' ')}`,
    rtpmap: ['0 PCMU/8000', ...events],
    crypto: [`1 AES_CM_128_HMAC_SHA1_80 inline:${Buffer.from(key).toString('base64')}`],
    port: peer.address.rtpPort,
    extra: [`a=rtcp:${String(peer.address.rtcpPort)}`],
  });
  const offer = readOffer(sdp, 'required');
  if (!offer.ok) throw new Error('the offer is refused');
  expect(offer.value.telephoneEvent).toBe(type);
  const call = { relayId: callId, agentSideSrtp: false, carrierSideSrtp: true };
  const inside = readRelaySdp((await pool.offer(call, canonicalSdp({ ...offer.value, ownTelephoneEvent: toldType }))).sdp);
  if (inside === undefined) throw new Error('rtpengine offers no audio');
  digits.set(callId, []);
  const agent = { kind: 'test-line', accountSid: '', firstSentence: callId, language: 'ENG', voice: null, pronunciationGuide: [] } as const;
  await endpoint.connectAgent(callId, agent, () => undefined);
  const { address, rtpPort, rtcpPort } = inside;
  const [localRtpPort = 0] = endpoint.rtpPorts;
  endpoint.openLeg(
    {
      callId,
      sipCallId: callId,
      localRtpPort,
      remote: { address, rtpPort, rtcpPort },
      codec: 'PCMU',
      payloadType: 0,
      telephoneEventPayloadType: type,
      srtp: null,
      carrierSuite: null,
    },
    () => undefined,
  );
  const answer = offerSdp({
    profile: 'RTP/AVP',
    payloads: `0 ${String(toldType)}`,
    rtpmap: ['0 PCMU/8000', `${String(toldType)} telephone-event/8000`],
    crypto: [],
    port: localRtpPort,
  });
  const outside = readRelaySdp((await pool.answer(call, answer)).sdp);
  if (outside?.crypto == null) throw new Error('rtpengine answers without a key');
  peer.connect(outside);
  peer.secure({ receive: key, send: Buffer.from(outside.crypto.inline, 'base64') });
  endpoint.with(callId, (leg) => leg.start());
  // rtpengine learns where each side is by its packets.
  peer.sendPacket(Buffer.alloc(FRAME_TICKS, LOUD));
  await goesOn(callId, peer, () => peer.received.length > 3);
  return { callId, peer };
}

describe('the DTMF digits of the agent', () => {
  it.each([
    [96, null],
    [101, 100],
    [127, 96],
    [110, 127],
  ])(
    '[4733 §2.5.1.1 §2.5.1.2 §2.5.1.4] reach the carrier at type %i (48 kHz at %s) with marker, timestamp and durations',
    async (type, otherType) => {
      const { callId, peer } = await answered(type, otherType);
      const pressed = [5, 5, 11];
      endpoint.with(callId, (leg) => {
        for (const event of pressed) expect(leg.sendDigit(event, 100)).toBe(true);
      });
      const ends = (): number =>
        peer.received.filter(({ packet }) => packet.header.payloadType === type && packet.payload[1]! >= 0x80).length;
      await goesOn(callId, peer, () => ends() === 9);
      const after = peer.received.length;
      await goesOn(callId, peer, () => peer.received.length >= after + 5);

      const packets = peer.received.map(({ packet }) => packet);
      const first = packets[0]!.header;
      // Nothing lost, and the clock of the audio goes on as if it had never been interrupted.
      packets.forEach(({ header }, i) => expect((header.sequenceNumber - first.sequenceNumber) & 0xffff).toBe(i));
      packets.forEach(({ header }, i) => {
        if (header.payloadType === 0) expect((header.timestamp - first.timestamp) >>> 0).toBe(i * FRAME_TICKS);
        else expect(header.payloadType).toBe(type);
      });

      const groups = new Map<number, number[]>();
      packets.forEach(({ header }, i) => {
        if (header.payloadType === type) groups.set(header.timestamp, [...(groups.get(header.timestamp) ?? []), i]);
      });
      expect([...groups.values()].map((group) => packets[group[0]!]!.payload[0])).toEqual(pressed);
      let before = -Infinity;
      for (const [timestamp, group] of groups) {
        const [start] = group;
        expect(group).toEqual(group.map((_, i) => start! + i));
        // A pause of 60 ms, and the timestamp of the moment at which the key went down.
        expect(start! - before).toBeGreaterThan(3);
        expect((timestamp - first.timestamp) >>> 0).toBe(start! * FRAME_TICKS);
        const told = group.map((i) => packets[i]!);
        expect(told.map(({ header }) => header.marker)).toEqual([true, false, false, false, false, false, false]);
        expect(told.map(({ payload }) => payload.readUInt16BE(2))).toEqual([160, 320, 480, 640, 800, 800, 800]);
        expect(told.map(({ payload }) => payload[1]! >= 0x80)).toEqual([false, false, false, false, true, true, true]);
        before = group.at(-1)!;
      }
      // No talkspurt begins after a key: nothing was left out.
      expect(packets.filter(({ header }) => header.payloadType === 0 && header.marker)).toHaveLength(first.marker ? 1 : 0);
      endpoint.closeLeg(callId);
      await pool.delete(callId);
    },
  );
});

it('[3264 §6.1] a DTMF digit passes rtpengine both ways under a type that rtpengine does not have', async () => {
  const { callId, peer } = await answered(96, null, 101);
  const { rtpTimestamp } = peer;
  for (let packet = 0; packet < 3; packet += 1) peer.sendEvent(telephoneEvent(7, 480, true), rtpTimestamp);
  endpoint.with(callId, (leg) => expect(leg.sendDigit(5, 100)).toBe(true));
  const sent = (): number => peer.received.filter(({ packet }) => packet.header.payloadType === 96).length;
  await goesOn(callId, peer, () => sent() === 7);
  await expect.poll(() => digits.get(callId)).toEqual([7]);
  endpoint.closeLeg(callId);
  await pool.delete(callId);
});

describe('the DTMF digits of the carrier', () => {
  interface Told {
    readonly ticks: number;
    readonly isEnd?: boolean;
    readonly marker?: boolean;
    readonly event?: number;
    readonly more?: Buffer;
  }
  const usual: readonly Told[] = [
    { ticks: 160, marker: true },
    { ticks: 320 },
    { ticks: 480 },
    ...Array.from({ length: 3 }, () => ({ ticks: 640, isEnd: true })),
  ];

  it.each<[string, readonly Told[]]>([
    ['as RFC 4733 requires', usual],
    ['without a marker', usual.map((told) => ({ ...told, marker: false }))],
    ['with a marker on each', usual.map((told) => ({ ...told, marker: true }))],
    ['with one end packet', usual.slice(0, 4)],
    ['with six end packets', [...usual, ...usual.slice(3)]],
    ['without an end', usual.slice(0, 3)],
    ['with the end alone', usual.slice(3)],
    ['in one packet', usual.slice(3, 4)],
    ['with the end before the rest', [...usual.slice(3), ...usual.slice(0, 3)]],
    ['with constant durations', usual.map((told) => ({ ...told, ticks: 800 }))],
    ['with durations of 0 until the end', usual.map((told) => (told.isEnd === true ? told : { ...told, ticks: 0 }))],
    ['with each packet twice', usual.flatMap((told) => [told, told])],
    ['with four bytes of padding in the payload', usual.map((told) => ({ ...told, more: Buffer.alloc(4) }))],
    ['shorter than the shortest that the RFC allows: 20 ms', [{ ticks: 160, isEnd: true, marker: true }]],
    ['after a hook flash, which is not a digit', [{ ticks: 400, isEnd: true, event: 16 }, ...usual]],
  ])('[4733 §2.5.1.4] reach the agent once when they come %s', async (_what, packets) => {
    const { callId, peer } = await answered(97);
    // The same key three times, and each at a timestamp of its own.
    for (const event of [7, 7, 10]) {
      const { rtpTimestamp } = peer;
      for (const told of packets) {
        const payload = Buffer.concat([telephoneEvent(told.event ?? event, told.ticks, told.isEnd), told.more ?? Buffer.alloc(0)]);
        // A flash before it is an event of its own.
        peer.sendEvent(payload, told.event === undefined ? rtpTimestamp : rtpTimestamp - 800, told.marker);
      }
      for (let frame = 0; frame < 3; frame += 1) peer.sendPacket(Buffer.alloc(FRAME_TICKS, LOUD));
    }
    // All are there before time goes on.
    await expect.poll(() => figuresOf(callId).packetsReceived).toBe(1 + 3 * (packets.length + 3));
    // A press whose end never comes is over 200 ms after its last packet.
    await expect
      .poll(() => {
        clock.advance(FRAME_MS);
        return digits.get(callId)!.length;
      })
      .toBe(3);
    peer.sendPacket(Buffer.alloc(FRAME_TICKS, LOUD));
    const before = peer.received.length;
    await goesOn(callId, peer, () => peer.received.length >= before + 15);
    expect(digits.get(callId)).toEqual([7, 7, 10]);
    expect(endpoint.closeLeg(callId)).toMatchObject({ digitsReceived: 3 });
    await pool.delete(callId);
  });
});

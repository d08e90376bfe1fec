import { createSocket } from 'node:dgram';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import fc from 'fast-check';
import { afterAll, describe, expect, it } from 'vitest';
import type { LegDescription, LegEvent } from '../../../../src/gateway/model/media.js';
import { silentLog } from '../../../../src/lib/log.js';
import { TelephoneEventReceiver } from '../../../../src/rtp/dtmf/telephone-event-receiver.js';
import { RtpEndpoint } from '../../../../src/gateway/media/endpoint.js';
import { SampleLegAgent } from '../../../../src/gateway/media/sample-leg-agent.js';
import { MediaLeg } from '../../../../src/gateway/media/leg.js';
import { parseRtcpCompound } from '../../../../src/rtp/rtcp-packet.js';
import { RtpView } from '../../../../src/rtp/rtp-packet.js';
import { generateSrtpKey, newBatchTable, SrtpSession } from '../../../../src/srtp/srtp.js';
import { systemClock } from '../../../../src/lib/system-clock.js';
import { rtcpReceiverReport, rtpPacket, telephoneEvent } from '../../../support/media/packets.js';
import { randomOf } from '../../../support/media/simulated-network.js';
import { freeRange } from '../../../support/ports.js';
import { VirtualClock } from '../../../support/virtual-clock.js';

// Media packets of any bytes, and the native binding with tables of any numbers: nothing throws, crashes or grows.

// `FUZZ_RUNS=100000` makes more of them.
const numRuns = Number(process.env['FUZZ_RUNS'] ?? 1_000);
const RUNS = { numRuns };

const KEYS = { send: generateSrtpKey(), receive: generateSrtpKey() };

const anyBytes = fc.uint8Array({ maxLength: 300 }).map((bytes) => Buffer.from(bytes));
const seldomLong = fc.integer({ min: 1_400, max: 70_000 }).map((length) => Buffer.alloc(Math.min(length, 65_507), length & 0xff));
/** Numbers that turn over, stand still, go back and jump. */
const uint16 = fc.oneof(fc.nat(20), fc.integer({ min: 65_500, max: 65_535 }), fc.nat(65_535));
const uint32 = fc.oneof(fc.nat(3_000), fc.integer({ min: 0xffff_f000, max: 0xffff_ffff }), fc.integer({ min: 0, max: 0xffff_ffff }));

const audio = fc
  .record({
    sequenceNumber: uint16,
    rtpTimestamp: uint32,
    ssrc: fc.nat(3),
    payloadType: fc.constantFrom(0, 8, 13, 101, 127),
    size: fc.nat(400),
  })
  .map(({ size, ...fields }) => rtpPacket({ ...fields, payload: Buffer.alloc(size, fields.sequenceNumber & 0xff) }));
const event = fc
  .record({ sequenceNumber: uint16, rtpTimestamp: uint32, ssrc: fc.nat(2), event: fc.nat(255), ticks: fc.nat(65_535), isEnd: fc.boolean() })
  .chain(({ event: code, ticks, isEnd, ...fields }) =>
    fc.nat(9).map((more) => {
      const payload = Buffer.concat([telephoneEvent(code, ticks, isEnd), Buffer.alloc(more, code)]);
      return rtpPacket({ ...fields, payloadType: 101, payload });
    }),
  );
/** Compound packets: SR, RR, SDES, BYE and APP with counts and lengths of any size. */
const report = fc
  .array(
    fc.record({
      first: fc.nat(255),
      type: fc.integer({ min: 198, max: 208 }),
      words: fc.oneof(fc.nat(20), fc.nat(65_535)),
      body: fc.uint8Array({ maxLength: 80 }),
    }),
    { maxLength: 5 },
  )
  .map((packets) =>
    Buffer.concat(
      packets.map(({ first, type, words, body }) => Buffer.concat([Buffer.of(first | 0x80, type, words >> 8, words & 0xff), body])),
    ),
  );
const good = fc.oneof(audio, event, report, fc.constant(rtcpReceiverReport(5)));
const mutated = fc.tuple(good, fc.array(fc.tuple(fc.nat(40), fc.nat(255)), { maxLength: 5 }), fc.nat(200)).map(([packet, edits, cut]) => {
  const copy = Buffer.from(packet);
  for (const [at, byte] of edits) if (at < copy.length) copy[at] = byte;
  return copy.subarray(0, Math.max(0, copy.length - Math.max(0, cut - 150)));
});
const datagram = fc.oneof(
  { weight: 4, arbitrary: good },
  { weight: 4, arbitrary: mutated },
  { weight: 2, arbitrary: anyBytes },
  { weight: 1, arbitrary: seldomLong },
);
const OUTCOMES = ['taken', 'not-authentic', 'not-rtp'];

function newLeg(isSecure: boolean) {
  const clock = new VirtualClock();
  const events: LegEvent[] = [];
  const sent = { packets: 0 };
  const agent = new SampleLegAgent({
    connect: () => Promise.resolve(),
    start: () => undefined,
    digit: () => undefined,
    frame: (heard, spoken) => spoken.set(heard),
    notify: () => undefined,
    close: () => undefined,
  });
  const leg = new MediaLeg(
    { codec: 'PCMU', payloadType: 0, telephoneEventPayloadType: 101, srtp: isSecure ? KEYS : null, carrierSuite: null },
    {
      clock,
      random32: randomInt32(),
      transport: { sendRtp: () => (sent.packets += 1), sendRtcp: () => undefined },
      mediaTimeoutMs: 60_000,
      onEvent: (event_) => events.push(event_),
      agent: () => agent,
    },
  );
  leg.start();
  return { clock, leg, events, sent };
}

function noAgent(): never {
  throw new Error('no agent was asked for');
}

function randomInt32(): () => number {
  const random = randomOf(1);
  return () => Math.floor(random() * 2 ** 32);
}

/** As the peer would send it: protected with its key, where it can be. */
function secured(session: SrtpSession, packet: Buffer, isRtcp: boolean): Buffer {
  const buffer = Buffer.concat([packet, Buffer.alloc(14)]);
  const length = isRtcp ? session.tryProtectRtcp(buffer, packet.length) : session.tryProtectRtp(buffer, packet.length);
  return length < 0 ? packet : buffer.subarray(0, length);
}

describe('a media leg', () => {
  it.each([
    ['plain', false, false],
    ['SRTP, with packets of anybody', true, false],
    ['SRTP, with packets of the peer itself', true, true],
  ])('(%s) accepts any datagrams, continues, and keeps its figures numbers', (_what, isSecure, isAuthentic) => {
    const step = fc.record({ packet: datagram, isRtcp: fc.boolean(), frames: fc.nat(3) });
    fc.assert(
      fc.property(fc.array(step, { minLength: 1, maxLength: 30 }), (steps) => {
        const { clock, leg, sent, events } = newLeg(isSecure);
        const peer = new SrtpSession(KEYS.receive, 'send');
        for (const { packet, isRtcp, frames } of steps) {
          const data = isAuthentic && packet.length < 1_500 ? secured(peer, packet, isRtcp) : Buffer.from(packet);
          const outcome = isRtcp ? leg.receiveRtcp(data) : leg.receiveRtp(data);
          expect(OUTCOMES).toContain(outcome);
          if (isSecure && !isAuthentic) expect(outcome).not.toBe('taken');
          clock.advance(20 * frames);
          leg.tick(0, frames);
        }
        const { roundTripMs, firstAudioMs, agentAudioMs, turnDelaysMs, samples, ...figures } = leg.view().figures;
        const sampled = samples.flatMap(({ from_caller: from, to_caller: to, at_ms: at, round_trip_ms: roundTrip }): (number | null)[] => [
          at,
          roundTrip,
          ...[from, to].flatMap((stream) => (stream === null ? [] : [stream.lost_percent, stream.jitter_ms, stream.mos])),
        ]);
        for (const figure of [...Object.values(figures), roundTripMs, firstAudioMs, agentAudioMs, ...turnDelaysMs, ...sampled].map(
          (each) => each ?? 0,
        )) {
          expect(Number.isFinite(figure) && figure >= 0).toBe(true);
        }
        expect(leg.view().bufferedMs).toBeLessThanOrEqual(1_024);
        expect(sent.packets).toBe(steps.reduce((sum, { frames }) => sum + frames, 0));
        expect(events.every((event_) => event_.type !== 'digit' || event_.event <= 15)).toBe(true);
        leg.close();
        peer.close();
      }),
      RUNS,
    );
  });

  it('holds no more after 100,000 hostile packets than after 10,000', () => {
    const { leg, clock, events } = newLeg(false);
    setFlagsFromString('--expose-gc');
    const collect = runInNewContext('gc') as () => void;
    const random = randomOf(3);
    const any = (below: number): number => Math.floor(random() * below);
    const flood = (packets: number): number => {
      for (let i = 0; i < packets; i += 1) {
        const fields = { sequenceNumber: any(65_536), rtpTimestamp: any(2 ** 32), ssrc: any(2 ** 32) };
        const isEvent = i % 3 === 0;
        const payload = isEvent ? telephoneEvent(any(256), any(65_536), random() < 0.5) : Buffer.alloc(any(400), i);
        leg.receiveRtp(rtpPacket({ ...fields, payloadType: isEvent ? 101 : any(128), payload }));
        leg.receiveRtcp(rtpPacket({ ...fields, payloadType: 72 + any(5), payload }));
        if (i % 10 === 0) {
          clock.advance(20);
          leg.tick(0, 1);
        }
      }
      events.length = 0;
      collect();
      return process.memoryUsage().heapUsed;
    };
    const before = flood(10_000);
    expect(flood(100_000) - before).toBeLessThan(4_000_000);
  });
});

describe('parsers of media', () => {
  it('read any bytes as RTP, RTCP and telephone-events without throwing or reading beyond them', () => {
    const view = new RtpView();
    fc.assert(
      fc.property(datagram, fc.nat(400), (packet, length) => {
        if (view.parse(packet, Math.min(length, packet.length))) {
          expect(view.payloadOffset + view.payloadBytes).toBeLessThanOrEqual(Math.min(length, packet.length));
          expect(view.payloadBytes).toBeGreaterThanOrEqual(0);
        }
        const parsed = parseRtcpCompound(packet);
        if (parsed.ok) for (const part of parsed.value) expect('blocks' in part ? part.blocks.length : 0).toBeLessThanOrEqual(31);
        for (const press of new TelephoneEventReceiver().receive(1, 2, packet, 0, packet.length, 0))
          expect(press.event).toBeLessThanOrEqual(15);
      }),
      RUNS,
    );
  });
});

const port = await freeRange(2);

describe('the endpoint’s sockets', () => {
  const sender = createSocket('udp4');
  afterAll(() => sender.close());

  it('count every datagram, whatever it is, in one place', async () => {
    const endpoint = RtpEndpoint.open(
      { address: '127.0.0.1', rtpPorts: [port], mediaTimeoutMs: 60_000 },
      { clock: systemClock, log: silentLog, random32: () => 7, newAgent: noAgent },
    );
    await new Promise<void>((resolve) => sender.bind(0, '127.0.0.1', resolve));
    const remote = { address: '127.0.0.1', rtpPort: sender.address().port, rtcpPort: sender.address().port };
    const leg: LegDescription = {
      callId: 'a',
      sipCallId: 'a',
      localRtpPort: port,
      remote,
      codec: 'PCMU',
      payloadType: 0,
      telephoneEventPayloadType: 101,
      srtp: null,
      carrierSuite: null,
    };
    endpoint.openLeg(leg, () => undefined);
    const stranger = createSocket('udp4');
    const packets = fc.sample(datagram, { numRuns: 1_000, seed: 5 });
    for (const [i, packet] of packets.entries()) {
      const socket = i % 4 === 0 ? stranger : sender;
      await new Promise((resolve) => socket.send(packet, port, '127.0.0.1', resolve));
    }
    const counted = (): number => {
      const { strangerPackets, malformedPackets, notAuthenticPackets, earlierCallPackets } = endpoint.counters();
      let taken = 0;
      endpoint.with('a', (media) => (taken = media.figures().packetsReceived));
      return taken + strangerPackets + malformedPackets + notAuthenticPackets + earlierCallPackets;
    };
    await expect.poll(counted).toBe(packets.length);
    expect(endpoint.counters().strangerPackets).toBe(packets.length / 4);
    stranger.close();
    endpoint.close();
  });
});

describe('the native binding', () => {
  const int32 = fc.oneof(fc.integer({ min: -20, max: 2_100 }), fc.integer(), fc.constantFrom(0x7fff_ffff, -0x8000_0000, 0x7fff_fff0));
  const entry = fc.tuple(int32, int32, int32);
  const methods = ['protectRtpBatch', 'protectRtcpBatch', 'unprotectRtpBatch', 'unprotectRtcpBatch'] as const;

  it('touches nothing outside of what a table names, whatever it names, and counts what failed', () => {
    const sender = new SrtpSession(KEYS.send, 'send');
    const receiver = new SrtpSession(KEYS.send, 'receive');
    const anywhere = fc.record({
      method: fc.constantFrom(...methods),
      entries: fc.array(entry, { maxLength: 6 }),
      packet: datagram,
      at: fc.nat(60),
      // Not at a multiple of four: libsrtp wants words.
      shift: fc.nat(3),
    });
    fc.assert(
      fc.property(anywhere, ({ method, entries, packet, at, shift }) => {
        const memory = new Uint8Array(2_400).fill(0x5a);
        const buffer = memory.subarray(shift, shift + 2_000);
        buffer.set(packet.subarray(0, 1_900 - at), at);
        const before = memory.slice();
        // One that may be good among those that are anything.
        const all = [[at, Math.min(packet.length, 1_900 - at), 2_000 - at] as const, ...entries];
        const table = newBatchTable(all.length);
        all.forEach((numbers, i) => table.set(numbers, 3 * i));
        const failed = (method.startsWith('un') ? receiver : sender)[method](buffer, table);
        expect(failed).toBe(all.filter((_, i) => (table[3 * i + 1] ?? 0) < 0).length);
        const named = new Uint8Array(memory.length);
        all.forEach(([offset, length, capacity], i) => {
          const result = table[3 * i + 1] ?? 0;
          expect(result).toBeGreaterThanOrEqual(-9);
          const isInside = offset >= 0 && length >= 0 && capacity >= length && offset + capacity <= buffer.length;
          if (!isInside) expect(result).toBe(-1);
          else named.fill(1, shift + offset, shift + offset + capacity);
          if (result >= 0) expect(result).toBeLessThanOrEqual(capacity);
        });
        for (let i = 0; i < memory.length; i += 1) if (named[i] === 0 && memory[i] !== before[i]) expect.fail(`byte ${i} was changed`);
      }),
      RUNS,
    );
  });

  it('throws when a session is closed, of the other direction, or has a key of another length, and stays usable', () => {
    const call = fc.record({
      method: fc.constantFrom(...methods),
      isReceiver: fc.boolean(),
      isClosed: fc.boolean(),
      packet: datagram,
      length: int32,
    });
    fc.assert(
      fc.property(call, ({ method, isReceiver, isClosed, packet, length }) => {
        const session = new SrtpSession(KEYS.send, isReceiver ? 'receive' : 'send');
        if (isClosed) session.close();
        const table = Int32Array.of(0, length, packet.length);
        const work = (): number => session[method](packet, table);
        if (isClosed) expect(work).toThrow('closed');
        else if (method.startsWith('un') !== isReceiver) expect(work).toThrow('direction');
        else expect(work()).toBeLessThanOrEqual(1);
        session.close();
        session.close();
      }),
      RUNS,
    );
    for (const length of [0, 1, 29, 31, 1_000]) expect(() => new SrtpSession(new Uint8Array(length), 'send')).toThrow(RangeError);
  });

  it('accepts a table whose length is no multiple of three, an empty one, and an empty buffer', () => {
    const session = new SrtpSession(KEYS.send, 'receive');
    expect(session.unprotectRtpBatch(Buffer.alloc(100), new Int32Array(0))).toBe(0);
    expect(session.unprotectRtpBatch(Buffer.alloc(100), new Int32Array(2))).toBe(0);
    const table = new Int32Array(5);
    expect(session.unprotectRtpBatch(new Uint8Array(0), table)).toBe(1);
    expect([...table]).toEqual([0, -2, 0, 0, 0]);
    session.close();
  });
});

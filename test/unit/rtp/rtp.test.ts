import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { RtcpPacketConverter, RtcpReceiverInfo, RtcpRrPacket, RtcpSenderInfo, RtcpSrPacket, RtpHeader, RtpPacket } from 'werift-rtp';
import { FramePacer } from '../../../src/gateway/media/slot-clock.js';
import { middle32, ntpFromUnixMs, roundTripMs } from '../../../src/rtp/ntp.js';
import { ReceptionStatistics } from '../../../src/rtp/quality.js';
import { parseRtcpCompound, writeRtcpCompound, type CompoundReport } from '../../../src/rtp/rtcp-packet.js';
import { RtcpSchedule, RtcpSession } from '../../../src/rtp/rtcp-session.js';
import { RtpView, writeRtpHeader, addTicks, nextSequence, sequenceDelta, timestampDelta } from '../../../src/rtp/rtp-packet.js';
import { rtpPacket } from '../../support/media/packets.js';

describe('the codec of RTP packets', () => {
  it('[3550 §5.1] writes a header that werift reads, for any field values', () => {
    fc.assert(
      fc.property(
        fc.record({
          marker: fc.boolean(),
          payloadType: fc.nat(127),
          sequenceNumber: fc.nat(0xffff),
          rtpTimestamp: fc.nat(0xffffffff),
          ssrc: fc.nat(0xffffffff),
        }),
        (header) => {
          const packet = Buffer.alloc(16);
          writeRtpHeader(packet, header);
          const { rtpTimestamp, ...rest } = header;
          expect(RtpHeader.deSerialize(packet)).toMatchObject({ ...rest, timestamp: rtpTimestamp, version: 2 });
          const view = new RtpView();
          expect(view.parse(packet, 16)).toBe(true);
          expect(view).toMatchObject({ ...header, payloadOffset: 12, payloadBytes: 4 });
        },
      ),
    );
  });

  it('[3550 §5.1 §5.3.1] finds the payload behind CSRCs and an extension and before padding', () => {
    const packet = new RtpPacket(
      new RtpHeader({
        version: 2,
        payloadType: 8,
        csrc: [1, 2, 3],
        csrcLength: 3,
        extension: true,
        extensionProfile: 0xbede,
        extensions: [{ id: 1, payload: Buffer.from([7]) }],
      }),
      Buffer.from('payload'),
    ).serialize();
    const padded = Buffer.concat([packet, Buffer.from([0, 0, 0, 4])]);
    padded[0]! |= 0x20;
    const view = new RtpView();
    expect(view.parse(padded, padded.length)).toBe(true);
    expect(padded.subarray(view.payloadOffset, view.payloadOffset + view.payloadBytes).toString()).toBe('payload');
  });

  it('[3550 A.1] refuses version 1, a short header, and an extension or a padding that do not fit', () => {
    const view = new RtpView();
    const broken = (change: (packet: Buffer) => void, lengthBytes?: number): boolean => {
      const packet = rtpPacket({ sequenceNumber: 1, payload: Buffer.alloc(8) });
      change(packet);
      return view.parse(packet, lengthBytes ?? packet.length);
    };
    expect(broken(() => undefined)).toBe(true);
    expect(broken((packet) => (packet[0] = 0x40))).toBe(false);
    expect(broken(() => undefined, 11)).toBe(false);
    expect(broken(() => undefined, 21)).toBe(false);
    expect(broken((packet) => (packet[0] = 0x83))).toBe(false);
    const withLastByte = (first: number, last: number) => (packet: Buffer) => {
      packet[0] = first;
      packet[19] = last;
    };
    expect(broken((packet) => packet.set([0x90, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2]))).toBe(false);
    expect(broken(withLastByte(0xa0, 8))).toBe(true);
    expect(broken(withLastByte(0xa0, 9))).toBe(false);
    expect(broken(withLastByte(0xa0, 0))).toBe(false);
  });

  it('never reads outside of random bytes', () => {
    const view = new RtpView();
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 100 }), (bytes) => {
        if (view.parse(bytes, bytes.length)) expect(view.payloadOffset + view.payloadBytes).toBeLessThanOrEqual(bytes.length);
      }),
      { numRuns: 2_000 },
    );
  });
});

describe('sequence arithmetic', () => {
  it('[1982 §3.2] orders numbers across the wrap', () => {
    expect(sequenceDelta(2, 65_534)).toBe(4);
    expect(sequenceDelta(65_534, 2)).toBe(-4);
    expect(nextSequence(65_535)).toBe(0);
    expect(timestampDelta(100, 0xffffff00)).toBe(356);
    expect(addTicks(0xffffffff, 160)).toBe(159);
    expect(addTicks(10, -160)).toBe(4_294_967_146);
  });
});

describe('the reception statistics', () => {
  const receiveAll = (statistics: ReceptionStatistics, sequences: readonly number[]): boolean[] =>
    sequences.map((sequence) => statistics.receive(sequence & 0xffff, sequence * 160, sequence * 20, true));

  it('[3550 A.3] count losses across a wrap, and the fraction lost since the last report only', () => {
    const statistics = new ReceptionStatistics(8_000);
    receiveAll(
      statistics,
      Array.from({ length: 100 }, (_, i) => 65_500 + i).filter((sequence) => sequence % 4 !== 0),
    );
    // From 65,501 to 65,599 are 99 packets: 24 · 256 / 99.
    expect(statistics.takeReport()).toEqual({ fractionLost: 62, cumulativeLost: 24, extendedHighestSequence: 65_599, jitterTicks: 0 });
    receiveAll(
      statistics,
      Array.from({ length: 50 }, (_, i) => 65_600 + i),
    );
    expect(statistics.takeReport()).toMatchObject({ fractionLost: 0, cumulativeLost: 24, extendedHighestSequence: 65_649 });
    expect(statistics).toMatchObject({ packetsReceived: 125, packetsLost: 24 });
  });

  it('[3550 §6.4.1] count reordered packets as no loss, and duplicates as negative cumulative loss', () => {
    const statistics = new ReceptionStatistics(8_000);
    expect(receiveAll(statistics, [10, 12, 11, 13, 13, 13])).toEqual([true, true, true, true, true, true]);
    expect(statistics.takeReport()).toMatchObject({ fractionLost: 0, cumulativeLost: -2 });
    expect(statistics.packetsLost).toBe(0);
  });

  it('[3550 A.1] refuse one packet with a wild sequence number; two in a row are a restart and no loss', () => {
    const statistics = new ReceptionStatistics(8_000);
    receiveAll(statistics, [1, 2, 3]);
    expect(receiveAll(statistics, [40_000, 4])).toEqual([false, true]);
    expect(receiveAll(statistics, [30_000, 30_001, 30_002])).toEqual([false, true, true]);
    expect(statistics).toMatchObject({ packetsReceived: 6, packetsLost: 0 });
    expect(statistics.takeReport().extendedHighestSequence).toBe(30_002);
  });

  it('[3550 A.8] have a jitter of 10 ms for packets that alternate by 10 ms, and none for an even stream', () => {
    const statistics = new ReceptionStatistics(8_000);
    for (let i = 0; i < 500; i += 1) statistics.receive(i, (i * 160 + 0xfffff000) >>> 0, i * 20 + (i % 2) * 10, true);
    expect(statistics.jitterMs).toBeGreaterThan(9.5);
    expect(statistics.jitterMs).toBeLessThan(10.5);
    const even = new ReceptionStatistics(8_000);
    for (let i = 0; i < 500; i += 1) even.receive(i, (i * 160 + 0xfffff000) >>> 0, i * 20, true);
    expect(even.jitterMs).toBe(0);
  });

  describe('the delay of even the fastest packet', () => {
    const receive = (statistics: ReceptionStatistics, from: number, to: number, lateMs: (packet: number) => number): number | null => {
      for (let i = from; i < to; i += 1) statistics.receive(i & 0xffff, (i * 160 + 0xfffff000) >>> 0, i * 20 + lateMs(i), true);
      return statistics.takeDelayMs();
    };

    it('is what a queue adds, without jitter, and null without a packet', () => {
      const statistics = new ReceptionStatistics(8_000);
      expect(statistics.takeDelayMs()).toBeNull();
      expect(receive(statistics, 0, 25, (i) => (i % 5) * 15)).toBe(0);
      expect(statistics.takeDelayMs()).toBeNull();
      expect(receive(statistics, 25, 50, (i) => 50 + (i % 5) * 15)).toBeCloseTo(50, -1);
      expect(receive(statistics, 50, 75, (i) => (i % 5) * 15)).toBe(0);
    });

    it('is small for a sender whose clock is slow by 300 ppm, and restarts with the timestamps', () => {
      const statistics = new ReceptionStatistics(8_000);
      for (let i = 0; i < 45_000; i += 50) expect(receive(statistics, i, i + 50, (at) => at * 0.006)).toBeLessThan(1);
      for (let i = 45_000; i < 45_025; i += 1) statistics.receive(i, i * 160 + 90_000, i * 20 + 400, true);
      expect(statistics.takeDelayMs()).toBeLessThan(1);
    });
  });

  it('[4733 §2.5.1] does not count telephone-events or a jump of the timestamp as jitter', () => {
    const statistics = new ReceptionStatistics(8_000);
    for (let i = 0; i < 50; i += 1) statistics.receive(i, i * 160, i * 20, true);
    for (let i = 50; i < 100; i += 1) statistics.receive(i, 50 * 160, i * 20, false);
    for (let i = 100; i < 150; i += 1) statistics.receive(i, i * 160 + 900_000, i * 20, true);
    expect(statistics.jitterMs).toBe(0);
  });
});

describe('the codec of RTCP', () => {
  const REPORT: CompoundReport = {
    ssrc: 0xdeadbeef,
    sender: { ntp: ntpFromUnixMs(Date.UTC(2026, 0, 1) + 250), rtpTimestamp: 0xfffffff0, packets: 1_000, octets: 160_000 },
    blocks: [
      {
        ssrc: 0xfeedf00d,
        fractionLost: 13,
        cumulativeLost: 70_000,
        extendedHighestSequence: 0x2ffff,
        jitterTicks: 77,
        lastSenderReport: 0xaabbccdd,
        delaySinceLastSenderReport: 65_536,
      },
    ],
    cname: 'a-name',
    isBye: false,
  };
  const write = (report: CompoundReport): Buffer => {
    const target = Buffer.alloc(512, 0xee);
    return target.subarray(0, writeRtcpCompound(target, report));
  };

  it('[3550 §6.4.1 §6.5] writes an SR with SDES of which werift reads every field', () => {
    const [sr, sdes] = RtcpPacketConverter.deSerialize(write(REPORT)) as [
      RtcpSrPacket,
      { chunks: { source: number; items: { text: string }[] }[] },
    ];
    expect(sr).toBeInstanceOf(RtcpSrPacket);
    expect(sr.senderInfo).toMatchObject({ rtpTimestamp: 0xfffffff0, packetCount: 1_000, octetCount: 160_000 });
    expect(sr.senderInfo.ntpTimestamp).toBe((BigInt(Date.UTC(2026, 0, 1) / 1_000 + 2_208_988_800) << 32n) | 0x40000000n);
    expect(sr.reports[0]).toMatchObject({
      ssrc: 0xfeedf00d,
      fractionLost: 13,
      packetsLost: 70_000,
      highestSequence: 0x2ffff,
      jitter: 77,
      lsr: 0xaabbccdd,
      dlsr: 65_536,
    });
    expect(sdes.chunks[0]).toMatchObject({ source: 0xdeadbeef, items: [{ text: 'a-name' }] });
  });

  it.each([0, 1, 2, 3, 4, 5, 6, 7, 255])('[3550 §6.5] reads what it wrote, with a CNAME of %i bytes and a BYE', (length) => {
    const report = { ...REPORT, cname: 'n'.repeat(length), isBye: true };
    const parsed = parseRtcpCompound(write(report));
    expect(parsed).toEqual({
      ok: true,
      value: [
        { type: 'SR', ssrc: report.ssrc, sender: report.sender, blocks: report.blocks },
        { type: 'SDES', chunks: [{ ssrc: report.ssrc, cname: report.cname }] },
        { type: 'BYE', ssrcs: [report.ssrc] },
      ],
    });
  });

  it('[3550 §6.4.1] keeps a negative cumulative loss as a 24-bit number', () => {
    const block = { ...REPORT.blocks[0]!, cumulativeLost: -5 };
    const parsed = parseRtcpCompound(write({ ...REPORT, sender: null, blocks: [block] }));
    expect(parsed.ok && parsed.value[0]).toEqual({ type: 'RR', ssrc: REPORT.ssrc, blocks: [block] });
  });

  it('[3550 A.2] refuses a compound without a report first, with a wrong version, or with lengths that do not fit', () => {
    const good = write(REPORT);
    expect(parseRtcpCompound(good.subarray(52))).toEqual({ ok: false, error: 'not-compound' });
    for (let length = 0; length < good.length; length += 1) {
      if (length === 52) continue; // the report without SDES
      expect(parseRtcpCompound(good.subarray(0, length)).ok, `${length} bytes`).toBe(false);
    }
    const wrongVersion = Buffer.from(good);
    wrongVersion[52] = 0x41;
    expect(parseRtcpCompound(wrongVersion)).toEqual({ ok: false, error: 'wrong-length' });
    const tooManyBlocks = Buffer.from(good);
    tooManyBlocks[0] = 0x9f;
    expect(parseRtcpCompound(tooManyBlocks)).toEqual({ ok: false, error: 'wrong-length' });
  });

  it('never throws on random bytes that look like RTCP', () => {
    fc.assert(
      fc.property(fc.uint8Array({ minLength: 8, maxLength: 200 }), fc.constantFrom(200, 201), (bytes, type) => {
        bytes[0] = 0x80 | (bytes[0]! & 0x1f);
        bytes[1] = type;
        bytes[2] = 0;
        bytes[3] = bytes[3]! & 0x0f;
        parseRtcpCompound(bytes);
      }),
      { numRuns: 2_000 },
    );
  });

  it('[3550 §6.4.1] computes the round trip as now minus LSR minus DLSR, or null without LSR or below zero', () => {
    // The example of the figure in §6.4.1: A = 0xb710:8000, LSR = 0xb705:2000, DLSR = 0x0005:4000.
    expect(roundTripMs(0xb7108000, 0xb7052000, 0x00054000)).toBe(6_125);
    expect(roundTripMs(0xb7108000, 0, 0x00054000)).toBeNull();
    expect(roundTripMs(0xb7052000, 0xb7108000, 0)).toBeNull();
    // 131 units are 1.999 ms, 132 are 2.014: what clocks of whole milliseconds may be off, and what they may not.
    expect(roundTripMs(0xb7052000, 0xb7052000, 131)).toBe(0);
    expect(roundTripMs(0xb7052000, 0xb7052000, 132)).toBeNull();
    expect(middle32({ seconds: 0x1234b44d, fraction: 0xb7052000 })).toBe(0xb44db705);
  });

  it('[3550 §6.4] lets two sessions that report to each other measure the delay, with RR when nothing was sent', () => {
    const [a, b] = [new RtcpSession('a'), new RtcpSession('b')];
    const target = Buffer.alloc(512);
    const sentBy = (ssrc: number, packets: number) => ({ ssrc, packets, octets: packets * 160, rtpTimestampNow: 0 });
    const figures = { fractionLost: 0, cumulativeLost: 3, extendedHighestSequence: 9, jitterTicks: 1 };
    const wallMs = Date.UTC(2026, 5, 1);
    // 40 ms there, 1,000 ms at b, 40 ms back. The monotonic clocks of the two have nothing in common.
    let length = a.write(target, sentBy(1, 10), null, 5_000, wallMs, false);
    expect(b.read(target.subarray(0, length), 2, 100, wallMs + 7_777)).toBe(true);
    length = b.write(target, sentBy(2, 0), { ssrc: 1, figures }, 1_100, wallMs + 8_777, false);
    expect(RtcpPacketConverter.deSerialize(target.subarray(0, length))[0]).toBeInstanceOf(RtcpRrPacket);
    expect(a.read(target.subarray(0, length), 1, 6_080, wallMs + 1_080)).toBe(true);
    expect(a.roundTripMs).toBeGreaterThan(79.9);
    expect(a.roundTripMs).toBeLessThan(80.1);
    expect(a.peerLostPackets).toBe(3);
    expect(b.roundTripMs).toBeNull();
    length = a.write(target, sentBy(1, 10), null, 7_000, wallMs + 2_000, true);
    expect(target[1]).toBe(201);
    b.read(target.subarray(0, length), 2, 100, wallMs);
    expect(b.peerSaidBye).toBe(true);
  });

  it('reads the sender report of werift, and no report block about another source', () => {
    const session = new RtcpSession('x');
    const sr = new RtcpSrPacket({
      ssrc: 9,
      senderInfo: new RtcpSenderInfo({ ntpTimestamp: 1n << 32n, rtpTimestamp: 1, packetCount: 2, octetCount: 3 }),
      reports: [new RtcpReceiverInfo({ ssrc: 77, fractionLost: 0, packetsLost: 5, highestSequence: 1, jitter: 0, lsr: 1, dlsr: 0 })],
    }).serialize();
    expect(session.read(sr, 1, 0, 0)).toBe(true);
    expect(session.peerLostPackets).toBeNull();
    expect(session.read(Buffer.from('nonsense'), 1, 0, 0)).toBe(false);
  });

  it('[3550 §6.2] makes the first report due within a second of the first packet, and the others each 2.5 to 7.5 s', () => {
    for (const random of [0, 0.5, 0.999]) {
      const schedule = new RtcpSchedule(() => random);
      expect(schedule.take(1e9)).toBe(false);
      schedule.start(1_000);
      schedule.start(1_400);
      expect(schedule.take(1_499)).toBe(false);
      expect(schedule.take(2_000)).toBe(true);
      expect(schedule.take(2_000 + 2_499)).toBe(false);
      expect(schedule.take(2_000 + 7_500)).toBe(true);
    }
  });
});

describe('the frame pacer', () => {
  it('keeps start + n · 20 ms however late each wake-up is, over an hour', () => {
    const pacer = new FramePacer(1_000);
    let [sent, skipped] = [0, 0];
    for (let i = 0; i < 180_000; i += 1) {
      const { skip, send } = pacer.take(pacer.nextDeadlineMs + (i % 19));
      skipped += skip;
      sent += send;
    }
    expect([sent, skipped]).toEqual([180_000, 0]);
    expect(pacer.nextDeadlineMs).toBe(1_000 + 180_000 * 20);
  });

  it('catches up after a short stall, and skips what a long one missed', () => {
    const pacer = new FramePacer(0);
    expect(pacer.take(-1)).toEqual({ skip: 0, send: 0 });
    expect(pacer.take(0)).toEqual({ skip: 0, send: 1 });
    expect(pacer.take(19)).toEqual({ skip: 0, send: 0 });
    expect(pacer.take(85)).toEqual({ skip: 0, send: 4 });
    expect(pacer.take(1_085)).toEqual({ skip: 49, send: 1 });
    expect(pacer.nextDeadlineMs).toBe(1_100);
  });
});

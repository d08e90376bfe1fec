import { describe, expect, it } from 'vitest';
import type { LegEvent } from '../../../../src/gateway/model/media.js';
import { levelDbfs } from '../../../../src/rtp/codec/level.js';
import { decodeG711 } from '../../../../src/rtp/codec/g711.js';
import { SampleLegAgent, type SampleAgent } from '../../../../src/gateway/media/sample-leg-agent.js';
import { MediaLeg, type LegMedia } from '../../../../src/gateway/media/leg.js';
import { parseRtcpCompound } from '../../../../src/rtp/rtcp-packet.js';
import { SlotClock } from '../../../../src/gateway/media/slot-clock.js';
import { generateSrtpKey, SrtpSession } from '../../../../src/srtp/srtp.js';
import { rtcpReceiverReport, rtcpSenderReport, rtpPacket, telephoneEvent } from '../../../support/media/packets.js';
import { VirtualClock } from '../../../support/virtual-clock.js';

const PLAIN: LegMedia = { codec: 'PCMU', payloadType: 0, telephoneEventPayloadType: 101, srtp: null, carrierSuite: null };
const LOUD = Buffer.alloc(160, 0x80);

/** A leg in virtual time whose packets are kept, and whose agent echoes. */
function openLeg(media: LegMedia = PLAIN, mediaTimeoutMs = 30_000) {
  const clock = new VirtualClock();
  const rtp: { readonly atMs: number; readonly packet: Buffer }[] = [];
  const rtcp: Buffer[] = [];
  const events: LegEvent[] = [];
  const heard: Int16Array[] = [];
  const digits: number[] = [];
  const echo: SampleAgent = {
    connect: () => Promise.resolve(),
    start: () => undefined,
    digit: (event) => digits.push(event),
    frame: (input, output) => {
      heard.push(input.slice());
      output.set(input);
    },
    notify: () => undefined,
    close: () => undefined,
  };
  const agent = new SampleLegAgent(echo);
  let random = 1;
  const leg = new MediaLeg(media, {
    clock,
    random32: () => (random = (random * 69_069 + 1) >>> 0),
    transport: {
      sendRtp: (buffer, length) => rtp.push({ atMs: clock.nowMs(), packet: Buffer.from(buffer.subarray(0, length)) }),
      sendRtcp: (buffer, length) => rtcp.push(Buffer.from(buffer.subarray(0, length))),
    },
    mediaTimeoutMs,
    onEvent: (event) => events.push(event),
    agent: () => agent,
  });
  const slots = new SlotClock(clock);
  slots.add(leg);
  return { clock, leg, rtp, rtcp, events, heard, digits };
}

describe('a media leg in virtual time', () => {
  it('sends a frame each 20 ms from start on, with the marker on the first, sequence and timestamp in step', () => {
    const { clock, leg, rtp } = openLeg();
    clock.advance(1_000);
    expect(rtp).toEqual([]);
    leg.start();
    clock.advance(1_000);
    expect(rtp.length).toBe(50);
    rtp.forEach(({ atMs, packet }, i) => {
      expect(packet.length).toBe(172);
      expect(atMs - rtp[0]!.atMs).toBe(i * 20);
      expect(packet[1]).toBe(i === 0 ? 0x80 : 0);
      expect((packet.readUInt16BE(2) - rtp[0]!.packet.readUInt16BE(2)) & 0xffff).toBe(i);
      expect((packet.readUInt32BE(4) - rtp[0]!.packet.readUInt32BE(4)) >>> 0).toBe(i * 160);
    });
  });

  it('restarts its watchdog after its process was suspended', () => {
    const { clock, leg, events } = openLeg(PLAIN, 300);
    leg.start();
    for (let i = 0; i < 10; i += 1) {
      leg.receiveRtp(rtpPacket({ sequenceNumber: i, payload: LOUD }));
      clock.advance(20);
    }
    clock.standStill(30_000);
    clock.advance(280);
    expect(events).toEqual([{ type: 'media-started' }]);
    clock.advance(60);
    expect(events.at(-1)).toEqual({ type: 'media-timeout' });
  });

  it('[3389] plays no comfort noise, unknown payload type or telephone-event as audio, but its watchdog counts them', () => {
    const { clock, leg, heard, events } = openLeg(PLAIN, 300);
    leg.start();
    const payloadTypes = [13, 96, 101, 127];
    for (let i = 0; i < 50; i += 1) {
      const payloadType = payloadTypes[i % 4]!;
      leg.receiveRtp(rtpPacket({ sequenceNumber: i, payloadType, payload: payloadType === 101 ? telephoneEvent(16, 100) : LOUD }));
      clock.advance(20);
    }
    expect(heard.every((frame) => levelDbfs(frame) === -Infinity)).toBe(true);
    expect(events).toEqual([{ type: 'media-started' }]);
    clock.advance(400);
    expect(events.at(-1)).toEqual({ type: 'media-timeout' });
  });

  it('starts its watchdog at start, pauses it while held, restarts it afterwards, and reports once', () => {
    const { clock, leg, events } = openLeg(PLAIN, 1_000);
    clock.advance(5_000);
    leg.start();
    clock.advance(900);
    leg.setDirection('sendonly');
    clock.advance(10_000);
    leg.setDirection('sendrecv');
    clock.advance(980);
    expect(events).toEqual([]);
    clock.advance(40);
    expect(events).toEqual([{ type: 'media-timeout' }]);
    clock.advance(10_000);
    expect(events).toHaveLength(1);
  });

  it('accepts RTCP as a sign of life, and watches no peer whose direction promises no packets', () => {
    const { clock, leg, events } = openLeg(PLAIN, 1_000);
    leg.start();
    for (let report = 0; report < 10; report += 1) {
      leg.receiveRtcp(rtcpReceiverReport(7));
      clock.advance(900);
    }
    for (const direction of ['recvonly', 'inactive', 'sendonly'] as const) {
      leg.setDirection(direction);
      clock.advance(10_000);
    }
    leg.setDirection('sendrecv');
    expect(events).toEqual([]);
    leg.receiveRtcp(Buffer.alloc(20));
    clock.advance(1_020);
    expect(events).toEqual([{ type: 'media-timeout' }]);
  });

  it('accepts no receiver report as a sign of life once packets are needed, but a sender report', () => {
    const { clock, leg, events } = openLeg(PLAIN, 1_000);
    leg.start();
    leg.needPackets();
    for (let report = 0; report < 3; report += 1) {
      leg.receiveRtcp(rtcpSenderReport(7, report));
      clock.advance(900);
    }
    expect(events).toEqual([]);
    leg.receiveRtcp(rtcpReceiverReport(7));
    clock.advance(120);
    expect(events).toEqual([{ type: 'media-timeout' }]);
  });

  /** Packets each 20 ms, and a sender report each 5 s that claims them all; of them arrive those of the rounds for which `arrives` holds. */
  function talk({ clock, leg }: ReturnType<typeof openLeg>, rounds: number, arrives: (round: number) => boolean, from = 0): void {
    for (let round = from; round < from + rounds; round += 1) {
      for (let packet = 0; packet < 250; packet += 1) {
        if (arrives(round)) leg.receiveRtp(rtpPacket({ sequenceNumber: round * 250 + packet, ssrc: 7, payload: LOUD }));
        clock.advance(20);
      }
      leg.receiveRtcp(rtcpSenderReport(7, (round + 1) * 250));
    }
  }

  it('[3550 §6.4.1] reports dead media once when sender reports claim packets of which none arrive, and again after some did', () => {
    const opened = openLeg(PLAIN, 60_000);
    opened.leg.start();
    talk(opened, 2, () => true);
    expect(opened.events).toEqual([{ type: 'media-started' }]);
    talk(opened, 3, () => false, 2);
    expect(opened.events.slice(1)).toEqual([{ type: 'media-dead' }]);
    talk(opened, 1, () => true, 5);
    talk(opened, 2, () => false, 6);
    expect(opened.events.slice(2)).toEqual([{ type: 'media-dead' }]);
  });

  it('does not accept sender reports as a sign of life that claim packets of which none arrive', () => {
    const opened = openLeg(PLAIN, 12_000);
    opened.leg.start();
    talk(opened, 1, () => true);
    talk(opened, 4, () => false, 1);
    expect(opened.events.slice(1)).toEqual([{ type: 'media-dead' }, { type: 'media-timeout' }]);
  });

  it('accepts sender reports of a silent peer as a sign of life, and ignores claims of a peer that it holds', () => {
    const { clock, leg, events } = openLeg(PLAIN, 12_000);
    leg.start();
    for (let round = 0; round < 8; round += 1) {
      leg.receiveRtcp(rtcpSenderReport(7, 250));
      clock.advance(5_000);
    }
    leg.setDirection('sendonly');
    for (let round = 1; round < 8; round += 1) {
      leg.receiveRtcp(rtcpSenderReport(7, 250 + round * 250));
      clock.advance(5_000);
    }
    expect(events).toEqual([]);
  });

  it('does not report dead media when a suspended process reads the report before the packets', () => {
    const opened = openLeg(PLAIN, 60_000);
    const { clock, leg, events } = opened;
    leg.start();
    talk(opened, 2, () => true);
    clock.standStill(5_000);
    leg.receiveRtcp(rtcpSenderReport(7, 750));
    for (let packet = 500; packet < 750; packet += 1) leg.receiveRtp(rtpPacket({ sequenceNumber: packet, ssrc: 7, payload: LOUD }));
    talk(opened, 2, () => true, 3);
    expect(events).toEqual([{ type: 'media-started' }]);
  });

  it('sends to a peer that is recvonly', () => {
    const { clock, leg, rtp } = openLeg();
    leg.setDirection('recvonly');
    leg.start();
    clock.advance(1_000);
    expect(rtp.length).toBeGreaterThanOrEqual(50);
  });

  it('[3264 §5.1] hears and sends G.711 under the agreed payload type, and hears the static types as well', () => {
    const { clock, leg, rtp, heard } = openLeg({ ...PLAIN, codec: 'PCMA', payloadType: 97 });
    leg.start();
    for (const [index, payloadType] of [97, 8, 0].entries()) {
      // One level in both laws: of nothing else is there a frame as loud.
      const payload = Buffer.alloc(160, payloadType === 0 ? 0x80 : 0xaa);
      for (let i = 0; i < 20; i += 1) {
        leg.receiveRtp(rtpPacket({ sequenceNumber: 20 * index + i, payloadType, payload }));
        clock.advance(20);
      }
      expect(levelDbfs(heard.at(-1)!)).toBeGreaterThan(-3);
    }
    expect(new Set(rtp.map(({ packet }) => packet[1]! & 0x7f))).toEqual(new Set([97]));
  });

  it('[3264 §8.3.2] changes codec and payload types in mid-call, unnoticed by the agent', () => {
    const { clock, leg, rtp, heard, digits } = openLeg();
    leg.start();
    const speak = (from: number, payloadType: number, byte: number): void => {
      for (let i = from; i < from + 20; i += 1) {
        leg.receiveRtp(rtpPacket({ sequenceNumber: i, payloadType, payload: Buffer.alloc(160, byte) }));
        clock.advance(20);
      }
    };
    speak(0, 0, 0x9f);
    leg.setFormat({ codec: 'PCMA', payloadType: 8, telephoneEventPayloadType: 96 });
    const before = rtp.length;
    speak(20, 8, 0x8a);
    const [last, after] = [heard.at(-1)!, rtp.slice(before)];
    expect(after.every(({ packet }) => packet[1] === 8)).toBe(true);
    const echoed = new Int16Array(160);
    decodeG711('PCMA', after.at(-1)!.packet, echoed, 12, 160);
    expect(levelDbfs(echoed)).toBeCloseTo(levelDbfs(last), 0);
    expect(levelDbfs(last)).toBeCloseTo(levelDbfs(heard[15]!), 0);
    expect(leg.sendDigit(5, 100)).toBe(true);
    clock.advance(40);
    expect(rtp.at(-1)!.packet[1]! & 0x7f).toBe(96);
    leg.receiveRtp(rtpPacket({ sequenceNumber: 40, payloadType: 96, rtpTimestamp: 99_000, payload: telephoneEvent(3, 160) }));
    clock.advance(300);
    expect(digits).toEqual([3]);
  });

  it('passes a digit whose end packets are lost to the agent by the tick alone, before start too', () => {
    const { clock, leg, digits, events } = openLeg();
    leg.receiveRtp(rtpPacket({ sequenceNumber: 1, payloadType: 101, rtpTimestamp: 5, payload: telephoneEvent(8, 160) }));
    clock.advance(300);
    expect(digits).toEqual([8]);
    expect(events.at(-1)).toEqual({ type: 'digit', event: 8, durationMs: 20 });
    expect(leg.figures().digitsReceived).toBe(1);
  });

  it('counts the frames that were not sent within 20 ms, from start on', () => {
    const { leg, rtp } = openLeg();
    leg.tick(0, 3);
    leg.start();
    leg.tick(0, 1);
    expect(leg.figures().framesLate).toBe(0);
    leg.tick(0, 3);
    leg.tick(7, 1);
    expect([rtp.length, leg.close().framesLate]).toEqual([5, 9]);
  });

  it('[3550 §8.2] keeps hearing when the SSRC changes in mid-call, and its figures cover both sources', () => {
    const { clock, leg, heard } = openLeg();
    leg.start();
    for (let i = 0; i < 60; i += 1) {
      const ssrc = i < 30 ? 1 : 2;
      if (i !== 10) leg.receiveRtp(rtpPacket({ sequenceNumber: i < 30 ? i : 40_000 + i, rtpTimestamp: i * 160, ssrc, payload: LOUD }));
      clock.advance(20);
    }
    expect(levelDbfs(heard.at(-1)!)).toBeGreaterThan(-3);
    expect(leg.close()).toMatchObject({ packetsReceived: 59, packetsLost: 1, firstAudioMs: 0 });
  });

  it('[3550 §6.4] sends SR every 2.5 to 7.5 s after an early first one, and BYE at the close; none while held', () => {
    const { clock, leg, rtcp } = openLeg();
    leg.start();
    clock.advance(1_020);
    expect(rtcp).toHaveLength(1);
    clock.advance(60_000);
    expect(rtcp.length).toBeGreaterThan(8);
    expect(rtcp.length).toBeLessThan(25);
    const before = rtcp.length;
    leg.setDirection('sendonly');
    clock.advance(60_000);
    expect(rtcp).toHaveLength(before);
    leg.setDirection('sendrecv');
    leg.close();
    const parsed = parseRtcpCompound(rtcp.at(-1)!);
    expect(parsed.ok && parsed.value.map((packet) => packet.type)).toEqual(['SR', 'SDES', 'BYE']);
  });

  it('[3711 §3] encrypts packets and reports with SRTP, and accepts only authentic ones, once', () => {
    const srtp = { send: generateSrtpKey(), receive: generateSrtpKey() };
    const { clock, leg, rtp, rtcp, events } = openLeg({ ...PLAIN, srtp });
    const sender = new SrtpSession(srtp.receive, 'send');
    const receiver = new SrtpSession(srtp.send, 'receive');
    leg.start();
    expect(leg.receiveRtp(rtpPacket({ sequenceNumber: 1 }))).toBe('not-authentic');
    const packet = Buffer.concat([rtpPacket({ sequenceNumber: 2 }), Buffer.alloc(10)]);
    sender.protectRtp(packet, 172);
    expect(leg.receiveRtp(Buffer.from(packet))).toBe('taken');
    expect(leg.receiveRtp(Buffer.from(packet))).toBe('not-authentic');
    expect(leg.receiveRtcp(rtcpReceiverReport(9))).toBe('not-authentic');
    const report = Buffer.concat([rtcpReceiverReport(9), Buffer.alloc(14)]);
    sender.protectRtcp(report, 24);
    expect(leg.receiveRtcp(report)).toBe('taken');
    expect(events).toEqual([{ type: 'media-started' }]);
    clock.advance(1_100);
    for (const { packet: sent } of rtp) expect(receiver.unprotectRtp(Buffer.from(sent), sent.length)).toBe(172);
    const first = Buffer.from(rtcp[0]!);
    const plain = first.subarray(0, receiver.unprotectRtcp(first, first.length));
    expect(parseRtcpCompound(plain).ok).toBe(true);
    expect(leg.close().packetsReceived).toBe(1);
  });

  const protectedWith = (sender: SrtpSession, sequenceNumber: number): Buffer => {
    const packet = Buffer.concat([rtpPacket({ sequenceNumber }), Buffer.alloc(10)]);
    sender.protectRtp(packet, 172);
    return packet;
  };

  it('[4568 §7.1.4] accepts packets under a new key of the peer, and none under the old one', () => {
    const srtp = { send: generateSrtpKey(), receive: generateSrtpKey() };
    const { clock, leg, rtp } = openLeg({ ...PLAIN, srtp });
    const before = new SrtpSession(srtp.receive, 'send');
    const receive = generateSrtpKey();
    const after = new SrtpSession(receive, 'send');
    expect(leg.receiveRtp(protectedWith(after, 1))).toBe('not-authentic');
    leg.start();
    clock.advance(100);
    leg.setKeys({ ...srtp, receive });
    const second = protectedWith(after, 2);
    expect(leg.receiveRtp(Buffer.from(second))).toBe('taken');
    expect(leg.receiveRtp(protectedWith(before, 3))).toBe('not-authentic');
    expect(() => leg.setKeys({ ...srtp, receive: new Uint8Array(5) })).toThrow(RangeError);
    expect(leg.receiveRtp(protectedWith(after, 4))).toBe('taken');
    // The same keys again change nothing: not what was received, and not how it sends.
    leg.setKeys({ send: Buffer.from(srtp.send), receive: Buffer.from(receive) });
    expect(leg.receiveRtp(second)).toBe('not-authentic');
    clock.advance(100);
    const receiver = new SrtpSession(srtp.send, 'receive');
    for (const { packet } of rtp) expect(receiver.unprotectRtp(Buffer.from(packet), packet.length)).toBe(172);
    expect(new Set(rtp.map(({ packet }) => packet.readUInt32BE(8))).size).toBe(1);
  });

  it('changes from plain RTP to SRTP as a new source, and back', () => {
    const { clock, leg, rtp } = openLeg({ ...PLAIN, carrierSuite: 'AES_CM_128_HMAC_SHA1_80' });
    leg.start();
    clock.advance(100);
    expect(leg.receiveRtp(rtpPacket({ sequenceNumber: 1 }))).toBe('taken');
    const plain = rtp.splice(0);
    const keys = { send: generateSrtpKey(), receive: generateSrtpKey() };
    leg.setKeys(keys);
    clock.advance(100);
    const secured = rtp.splice(0);
    expect(leg.receiveRtp(rtpPacket({ sequenceNumber: 2 }))).toBe('not-authentic');
    // SRTP has a longer list of its own.
    const late = new SrtpSession(keys.receive, 'send');
    expect(leg.receiveRtp(protectedWith(late, 600))).toBe('taken');
    expect(leg.receiveRtp(protectedWith(late, 520))).toBe('taken');
    const receiver = new SrtpSession(keys.send, 'receive');
    for (const { packet } of secured) expect(receiver.unprotectRtp(Buffer.from(packet), packet.length)).toBe(172);
    leg.setKeys(null);
    clock.advance(100);
    const sources = [plain, secured, rtp].map((packets) => new Set(packets.map(({ packet }) => packet.readUInt32BE(8))));
    expect(sources.map(({ size }) => size)).toEqual([1, 1, 1]);
    expect(new Set(sources.flatMap((source) => [...source])).size).toBe(3);
    // Sequence numbers, timestamps and the count go on.
    const numbers = [...plain, ...secured, ...rtp].map(({ packet }) => packet.readUInt16BE(2));
    expect(numbers.map((number) => (number - (numbers[0] ?? 0)) & 0xffff)).toEqual(numbers.map((_, index) => index));
    expect(leg.figures().packetsSent).toBe(numbers.length);
  });

  it('reports a digit that came by signalling once, and not again as telephone-event', () => {
    const { leg, events } = openLeg();
    leg.takeDigit(5, 160);
    expect(events).toEqual([{ type: 'digit', event: 5, durationMs: 160 }]);
    expect(leg.figures().digitsReceived).toBe(1);
  });

  it('accepts nothing after the close and sends nothing more', () => {
    const { clock, leg, rtp, events } = openLeg();
    leg.start();
    clock.advance(100);
    const figures = leg.close();
    const sent = rtp.length;
    expect(leg.receiveRtp(rtpPacket({ sequenceNumber: 1 }))).toBe('not-rtp');
    clock.advance(100_000);
    expect(rtp).toHaveLength(sent);
    expect(events).toEqual([]);
    expect(leg.close()).toEqual(figures);
  });

  it('refuses a datagram of 3,000 bytes and one that is not RTP', () => {
    const { leg, events } = openLeg();
    expect(leg.receiveRtp(Buffer.alloc(3_000, 0x80))).toBe('not-rtp');
    expect(leg.receiveRtp(Buffer.from('GET / HTTP/1.1'))).toBe('not-rtp');
    expect(leg.receiveRtcp(Buffer.alloc(3))).toBe('not-rtp');
    expect(events).toEqual([]);
  });
});

describe('the slot clock', () => {
  it('spreads members over the frame, ticks each every 20 ms, and has no timer without members', () => {
    const clock = new VirtualClock();
    const late: number[] = [];
    const slots = new SlotClock(clock, (lateMs) => late.push(lateMs));
    const ticks: number[][] = [[], [], [], []];
    const members = ticks.map((times) => ({ tick: () => (times.push(clock.nowMs()), false) }));
    expect(clock.pendingTimers).toBe(0);
    for (const member of members) slots.add(member);
    clock.advance(100);
    expect(ticks.map((times) => times.slice(0, 3))).toEqual([
      [0, 20, 40],
      [5, 25, 45],
      [10, 30, 50],
      [15, 35, 55],
    ]);
    expect(Math.max(...late)).toBe(0);
    for (const member of members) slots.remove(member);
    expect(clock.pendingTimers).toBe(0);
    clock.advance(1_000);
    slots.add(members[0]!);
    clock.advance(20);
    expect(ticks[0]!.slice(-2)).toEqual([1_100, 1_120]);
  });

  it('calls a member again at the phases after its tick as often as it asks for it, and once a period otherwise', () => {
    const clock = new VirtualClock();
    const slots = new SlotClock(clock);
    const [ticks, again]: [number[], number[]] = [[], []];
    const member = {
      tick: () => (ticks.push(clock.nowMs()), clock.nowMs() === 40),
      again: () => (again.push(clock.nowMs()), again.length < 2),
    };
    slots.add(member);
    clock.advance(99);
    expect([ticks, again]).toEqual([
      [0, 20, 40, 60, 80],
      [45, 50],
    ]);
  });

  it.each([
    [19, 'ticks at once'],
    [20, 'lets sockets be read first, since what they got belongs to the due frame'],
    [45, 'lets sockets be read first, too'],
  ])('wakes %i ms late and %s', (lateMs) => {
    let nowMs = 0;
    let timer = { delayMs: 0, fire: (): void => undefined };
    const setTimer = (delayMs: number, fire: () => void) => ((timer = { delayMs, fire }), () => undefined);
    const slots = new SlotClock({ nowMs: () => nowMs, wallMs: () => 0, setTimer });
    let frames = 0;
    slots.add({ tick: (skip, send) => ((frames += skip + send), false) });
    timer.fire();
    expect(frames).toBe(1);
    for (nowMs = 5; nowMs < 20; nowMs += 5) timer.fire();
    nowMs = 20 + lateMs;
    timer.fire();
    if (lateMs >= 20) {
      expect([frames, timer.delayMs]).toEqual([1, 0]);
      nowMs += 1;
      timer.fire();
    }
    expect(frames).toBe(2 + Math.floor(lateMs / 20));
  });

  it('calls no member again that left in its tick', () => {
    const clock = new VirtualClock();
    const slots = new SlotClock(clock);
    let calls = 0;
    const other = { tick: () => false };
    const member = {
      tick: () => (slots.remove(member), true),
      again: () => ((calls += 1), false),
    };
    for (const one of [member, other]) slots.add(one);
    clock.advance(200);
    expect([calls, slots.size]).toEqual([0, 1]);
  });

  it('keeps one timer when the last member leaves and another comes within its own tick', () => {
    const clock = new VirtualClock();
    const slots = new SlotClock(clock);
    let ticks = 0;
    const second = { tick: () => ((ticks += 1), false) };
    const first = {
      tick: () => {
        slots.remove(first);
        slots.add(second);
        return false;
      },
    };
    slots.add(first);
    clock.advance(0);
    expect(clock.pendingTimers).toBe(1);
    clock.advance(200);
    expect(ticks).toBeGreaterThanOrEqual(9);
    expect(clock.pendingTimers).toBe(1);
  });
});

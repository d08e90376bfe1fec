import { randomBytes } from 'node:crypto';
import { Worker } from 'node:worker_threads';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { RtpPacket, SrtcpSession as WeriftSrtcp, SrtpSession as WeriftSrtp } from 'werift-rtp';
import {
  formatInlineKey,
  generateSrtpKey,
  newBatchTable,
  parseInlineKey,
  SrtpError,
  srtpErrorCode,
  SrtpSession,
} from '../../../src/srtp/srtp.js';
import { referenceProtectRtcp, referenceProtectRtp } from '../../support/media/aes-cm.js';
import { rtcpReceiverReport, rtpPacket } from '../../support/media/packets.js';

const KEY = Buffer.from(Array.from({ length: 30 }, (_, i) => i * 7 + 3));

function weriftConfig(local: Uint8Array, remote: Uint8Array) {
  const [l, r] = [Buffer.from(local), Buffer.from(remote)];
  return {
    profile: 1 as const,
    keys: {
      localMasterKey: l.subarray(0, 16),
      localMasterSalt: l.subarray(16),
      remoteMasterKey: r.subarray(0, 16),
      remoteMasterSalt: r.subarray(16),
    },
  };
}

function protectedRtp(session: SrtpSession, packet: Uint8Array): Buffer {
  const buffer = Buffer.alloc(packet.length + 10);
  buffer.set(packet);
  return buffer.subarray(0, session.protectRtp(buffer, packet.length));
}

function protectedRtcp(session: SrtpSession, packet: Uint8Array): Buffer {
  const buffer = Buffer.alloc(packet.length + 14);
  buffer.set(packet);
  return buffer.subarray(0, session.protectRtcp(buffer, packet.length));
}

function unprotected(session: SrtpSession, packet: Uint8Array): Buffer {
  const buffer = Buffer.from(packet);
  return buffer.subarray(0, session.unprotectRtp(buffer, buffer.length));
}

function codeOf(action: () => unknown): string {
  try {
    action();
    return 'no error';
  } catch (error) {
    if (error instanceof SrtpError) return error.code;
    throw error;
  }
}

describe('an SRTP session that begins in the middle of a stream', () => {
  const at = (index: number): Buffer => rtpPacket({ sequenceNumber: index & 0xffff, rtpTimestamp: index * 160 });
  const sent = (index: number): Buffer => referenceProtectRtp(KEY, at(index), Math.floor(index / 65_536));
  /** Which of the packets are understood; the first that is, and all after it. */
  const understood = (session: SrtpSession, indexes: readonly number[]): number[] =>
    indexes.filter((index) => {
      const buffer = Buffer.from(sent(index));
      const lengthBytes = session.tryUnprotectRtp(buffer, buffer.length);
      if (lengthBytes >= 0) expect(buffer.subarray(0, lengthBytes)).toEqual(at(index));
      return lengthBytes >= 0;
    });
  const range = (from: number, count: number): number[] => Array.from({ length: count }, (_, i) => from + i);

  it.each([
    [1, 1],
    [2, 1],
    [4, 1],
    [5, 24],
    [40, 24],
    [196, 24],
  ])('[3711 §3.3.1] finds a rollover counter of %i within %i packets, also where the next one is reached', (rollovers, packets) => {
    const session = new SrtpSession(KEY, 'receive');
    const start = rollovers * 65_536 + 700;
    expect(understood(session, range(start, packets + 3)).slice(-4)).toEqual(range(start + packets - 1, 4));
    // libsrtp steps by half the sequence numbers at most.
    const overTheWrap = [20_000, 40_000, 65_400, 65_500, 65_540, 65_541, 65_600].map((index) => rollovers * 65_536 + index);
    expect(understood(session, overTheWrap)).toEqual(overTheWrap);
  });

  it('[3711 §3.3.1] finds it for a source whose RTCP came first, and after any outage', () => {
    const session = new SrtpSession(KEY, 'receive');
    const report = referenceProtectRtcp(KEY, rtcpReceiverReport(0x11223344), 9);
    expect(session.tryUnprotectRtcp(Buffer.from(report), report.length)).toBeGreaterThan(0);
    for (const start of [2 * 65_536 + 9, 4 * 65_536, 6 * 65_536 + 40_000, 9 * 65_536])
      expect(understood(session, range(start, 5))).toEqual(range(start, 5));
  });

  it('[3711 §3.3.2] accepts no packet of an earlier rollover counter, and none twice', () => {
    const session = new SrtpSession(KEY, 'receive');
    const [early, late] = [range(65_536, 30), range(3 * 65_536, 30)];
    expect(understood(session, late)).toEqual(late);
    expect(understood(session, [...early, ...late])).toEqual([]);
    expect(understood(session, range(3 * 65_536 + 30, 5))).toHaveLength(5);
  });

  it('[3711 §3.3.1] finds it among forged packets', () => {
    const session = new SrtpSession(KEY, 'receive');
    const forged = referenceProtectRtp(generateSrtpKey(), at(9), 0);
    const found = range(30 * 65_536, 100).filter((index) => {
      const buffer = Buffer.from(forged);
      expect(session.tryUnprotectRtp(buffer, buffer.length)).toBeLessThan(0);
      return understood(session, [index]).length === 1;
    });
    expect(found.length).toBeGreaterThan(75);
  });
});

describe('an SRTP session against werift-rtp', () => {
  it('[3711 §3.1] protects what werift decrypts, over a roll-over of the sequence number', () => {
    const ours = new SrtpSession(KEY, 'send');
    const theirs = new WeriftSrtp(weriftConfig(KEY, KEY));
    for (let index = 65_500; index < 65_600; index += 1) {
      const packet = rtpPacket({ sequenceNumber: index });
      expect(theirs.decrypt(protectedRtp(ours, packet))).toEqual(packet);
    }
  });

  it('[3711 §3.1] unprotects what werift encrypted, over a roll-over of the sequence number', () => {
    const ours = new SrtpSession(KEY, 'receive');
    const theirs = new WeriftSrtp(weriftConfig(KEY, KEY));
    for (let index = 65_500; index < 65_600; index += 1) {
      const packet = rtpPacket({ sequenceNumber: index });
      const { header, payload } = RtpPacket.deSerialize(packet);
      expect(unprotected(ours, theirs.encrypt(payload, header))).toEqual(packet);
    }
  });

  it('[3711 §3.4] exchanges SRTCP with werift both ways', () => {
    const theirs = new WeriftSrtcp(weriftConfig(KEY, KEY));
    const sender = new SrtpSession(KEY, 'send');
    const receiver = new SrtpSession(KEY, 'receive');
    const packet = rtcpReceiverReport(0xa1b2c3d4);
    for (let i = 0; i < 5; i += 1) {
      expect(theirs.decrypt(protectedRtcp(sender, packet))).toEqual(packet);
      const buffer = Buffer.from(theirs.encrypt(packet));
      expect(buffer.subarray(0, receiver.unprotectRtcp(buffer, buffer.length))).toEqual(packet);
    }
  });
});

describe('an SRTP session', () => {
  it('[3711 §3.3.1] counts 2 roll-overs as a sender after two wraps', () => {
    const session = new SrtpSession(KEY, 'send');
    let last: Buffer = Buffer.alloc(0);
    for (let index = 0; index <= 2 * 65_536; index += 1_000) last = protectedRtp(session, rtpPacket({ sequenceNumber: index }));
    const at131000 = rtpPacket({ sequenceNumber: 131_000 });
    expect(last).toEqual(referenceProtectRtp(KEY, at131000, 1));
    const at132000 = rtpPacket({ sequenceNumber: 132_000 });
    expect(protectedRtp(session, at132000)).toEqual(referenceProtectRtp(KEY, at132000, 2));
  });

  it('[3711 §3.3.2] accepts a packet once, also out of order within the window, and refuses it again', () => {
    const sender = new SrtpSession(KEY, 'send');
    const receiver = new SrtpSession(KEY, 'receive');
    const packets = Array.from({ length: 100 }, (_, i) => protectedRtp(sender, rtpPacket({ sequenceNumber: 1_000 + i })));
    const shuffled = [...packets.slice(50), ...packets.slice(0, 50).reverse()];
    for (const packet of shuffled) expect(unprotected(receiver, packet)).toHaveLength(172);
    for (const packet of packets) expect(codeOf(() => unprotected(receiver, packet))).toBe('replayed');
  });

  it('[3711 §3.3.2] refuses a packet behind the replay window though it never came', () => {
    const sender = new SrtpSession(KEY, 'send');
    const receiver = new SrtpSession(KEY, 'receive');
    const early = protectedRtp(sender, rtpPacket({ sequenceNumber: 1 }));
    unprotected(receiver, protectedRtp(sender, rtpPacket({ sequenceNumber: 2 })));
    unprotected(receiver, protectedRtp(sender, rtpPacket({ sequenceNumber: 5_000 })));
    expect(codeOf(() => unprotected(receiver, early))).toBe('replayed');
  });

  it('[3711 §3.3.2] refuses to protect one packet index twice', () => {
    const session = new SrtpSession(KEY, 'send');
    const packet = rtpPacket({ sequenceNumber: 7 });
    protectedRtp(session, packet);
    expect(codeOf(() => protectedRtp(session, packet))).toBe('replayed');
  });

  it('[3711 §4.2] rejects a wrong key and a single changed bit with auth-failed, and then accepts the packet itself', () => {
    const packet = protectedRtp(new SrtpSession(KEY, 'send'), rtpPacket({ sequenceNumber: 9, payload: Buffer.alloc(20, 1) }));
    expect(codeOf(() => unprotected(new SrtpSession(generateSrtpKey(), 'receive'), packet))).toBe('auth-failed');
    const receiver = new SrtpSession(KEY, 'receive');
    for (let byte = 1; byte < packet.length; byte += 1) {
      const tampered = Buffer.from(packet);
      tampered[byte]! ^= 0x01;
      expect(
        codeOf(() => unprotected(receiver, tampered)),
        `byte ${byte}`,
      ).toBe('auth-failed');
    }
    expect(unprotected(receiver, packet)).toHaveLength(32);
  });

  it('[3711 §3.4] tells a wrong key from a replay for SRTCP', () => {
    const packet = protectedRtcp(new SrtpSession(KEY, 'send'), rtcpReceiverReport(5));
    const receiver = new SrtpSession(KEY, 'receive');
    const other = new SrtpSession(generateSrtpKey(), 'receive');
    expect(codeOf(() => other.unprotectRtcp(Buffer.from(packet), packet.length))).toBe('auth-failed');
    expect(receiver.unprotectRtcp(Buffer.from(packet), packet.length)).toBe(24);
    expect(codeOf(() => receiver.unprotectRtcp(Buffer.from(packet), packet.length))).toBe('replayed');
  });

  it('keeps the sequences of several SSRCs apart', () => {
    const sender = new SrtpSession(KEY, 'send');
    const receiver = new SrtpSession(KEY, 'receive');
    for (const ssrc of [1, 2, 3, 4]) {
      for (let index = 65_530; index < 65_545; index += ssrc) {
        const packet = rtpPacket({ sequenceNumber: index, ssrc });
        expect(unprotected(receiver, protectedRtp(sender, packet))).toEqual(packet);
      }
    }
  });

  it('refuses every truncation of a packet without touching it', () => {
    const packet = protectedRtp(new SrtpSession(KEY, 'send'), rtpPacket({ sequenceNumber: 3, payload: Buffer.alloc(30) }));
    const receiver = new SrtpSession(KEY, 'receive');
    for (let length = 0; length < packet.length; length += 1) {
      const cut = Buffer.from(packet.subarray(0, length));
      const before = Buffer.from(cut);
      expect(codeOf(() => receiver.unprotectRtp(cut, length))).toBe(length < 22 ? 'too-short' : 'auth-failed');
      expect(cut).toEqual(before);
    }
  });

  it('never accepts random bytes as a packet and throws nothing but SrtpError', () => {
    const receiver = new SrtpSession(KEY, 'receive');
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 300 }), fc.boolean(), (bytes, looksLikeRtp) => {
        const buffer = Buffer.from(bytes);
        if (looksLikeRtp && buffer.length > 0) buffer[0] = 0x80 | (buffer[0]! & 0x3f);
        expect(receiver.tryUnprotectRtp(buffer, buffer.length)).toBeLessThan(0);
        expect(receiver.tryUnprotectRtcp(buffer, buffer.length)).toBeLessThan(0);
      }),
      { numRuns: 2_000 },
    );
  });

  it('[3550 §5.3.1] refuses a header extension or CSRC list that reaches beyond the packet', () => {
    const sender = new SrtpSession(KEY, 'send');
    const buffer = Buffer.alloc(64);
    buffer.set(rtpPacket({ sequenceNumber: 1, payload: Buffer.alloc(8) }));
    buffer[0] = 0x90;
    buffer.writeUInt16BE(0xffff, 14);
    expect(codeOf(() => sender.protectRtp(buffer, 20))).toBe('malformed');
    buffer[0] = 0x8f;
    expect(codeOf(() => sender.protectRtp(buffer, 20))).toBe('malformed');
  });

  it('checks lengths against the buffer: no room for the trailer, beyond the end, too long', () => {
    const sender = new SrtpSession(KEY, 'send');
    const packet = rtpPacket({ sequenceNumber: 1 });
    expect(codeOf(() => sender.protectRtp(packet, packet.length))).toBe('no-trailer-room');
    expect(codeOf(() => sender.protectRtp(packet, packet.length + 1))).toBe('out-of-bounds');
    expect(codeOf(() => sender.protectRtp(packet, -1))).toBe('out-of-bounds');
    expect(codeOf(() => sender.protectRtp(Buffer.alloc(4_000), 3_000))).toBe('too-long');
    const table = Int32Array.of(2_147_483_647, 100, 2_147_483_647, -5, 172, 182, 0, 172, 2_147_483_647);
    expect(sender.protectRtpBatch(Buffer.alloc(400), table)).toBe(3);
    expect([table[1], table[4], table[7]].map((result) => srtpErrorCode(result!))).toEqual([
      'out-of-bounds',
      'out-of-bounds',
      'out-of-bounds',
    ]);
  });

  it('handles all packets of a batch but the bad one in the middle, at any alignment', () => {
    const sender = new SrtpSession(KEY, 'send');
    const receiver = new SrtpSession(KEY, 'receive');
    const stride = 201; // odd: three of four packets are not on a 32-bit boundary
    const buffer = Buffer.alloc(5 * stride);
    const table = newBatchTable(5);
    for (let i = 0; i < 5; i += 1) {
      buffer.set(rtpPacket({ sequenceNumber: 100 + i }), i * stride);
      table.set([i * stride, 172, stride], 3 * i);
    }
    expect(sender.protectRtpBatch(buffer, table)).toBe(0);
    buffer[2 * stride + 50]! ^= 0xff;
    expect(receiver.unprotectRtpBatch(buffer, table)).toBe(1);
    for (let i = 0; i < 5; i += 1) {
      const length = table[3 * i + 1]!;
      if (i === 2) expect(srtpErrorCode(length)).toBe('auth-failed');
      else expect(buffer.subarray(i * stride, i * stride + length)).toEqual(rtpPacket({ sequenceNumber: 100 + i }));
    }
  });

  it('refuses keys of another length, the other direction, and use after close', () => {
    expect(() => new SrtpSession(Buffer.alloc(29), 'send')).toThrow(RangeError);
    const session = new SrtpSession(KEY, 'send');
    expect(() => session.unprotectRtp(Buffer.alloc(100), 100)).toThrow(/direction/);
    session.close();
    session.close();
    expect(() => session.protectRtp(Buffer.alloc(100), 50)).toThrow(/closed/);
  });

  it('works in two worker threads at once, which come and go while the main thread uses it too', async () => {
    const addonPath = new URL('../../../native/build/Release/srtp.node', import.meta.url).pathname;
    const script = `
      const { parentPort, workerData } = require('node:worker_threads');
      const { SrtpSession } = require(workerData.addonPath);
      const sender = new SrtpSession(workerData.key, false), receiver = new SrtpSession(workerData.key, true);
      let good = 0;
      for (let sequence = 0; sequence < 20000; sequence += 1) {
        const packet = Buffer.alloc(182); packet[0] = 0x80; packet.writeUInt16BE(sequence, 2); packet.fill(sequence & 255, 12);
        const table = Int32Array.of(0, 172, 182);
        sender.transform(0, packet, table);
        if (receiver.transform(1, packet, table) === 0 && packet[100] === (sequence & 255)) good += 1;
      }
      parentPort.postMessage(good);`;
    const run = (): Promise<number> =>
      new Promise((resolve, reject) => {
        const worker = new Worker(script, { eval: true, workerData: { addonPath, key: new Uint8Array(KEY) } });
        worker.once('message', resolve);
        worker.once('error', reject);
      });
    const session = new SrtpSession(KEY, 'send');
    const first = [run(), run()];
    protectedRtp(session, rtpPacket({ sequenceNumber: 1 }));
    expect(await Promise.all(first)).toEqual([20_000, 20_000]);
    expect(await Promise.all([run(), run()])).toEqual([20_000, 20_000]);
    expect(protectedRtp(session, rtpPacket({ sequenceNumber: 2 }))).toHaveLength(182);
  });
});

describe('an SDES inline key', () => {
  it('[4568 §6.1] survives formatting and parsing, with lifetime and MKI behind it', () => {
    const key = generateSrtpKey();
    expect(key).toHaveLength(30);
    for (const suffix of ['', '|2^31', '|2^48|1:4']) {
      expect(parseInlineKey(formatInlineKey(key) + suffix)).toEqual({ ok: true, value: key });
    }
  });

  it('[4568 §6.1] is refused when it has a wrong length, bytes that are no base64, or another method', () => {
    expect(parseInlineKey(`inline:${randomBytes(29).toString('base64')}`)).toEqual({ ok: false, error: 'wrong-length' });
    expect(parseInlineKey(`inline:${'A'.repeat(39)}!`)).toEqual({ ok: false, error: 'not-base64' });
    expect(parseInlineKey(`key:${'A'.repeat(40)}`)).toEqual({ ok: false, error: 'not-inline' });
  });
});

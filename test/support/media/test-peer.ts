import { createSocket, type Socket } from 'node:dgram';
import { randomBytes } from 'node:crypto';
// The bench runs without a bundler, and the package is CommonJS.
import g711 from 'alawmulaw';
import {
  RtcpPacketConverter,
  RtcpReceiverInfo,
  RtcpRrPacket,
  RtcpSenderInfo,
  RtcpSrPacket,
  RtpHeader,
  RtpPacket,
  SrtcpSession,
  SrtpSession,
} from 'werift-rtp';
import type { MediaAddress, SrtpKeys } from '../../../src/gateway/model/media.js';
import type { AudioCodec } from '../../../src/rtp/codec/g711.js';
import { payloadTypeOf } from '../../../src/rtp/codec/g711.js';
import { rtpPacket, telephoneEvent } from './packets.js';
import { HANG_GUARD_MS } from '../hang-guard.js';

const FRAME_BYTES = 160;

export interface PeerOptions {
  readonly codec?: AudioCodec;
  /** Default: the codec's static payload type. */
  readonly payloadType?: number;
  /** The keys as the endpoint sees them: the peer sends with `receive`. */
  readonly srtp?: SrtpKeys | null;
  /** A key follows, and nothing is taken before it. */
  readonly isSecure?: boolean;
  readonly telephoneEventPayloadType?: number;
  readonly ssrc?: number;
}

export interface ReceivedReport {
  readonly arrivalWallMs: number;
  readonly types: readonly number[];
  readonly sr: RtcpSrPacket | undefined;
  readonly blocks: readonly RtcpReceiverInfo[];
}

/**
 * The far side of a media leg on loopback: RTP, RTCP and SRTP by werift-rtp and G.711 by alawmulaw, so that nothing of the product
 * takes part.
 */
export class TestPeer {
  readonly received: { readonly arrivalMs: number; readonly lengthBytes: number; readonly packet: RtpPacket }[] = [];
  readonly reports: ReceivedReport[] = [];
  /** Packets that were not encrypted with the far side's key. */
  forged = 0;
  readonly ssrc: number;
  readonly #options: Required<PeerOptions>;
  #srtp: SrtpSession | undefined;
  #srtcp: SrtcpSession | undefined;
  #mki: Buffer = Buffer.alloc(0);
  readonly #waiting = new Set<() => void>();
  #target: MediaAddress | undefined;
  #sequenceNumber = randomBytes(2).readUInt16BE();
  #rtpTimestamp = randomBytes(4).readUInt32BE();
  #packetsSent = 0;
  #octetsSent = 0;

  private constructor(
    public rtpSocket: Socket,
    readonly rtcpSocket: Socket,
    options: PeerOptions,
  ) {
    const { codec = 'PCMU' } = options;
    this.#options = {
      codec,
      payloadType: payloadTypeOf(codec),
      srtp: null,
      isSecure: false,
      telephoneEventPayloadType: 101,
      ssrc: randomBytes(4).readUInt32BE(),
      ...options,
    };
    this.ssrc = this.#options.ssrc;
    const { srtp } = this.#options;
    if (srtp !== null) this.secure(srtp);
    this.#listen();
    rtcpSocket.on('message', (datagram) => this.#onRtcp(datagram));
  }

  static async open(options: PeerOptions = {}): Promise<TestPeer> {
    const rtp = await bound();
    return new TestPeer(rtp, await bound(), options);
  }

  /** RTP goes out from, and is heard at, another port from now on, and nobody is told. */
  async changePort(): Promise<void> {
    const before = this.rtpSocket;
    this.rtpSocket = await bound();
    this.#listen();
    before.close();
  }

  get address(): MediaAddress {
    return { address: '127.0.0.1', rtpPort: this.rtpSocket.address().port, rtcpPort: this.rtcpSocket.address().port };
  }

  /** Where to send: what `open` of the endpoint answered. */
  connect(target: MediaAddress): void {
    this.#target = target;
  }

  /**
   * Encrypts from now on, for where the far side's key comes after the peer's sockets are known. With an MKI each packet sent has it;
   * what is received is read without one.
   */
  secure(srtp: SrtpKeys, mki: Buffer = Buffer.alloc(0)): void {
    const [local, remote] = [Buffer.from(srtp.receive), Buffer.from(srtp.send)];
    const keys = {
      localMasterKey: local.subarray(0, 16),
      localMasterSalt: local.subarray(16),
      remoteMasterKey: remote.subarray(0, 16),
      remoteMasterSalt: remote.subarray(16),
    };
    this.#srtp = new SrtpSession({ keys, profile: 1 });
    this.#srtcp = new SrtcpSession({ keys, profile: 1 });
    this.#mki = mki;
  }

  /** Everything heard, laid out by RTP timestamp: 16-bit linear at 8 kHz. */
  get heard(): Int16Array {
    const audio = this.received.filter(({ packet }) => packet.header.payloadType === this.#payloadType);
    const first = audio[0]?.packet.header.timestamp;
    if (first === undefined) return new Int16Array(0);
    const end = Math.max(...audio.map(({ packet }) => ((packet.header.timestamp - first) | 0) + packet.payload.length));
    const samples = new Int16Array(end);
    for (const { packet } of audio) {
      const offset = (packet.header.timestamp - first) | 0;
      if (offset >= 0) samples.set(this.#law.decode(new Uint8Array(packet.payload)), offset);
    }
    return samples;
  }

  /**
   * What the far side said, one packet after the other by sequence number: 16-bit linear at 8 kHz. A sender that stood still leaves out time,
   * which `heard` shows as silence, and goes on where it was.
   */
  get said(): Int16Array {
    const audio = this.received.map(({ packet }) => packet).filter(({ header }) => header.payloadType === this.#payloadType);
    const first = audio[0]?.header.sequenceNumber ?? 0;
    const place = (packet: RtpPacket): number => ((packet.header.sequenceNumber - first) << 16) >> 16;
    const ordered = audio.toSorted((a, b) => place(a) - place(b));
    return this.#law.decode(new Uint8Array(Buffer.concat(ordered.map(({ payload }) => payload))));
  }

  /**
   * Sends samples ahead of their time, a few packets at once: nothing of them is late, however long this process is kept waiting.
   * @param mostMs by which they are ahead: a bot is given so much before it has read what was before
   */
  async speakAhead(samples: Int16Array, mostMs = Infinity): Promise<void> {
    const encoded = this.#law.encode(samples);
    const started = performance.now();
    for (let at = 0; at + FRAME_BYTES <= encoded.length; at += FRAME_BYTES) {
      // Not more than the sockets on the way hold.
      if (at % (8 * FRAME_BYTES) === 0) await new Promise((resolve) => setTimeout(resolve, 2));
      await until(started + at / 8 - mostMs);
      this.sendPacket(encoded.subarray(at, at + FRAME_BYTES));
    }
  }

  /** The same for a few packets, which go out in this turn. */
  speakAtOnce(samples: Int16Array): void {
    const encoded = this.#law.encode(samples);
    for (let at = 0; at + FRAME_BYTES <= encoded.length; at += FRAME_BYTES) this.sendPacket(encoded.subarray(at, at + FRAME_BYTES));
  }

  /**
   * Sends samples in real time, one packet at a time: of 20 ms unless told otherwise.
   * @returns the longest time between two packets, in ms: a process that is kept waiting has gaps
   */
  async speak(samples: Int16Array, packetMs = 20): Promise<number> {
    const encoded = this.#law.encode(samples);
    const size = packetMs * 8;
    const started = performance.now();
    let sentMs = started;
    let gapMs = 0;
    for (let packet = 0; (packet + 1) * size <= encoded.length; packet += 1) {
      await until(started + packet * packetMs);
      this.sendPacket(encoded.subarray(packet * size, (packet + 1) * size));
      gapMs = Math.max(gapMs, performance.now() - sentMs);
      sentMs = performance.now();
    }
    return gapMs;
  }

  /** Presses a key for 100 ms, as RFC 4733 asks for, in real time; the end comes three times. */
  async press(event: number, payloadType = this.#options.telephoneEventPayloadType): Promise<void> {
    const rtpTimestamp = this.#rtpTimestamp;
    const started = performance.now();
    for (let i = 1; i <= 7; i += 1) {
      await until(started + i * 20);
      const payload = telephoneEvent(event, Math.min(i, 5) * 160, i >= 5);
      this.#send(payload, payloadType, rtpTimestamp);
      this.#rtpTimestamp = (this.#rtpTimestamp + 160) >>> 0;
    }
  }

  /** RTP packets of all kinds. */
  get packetsSent(): number {
    return this.#packetsSent;
  }

  /** The same key in one moment: its end comes with its start. */
  pressAtOnce(event: number): void {
    const rtpTimestamp = this.#rtpTimestamp;
    for (let i = 1; i <= 7; i += 1) this.sendEvent(telephoneEvent(event, Math.min(i, 5) * 160, i >= 5), rtpTimestamp, i === 1);
  }

  /** The timestamp of the next packet of audio. */
  get rtpTimestamp(): number {
    return this.#rtpTimestamp;
  }

  /** One telephone-event packet as it is told, in place of 20 ms of audio. */
  sendEvent(payload: Uint8Array, rtpTimestamp: number, marker = false): void {
    this.#send(payload, this.#options.telephoneEventPayloadType, rtpTimestamp, marker);
    this.#rtpTimestamp = (this.#rtpTimestamp + 160) >>> 0;
  }

  sendPacket(payload: Uint8Array): void {
    this.#send(payload, this.#payloadType, this.#rtpTimestamp);
    this.#rtpTimestamp = (this.#rtpTimestamp + payload.length) >>> 0;
  }

  /** A receiver report without blocks: its sender has heard nobody and sent nothing. */
  sendReceiverReport(): void {
    const packet = new RtcpRrPacket({ ssrc: this.ssrc, reports: [] }).serialize();
    const { address, rtcpPort } = this.#connected;
    this.rtcpSocket.send(this.#srtcp === undefined ? packet : this.#withMki(this.#srtcp.encrypt(packet)), rtcpPort, address);
  }

  /** A sender report, with a report block about the far side that answers its last report, as if the network took so long. */
  sendReport(networkMs = 0): void {
    const wallMs = Date.now();
    const seconds = BigInt(Math.floor(wallMs / 1_000) + 2_208_988_800);
    const ntpTimestamp = (seconds << 32n) | BigInt(Math.floor(((wallMs % 1_000) / 1_000) * 2 ** 32));
    const senderInfo = new RtcpSenderInfo({
      ntpTimestamp,
      rtpTimestamp: this.#rtpTimestamp,
      packetCount: this.#packetsSent,
      octetCount: this.#octetsSent,
    });
    const last = this.reports.findLast((report) => report.sr !== undefined);
    const reports =
      last?.sr === undefined
        ? []
        : [
            new RtcpReceiverInfo({
              ssrc: last.sr.ssrc,
              lsr: Number((last.sr.senderInfo.ntpTimestamp >> 16n) & 0xffffffffn),
              dlsr: Math.round((Math.max(0, wallMs - last.arrivalWallMs - networkMs) * 65_536) / 1_000),
            }),
          ];
    const packet = new RtcpSrPacket({ ssrc: this.ssrc, senderInfo, reports }).serialize();
    const { address, rtcpPort } = this.#connected;
    this.rtcpSocket.send(this.#srtcp === undefined ? packet : this.#withMki(this.#srtcp.encrypt(packet)), rtcpPort, address);
  }

  /** Resolves when the condition holds, looked at after each packet. */
  until(condition: () => boolean, limitMs = HANG_GUARD_MS): Promise<void> {
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        this.#waiting.delete(look);
        reject(new Error(`not within ${limitMs} ms`));
      }, limitMs);
      const look = (): void => {
        if (!condition()) return;
        clearTimeout(timer);
        this.#waiting.delete(look);
        resolve();
      };
      this.#waiting.add(look);
      look();
    });
  }

  async close(): Promise<void> {
    await Promise.all([this.rtpSocket, this.rtcpSocket].map((socket) => new Promise<void>((resolve) => socket.close(() => resolve()))));
  }

  get #payloadType(): number {
    return this.#options.payloadType;
  }

  get #law(): typeof g711.mulaw {
    return this.#options.codec === 'PCMU' ? g711.mulaw : g711.alaw;
  }

  get #connected(): MediaAddress {
    if (this.#target === undefined) throw new Error('the peer is not connected');
    return this.#target;
  }

  #send(payload: Uint8Array, payloadType: number, rtpTimestamp: number, marker = false): void {
    const plain = rtpPacket({ sequenceNumber: this.#sequenceNumber, rtpTimestamp, ssrc: this.ssrc, payloadType, payload, marker });
    this.#sequenceNumber = (this.#sequenceNumber + 1) & 0xffff;
    this.#packetsSent += 1;
    this.#octetsSent += payload.length;
    const { address, rtpPort } = this.#connected;
    const packet = this.#srtp === undefined ? plain : this.#withMki(this.#srtp.encrypt(plain.subarray(12), RtpHeader.deSerialize(plain)));
    this.rtpSocket.send(packet, rtpPort, address);
  }

  /** RFC 3711 §3.1: the MKI is not encrypted and not authenticated; it stands before the tag of 10 bytes. */
  #withMki(packet: Buffer): Buffer {
    return Buffer.concat([packet.subarray(0, -10), this.#mki, packet.subarray(-10)]);
  }

  #listen(): void {
    // The port may have been a call's before, and packets of it still be under way: without a key they would be taken for this call's.
    this.rtpSocket.on('message', (datagram) => {
      if (this.#srtp !== undefined || !this.#options.isSecure) this.#onRtp(datagram);
    });
  }

  #onRtp(datagram: Buffer): void {
    const plain = this.#decrypt(datagram);
    if (plain === undefined) return;
    const packet = RtpPacket.deSerialize(plain);
    this.received.push({ arrivalMs: performance.now(), lengthBytes: datagram.length, packet });
    for (const look of [...this.#waiting]) look();
  }

  #decrypt(datagram: Buffer): Buffer | undefined {
    try {
      return this.#srtp === undefined ? datagram : this.#srtp.decrypt(datagram);
    } catch {
      this.forged += 1;
      return undefined;
    }
  }

  #onRtcp(datagram: Buffer): void {
    const plain = this.#srtcp === undefined ? datagram : this.#srtcp.decrypt(datagram);
    const types: number[] = [];
    for (let offset = 0; offset + 4 <= plain.length; offset += 4 * (plain.readUInt16BE(offset + 2) + 1)) types.push(plain[offset + 1]!);
    const packets = RtcpPacketConverter.deSerialize(plain);
    const sr = packets.find((packet) => packet instanceof RtcpSrPacket);
    const rr = packets.find((packet) => packet instanceof RtcpRrPacket);
    this.reports.push({ arrivalWallMs: Date.now(), types, sr, blocks: sr?.reports ?? rr?.reports ?? [] });
    for (const look of [...this.#waiting]) look();
  }
}

/** Resolves at a time of the monotonic clock: the rhythm of the packets sent, which is what is tested. */
function until(deadlineMs: number): Promise<void> {
  const delayMs = deadlineMs - performance.now();
  return delayMs <= 0 ? Promise.resolve() : new Promise((resolve) => setTimeout(resolve, delayMs));
}

function bound(): Promise<Socket> {
  const socket = createSocket('udp4');
  return new Promise((resolve, reject) => {
    socket.once('error', reject);
    socket.bind(0, '127.0.0.1', () => resolve(socket));
  });
}

import { createSocket, type Socket } from 'node:dgram';
import { once } from 'node:events';
import { decodeG711 } from '../../src/rtp/codec/g711.js';
import { RTP_HEADER_BYTES, RtpView, writeRtpHeader } from '../../src/rtp/rtp-packet.js';
import { generateSrtpKey, SRTCP_TRAILER_BYTES, SrtpSession } from '../../src/srtp/srtp.js';
import { PacketIndices } from './media/packet-indices.js';
import { rtcpSenderReport, telephoneEvent } from './media/packets.js';
import { offerSdp, type OfferParts } from './sdp.js';

const FRAME_MS = 20;
const FRAME_BYTES = 160;
/** The µ-law byte that we say all the time: the test line's echo of it shows that audio flows both ways. */
const SAID = 0x9f;
const SAID_FRAME = new Uint8Array(FRAME_BYTES).fill(SAID);
const PRESS_PACKETS = 7;

/** One authentic packet of the gateway's. */
export interface HeardPacket {
  readonly atMs: number;
  readonly ssrc: number;
  readonly sequenceNumber: number;
  readonly isEcho: boolean;
}

let serial = 0;

/** A carrier's audio: SRTP out every 20 ms under one key, and when each packet that came was heard. */
export class CarrierAudio {
  /** Those that are not closed: each sends to a port that the next instance may have. */
  static readonly unclosed = new Set<CarrierAudio>();
  readonly heard: HeardPacket[] = [];
  /** Packets that could not be decrypted with the key of the gateway's last description. */
  bad = 0;
  /** Of the gateway's packets. */
  readonly indices = new PacketIndices();
  readonly #key = generateSrtpKey();
  readonly #send = new SrtpSession(this.#key, 'send');
  readonly #view = new RtpView();
  readonly #packet = new Uint8Array(256);
  #receive: SrtpSession | undefined;
  #remote: { readonly address: string; readonly port: number; readonly rtcpPort: number } | undefined;
  #remoteKey = '';
  #ticks: NodeJS.Timeout | undefined;
  #reports: NodeJS.Timeout | undefined;
  // Far from where the sequence number wraps.
  #sequence = 1_000;
  #sent = 0;
  #timestamp = 0;
  /** Packets of a key press that are still to go. */
  #pressPackets = 0;
  readonly #ssrc = 0x7000_0000 + (serial += 1);

  private constructor(
    private readonly rtp: Socket,
    private readonly rtcp: Socket,
  ) {
    rtp.on('message', (data) => {
      this.indices.onRtp(data);
      this.#onRtp(data);
    });
    rtcp.on('message', (data) => this.indices.onRtcp(data));
  }

  static async open(): Promise<CarrierAudio> {
    const sockets = [createSocket('udp4'), createSocket('udp4')] as const;
    for (const socket of sockets) {
      socket.bind(0, '127.0.0.1');
      await once(socket, 'listening');
    }
    const audio = new CarrierAudio(...sockets);
    CarrierAudio.unclosed.add(audio);
    return audio;
  }

  /** Our description: an offer, or the answer to one. */
  sdp(parts: OfferParts = {}): string {
    return offerSdp({
      payloads: '0 101',
      rtpmap: ['0 PCMU/8000', '101 telephone-event/8000'],
      crypto: [`1 AES_CM_128_HMAC_SHA1_80 inline:${Buffer.from(this.#key).toString('base64')}`],
      port: this.rtp.address().port,
      extra: [`a=rtcp:${String(this.rtcp.address().port)}`],
      ...parts,
    });
  }

  /** Sends to where the gateway's description says, and reads with its key. */
  follow(sdp: string): void {
    const key = /^a=crypto:\d+ AES_CM_128_HMAC_SHA1_80 inline:([A-Za-z0-9+/]{40})/m.exec(sdp)?.[1] ?? '';
    const [port, rtcpPort] = [Number(/^m=audio (\d+)/m.exec(sdp)?.[1]), Number(/^a=rtcp:(\d+)/m.exec(sdp)?.[1])];
    this.#remote = { address: /^c=IN IP4 (\S+)/m.exec(sdp)?.[1] ?? '', port, rtcpPort };
    if (key !== this.#remoteKey) {
      this.#receive?.close();
      this.#receive = new SrtpSession(Buffer.from(key, 'base64'), 'receive');
      this.#remoteKey = key;
      this.indices.addKey(key);
    }
    this.#ticks ??= setInterval(() => this.#say(), FRAME_MS);
  }

  /** The longest silence since a moment. */
  longestGapSince(momentMs: number): number {
    const times = this.heard.filter(({ atMs }) => atMs >= momentMs - 100).map(({ atMs }) => atMs);
    return Math.round(Math.max(0, ...times.slice(1).map((atMs, index) => atMs - (times[index] ?? atMs))));
  }

  isHeardAfter(momentMs: number): boolean {
    return this.heard.some(({ atMs }) => atMs > momentMs);
  }

  /** What we say came back: audio flows both ways. */
  isEchoedAfter(momentMs: number): boolean {
    return this.heard.some(({ atMs, isEcho }) => atMs > momentMs && isEcho);
  }

  /** Sources of the gateway's, the latest last. */
  get ssrcs(): number[] {
    return [...new Set(this.heard.map(({ ssrc }) => ssrc))];
  }

  /** No source is heard again after another one. */
  get isInTurn(): boolean {
    const turns = this.heard.filter(({ ssrc }, index) => ssrc !== this.heard[index - 1]?.ssrc);
    return turns.length === this.ssrcs.length;
  }

  /** Packets that are missing between the first and the last one of each source: what a listener would notice, however late they are. */
  get lost(): number {
    const counts = this.ssrcs.map((ssrc) => {
      const numbers = this.heard.filter((packet) => packet.ssrc === ssrc).map(({ sequenceNumber }) => sequenceNumber);
      // Nearer than half of the numbers to the first one.
      const places = new Set(numbers.map((number) => ((number - numbers[0]!) << 16) >> 16));
      return Math.max(...places) - Math.min(...places) + 1 - places.size;
    });
    return counts.reduce((sum, count) => sum + count, 0);
  }

  /** Presses a key: the test line lets its greeting be, and echoes after it has read the key back. */
  press(): void {
    this.#pressPackets = PRESS_PACKETS;
  }

  /** On in the stream, as after 22 minutes for each rollover of the sequence number; most packets are left out. */
  rollOver(times: number): void {
    for (let step = 0; step < 4 * times; step += 1) {
      this.#sequence = (this.#sequence + 16_383) & 0xffff;
      this.#say();
    }
  }

  /** Where the relay takes our RTP. */
  get relayPort(): { readonly address: string; readonly port: number } {
    if (this.#remote === undefined) throw new Error('not connected');
    return this.#remote;
  }

  /** A sender report. @param unsent packets that it claims although none of them went out: they were lost on the way */
  report(unsent = 0): void {
    if (this.#remote === undefined) return;
    this.#sent += unsent;
    const plain = rtcpSenderReport(this.#ssrc, this.#sent);
    const packet = new Uint8Array(plain.length + SRTCP_TRAILER_BYTES);
    packet.set(plain);
    const length = this.#send.protectRtcp(packet, plain.length);
    this.rtcp.send(Buffer.from(packet.subarray(0, length)), this.#remote.rtcpPort, this.#remote.address);
  }

  /** Sends a sender report each second from now on. */
  reportAlways(): void {
    this.#reports ??= setInterval(() => this.report(), 1_000);
  }

  /** Says nothing more, until the next `follow`. */
  mute(): void {
    clearInterval(this.#ticks);
    this.#ticks = undefined;
  }

  close(): void {
    if (!CarrierAudio.unclosed.delete(this)) return;
    this.mute();
    clearInterval(this.#reports);
    this.rtp.close();
    this.rtcp.close();
    this.#send.close();
    this.#receive?.close();
  }

  #say(): void {
    if (this.#remote === undefined) return;
    const passed = PRESS_PACKETS - this.#pressPackets;
    const isPressing = this.#pressPackets > 0;
    const header = {
      marker: isPressing && passed === 0,
      payloadType: isPressing ? 101 : 0,
      sequenceNumber: this.#sequence,
      // RFC 4733 §2.5.1.2: all packets of one event have the time at which it began.
      rtpTimestamp: (this.#timestamp - (isPressing ? passed * FRAME_BYTES : 0)) >>> 0,
      ssrc: this.#ssrc,
    };
    writeRtpHeader(this.#packet, header);
    const payload = isPressing
      ? telephoneEvent(1, Math.min(passed + 1, PRESS_PACKETS - 2) * FRAME_BYTES, this.#pressPackets <= 3)
      : SAID_FRAME;
    this.#packet.set(payload, RTP_HEADER_BYTES);
    if (isPressing) this.#pressPackets -= 1;
    this.#sequence = (this.#sequence + 1) & 0xffff;
    this.#timestamp = (this.#timestamp + FRAME_BYTES) >>> 0;
    this.#sent += 1;
    const length = this.#send.protectRtp(this.#packet, RTP_HEADER_BYTES + payload.length);
    this.rtp.send(Buffer.from(this.#packet.subarray(0, length)), this.#remote.port, this.#remote.address);
  }

  #onRtp(data: Buffer): void {
    const length = this.#receive?.tryUnprotectRtp(data, data.length) ?? -1;
    if (length < 0 || !this.#view.parse(data, length)) {
      this.bad += 1;
      return;
    }
    const { ssrc, sequenceNumber, payloadOffset, payloadBytes } = this.#view;
    const payload = data.subarray(payloadOffset, payloadOffset + payloadBytes);
    const said = linearOf(SAID);
    const isEcho = payload.filter((byte) => Math.abs(linearOf(byte) - said) < 300).length > FRAME_BYTES / 2;
    this.heard.push({ atMs: performance.now(), ssrc, sequenceNumber, isEcho });
  }
}

function linearOf(byte: number): number {
  const samples = new Int16Array(1);
  decodeG711('PCMU', Uint8Array.of(byte), samples);
  return samples[0] ?? 0;
}

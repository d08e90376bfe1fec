import { createSocket, type RemoteInfo, type Socket } from 'node:dgram';
import { once } from 'node:events';
import { parseRtcpCompound, writeRtcpCompound, type CompoundReport, type RtcpPacket } from '../../../src/rtp/rtcp-packet.js';
import { RTP_HEADER_BYTES, RtpView, writeRtpHeader } from '../../../src/rtp/rtp-packet.js';
import { generateSrtpKey, SrtpSession } from '../../../src/srtp/srtp.js';
import { Arrivals } from '../arrivals.js';
import type { FarEnd, GeneratorSlot } from './media-generator.js';

/** One packet of the generator's, decrypted. */
export interface CallerPacket {
  readonly payloadType: number;
  readonly marker: boolean;
  readonly sequenceNumber: number;
  readonly rtpTimestamp: number;
  readonly ssrc: number;
  readonly payload: Buffer;
}

/** What goes back for one packet that came: encrypted packets, in the order in which they are sent. */
export type Answering = (packet: CallerPacket, end: EchoEnd) => readonly Buffer[];

/** The far end of the generator's calls, which says back what a test wants it to. */
export class EchoEnd {
  /** Audio and telephone-events. */
  readonly heard = new Arrivals<CallerPacket>();
  readonly reports = new Arrivals<readonly RtcpPacket[]>();
  answering: Answering = () => [];
  readonly #key = generateSrtpKey();
  readonly #send = new SrtpSession(this.#key, 'send');
  readonly #receive: SrtpSession;
  readonly #view = new RtpView();
  #sequence = 65_500;

  private constructor(
    private readonly caller: GeneratorSlot,
    private readonly rtp: Socket,
    private readonly rtcp: Socket,
  ) {
    this.#receive = new SrtpSession(Buffer.from(caller.key, 'base64'), 'receive');
    rtp.on('message', (data: Buffer) => this.#onRtp(data));
    rtcp.on('message', (data: Buffer, from: RemoteInfo) => this.#onRtcp(data, from));
  }

  /** @param port even, and free with the next one */
  static async open(caller: GeneratorSlot, port: number): Promise<EchoEnd> {
    const [rtp, rtcp] = [await bound(port), await bound(port + 1)];
    return new EchoEnd(caller, rtp, rtcp);
  }

  get far(): FarEnd {
    return { port: this.rtp.address().port, key: Buffer.from(this.#key).toString('base64') };
  }

  /** The next packet of our stream; one that is made and never sent is lost. */
  packet(payload: Uint8Array, payloadType = 0): Buffer {
    const packet = Buffer.alloc(RTP_HEADER_BYTES + payload.length + 16);
    const sequenceNumber = this.#sequence & 0xffff;
    writeRtpHeader(packet, { marker: false, payloadType, sequenceNumber, rtpTimestamp: this.#sequence * 160, ssrc: 0x5eed });
    this.#sequence += 1;
    packet.set(payload, RTP_HEADER_BYTES);
    return packet.subarray(0, this.#send.protectRtp(packet, RTP_HEADER_BYTES + payload.length));
  }

  send(packet: Buffer, from: Socket = this.rtp): Promise<void> {
    return new Promise((resolve, reject) =>
      from.send(packet, this.caller.port, '127.0.0.1', (error) => (error === null ? resolve() : reject(error))),
    );
  }

  sendReport(report: CompoundReport): void {
    const packet = Buffer.alloc(512);
    const length = this.#send.protectRtcp(packet, writeRtcpCompound(packet, report));
    this.rtcp.send(packet.subarray(0, length), this.caller.port + 1, '127.0.0.1');
  }

  /** The first `frames` frames of audio are answered as told, nothing after them; resolves when more than those have been heard. */
  async answer(frames: number, answering: Answering): Promise<void> {
    const from = this.#audio;
    this.answering = (packet, end) => (this.#audio - from <= frames && packet.payloadType !== 101 ? answering(packet, end) : []);
    await this.hears(from + frames + 5);
  }

  /** Resolves when so many frames of audio were heard in all. */
  hears(frames: number): Promise<true> {
    return this.heard.until(() => (this.#audio >= frames ? true : undefined));
  }

  close(): void {
    this.rtp.close();
    this.rtcp.close();
    this.#send.close();
    this.#receive.close();
  }

  get #audio(): number {
    return this.heard.all.filter(({ payloadType }) => payloadType !== 101).length;
  }

  #onRtp(data: Buffer): void {
    const length = this.#receive.unprotectRtp(data, data.length);
    if (!this.#view.parse(data, length)) throw new Error('no RTP');
    const { payloadType, marker, sequenceNumber, rtpTimestamp, ssrc, payloadOffset, payloadBytes } = this.#view;
    const payload = data.subarray(payloadOffset, payloadOffset + payloadBytes);
    const packet = { payloadType, marker, sequenceNumber, rtpTimestamp, ssrc, payload };
    this.heard.add(packet);
    for (const answer of this.answering(packet, this)) void this.send(answer);
  }

  #onRtcp(data: Buffer, from: RemoteInfo): void {
    if (from.port !== this.caller.port + 1) throw new Error('a report from another port');
    const parsed = parseRtcpCompound(data.subarray(0, this.#receive.unprotectRtcp(data, data.length)));
    if (!parsed.ok) throw new Error(parsed.error);
    this.reports.add(parsed.value);
  }
}

async function bound(port: number): Promise<Socket> {
  const socket = createSocket('udp4');
  socket.bind({ address: '127.0.0.1', port, exclusive: true });
  await once(socket, 'listening');
  return socket;
}

import { randomBytes, randomInt } from 'node:crypto';
import { createSocket, type Socket } from 'node:dgram';
import { type AudioCodec, decodeG711, encodeG711, payloadTypeOf, FRAME_MS, FRAME_SAMPLES } from '../../rtp/codec/g711.js';
import type { CancelTimer, Clock } from '../../lib/clock.js';
import { TelephoneEventSender } from '../../rtp/dtmf/telephone-event-sender.js';
import { TELEPHONE_EVENT_BYTES, writeTelephoneEvent } from '../../rtp/dtmf/telephone-event.js';
import { FramePacer } from '../../gateway/media/slot-clock.js';
import { middle32, ntpFromUnixMs, roundTripMs } from '../../rtp/ntp.js';
import { ReceptionStatistics } from '../../rtp/quality.js';
import { parseRtcpCompound, writeRtcpCompound, type ReportBlock } from '../../rtp/rtcp-packet.js';
import { RtcpSchedule } from '../../rtp/rtcp-session.js';
import { RTP_HEADER_BYTES, RtpView, writeRtpHeader } from '../../rtp/rtp-packet.js';
import { SrtpSession } from '../../srtp/srtp.js';

const CLOCK_RATE_HZ = 8_000;
const MAX_RECORDED_SAMPLES = CLOCK_RATE_HZ * 600;

/** What the answer settled. */
export interface CarrierMediaSettings {
  readonly remote: { readonly address: string; readonly rtpPort: number; readonly rtcpPort: number };
  readonly codec: AudioCodec;
  readonly telephoneEventPayloadType: number | null;
  /** 30 bytes each; `null`: plain RTP. */
  readonly keys: { readonly send: Uint8Array; readonly receive: Uint8Array } | null;
}

export interface CarrierMediaFigures {
  readonly packetsSent: number;
  readonly packetsReceived: number;
  readonly packetsLost: number;
  readonly jitterMs: number;
  /** Packets that failed SRTP authentication or were no RTP. */
  readonly packetsBad: number;
  readonly rtcpReceived: number;
  readonly rtcpSent: number;
  /** What the gateway reports to have lost of ours; `null`: it sent no report block. */
  readonly remoteLost: number | null;
  readonly roundTripMs: number | null;
  /** After `start`; `null`: none came. */
  readonly firstPacketMs: number | null;
}

/** The media side of the test carrier: RTP and RTCP sockets, SRTP, a recording of what was heard. */
export class CarrierMediaLeg {
  readonly #view = new RtpView();
  readonly #statistics = new ReceptionStatistics(CLOCK_RATE_HZ);
  readonly #schedule = new RtcpSchedule(Math.random);
  readonly #events = new TelephoneEventSender();
  readonly #ssrc = randomBytes(4).readUInt32BE();
  readonly #cname = randomBytes(8).toString('hex');
  readonly #packet = new Uint8Array(2_048);
  readonly #frame = new Int16Array(FRAME_SAMPLES);
  readonly #counts = { sent: 0, octets: 0, bad: 0, rtcpReceived: 0, rtcpSent: 0 };
  #settings: CarrierMediaSettings | undefined;
  #protect: SrtpSession | undefined;
  #unprotect: SrtpSession | undefined;
  #sequence = randomInt(0, 65_536);
  #timestamp = randomBytes(4).readUInt32BE();
  #pacer: FramePacer | undefined;
  #cancelTick: CancelTimer | undefined;
  #startedMs = 0;
  #audio: Int16Array = new Int16Array(0);
  #audioAt = 0;
  #recording = new Int16Array(CLOCK_RATE_HZ * 30);
  #recordedEnd = 0;
  #firstTimestamp: number | undefined;
  #firstPacketMs: number | null = null;
  #remoteSsrc = 0;
  #remoteLost: number | null = null;
  #roundTripMs: number | null = null;
  #lastSenderReport = { middle: 0, atMs: 0 };

  private constructor(
    private readonly rtp: Socket,
    private readonly rtcp: Socket,
    private readonly clock: Clock,
  ) {
    rtp.on('message', (data) => this.#onRtp(data));
    rtcp.on('message', (data) => this.#onRtcp(data));
    for (const socket of [rtp, rtcp]) socket.on('error', () => undefined);
  }

  /** Opens an even port and the odd one above it, of those that the system gives to any program. */
  static async open(address: string, clock: Clock): Promise<CarrierMediaLeg> {
    for (let attempt = 0; attempt < 50; attempt += 1) {
      const given = await bind(address, 0);
      if (given === undefined) break;
      const { port } = given.address();
      const isRtp = port % 2 === 0;
      const other = await bind(address, isRtp ? port + 1 : port - 1);
      if (other !== undefined) return isRtp ? new CarrierMediaLeg(given, other, clock) : new CarrierMediaLeg(other, given, clock);
      given.close();
    }
    throw new Error(`no free pair of UDP ports on ${address}`);
  }

  get port(): number {
    return this.rtp.address().port;
  }

  /** Sends to another address with other keys from now on, and expects them. */
  move(settings: CarrierMediaSettings): void {
    this.#settings = settings;
    if (settings.keys === null) return;
    this.#protect?.close();
    this.#unprotect?.close();
    this.#protect = new SrtpSession(settings.keys.send, 'send');
    this.#unprotect = new SrtpSession(settings.keys.receive, 'receive');
  }

  /** Starts sending: silence until `play`, digits from `press`. */
  start(settings: CarrierMediaSettings): void {
    this.move(settings);
    this.#startedMs = this.clock.nowMs();
    this.#pacer = new FramePacer(this.#startedMs, FRAME_MS);
    this.#tick();
  }

  /** Sends these samples (8 kHz) next, then silence again. */
  play(samples: Int16Array): void {
    this.#audio = samples;
    this.#audioAt = 0;
  }

  /** Presses a key for a tenth of a second. */
  press(event: number): void {
    this.#events.send(event, CLOCK_RATE_HZ / 10);
  }

  get isPressing(): boolean {
    return !this.#events.isIdle;
  }

  /** What was heard so far, in order of RTP timestamps; what never came is silence. A view, not a copy. */
  recording(): Int16Array {
    return this.#recording.subarray(0, this.#recordedEnd);
  }

  figures(): CarrierMediaFigures {
    return {
      packetsSent: this.#counts.sent,
      packetsReceived: this.#statistics.packetsReceived,
      packetsLost: this.#statistics.packetsLost,
      jitterMs: Math.round(this.#statistics.jitterMs * 100) / 100,
      packetsBad: this.#counts.bad,
      rtcpReceived: this.#counts.rtcpReceived,
      rtcpSent: this.#counts.rtcpSent,
      remoteLost: this.#remoteLost,
      roundTripMs: this.#roundTripMs,
      firstPacketMs: this.#firstPacketMs,
    };
  }

  close(): void {
    this.#cancelTick?.();
    this.rtp.close();
    this.rtcp.close();
    this.#protect?.close();
    this.#unprotect?.close();
  }

  #tick(): void {
    const pacer = this.#pacer;
    if (pacer === undefined) return;
    const { skip, send } = pacer.take(this.clock.nowMs());
    this.#timestamp = (this.#timestamp + skip * FRAME_SAMPLES) >>> 0;
    for (let frame = 0; frame < send; frame += 1) this.#sendFrame();
    if (this.#schedule.take(this.clock.nowMs())) this.#sendReport();
    this.#cancelTick = this.clock.setTimer(Math.max(0, pacer.nextDeadlineMs - this.clock.nowMs()), () => this.#tick());
  }

  #sendFrame(): void {
    const settings = this.#settings;
    if (settings === undefined) return;
    const eventType = settings.telephoneEventPayloadType;
    const event = eventType === null ? undefined : this.#events.next(this.#timestamp);
    let payloadBytes = FRAME_SAMPLES;
    if (event !== undefined && eventType !== null) {
      writeRtpHeader(this.#packet, { ...this.#header(eventType), marker: event.marker, rtpTimestamp: event.rtpTimestamp });
      writeTelephoneEvent(this.#packet, RTP_HEADER_BYTES, event);
      payloadBytes = TELEPHONE_EVENT_BYTES;
    } else {
      writeRtpHeader(this.#packet, this.#header(payloadTypeOf(settings.codec)));
      this.#nextAudio();
      encodeG711(settings.codec, this.#frame, this.#packet, RTP_HEADER_BYTES);
    }
    this.#timestamp = (this.#timestamp + FRAME_SAMPLES) >>> 0;
    this.#sequence = (this.#sequence + 1) & 0xffff;
    const length = RTP_HEADER_BYTES + payloadBytes;
    const wire = this.#protect === undefined ? length : this.#protect.protectRtp(this.#packet, length);
    this.rtp.send(Buffer.from(this.#packet.subarray(0, wire)), settings.remote.rtpPort, settings.remote.address);
    this.#counts.sent += 1;
    this.#counts.octets += payloadBytes;
    this.#schedule.start(this.clock.nowMs());
  }

  #header(payloadType: number): { marker: boolean; payloadType: number; sequenceNumber: number; rtpTimestamp: number; ssrc: number } {
    return { marker: false, payloadType, sequenceNumber: this.#sequence, rtpTimestamp: this.#timestamp, ssrc: this.#ssrc };
  }

  #nextAudio(): void {
    this.#frame.fill(0);
    this.#frame.set(this.#audio.subarray(this.#audioAt, this.#audioAt + FRAME_SAMPLES));
    this.#audioAt += FRAME_SAMPLES;
  }

  #onRtp(data: Buffer): void {
    const settings = this.#settings;
    if (settings === undefined) return;
    const length = this.#unprotect === undefined ? data.length : this.#unprotect.tryUnprotectRtp(data, data.length);
    if (length < 0 || !this.#view.parse(data, length)) {
      this.#counts.bad += 1;
      return;
    }
    const { sequenceNumber, rtpTimestamp, payloadType, ssrc } = this.#view;
    const isAudio = payloadType === payloadTypeOf(settings.codec);
    this.#remoteSsrc = ssrc;
    if (!this.#statistics.receive(sequenceNumber, rtpTimestamp, this.clock.nowMs(), isAudio)) return;
    this.#firstPacketMs ??= Math.round(this.clock.nowMs() - this.#startedMs);
    if (isAudio)
      this.#record(
        data.subarray(this.#view.payloadOffset, this.#view.payloadOffset + this.#view.payloadBytes),
        rtpTimestamp,
        settings.codec,
      );
  }

  /** Each packet goes where its timestamp says, so that reordering and loss shift nothing. */
  #record(payload: Uint8Array, rtpTimestamp: number, codec: AudioCodec): void {
    this.#firstTimestamp ??= rtpTimestamp;
    const at = (rtpTimestamp - this.#firstTimestamp) | 0;
    const end = at + payload.length;
    if (at < 0 || end > MAX_RECORDED_SAMPLES) return;
    if (end > this.#recording.length) {
      const larger = new Int16Array(Math.min(2 * end, MAX_RECORDED_SAMPLES));
      larger.set(this.#recording);
      this.#recording = larger;
    }
    decodeG711(codec, payload, this.#recording.subarray(at, end));
    this.#recordedEnd = Math.max(this.#recordedEnd, end);
  }

  #onRtcp(data: Buffer): void {
    const length = this.#unprotect === undefined ? data.length : this.#unprotect.tryUnprotectRtcp(data, data.length);
    const packets = length < 0 ? undefined : parseRtcpCompound(data.subarray(0, length));
    if (packets?.ok !== true) {
      this.#counts.bad += 1;
      return;
    }
    this.#counts.rtcpReceived += 1;
    const nowMiddle = middle32(ntpFromUnixMs(this.clock.wallMs()));
    for (const packet of packets.value) {
      if (packet.type === 'SR') this.#lastSenderReport = { middle: middle32(packet.sender.ntp), atMs: this.clock.nowMs() };
      if (packet.type !== 'SR' && packet.type !== 'RR') continue;
      const ours = packet.blocks.find(({ ssrc }) => ssrc === this.#ssrc);
      if (ours === undefined) continue;
      this.#remoteLost = ours.cumulativeLost;
      this.#roundTripMs = roundTripMs(nowMiddle, ours.lastSenderReport, ours.delaySinceLastSenderReport) ?? this.#roundTripMs;
    }
  }

  #sendReport(): void {
    const settings = this.#settings;
    if (settings === undefined) return;
    const length = writeRtcpCompound(this.#packet, {
      ssrc: this.#ssrc,
      sender: {
        ntp: ntpFromUnixMs(this.clock.wallMs()),
        rtpTimestamp: this.#timestamp,
        packets: this.#counts.sent,
        octets: this.#counts.octets,
      },
      blocks: this.#reportBlocks(),
      cname: this.#cname,
      isBye: false,
    });
    const wire = this.#protect === undefined ? length : this.#protect.protectRtcp(this.#packet, length);
    this.rtcp.send(Buffer.from(this.#packet.subarray(0, wire)), settings.remote.rtcpPort, settings.remote.address);
    this.#counts.rtcpSent += 1;
  }

  #reportBlocks(): ReportBlock[] {
    if (this.#remoteSsrc === 0) return [];
    const { middle, atMs } = this.#lastSenderReport;
    const delay = middle === 0 ? 0 : Math.round(((this.clock.nowMs() - atMs) / 1_000) * 65_536);
    return [{ ssrc: this.#remoteSsrc, lastSenderReport: middle, delaySinceLastSenderReport: delay, ...this.#statistics.takeReport() }];
  }
}

function bind(address: string, port: number): Promise<Socket | undefined> {
  return new Promise((resolve) => {
    const socket = createSocket({ type: address.includes(':') ? 'udp6' : 'udp4', recvBufferSize: 1 << 20 });
    socket.once('error', () => {
      socket.close();
      resolve(undefined);
    });
    socket.bind({ address, port, exclusive: true }, () => {
      socket.removeAllListeners('error');
      resolve(socket);
    });
  });
}

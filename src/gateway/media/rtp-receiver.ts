import type { AudioPacket } from '../../rtp/audio-packet.js';
import type { LegFormat } from '../model/media.js';
import type { AudioCodec } from '../../rtp/codec/g711.js';
import { G711_CLOCK_RATE_HZ, PCMA_PAYLOAD_TYPE, PCMU_PAYLOAD_TYPE } from '../../rtp/codec/g711.js';
import { TelephoneEventReceiver, type DtmfDigit } from '../../rtp/dtmf/telephone-event-receiver.js';
import { ReplayWindow } from '../../rtp/replay-window.js';
import { ReceptionStatistics } from '../../rtp/quality.js';
import { RtpView } from '../../rtp/rtp-packet.js';
import type { ReceivedFigures } from '../../rtp/rtcp-session.js';
import type { SrtpSession } from '../../srtp/srtp.js';

/** What became of one datagram. */
export type ReceiveOutcome =
  /** The caller's packet. */
  | 'taken'
  /** SRTP: not authentic, or replayed. */
  | 'not-authentic'
  /** No RTP packet, or one that cannot belong to the stream. */
  | 'not-rtp';

/** The content of a packet. */
export interface HeardPackets {
  onDtmf(digit: DtmfDigit): void;
  /** In order of arrival. */
  onAudio(packet: AudioPacket): void;
}

/** Sources per leg whose packets are remembered: carriers change theirs, at a transfer for example. */
const MAX_SOURCES = 8;

/** All legs of a thread share it: each uses it within one call of a method. */
const VIEW = new RtpView();
/** The packet that is heard: one object, too. */
const AUDIO: { -readonly [Field in keyof AudioPacket]: AudioPacket[Field] } = {
  codec: 'PCMU',
  ssrc: 0,
  rtpTimestamp: 0,
  buffer: new Uint8Array(),
  offset: 0,
  lengthBytes: 0,
  nowMs: 0,
};

/** The receiving half of a leg: SRTP, statistics and digits. */
export class RtpReceiver {
  #srtp: SrtpSession | null = null;
  /** From the first telephone-event on. */
  #events: TelephoneEventReceiver | undefined;
  /** The present source’s. */
  #statistics: ReceptionStatistics | undefined;
  #ssrc = -1;
  #earlierReceived = 0;
  #earlierLost = 0;
  #lastPacketMs: number | undefined;
  /** By SSRC; `null`: the carrier's media is plain. */
  readonly #windows: Map<number, ReplayWindow> | null;
  #windowSsrc = -1;
  #window: ReplayWindow | undefined;

  /**
   * @param format may change between two packets
   * @param isRelayed the caller's SRTP ends, unless it ends here, at a relay without a replay list
   */
  constructor(
    public format: LegFormat,
    isRelayed = false,
  ) {
    this.#windows = isRelayed ? new Map() : null;
  }

  get packetsReceived(): number {
    return this.#earlierReceived + (this.#statistics?.packetsReceived ?? 0);
  }

  get packetsLost(): number {
    return this.#earlierLost + (this.#statistics?.packetsLost ?? 0);
  }

  get jitterMs(): number {
    return this.#statistics?.jitterMs ?? 0;
  }

  /** `ReceptionStatistics.takeDelayMs`. */
  takeDelayMs(): number | null {
    return this.#statistics?.takeDelayMs() ?? null;
  }

  /** Changes the key of incoming packets; `null`: plain RTP. */
  setSrtp(srtp: SrtpSession | null): void {
    this.#srtp = srtp;
  }

  /** When the caller's last packet arrived. */
  get lastPacketMs(): number | undefined {
    return this.#lastPacketMs;
  }

  /** Takes one datagram and modifies it in place. */
  receive(datagram: Uint8Array, nowMs: number, heard: HeardPackets): ReceiveOutcome {
    const lengthBytes = this.#srtp === null ? datagram.length : this.#srtp.tryUnprotectRtp(datagram, datagram.length);
    if (lengthBytes < 0) return 'not-authentic';
    const view = VIEW;
    if (!view.parse(datagram, lengthBytes)) return 'not-rtp';
    if (!this.#isNew(view.ssrc, view.sequenceNumber)) return 'not-authentic';
    const statistics = this.#statisticsOf(view.ssrc);
    const { telephoneEventPayloadType, otherTelephoneEventPayloadType } = this.format;
    const isEvent = view.payloadType === telephoneEventPayloadType || view.payloadType === otherTelephoneEventPayloadType;
    if (!statistics.receive(view.sequenceNumber, view.rtpTimestamp, nowMs, !isEvent)) return 'not-rtp';
    this.#lastPacketMs = nowMs;
    if (isEvent) {
      const { ssrc, rtpTimestamp, payloadOffset, payloadBytes } = view;
      const events = (this.#events ??= new TelephoneEventReceiver());
      for (const digit of events.receive(ssrc, rtpTimestamp, datagram, payloadOffset, payloadBytes, nowMs)) heard.onDtmf(digit);
    } else {
      this.#receiveAudio(datagram, nowMs, heard);
    }
    return 'taken';
  }

  /** A digit whose end packets were lost, after its timeout. */
  pollDtmf(nowMs: number): DtmfDigit | undefined {
    return this.#events?.poll(nowMs);
  }

  /** The figures for a report sent now; `null` before the first packet. */
  takeReport(): ReceivedFigures | null {
    return this.#statistics === undefined ? null : { ssrc: this.#ssrc, figures: this.#statistics.takeReport() };
  }

  #isNew(ssrc: number, sequenceNumber: number): boolean {
    if (this.#windows === null || this.#srtp !== null) return true;
    if (this.#window === undefined || ssrc !== this.#windowSsrc) this.#window = windowOf(this.#windows, ssrc);
    this.#windowSsrc = ssrc;
    return this.#window.take(sequenceNumber);
  }

  #receiveAudio(datagram: Uint8Array, nowMs: number, heard: HeardPackets): void {
    const { ssrc, rtpTimestamp, payloadType, payloadOffset, payloadBytes } = VIEW;
    const codec = audioCodecOf(payloadType, this.format);
    if (codec === undefined || payloadBytes === 0) return;
    AUDIO.codec = codec;
    AUDIO.ssrc = ssrc;
    AUDIO.rtpTimestamp = rtpTimestamp;
    AUDIO.buffer = datagram;
    AUDIO.offset = payloadOffset;
    AUDIO.lengthBytes = payloadBytes;
    AUDIO.nowMs = nowMs;
    heard.onAudio(AUDIO);
  }

  #statisticsOf(ssrc: number): ReceptionStatistics {
    if (this.#statistics !== undefined && ssrc === this.#ssrc) return this.#statistics;
    this.#earlierReceived = this.packetsReceived;
    this.#earlierLost = this.packetsLost;
    this.#ssrc = ssrc;
    return (this.#statistics = new ReceptionStatistics(G711_CLOCK_RATE_HZ));
  }
}

/** Makes a source the newest; beyond `MAX_SOURCES` the oldest is forgotten. */
function windowOf(windows: Map<number, ReplayWindow>, ssrc: number): ReplayWindow {
  const window = windows.get(ssrc) ?? new ReplayWindow();
  windows.delete(ssrc);
  windows.set(ssrc, window);
  const [oldest] = windows.keys();
  if (windows.size > MAX_SOURCES && oldest !== undefined) windows.delete(oldest);
  return window;
}

/** The negotiated type, else a static one: a peer may use either law for a while after a change (RFC 3264 §8.3.2). */
function audioCodecOf(payloadType: number, format: LegFormat): AudioCodec | undefined {
  if (payloadType === format.payloadType) return format.codec;
  // RFC 3389 comfort noise is not played: the concealment fades to silence by itself.
  if (payloadType === PCMU_PAYLOAD_TYPE) return 'PCMU';
  return payloadType === PCMA_PAYLOAD_TYPE ? 'PCMA' : undefined;
}

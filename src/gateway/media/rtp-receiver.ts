import { LRUCache } from 'lru-cache';
import type { LegFormat } from '../model/media.js';
import type { AudioCodec } from '../../rtp/codec/g711.js';
import { G711_CLOCK_RATE_HZ, PCMA_PAYLOAD_TYPE, PCMU_PAYLOAD_TYPE } from '../../rtp/codec/g711.js';
import { TelephoneEventReceiver, type DtmfDigit } from '../../rtp/dtmf/telephone-event-receiver.js';
import { ReplayWindow } from '../../rtp/replay-window.js';
import { ReceptionStatistics } from '../../rtp/reception-statistics.js';
import { RtpView } from '../../rtp/rtp-packet.js';
import type { ReceivedFigures } from '../../rtp/rtcp-session.js';
import type { SrtpSession } from '../../srtp/srtp.js';

/** What became of one datagram. */
export type ReceiveOutcome =
  /** A packet of the caller. */
  | 'taken'
  /** SRTP: not authentic, or seen before. */
  | 'not-authentic'
  /** No RTP packet, or one that cannot belong to the stream. */
  | 'not-rtp';

/** What a packet turned out to be. */
export interface HeardPackets {
  onDtmf(press: DtmfDigit): void;
  /** G.711 of `codec` in `buffer[offset, offset + lengthBytes)`, in the order in which it came. */
  onAudio(
    codec: AudioCodec,
    ssrc: number,
    rtpTimestamp: number,
    buffer: Uint8Array,
    offset: number,
    lengthBytes: number,
    nowMs: number,
  ): void;
}

/** Sources of one leg whose packets are remembered: carriers change theirs at a transfer, say. */
const MAX_SOURCES = 8;

/** The receiving half of a leg: SRTP, statistics and key presses. */
export class RtpReceiver {
  #srtp: SrtpSession | null;
  readonly #events = new TelephoneEventReceiver();
  readonly #view = new RtpView();
  #statistics = new ReceptionStatistics(G711_CLOCK_RATE_HZ);
  #ssrc: number | undefined;
  #earlierReceived = 0;
  #earlierLost = 0;
  #lastPacketMs: number | undefined;
  /** By SSRC; `null`: whoever ended SRTP has thrown away what was sent again, or there was none. */
  readonly #windows: LRUCache<number, ReplayWindow> | null;

  /**
   * @param format may be changed between two packets
   * @param isRelayed SRTP of the caller ends at a relay that keeps no replay list
   */
  constructor(
    srtp: SrtpSession | null,
    public format: LegFormat,
    isRelayed = false,
  ) {
    this.#srtp = srtp;
    this.#windows = isRelayed ? new LRUCache({ max: MAX_SOURCES }) : null;
  }

  get packetsReceived(): number {
    return this.#earlierReceived + this.#statistics.packetsReceived;
  }

  get packetsLost(): number {
    return this.#earlierLost + this.#statistics.packetsLost;
  }

  get jitterMs(): number {
    return this.#statistics.jitterMs;
  }

  /** From now on packets come under another key. */
  setSrtp(srtp: SrtpSession): void {
    this.#srtp = srtp;
  }

  /** When the last packet of the caller came. */
  get lastPacketMs(): number | undefined {
    return this.#lastPacketMs;
  }

  /** Takes one datagram, which is changed in place. */
  receive(datagram: Uint8Array, nowMs: number, heard: HeardPackets): ReceiveOutcome {
    const lengthBytes = this.#srtp === null ? datagram.length : this.#srtp.tryUnprotectRtp(datagram, datagram.length);
    if (lengthBytes < 0) return 'not-authentic';
    const view = this.#view;
    if (!view.parse(datagram, lengthBytes)) return 'not-rtp';
    if (!this.#isNew(view.ssrc, view.sequenceNumber)) return 'not-authentic';
    if (view.ssrc !== this.#ssrc) this.#changeSource(view.ssrc);
    const isEvent = view.payloadType === this.format.telephoneEventPayloadType;
    if (!this.#statistics.receive(view.sequenceNumber, view.rtpTimestamp, nowMs, !isEvent)) return 'not-rtp';
    this.#lastPacketMs = nowMs;
    if (isEvent) {
      const { ssrc, rtpTimestamp, payloadOffset, payloadBytes } = view;
      for (const press of this.#events.receive(ssrc, rtpTimestamp, datagram, payloadOffset, payloadBytes, nowMs)) heard.onDtmf(press);
    } else {
      this.#receiveAudio(datagram, nowMs, heard);
    }
    return 'taken';
  }

  /** A key press whose end was lost, once its time is over. */
  pollDtmf(nowMs: number): DtmfDigit | undefined {
    return this.#events.poll(nowMs);
  }

  /** The figures for a report that is sent now; `null` when nothing came. */
  takeReport(): ReceivedFigures | null {
    return this.#ssrc === undefined ? null : { ssrc: this.#ssrc, figures: this.#statistics.takeReport() };
  }

  #isNew(ssrc: number, sequenceNumber: number): boolean {
    if (this.#windows === null) return true;
    let window = this.#windows.get(ssrc);
    if (window === undefined) {
      window = new ReplayWindow();
      this.#windows.set(ssrc, window);
    }
    return window.take(sequenceNumber);
  }

  #receiveAudio(datagram: Uint8Array, nowMs: number, heard: HeardPackets): void {
    const { ssrc, rtpTimestamp, payloadType, payloadOffset, payloadBytes } = this.#view;
    const codec = audioCodecOf(payloadType, this.format);
    if (codec === undefined || payloadBytes === 0) return;
    heard.onAudio(codec, ssrc, rtpTimestamp, datagram, payloadOffset, payloadBytes, nowMs);
  }

  #changeSource(ssrc: number): void {
    this.#earlierReceived += this.#statistics.packetsReceived;
    this.#earlierLost += this.#statistics.packetsLost;
    this.#statistics = new ReceptionStatistics(G711_CLOCK_RATE_HZ);
    this.#ssrc = ssrc;
  }
}

/** The negotiated type, or else a static one: a peer may send either law for a while after it changed (RFC 3264 §8.3.2). */
function audioCodecOf(payloadType: number, format: LegFormat): AudioCodec | undefined {
  if (payloadType === format.payloadType) return format.codec;
  // RFC 3389 comfort noise is no audio: what conceals loss fades to silence by itself.
  if (payloadType === PCMU_PAYLOAD_TYPE) return 'PCMU';
  return payloadType === PCMA_PAYLOAD_TYPE ? 'PCMA' : undefined;
}

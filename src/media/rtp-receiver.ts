import type { AudioCodec } from '../contracts/media.js';
import { COMFORT_NOISE_PAYLOAD_TYPE, decodeG711, G711_CLOCK_RATE_HZ, PCMA_PAYLOAD_TYPE, PCMU_PAYLOAD_TYPE } from './codec/g711.js';
import { EventReceiver, type KeyPress } from './dtmf/event-receiver.js';
import { JitterBuffer } from './rtp/jitter-buffer.js';
import { ReceptionStatistics } from './rtp/reception-statistics.js';
import { RtpView } from './rtp/rtp-packet.js';
import type { ReceivedFigures } from './rtp/rtcp-session.js';
import type { SrtpSession } from './srtp.js';

/** What became of one datagram. */
export type ReceiveOutcome =
  /** A packet of the caller. */
  | 'taken'
  /** SRTP: not authentic, or seen before. */
  | 'not-authentic'
  /** No RTP packet, or one that cannot belong to the stream. */
  | 'not-rtp';

/** The receiving half of a leg: SRTP, statistics, jitter buffer and key presses. */
export class RtpReceiver {
  #srtp: SrtpSession | null;
  readonly #telephoneEventPayloadType: number | null;
  readonly #jitterBuffer = new JitterBuffer();
  readonly #events = new EventReceiver();
  readonly #view = new RtpView();
  readonly #scratch = new Int16Array(2_048);
  readonly #scratchFrame = this.#scratch.subarray(0, 160);
  #statistics = new ReceptionStatistics(G711_CLOCK_RATE_HZ);
  #ssrc: number | undefined;
  #earlierReceived = 0;
  #earlierLost = 0;
  #lastPacketMs: number | undefined;

  constructor(srtp: SrtpSession | null, telephoneEventPayloadType: number | null) {
    this.#srtp = srtp;
    this.#telephoneEventPayloadType = telephoneEventPayloadType;
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

  /** What waits in the jitter buffer. */
  get bufferedMs(): number {
    return Math.max(0, this.#jitterBuffer.depthMs);
  }

  /** From now on packets come under another key. */
  setSrtp(srtp: SrtpSession): void {
    this.#srtp = srtp;
  }

  /** When the last packet of the caller came. */
  get lastPacketMs(): number | undefined {
    return this.#lastPacketMs;
  }

  /** Takes one datagram, which is changed in place. Key presses that it ends are given to `onPress`. */
  receive(datagram: Uint8Array, nowMs: number, onPress: (press: KeyPress) => void): ReceiveOutcome {
    const lengthBytes = this.#srtp === null ? datagram.length : this.#srtp.tryUnprotectRtp(datagram, datagram.length);
    if (lengthBytes < 0) return 'not-authentic';
    const view = this.#view;
    if (!view.parse(datagram, lengthBytes)) return 'not-rtp';
    if (view.ssrc !== this.#ssrc) this.#changeSource(view.ssrc);
    const isEvent = view.payloadType === this.#telephoneEventPayloadType;
    if (!this.#statistics.receive(view.sequenceNumber, view.rtpTimestamp, nowMs, !isEvent)) return 'not-rtp';
    this.#lastPacketMs = nowMs;
    if (isEvent) {
      const { ssrc, rtpTimestamp, payloadOffset, payloadBytes } = view;
      for (const press of this.#events.receive(ssrc, rtpTimestamp, datagram, payloadOffset, payloadBytes, nowMs)) onPress(press);
    } else {
      this.#receiveAudio(datagram);
    }
    return 'taken';
  }

  /** The next frame of the caller's audio; silence while there is none. */
  pull(frame: Int16Array): void {
    this.#jitterBuffer.pull(frame);
  }

  /** A key press whose end was lost, once its time is over. */
  pollPress(nowMs: number): KeyPress | undefined {
    return this.#events.poll(nowMs);
  }

  /** The figures for a report that is sent now; `null` when nothing came. */
  takeReport(): ReceivedFigures | null {
    return this.#ssrc === undefined ? null : { ssrc: this.#ssrc, figures: this.#statistics.takeReport() };
  }

  #receiveAudio(datagram: Uint8Array): void {
    const { ssrc, rtpTimestamp, payloadType, payloadOffset, payloadBytes } = this.#view;
    // RFC 3389 comfort noise is no audio: the jitter buffer fades to silence by itself.
    const codec = payloadType === COMFORT_NOISE_PAYLOAD_TYPE ? undefined : audioCodecOf(payloadType);
    if (codec === undefined || payloadBytes === 0 || payloadBytes > this.#scratch.length) return;
    decodeG711(codec, datagram, this.#scratch, payloadOffset, payloadBytes);
    this.#jitterBuffer.push(ssrc, rtpTimestamp, payloadBytes === 160 ? this.#scratchFrame : this.#scratch.subarray(0, payloadBytes));
  }

  #changeSource(ssrc: number): void {
    this.#earlierReceived += this.#statistics.packetsReceived;
    this.#earlierLost += this.#statistics.packetsLost;
    this.#statistics = new ReceptionStatistics(G711_CLOCK_RATE_HZ);
    this.#ssrc = ssrc;
  }
}

function audioCodecOf(payloadType: number): AudioCodec | undefined {
  if (payloadType === PCMU_PAYLOAD_TYPE) return 'PCMU';
  return payloadType === PCMA_PAYLOAD_TYPE ? 'PCMA' : undefined;
}

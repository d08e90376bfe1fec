import type { LegFormat } from '../model/media.js';
import { FRAME_MS, FRAME_SAMPLES } from '../../rtp/codec/g711.js';
import { TelephoneEventSender } from '../../rtp/dtmf/telephone-event-sender.js';
import { TELEPHONE_EVENT_BYTES, writeTelephoneEvent } from '../../rtp/dtmf/telephone-event.js';
import type { SentFigures } from '../../rtp/rtcp-session.js';
import { RTP_HEADER_BYTES, writeRtpHeader, addTicks, nextSequence } from '../../rtp/rtp-packet.js';
import { SRTP_TRAILER_BYTES, type SrtpSession } from '../../srtp/srtp.js';

/** All legs of a thread share it: the socket copies what it sends. */
const PACKET = Buffer.alloc(RTP_HEADER_BYTES + FRAME_SAMPLES + SRTP_TRAILER_BYTES);
const PAYLOAD: Uint8Array = PACKET.subarray(RTP_HEADER_BYTES, RTP_HEADER_BYTES + FRAME_SAMPLES);

export interface RtpSenderStart {
  /** Random (RFC 3550 §5.1): 32, 16 and 32 bits. */
  readonly ssrc: number;
  readonly sequenceNumber: number;
  readonly rtpTimestamp: number;
}

/** The sending half of a leg: one packet per frame of 20 ms, audio or telephone-event. */
export class RtpSender {
  /** From the first digit on. */
  #events: TelephoneEventSender | undefined;
  #ssrc: number;
  #sequenceNumber: number;
  #rtpTimestamp: number;
  #isTalkspurtStart = true;
  #srtp: SrtpSession | null = null;
  #sent = 0;
  #octets = 0;
  /** Packets of earlier SSRCs. */
  #sentBefore = 0;

  /** @param format of further packets; it may change between two frames */
  constructor(
    public format: LegFormat,
    start: RtpSenderStart,
    private readonly send: (buffer: Uint8Array, lengthBytes: number) => void,
  ) {
    this.#ssrc = start.ssrc >>> 0;
    this.#sequenceNumber = start.sequenceNumber & 0xffff;
    this.#rtpTimestamp = start.rtpTimestamp >>> 0;
  }

  /** Goes on as a new source. */
  setSrtp(srtp: SrtpSession | null, ssrc: number): void {
    this.#srtp = srtp;
    this.#ssrc = ssrc >>> 0;
    this.#sentBefore += this.#sent;
    this.#sent = 0;
    this.#octets = 0;
    this.#isTalkspurtStart = true;
  }

  /** Under all SSRCs. */
  get packetsSent(): number {
    return this.#sentBefore + this.#sent;
  }

  get ssrc(): number {
    return this.#ssrc;
  }

  /** @param sinceMs how far the stream's clock is behind the next frame's timestamp */
  figuresAt(sinceMs: number): SentFigures {
    const rtpTimestampNow = addTicks(this.#rtpTimestamp, Math.round((sinceMs * FRAME_SAMPLES) / FRAME_MS));
    return { ssrc: this.#ssrc, packets: this.#sent, octets: this.#octets, rtpTimestampNow };
  }

  /** Queues a digit. False without negotiated telephone-events, or if too many wait. */
  sendDtmf(event: number, durationMs: number): boolean {
    if (this.format.telephoneEventPayloadType === null) return false;
    this.#events ??= new TelephoneEventSender(FRAME_SAMPLES);
    return this.#events.send(event, (durationMs * FRAME_SAMPLES) / FRAME_MS);
  }

  /** Where the next frame goes: 160 bytes of the codec, to fill right before `sendFrame`. */
  get payload(): Uint8Array {
    return PAYLOAD;
  }

  /** Sends the frame in `payload`, or in its place the packet of a digit in progress. */
  sendFrame(): void {
    const { payloadType, telephoneEventPayloadType } = this.format;
    const event = telephoneEventPayloadType === null ? undefined : this.#events?.next(this.#rtpTimestamp);
    if (event === undefined || telephoneEventPayloadType === null) {
      this.#sendPacket(payloadType, this.#isTalkspurtStart, this.#rtpTimestamp, FRAME_SAMPLES);
      this.#isTalkspurtStart = false;
    } else {
      writeTelephoneEvent(PACKET, RTP_HEADER_BYTES, event);
      this.#sendPacket(telephoneEventPayloadType, event.marker, event.rtpTimestamp, TELEPHONE_EVENT_BYTES);
    }
    this.#rtpTimestamp = addTicks(this.#rtpTimestamp, FRAME_SAMPLES);
  }

  /** Skips frames without sending; marks the next packet as the start of a talkspurt (RFC 3551 §4.1). */
  skipFrames(frames: number): void {
    if (frames === 0) return;
    this.#rtpTimestamp = addTicks(this.#rtpTimestamp, frames * FRAME_SAMPLES);
    this.#isTalkspurtStart = true;
  }

  #sendPacket(payloadType: number, marker: boolean, rtpTimestamp: number, payloadBytes: number): void {
    writeRtpHeader(PACKET, { marker, payloadType, sequenceNumber: this.#sequenceNumber, rtpTimestamp, ssrc: this.#ssrc });
    this.#sequenceNumber = nextSequence(this.#sequenceNumber);
    const plainBytes = RTP_HEADER_BYTES + payloadBytes;
    const lengthBytes = this.#srtp === null ? plainBytes : this.#srtp.tryProtectRtp(PACKET, plainBytes);
    if (lengthBytes < 0) return;
    this.#sent += 1;
    this.#octets += payloadBytes;
    this.send(PACKET, lengthBytes);
  }
}

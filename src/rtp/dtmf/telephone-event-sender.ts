import { addTicks } from '../rtp-packet.js';
import { MAX_DURATION_TICKS, type TelephoneEvent } from './telephone-event.js';

/** One telephone-event packet to send. All packets of one segment carry its timestamp. */
export interface EventPacket extends TelephoneEvent {
  /** Set on the first packet of an event (RFC 4733 §2.5.1.1). */
  readonly marker: boolean;
  readonly rtpTimestamp: number;
}

/** RFC 4733 §2.5.1.4: the last packet is sent three times in all. */
const END_PACKETS = 3;
const DEFAULT_VOLUME = 10;
const MAX_QUEUED = 64;

interface SendingEvent {
  readonly event: number;
  readonly totalTicks: number;
  sentTicks: number;
  segmentStart: number;
  segmentTicks: number;
  endPackets: number;
}

/**
 * Sends digits as telephone-event packets: one per frame during the digit, the last one three times, a pause between digits.
 * A packet from `next` replaces the frame's audio.
 */
export class TelephoneEventSender {
  readonly #frameTicks: number;
  readonly #pauseFrames: number;
  readonly #queue: { readonly event: number; readonly totalTicks: number }[] = [];
  #sending: SendingEvent | undefined;
  #pauseLeft = 0;

  /** @param frameTicks RTP ticks per frame; @param pauseFrames frames of audio between two digits */
  constructor(frameTicks = 160, pauseFrames = 3) {
    this.#frameTicks = frameTicks;
    this.#pauseFrames = pauseFrames;
  }

  get isIdle(): boolean {
    return this.#sending === undefined && this.#queue.length === 0;
  }

  /** Queues a digit, rounded up to whole frames. False if 64 wait already. */
  send(event: number, durationTicks: number): boolean {
    if (this.#queue.length >= MAX_QUEUED) return false;
    const frames = Math.max(1, Math.ceil(durationTicks / this.#frameTicks));
    this.#queue.push({ event, totalTicks: frames * this.#frameTicks });
    return true;
  }

  /** The packet of the frame that begins at `rtpTimestamp`, or `undefined` if the frame is audio. */
  next(rtpTimestamp: number): EventPacket | undefined {
    if (this.#pauseLeft > 0) {
      this.#pauseLeft -= 1;
      return undefined;
    }
    const isFirst = this.#sending === undefined;
    const sending = (this.#sending ??= this.#begin(rtpTimestamp));
    if (sending === undefined) return undefined;
    if (sending.endPackets === 0) this.#advance(sending);
    const isEnd = sending.sentTicks >= sending.totalTicks;
    if (isEnd) sending.endPackets += 1;
    if (sending.endPackets === END_PACKETS) {
      this.#sending = undefined;
      this.#pauseLeft = this.#pauseFrames;
    }
    return {
      event: sending.event,
      isEnd,
      volume: DEFAULT_VOLUME,
      durationTicks: sending.segmentTicks,
      marker: isFirst,
      rtpTimestamp: sending.segmentStart,
    };
  }

  #begin(rtpTimestamp: number): SendingEvent | undefined {
    const next = this.#queue.shift();
    return next === undefined ? undefined : { ...next, sentTicks: 0, segmentStart: rtpTimestamp, segmentTicks: 0, endPackets: 0 };
  }

  #advance(sending: SendingEvent): void {
    sending.sentTicks += this.#frameTicks;
    sending.segmentTicks += this.#frameTicks;
    if (sending.segmentTicks <= MAX_DURATION_TICKS) return;
    // §2.5.1.3: the next segment begins where the longest possible one ends.
    sending.segmentStart = addTicks(sending.segmentStart, MAX_DURATION_TICKS);
    sending.segmentTicks -= MAX_DURATION_TICKS;
  }
}

import { BYTES_PER_MS, FRAME_SAMPLES } from '../../../rtp/codec/g711.js';
import type { Speech } from '../../media/leg-agent.js';

/** Marks that wait: more than one each 20 ms of two minutes; */
const MAX_MARKS = 10_000;
/** and characters of their names. */
const MAX_NAMES = 1_024_000;
/** Of G.711: a byte a sample. */
const FRAME_BYTES = FRAME_SAMPLES;
/** Pieces that are shorter together are put together. */
const FEW_BYTES = FRAME_BYTES;
/** Frames that wait for the rest of their audio before silence fills it: 40 ms. */
const MAX_STARVED_PULLS = 2;

/** Two seconds of frames over which an agent's pace and what waits are looked at. */
const WINDOW_PULLS = 100;
/** In real time: as much as is played in a window, or nearly. */
const PACE_SLACK = 0.15;

/** Each queue uses it within one call. */
const SKIPPED = new Uint8Array(FRAME_BYTES);

interface Mark {
  readonly name: string;
  /** Played once this many bytes are. */
  readonly at: number;
}

/**
 * What an agent said and the caller has not heard yet: audio of any length, faster than real time, taken a frame at a time, and marks
 * between. Bounded; but for pieces of a few bytes nothing is copied before it is played.
 */
export class SpeechQueue {
  readonly #maxBytes: number;
  #chunks: Uint8Array[] = [];
  /** Bytes of the first chunk that were played. */
  #offset = 0;
  #pushedBytes = 0;
  #playedBytes = 0;
  #marks: Mark[] = [];
  #nameCharacters = 0;
  #starvedPulls = 0;
  #windowPulls = 0;
  #windowLeastBytes = Infinity;
  #windowStartBytes = 0;
  /** All that came in the window waited. */
  #isBehind = true;
  #wasSpeech = false;
  /** To be made up for in pauses. */
  #excessBytes = 0;
  #skippedBytes = 0;

  /**
   * @param silence the byte that fills up a frame
   * @param isQuiet of a byte of speech: whether a pause consists of such
   */
  constructor(
    maxMs: number,
    private readonly silence: number,
    private readonly isQuiet: (byte: number) => boolean,
  ) {
    this.#maxBytes = maxMs * BYTES_PER_MS;
  }

  /** Pauses that were left out to make up for an agent's stalls, in milliseconds. */
  get skippedMs(): number {
    return this.#skippedBytes / BYTES_PER_MS;
  }

  get isEmpty(): boolean {
    return this.#pushedBytes === this.#playedBytes;
  }

  get queuedMs(): number {
    return (this.#pushedBytes - this.#playedBytes) / BYTES_PER_MS;
  }

  /** Bytes since the first: where the next piece begins. */
  get pushedBytes(): number {
    return this.#pushedBytes;
  }

  /** Bytes since the first that the caller was sent, with the pauses that were left out. After `clear` all count as played. */
  get playedBytes(): number {
    return this.#playedBytes;
  }

  /** What there is for the next frame. */
  get speech(): Speech {
    if (this.#hasFrame) return 'ready';
    return this.#wasSpeech ? 'expected' : 'none';
  }

  /** Queues audio, which then belongs to the queue; returns the bytes that there was no room for, the latest ones. */
  push(bytes: Uint8Array): number {
    const room = this.#maxBytes - (this.#pushedBytes - this.#playedBytes);
    const taken = bytes.length <= room ? bytes : bytes.subarray(0, room);
    if (taken.length > 0) this.#append(taken);
    this.#pushedBytes += taken.length;
    this.#skipPauses();
    return bytes.length - taken.length;
  }

  /** What was pushed last had not to wait for a frame to be due. */
  cameInTime(): void {
    this.#isBehind = false;
  }

  /** Pieces of a byte each would be a million in a full queue. */
  #append(bytes: Uint8Array): void {
    const last = this.#chunks.at(-1);
    if (last === undefined || last.length + bytes.length > FEW_BYTES) {
      this.#chunks.push(bytes);
      return;
    }
    const joined = new Uint8Array(last.length + bytes.length);
    joined.set(last);
    joined.set(bytes, last.length);
    this.#chunks[this.#chunks.length - 1] = joined;
  }

  /**
   * A mark behind everything that was played is due at once: see `takePlayedMarks`.
   * @returns the oldest marks, of which there are too many now: they are given back early, and none is lost
   */
  mark(name: string): readonly string[] {
    this.#marks.push({ name, at: this.#pushedBytes });
    this.#nameCharacters += name.length;
    let early = 0;
    let left = this.#nameCharacters;
    while (this.#marks.length - early > MAX_MARKS || left > MAX_NAMES) {
      left -= this.#marks[early]?.name.length ?? left;
      early += 1;
    }
    return this.#removeMarks(early);
  }

  /**
   * Fills `target`, a frame, with what comes next, else with silence. True when there was any speech. An agent that speaks in real time
   * without end, and stalled once, would be heard so much later for good: its pauses are shortened until it is not.
   */
  pull(target: Uint8Array): boolean {
    const queued = this.#pushedBytes - this.#playedBytes;
    this.#watch(queued);
    this.#wasSpeech = queued > 0 && !this.#isWorthWaiting();
    if (this.#wasSpeech) {
      this.#starvedPulls = 0;
      this.#take(target);
    } else target.fill(this.silence);
    return this.#wasSpeech;
  }

  #watch(queued: number): void {
    this.#windowLeastBytes = Math.min(this.#windowLeastBytes, queued);
    this.#windowPulls += 1;
    if (this.#windowPulls < WINDOW_PULLS) return;
    const pace = (this.#pushedBytes - this.#windowStartBytes) / (WINDOW_PULLS * FRAME_BYTES);
    const isStale = this.#isBehind && Math.abs(pace - 1) <= PACE_SLACK;
    this.#excessBytes = isStale ? this.#windowLeastBytes : 0;
    this.#windowPulls = 0;
    this.#windowLeastBytes = Infinity;
    this.#windowStartBytes = this.#pushedBytes;
    this.#isBehind = true;
  }

  #skipPauses(): void {
    while (this.#excessBytes >= FRAME_BYTES && this.#pushedBytes - this.#playedBytes >= FRAME_BYTES) {
      this.#copy(SKIPPED);
      if (!SKIPPED.every(this.isQuiet)) return;
      this.#take(SKIPPED);
      this.#excessBytes -= FRAME_BYTES;
      this.#skippedBytes += FRAME_BYTES;
    }
  }

  /** The first bytes, which stay. */
  #copy(target: Uint8Array): void {
    let [filled, offset] = [0, this.#offset];
    for (let index = 0; filled < target.length; index += 1, offset = 0) {
      const part = this.#chunks[index]?.subarray(offset, offset + target.length - filled);
      if (part === undefined) return;
      target.set(part, filled);
      filled += part.length;
    }
  }

  #take(target: Uint8Array): void {
    let filled = 0;
    for (let chunk = this.#chunks[0]; chunk !== undefined && filled < target.length; chunk = this.#chunks[0]) {
      const part = Math.min(target.length - filled, chunk.length - this.#offset);
      target.set(part === chunk.length ? chunk : chunk.subarray(this.#offset, this.#offset + part), filled);
      filled += part;
      this.#offset += part;
      if (this.#offset === chunk.length) this.#dropChunk();
    }
    this.#playedBytes += filled;
    if (filled < target.length) target.fill(this.silence, filled);
  }

  /** The marks that everything before was played of, each once, in order; `null` when there are none. */
  takePlayedMarks(): readonly string[] | null {
    const [first] = this.#marks;
    if (first === undefined || first.at > this.#playedBytes) return null;
    const waiting = this.#marks.findIndex(({ at }) => at > this.#playedBytes);
    return this.#removeMarks(waiting === -1 ? this.#marks.length : waiting);
  }

  /** The first ones. */
  #removeMarks(count: number): readonly string[] {
    if (count === 0) return [];
    const names = this.#marks.splice(0, count).map(({ name }) => name);
    this.#nameCharacters -= names.reduce((sum, { length }) => sum + length, 0);
    return names;
  }

  /** Names of the marks that wait. */
  get waitingMarks(): readonly string[] {
    return this.#marks.map(({ name }) => name);
  }

  /** Forgets all speech; returns the names of the marks that waited. */
  clear(): readonly string[] {
    const names = this.#removeMarks(this.#marks.length);
    this.#chunks = [];
    this.#offset = 0;
    this.#playedBytes = this.#pushedBytes;
    this.#starvedPulls = 0;
    this.#excessBytes = 0;
    this.#wasSpeech = false;
    return names;
  }

  /** What waits fills a frame, or the agent said that it is the end: else the rest is probably on its way. */
  get #hasFrame(): boolean {
    return this.#pushedBytes - this.#playedBytes >= FRAME_BYTES || this.#marks.length > 0;
  }

  #isWorthWaiting(): boolean {
    if (this.#hasFrame || this.#starvedPulls >= MAX_STARVED_PULLS) return false;
    this.#starvedPulls += 1;
    return true;
  }

  #dropChunk(): void {
    this.#offset = 0;
    this.#chunks.shift();
  }
}

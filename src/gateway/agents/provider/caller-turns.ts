import type { AudioCodec } from '../../../rtp/codec/g711.js';
import { isLoud, MIN_SPEECH_FRAMES } from '../../media/turn-watch.js';

/** After a shorter pause the same one still speaks. */
const PAUSE_MS = 300;
const MAX_TURNS = 10;

interface CallerTurn {
  readonly startMs: number;
  endMs: number;
  /** Loud packets. */
  frames: number;
  isWritten: boolean;
}

/**
 * When the caller said what a provider writes down later, without its time. A turn of the caller lasts until the agent is heard, or until
 * it is written down. Times are the endpoint's clock, in milliseconds.
 */
export class CallerTurns {
  #turns: CallerTurn[] = [];
  #agentMs = -Infinity;

  /** A packet of the caller, as it arrives. @returns whether it is loud */
  heard(codec: AudioCodec, buffer: Uint8Array, offset: number, lengthBytes: number, nowMs: number): boolean {
    if (!isLoud(codec, buffer, offset, lengthBytes)) return false;
    let turn = this.#turns.at(-1);
    if (turn === undefined || this.#isOver(turn, nowMs)) {
      turn = { startMs: nowMs, endMs: nowMs, frames: 0, isWritten: false };
      this.#turns = [...this.#turns.filter(isSpeech), turn].slice(-MAX_TURNS);
    }
    turn.endMs = nowMs;
    turn.frames += 1;
    return true;
  }

  /** A frame of the agent was sent. */
  answered(nowMs: number): void {
    this.#agentMs = nowMs;
  }

  /** When the words began that were written down just now; `null`: no speech was heard. */
  written(nowMs: number): number | null {
    const spoken = this.#turns.filter(isSpeech);
    const open = spoken.filter(({ isWritten }) => !isWritten);
    const over = open.filter(({ endMs }) => nowMs - endMs >= PAUSE_MS);
    // Text comes after its speech: who speaks now says something else, unless there is nothing else. Noise is shorter than speech.
    const [turn = open.at(-1) ?? spoken.at(-1)] = over.toSorted((one, other) => other.frames - one.frames);
    if (turn === undefined) return null;
    for (const one of over.length > 0 ? over : open) one.isWritten = true;
    return turn.startMs;
  }

  #isOver(turn: CallerTurn, nowMs: number): boolean {
    const pauseMs = nowMs - turn.endMs;
    if (turn.isWritten || (pauseMs >= PAUSE_MS && !isSpeech(turn))) return true;
    if (pauseMs >= PAUSE_MS && this.#agentMs > turn.endMs) return true;
    return this.#agentMs > turn.startMs && nowMs - this.#agentMs >= PAUSE_MS;
  }
}

function isSpeech({ frames }: CallerTurn): boolean {
  return frames >= MIN_SPEECH_FRAMES;
}

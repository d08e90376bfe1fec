import { describe, expect, it } from 'vitest';
import { FrameAlignment } from '../../../../../src/gateway/agents/stream/frame-alignment.js';
import { SpeechQueue } from '../../../../../src/gateway/agents/stream/speech-queue.js';

const SECONDS_MS = 1_000;
const SILENCE = 0xff;

interface Agent {
  /** When its piece of audio comes, in milliseconds after the first frame; rising. */
  readonly arrivesMs: (piece: number) => number;
  readonly pieceMs?: number;
  /** How late a frame leaves. */
  readonly lateMs?: (frame: number) => number;
}

/** A leg that does as it is told. What each piece waited in the end, when frames moved and by how much, and frames without speech. */
function play({ arrivesMs, pieceMs = 20, lateMs = () => 0 }: Agent, forMs: number) {
  const alignment = new FrameAlignment();
  const queue = new SpeechQueue(60_000, SILENCE, () => false);
  const moves: (readonly [atMs: number, byMs: number])[] = [];
  const waits: number[] = [];
  const waiting: { readonly atMs: number; readonly endBytes: number }[] = [];
  const frame = new Uint8Array(160);
  let [piece, silent] = [0, 0];
  for (let [dueMs, index] = [0, 0]; dueMs < forMs; dueMs += 20, index += 1) {
    const nowMs = dueMs + lateMs(index);
    for (; arrivesMs(piece) <= nowMs; piece += 1) {
      alignment.arrived(pieceMs, queue.queuedMs, arrivesMs(piece));
      queue.push(new Uint8Array(pieceMs * 8).fill(1));
      waiting.push({ atMs: arrivesMs(piece), endBytes: queue.pushedBytes });
    }
    const isSpeech = queue.pull(frame);
    if (!isSpeech && piece > 0) silent += 1;
    for (let [first] = waiting; first !== undefined && first.endBytes <= queue.playedBytes; [first] = waiting) {
      waits.push(nowMs - first.atMs);
      waiting.shift();
    }
    alignment.left(isSpeech, nowMs);
    const shiftMs = alignment.takeShiftMs();
    if (shiftMs !== 0) moves.push([dueMs, shiftMs]);
    dueMs += shiftMs;
  }
  return { moves, last: waits.slice(-100), silent, told: alignment.takeShiftMs() };
}

/** One piece each 20 ms, so long before a frame. */
const each = (beforeMs: number, jitterMs: (piece: number) => number = () => 0) => ({
  arrivesMs: (piece: number): number => 20 * (piece + 1) - beforeMs + jitterMs(piece),
});

describe('frames of an agent that speaks in real time', () => {
  it.each<readonly [beforeMs: number, shifts: readonly number[]]>([
    [5, []],
    [9, []],
    [10, [-5]],
    [14, [-5]],
    [19, [-10]],
    [2, [5]],
  ])('that comes %i ms before them move once, after two seconds, by whole phases: %j', (beforeMs, shifts) => {
    const { moves, last, silent, told } = play(each(beforeMs), 60 * SECONDS_MS);
    expect(moves).toEqual(shifts.map((byMs) => [99 * 20, byMs]));
    expect([Math.min(...last), Math.max(...last)]).toEqual([beforeMs + (shifts[0] ?? 0), beforeMs + (shifts[0] ?? 0)]);
    expect([silent, told]).toEqual([0, 0]);
  });

  it('move by the latest piece of ten seconds, not by the others', () => {
    // Each 8 s one comes 7 ms later than the rest.
    const { moves, last, silent } = play(
      each(19, (piece) => (piece % 400 === 0 ? 7 : 0)),
      120 * SECONDS_MS,
    );
    expect(moves).toEqual([[99 * 20, -5]]);
    expect([Math.max(...last), silent]).toEqual([14, 0]);
  });

  it('move by one step when a piece came too late, however late', () => {
    const { moves, last, silent } = play(
      each(3, (piece) => (piece % 50 === 49 ? 6 : 0)),
      60 * SECONDS_MS,
    );
    expect(moves).toEqual([[99 * 20, 5]]);
    // All after it wait a frame longer, until a pause makes up for it.
    expect([silent, Math.max(...last)]).toEqual([1, 28]);
  });

  it('are told by the earliest: a frame that leaves late once is no measure', () => {
    const { moves } = play({ ...each(9), lateMs: (frame) => (frame % 3 === 0 ? 6 : 0) }, 30 * SECONDS_MS);
    expect(moves).toEqual([]);
  });

  it('follow a slow clock of the agent, and are never farther than 20 ms from where they were', () => {
    const slowMs = 0.002;
    const pieces = 90_000;
    const { moves, silent } = play({ arrivesMs: (piece) => (20 + slowMs) * (piece + 1) - 9 }, 20 * pieces);
    let movedMs = 0;
    const sums = moves.map(([, byMs]) => (movedMs += byMs));
    expect([Math.min(...sums) >= -20, Math.max(...sums)]).toEqual([true, 20]);
    // What the clock lacks is silence, as ever.
    expect(silent).toBeLessThanOrEqual((slowMs * pieces) / 20);
  });

  it('stay where they are for an agent that speaks faster, or seldom', () => {
    expect(play({ arrivesMs: (piece) => 10 * piece + 1 }, 60 * SECONDS_MS).moves).toEqual([]);
    expect(play({ arrivesMs: (piece) => 30 * piece + 1 }, 60 * SECONDS_MS).moves).toEqual([]);
    expect(play({ arrivesMs: () => Infinity }, 60 * SECONDS_MS).moves).toEqual([]);
  });
});

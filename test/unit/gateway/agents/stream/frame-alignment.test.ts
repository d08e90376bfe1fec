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

/** A leg that does as it is told. What each piece waited in the end, when frames moved and by how much, and frames without speech after the first. */
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
    const shiftMs = alignment.shiftMs(queue.hasFrame(frame.length));
    if (shiftMs !== 0) moves.push([dueMs, shiftMs]);
    dueMs += shiftMs;
    if (shiftMs > 0) {
      dueMs -= 20;
      index -= 1;
      continue;
    }
    const isSpeech = queue.pull(frame);
    if (!isSpeech && piece > 0) silent += 1;
    for (let [first] = waiting; first !== undefined && first.endBytes <= queue.playedBytes; [first] = waiting) {
      waits.push(nowMs - first.atMs);
      waiting.shift();
    }
    alignment.left(isSpeech, nowMs);
  }
  return { moves, last: waits.slice(-100), silent };
}

/** One piece each 20 ms, so long before a frame. */
const each = (beforeMs: number, jitterMs: (piece: number) => number = () => 0) => ({
  arrivesMs: (piece: number): number => 20 * (piece + 1) - beforeMs + jitterMs(piece),
});

const late = (from: number, byMs: number) => (piece: number) => (piece === from ? byMs : 0);
const atFrame = (frame: number): number => 20 * frame;

describe('the frames of an agent that speaks in real time', () => {
  it.each<readonly [beforeMs: number, shifts: readonly number[]]>([
    [0, []],
    [4, []],
    [5, [-5]],
    [9, [-5]],
    [14, [-10]],
    [19, [-15]],
  ])('move once, after two seconds, when audio comes %i ms before them, by whole phases: %j', (beforeMs, shifts) => {
    const { moves, last, silent } = play(each(beforeMs), 60 * SECONDS_MS);
    expect(moves).toEqual(shifts.map((byMs) => [atFrame(100), byMs]));
    expect([Math.min(...last), Math.max(...last)]).toEqual([beforeMs + (shifts[0] ?? 0), beforeMs + (shifts[0] ?? 0)]);
    expect(silent).toBe(0);
  });

  it('move by the latest piece of ten seconds, but not by outliers', () => {
    // Each 8 s one comes 7 ms later than the rest.
    const { moves, last, silent } = play(
      each(19, (piece) => (piece % 400 === 0 ? 7 : 0)),
      120 * SECONDS_MS,
    );
    expect(moves).toEqual([[atFrame(100), -10]]);
    expect([Math.max(...last), silent]).toEqual([9, 0]);
  });

  it.each<readonly [lateMs: number, held: number]>([
    [4, 1],
    [8, 1],
    [9, 2],
    [17, 3],
  ])('wait for a piece that comes %i ms later once, and return after two seconds', (lateMs, held) => {
    const { moves, last, silent } = play(each(3, late(200, lateMs)), 20 * SECONDS_MS);
    const waits = Array.from({ length: held }, (_, at) => [atFrame(201) + 5 * at, 5]);
    const heldMs = 5 * held;
    expect(moves).toEqual([...waits, [atFrame(301) + heldMs, -heldMs]]);
    expect([silent, Math.max(...last)]).toEqual([0, 3]);
  });

  it('do not wait as long as a frame: the gateway sends silence, and they return', () => {
    const { moves, last, silent } = play(each(3, late(200, 19)), 10 * SECONDS_MS);
    expect(moves.map(([, byMs]) => byMs)).toEqual([5, 5, 5, -15]);
    // All after it wait a frame longer, until a pause makes up for it.
    expect([silent, Math.min(...last)]).toEqual([1, 23]);
  });

  it('return when the agent has finished speaking', () => {
    const { moves, silent } = play({ arrivesMs: (piece) => (piece < 200 ? 20 * piece + 17 : Infinity) }, 5 * SECONDS_MS);
    expect(moves.map(([, byMs]) => byMs)).toEqual([5, 5, 5, -15]);
    expect(silent).toBe(5 * 50 - 201);
  });

  it('wait for the rest of a piece too, and for none behind a mark', () => {
    const alignment = new FrameAlignment();
    const queue = new SpeechQueue(60_000, SILENCE, () => false);
    const frame = new Uint8Array(160);
    // Not -0.
    const ask = (): number => 0 + alignment.shiftMs(queue.hasFrame(frame.length));
    let nowMs = 0;
    const speak = (bytes: number): void => {
      alignment.arrived(bytes / 8, queue.queuedMs, nowMs);
      queue.push(new Uint8Array(bytes).fill(1));
    };
    const leave = (): void => alignment.left(queue.pull(frame), nowMs);
    for (; nowMs < atFrame(101); nowMs += 20) {
      speak(160);
      expect(ask()).toBe(0);
      leave();
    }
    speak(80);
    expect(ask()).toBe(5);
    speak(80);
    expect(ask()).toBe(0);
    leave();
    speak(80);
    queue.mark('the end');
    expect(ask()).toBe(0);
  });

  it('wait for nothing in the first two seconds', () => {
    const { moves, silent } = play(each(3, late(50, 6)), 1.9 * SECONDS_MS);
    expect([moves, silent]).toEqual([[], 1]);
  });

  it('move later by one step when a piece came too late before, however late', () => {
    const { moves } = play(each(3, late(50, 12)), 3 * SECONDS_MS);
    expect(moves).toEqual([[atFrame(100), 5]]);
  });

  it('move by the first of pieces that come two at once', () => {
    const { moves } = play({ arrivesMs: (piece) => 40 * (Math.floor(piece / 2) + 1) - 7 }, 60 * SECONDS_MS);
    expect(moves).toEqual([[atFrame(100), -5]]);
  });

  it('start again after a stall of the leg', () => {
    const stalledMs = (frame: number): number => (frame > 50 ? 40 : 0);
    const { moves, last } = play({ arrivesMs: (piece) => 20 * (piece + 1) - 4 + stalledMs(piece + 1), lateMs: stalledMs }, 60 * SECONDS_MS);
    // What came in the stall was late once.
    expect(moves).toEqual([
      [atFrame(100), 5],
      [atFrame(600) + 5, -5],
    ]);
    expect(Math.max(...last)).toBe(4);
  });

  it('are not moved by what waits behind a late piece', () => {
    // Too late to be waited for, and the next one comes with it.
    const { moves } = play({ arrivesMs: (piece) => 20 * (piece + 1) - 3 + (piece === 200 ? 20 : 0) }, 10 * SECONDS_MS);
    expect(moves.map(([, byMs]) => byMs)).toEqual([5, 5, 5, -15]);
  });

  it('follow the earliest: a frame that leaves late once has no effect', () => {
    const { moves } = play({ ...each(4), lateMs: (frame) => (frame % 3 === 0 ? 6 : 0) }, 30 * SECONDS_MS);
    expect(moves).toEqual([]);
  });

  it('follow a slow clock of the agent, and never move more than 20 ms', () => {
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

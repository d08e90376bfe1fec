import { describe, expect, it } from 'vitest';
import { SpeechQueue } from '../../../../../src/gateway/agents/stream/speech-queue.js';

const SILENCE = 0xff;
const frame = new Uint8Array(160);

/** Takes so many frames; what each holds, and the marks that it played. */
function play(queue: SpeechQueue, frames: number): { readonly bytes: number[]; readonly marks: readonly string[] }[] {
  return Array.from({ length: frames }, () => {
    queue.pull(frame);
    return { bytes: [...frame], marks: queue.takePlayedMarks() ?? [] };
  });
}

const bytesOf = (length: number, from = 0): Uint8Array => Uint8Array.from({ length }, (_, i) => (from + i) % 200);

describe('a speech queue', () => {
  it('plays audio of any lengths without a gap, then silence', () => {
    const queue = new SpeechQueue(10_000, SILENCE, (byte) => byte >= 0xf0);
    const said = bytesOf(160 * 4);
    for (const [from, to] of [
      [0, 7],
      [7, 400],
      [400, 401],
      [401, 640],
    ] as const)
      queue.push(said.slice(from, to));
    expect(queue.queuedMs).toBe(80);
    const played = play(queue, 5);
    expect(played.slice(0, 4).flatMap(({ bytes }) => bytes)).toEqual([...said]);
    expect(played[4]!.bytes.every((byte) => byte === SILENCE)).toBe(true);
    expect(queue.isEmpty).toBe(true);
  });

  it('returns a mark once when all before it was played, and at once when there is nothing before it', () => {
    const queue = new SpeechQueue(10_000, SILENCE, (byte) => byte >= 0xf0);
    queue.mark('first');
    expect(queue.takePlayedMarks()).toEqual(['first']);
    queue.push(bytesOf(320));
    queue.mark('half');
    queue.push(bytesOf(200));
    queue.mark('end');
    queue.mark('end');
    expect(queue.takePlayedMarks()).toBeNull();
    expect(play(queue, 5).map(({ marks }) => marks)).toEqual([[], ['half'], [], ['end', 'end'], []]);
  });

  it('waits 40 ms for the rest of a frame, unless a mark says that there is none', () => {
    const queue = new SpeechQueue(10_000, SILENCE, (byte) => byte >= 0xf0);
    queue.push(bytesOf(100));
    expect(queue.pull(frame)).toBe(false);
    queue.push(bytesOf(60, 100));
    expect(queue.pull(frame)).toBe(true);
    expect([...frame]).toEqual([...bytesOf(160)]);
    queue.push(bytesOf(100));
    expect([queue.pull(frame), queue.pull(frame), queue.pull(frame)]).toEqual([false, false, true]);
    expect([...frame]).toEqual([...bytesOf(100), ...Array<number>(60).fill(SILENCE)]);
    queue.push(bytesOf(100));
    queue.mark('end');
    expect(queue.pull(frame)).toBe(true);
  });

  it('clears everything, and returns the waiting marks', () => {
    const queue = new SpeechQueue(10_000, SILENCE, (byte) => byte >= 0xf0);
    queue.push(bytesOf(1_000));
    queue.mark('a');
    queue.push(bytesOf(1_000));
    queue.mark('b');
    queue.pull(frame);
    expect(queue.clear()).toEqual(['a', 'b']);
    expect(queue.clear()).toEqual([]);
    expect(queue.takePlayedMarks()).toBeNull();
    expect(queue.pull(frame)).toBe(false);
    queue.push(bytesOf(160, 5));
    expect(queue.pull(frame)).toBe(true);
    expect(frame[0]).toBe(5);
  });

  it('holds no more than its limit, and reports what it dropped', () => {
    const queue = new SpeechQueue(100, SILENCE, (byte) => byte >= 0xf0);
    expect(queue.push(bytesOf(700))).toBe(0);
    expect(queue.push(bytesOf(200))).toBe(100);
    expect(queue.push(bytesOf(1))).toBe(1);
    expect(queue.queuedMs).toBe(100);
    play(queue, 1);
    expect(queue.push(bytesOf(200))).toBe(40);
  });

  it('plays in order what came in pieces of one byte', () => {
    const queue = new SpeechQueue(120_000, SILENCE, (byte) => byte >= 0xf0);
    const said = bytesOf(960_000);
    for (let at = 0; at < said.length; at += 1) queue.push(said.subarray(at, at + 1));
    const played = play(queue, 100);
    expect(played.flatMap(({ bytes }) => bytes)).toEqual([...said.subarray(0, 16_000)]);
    expect(queue.queuedMs).toBe(118_000);
  });

  it('returns the oldest marks early when too many wait, loses none, and keeps their order', () => {
    const queue = new SpeechQueue(1_000, SILENCE, (byte) => byte >= 0xf0);
    queue.push(bytesOf(160));
    const early: string[] = [];
    for (let i = 0; i < 12_000; i += 1) early.push(...queue.mark(String(i)));
    expect(early).toHaveLength(2_000);
    expect([...early, ...queue.clear()]).toEqual(Array.from({ length: 12_000 }, (_, i) => String(i)));
  });

  it('holds a million characters of mark names', () => {
    const queue = new SpeechQueue(1_000, SILENCE, (byte) => byte >= 0xf0);
    queue.push(bytesOf(160));
    const name = 'n'.repeat(1_024);
    const early = Array.from({ length: 1_500 }, () => queue.mark(name)).flat();
    expect(early).toHaveLength(500);
    expect(queue.clear()).toHaveLength(1_000);
    expect(queue.mark(name)).toEqual([]);
  });

  /** An agent that says a frame each 20 ms; the bytes that were played, and how long they had waited at the end. */
  function live(frames: number, isPause: (i: number) => boolean, stall: { readonly from: number; readonly to: number }) {
    const queue = new SpeechQueue(10_000, SILENCE, (byte) => byte >= 0xf0);
    const played: number[] = [];
    let said = 0;
    for (let i = 0; i < frames; i += 1) {
      const isStalled = i >= stall.from && i < stall.to;
      for (; !isStalled && said <= i; said += 1) {
        const isInTime = queue.isEmpty;
        queue.push(new Uint8Array(160).fill(isPause(said) ? 0xf8 : said % 200));
        if (isInTime) queue.cameInTime();
      }
      if (queue.pull(frame)) played.push(frame[0]!);
    }
    return { queue, played };
  }

  it('after a stall of an agent that speaks in real time shortens its pauses, not its words, until it is heard as soon as before', () => {
    const isPause = (i: number): boolean => i % 50 >= 45;
    const { queue, played } = live(2_000, isPause, { from: 300, to: 350 });
    expect(queue.queuedMs).toBeLessThanOrEqual(60);
    expect(queue.skippedMs).toBeGreaterThanOrEqual(900);
    // A provider that is told how far an utterance was played counts them.
    expect(queue.playedBytes).toBe(160 * played.length + 8 * queue.skippedMs);
    const words = Array.from({ length: 2_000 }, (_, i) => i)
      .filter((i) => !isPause(i))
      .map((i) => i % 200);
    const heard = played.filter((byte) => byte < 0xf0);
    expect(heard).toEqual(words.slice(0, heard.length));
  });

  it('leaves the pauses of an agent alone that speaks faster than real time, and of one that never stalled', () => {
    const queue = new SpeechQueue(60_000, SILENCE, (byte) => byte >= 0xf0);
    queue.push(new Uint8Array(160 * 900).fill(0xf8));
    for (let i = 0; i < 900; i += 1) {
      if (i % 2 === 0) queue.push(new Uint8Array(160 * 3).fill(0xf8));
      queue.pull(frame);
    }
    expect(queue.skippedMs).toBe(0);
    expect(live(1_000, () => true, { from: 0, to: 0 }).queue.skippedMs).toBe(0);
  });
});

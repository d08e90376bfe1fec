import { describe, expect, it } from 'vitest';
import { TurnWatch } from '../../../../src/gateway/media/turn-watch.js';
import { encodeG711, type AudioCodec } from '../../../../src/rtp/codec/g711.js';

const frameOf = (codec: AudioCodec, level: number): Uint8Array => {
  const payload = new Uint8Array(160);
  encodeG711(
    codec,
    Int16Array.from({ length: 160 }, (_, n) => Math.round(level * Math.sin(n))),
    payload,
  );
  return payload;
};

/** Each letter is 20 ms: `c` the caller speaks, `a` the agent, `b` both, `n` noise of the line, `.` nobody. */
function watched(script: string, codec: AudioCodec = 'PCMU'): TurnWatch {
  const watch = new TurnWatch();
  Array.from(script).forEach((who, index) => {
    const nowMs = 20 * index;
    watch.heard(codec, frameOf(codec, 'cb'.includes(who) ? 8_000 : who === 'n' ? 200 : 0), 0, 160, nowMs);
    watch.sent(codec, frameOf(codec, 'ab'.includes(who) ? 8_000 : 0), nowMs);
  });
  return watch;
}
const times = (who: string, count: number): string => who.repeat(count);

describe('the turns of a call', () => {
  it.each(['PCMU', 'PCMA'] as const)('have the delay from the end of the caller’s speech to the agent’s first audio, in %s', (codec) => {
    const turn = `${times('c', 20)}${times('n', 30)}${times('a', 40)}${times('.', 20)}`;
    const watch = watched(`${times('.', 5)}aaaaa${times('.', 20)}${turn}${turn}`, codec);
    expect(watch.firstAudioMs).toBe(100);
    expect(watch.delaysMs).toEqual([620, 620]);
  });

  it('count no click as speech, no short pause of the agent as a turn, and no interruption as an answer', () => {
    expect(watched(`cc${times('.', 30)}${times('a', 10)}`).delaysMs).toEqual([]);
    expect(watched(`${times('c', 10)}${times('.', 20)}aaaa${times('c', 6)}${times('.', 4)}aaaa`).delaysMs).toEqual([420]);
    expect(watched(`${times('c', 10)}${times('b', 10)}`).delaysMs).toEqual([]);
  });
});

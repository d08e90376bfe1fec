import { EventEmitter } from 'node:events';
import { describe, expect, it } from 'vitest';
import { ThreadedAudioDecoder, type DecodedAudio } from '../../../../src/gateway/agents/audio-file.js';
import { VirtualClock } from '../../../support/virtual-clock.js';
import { turn } from '../../../support/turn.js';

const MIB = 1_024 * 1_024;

/** A decoder that answers when the test says so; Node.js never tells of its end. */
class Decoder extends EventEmitter {
  postMessage(): void {
    // It decodes.
  }

  terminate(): Promise<number> {
    return new Promise(() => undefined);
  }

  answer(decoded: DecodedAudio): void {
    this.emit('message', decoded);
  }
}

function newFiles() {
  const clock = new VirtualClock();
  const decoders: Decoder[] = [];
  const files = new ThreadedAudioDecoder(clock, () => {
    const decoder = new Decoder();
    decoders.push(decoder);
    return decoder;
  });
  /** Until so many files are with decoders: their digests are made by a thread. */
  const begun = async (count: number): Promise<void> => {
    while (decoders.length < count) await turn();
  };
  return { clock, decoders, files, begun };
}

describe('the decoding of audio files', () => {
  it('gives up a file after ten seconds, even when its thread does not end, and continues with the account’s next one', async () => {
    const { clock, decoders, files, begun } = newFiles();
    const lost = expect(files.decode('a', Uint8Array.of(1))).rejects.toThrow('the audio was not decoded within 10000 ms');
    await begun(1);
    const behind = files.decode('a', Uint8Array.of(2));
    await clock.advanceAsync(10_000);
    await lost;
    await begun(2);
    decoders[1]?.answer({ samples: Int16Array.of(7) });
    expect(await behind).toEqual(Int16Array.of(7));
  });

  it('lets no account wait for the file of another, even for the same file', async () => {
    const { decoders, files, begun } = newFiles();
    void files.decode('a', Uint8Array.of(1));
    await begun(1);
    void files.decode('a', Uint8Array.of(2));
    const own = files.decode('b', Uint8Array.of(2));
    await begun(2);
    decoders[1]?.answer({ samples: Int16Array.of(7) });
    expect([await own, decoders.length]).toEqual([Int16Array.of(7), 2]);
  });

  it('decodes a file once for all calls of an account', async () => {
    const { decoders, files, begun } = newFiles();
    const both = [1, 1].map((byte) => files.decode('a', Uint8Array.of(byte)));
    await begun(1);
    decoders[0]?.answer({ samples: Int16Array.of(7) });
    expect(await Promise.all(both)).toEqual([Int16Array.of(7), Int16Array.of(7)]);
    expect([await files.decode('a', Uint8Array.of(1)), decoders.length]).toEqual([Int16Array.of(7), 1]);
  });

  it('refuses a file when 64 MiB of its account are waiting', async () => {
    const { files } = newFiles();
    const all = Array.from({ length: 9 }, (_none, count) => files.decode('a', new Uint8Array(8 * MIB).fill(count)));
    await expect(Promise.race(all)).rejects.toThrow('too many audio files of the organization wait to be decoded');
  });
});

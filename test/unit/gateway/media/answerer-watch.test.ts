import { audioPacket } from '../../../support/audio-packet.js';
import { describe, expect, it } from 'vitest';
import { AnswererWatch } from '../../../../src/gateway/media/answerer-watch.js';
import type { AnswererEvent } from '../../../../src/rtp/answerer/answerer-detector.js';
import { encodeG711 } from '../../../../src/rtp/codec/g711.js';
import { voiceLikeNoise } from '../../../support/media/audio.js';

const PACKET = 160;
const voice = new Uint8Array(4_800);
encodeG711('PCMA', voiceLikeNoise(voice.length, 5), voice);

/** A word in packets of 20 ms from this timestamp on. */
const packets = (firstTimestamp: number): { readonly timestamp: number; readonly offset: number }[] =>
  Array.from({ length: voice.length / PACKET }, (_, at) => ({ timestamp: (firstTimestamp + at * PACKET) >>> 0, offset: at * PACKET }));

function watched(work: (watch: AnswererWatch) => void): readonly [AnswererEvent, boolean][] {
  const events: [AnswererEvent, boolean][] = [];
  work(new AnswererWatch((event, isDone) => events.push([event, isDone])));
  return events;
}

const PERSON = [[{ type: 'verdict', answerer: 'person' }, true]];

describe('the answerer watch', () => {
  it('decides from packets of a side that stops sending after a word, whose timestamps wrap', () => {
    const events = watched((watch) => {
      for (const { timestamp, offset } of packets(0xffff_ff00)) {
        watch.hear(audioPacket('PCMA', 1, timestamp, voice, offset, PACKET));
        watch.sent();
      }
      for (let frame = 0; frame < 60; frame += 1) watch.sent();
    });
    expect(events).toEqual(PERSON);
  });

  it('decides from packets that are lost, doubled or late, by their timestamps', () => {
    const events = watched((watch) => {
      for (const { timestamp, offset } of packets(1_000)) {
        if (offset === 5 * PACKET) continue;
        watch.hear(audioPacket('PCMA', 1, timestamp, voice, offset, PACKET));
        watch.hear(audioPacket('PCMA', 1, timestamp, voice, offset, PACKET));
      }
      // 0.8 s later, a click.
      watch.hear(audioPacket('PCMA', 1, 1_000 + voice.length + 6_400, new Uint8Array(PACKET).fill(0xd5), 0, PACKET));
    });
    expect(events).toEqual(PERSON);
  });

  it('decides from packets of 30 ms', () => {
    const events = watched((watch) => {
      for (let at = 0; at + 240 <= voice.length; at += 240) watch.hear(audioPacket('PCMA', 1, at, voice, at, 240));
      watch.pass(0, 80);
      for (let frame = 0; frame < 40; frame += 1) watch.sent();
    });
    expect(events).toEqual(PERSON);
  });
});

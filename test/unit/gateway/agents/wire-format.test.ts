import { expect, it } from 'vitest';
import { silenceOf } from '../../../../src/gateway/agents/stream/wire-format.js';

it.each([
  ['pcmu', 160, 0xff],
  ['twilio', 160, 0xff],
  ['pcma', 160, 0xd5],
  ['pcm16-8000', 320, 0],
  ['pcm16-16000', 640, 0],
  ['pcm16-24000', 960, 0],
] as const)('20 ms of silence as %s is %i bytes of %i', (format, length, byte) => {
  expect(silenceOf(format)).toEqual(new Uint8Array(length).fill(byte));
});

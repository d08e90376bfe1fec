import { expect, it } from 'vitest';
import { Transcript } from '../../../../src/gateway/call/transcript.js';

const said = (text: string, at_ms: number) => ({ speaker: 'agent', text, at_ms }) as const;

it('a transcript is complete, partial, failed, or missing', () => {
  const transcript = new Transcript();
  expect(transcript.notes).toEqual({ transcript: [], state: null, cause: null });
  transcript.add([said('Hello.', 0)], false);
  expect(transcript.notes).toMatchObject({ state: 'complete', cause: null });
  transcript.miss('first');
  transcript.miss('second');
  expect(transcript.notes).toMatchObject({ state: 'partial', cause: 'first' });
  const failed = new Transcript();
  failed.miss('no words');
  expect(failed.notes).toEqual({ transcript: [], state: 'failed', cause: 'no words' });
});

it('a transcript puts what a second agent says behind the first one, by its own times', () => {
  const transcript = new Transcript();
  transcript.begin(1_000);
  transcript.add([said('Two.', 900), said('One.', 100)], true);
  transcript.begin(3_000);
  transcript.add([said('Three.', 50)], true);
  expect(transcript.notes.transcript.map(({ text, at_ms: atMs }) => [text, atMs])).toEqual([
    ['One.', 100],
    ['Two.', 900],
    ['Three.', 2_050],
  ]);
});

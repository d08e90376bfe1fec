import { expect, it } from 'vitest';
import { NOTHING_SAID, withCorrection, withEntries, withGap } from '../../../../src/gateway/call/transcript.js';

const said = (text: string, at_ms: number) => ({ speaker: 'agent', text, at_ms }) as const;

it('a transcript is complete, partial, failed, or missing', () => {
  const complete = withEntries(NOTHING_SAID, [said('Hello.', 0)], false);
  expect(complete).toMatchObject({ state: 'complete', cause: null });
  expect(withGap(withGap(complete, 'first'), 'second')).toMatchObject({ state: 'partial', cause: 'first' });
  expect(withGap(NOTHING_SAID, 'no words')).toEqual({ transcript: [], state: 'failed', cause: 'no words' });
  expect(NOTHING_SAID).toEqual({ transcript: [], state: null, cause: null });
});

it('entries take their places by their times where these are known, and follow the others otherwise', () => {
  const two = withEntries(NOTHING_SAID, [said('Two.', 900), said('One.', 100)], true);
  expect(two.transcript.map(({ text }) => text)).toEqual(['One.', 'Two.']);
  expect(withEntries(two, [said('Three.', 50)], false).transcript.map(({ text }) => text)).toEqual(['One.', 'Two.', 'Three.']);
});

it('a transcript that changes is a new one, and one that does not stays the same object', () => {
  const full = withEntries(NOTHING_SAID, [said('x'.repeat(200_000), 0)], false);
  expect(withEntries(full, [], false)).toBe(full);
  const cut = withEntries(full, [said('y', 1)], false);
  expect(cut).toMatchObject({ state: 'partial', cause: 'the transcript is full' });
  expect(withEntries(cut, [said('y', 2)], false)).toBe(cut);
  expect(full).toMatchObject({ state: 'complete', cause: null });
});

it('the utterance that was interrupted last is put right, or goes if nothing of it was heard', () => {
  const cut = { ...said('I can offer you a table at', 0), interrupted: true };
  const notes = withEntries(NOTHING_SAID, [cut, said('Yes?', 1)], false);
  expect(withCorrection(notes, 'I can').transcript).toEqual([{ ...cut, text: 'I can' }, said('Yes?', 1)]);
  expect(withCorrection(notes, '').transcript).toEqual([said('Yes?', 1)]);
});

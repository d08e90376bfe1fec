import { describe, expect, it } from 'vitest';
import { Utterances, type HeardUtterance } from '../../../../../src/gateway/agents/provider/utterances.js';

/** One second of G.711. */
const SECOND = 8_000;

/** Id and text of each, with `|` behind what was cut. */
const shown = (heard: readonly HeardUtterance[]): string[] =>
  heard.map(({ id, entry }) => `${id}: ${entry.text}${entry.interrupted === true ? '|' : ''}`);

/** A whole utterance of one second, from this position of the queue. */
function whole(utterances: Utterances, id: string, text: string, from = 0): void {
  utterances.queued(id, from, from + SECOND);
  utterances.said(id, text, true);
  utterances.ended(id);
}

describe('an utterance that was heard to its end', () => {
  it('is reported once all its audio was played, with the time of its first', () => {
    const utterances = new Utterances();
    whole(utterances, 'a', 'Good morning.', 1_000);
    expect(utterances.played(1_000, 5)).toEqual([]);
    expect(utterances.played(1_001, 40.4)).toEqual([]);
    expect(utterances.played(1_000 + SECOND - 1, 900)).toEqual([]);
    expect(utterances.played(1_000 + SECOND, 1_000)).toEqual([{ id: 'a', entry: { speaker: 'agent', text: 'Good morning.', at_ms: 40 } }]);
    expect(utterances.played(1_000 + SECOND, 1_001)).toEqual([]);
  });

  it('waits for the rest of its audio, and of its text', () => {
    const utterances = new Utterances();
    utterances.queued('a', 0, SECOND);
    utterances.said('a', 'Good', false);
    expect(utterances.played(SECOND, 1)).toEqual([]);
    utterances.ended('a');
    expect(utterances.played(SECOND, 2)).toEqual([]);
    utterances.said('a', 'Good morning.', true);
    expect(shown(utterances.played(SECOND, 3))).toEqual(['a: Good morning.']);
  });

  it('counts each piece of the queue, adjacent or not', () => {
    const utterances = new Utterances();
    whole(utterances, 'a', 'one');
    utterances.queued('a', SECOND, 2 * SECOND);
    utterances.queued('a', 3 * SECOND, 4 * SECOND);
    utterances.queued('a', 5 * SECOND, 5 * SECOND);
    expect(utterances.played(3 * SECOND, 1)).toEqual([]);
    expect(shown(utterances.played(4 * SECOND, 2))).toEqual(['a: one']);
  });

  it('is not reported without audio, and only noted without text', () => {
    const utterances = new Utterances();
    utterances.said('silent', 'Never spoken.', true);
    utterances.ended('silent');
    expect([utterances.played(0, 1), utterances.hasUnwritten]).toEqual([[], false]);
    whole(utterances, 'a', '');
    expect([utterances.played(SECOND, 1), utterances.hasUnwritten]).toEqual([[], true]);
  });

  it('that does not exist ends nothing', () => {
    const utterances = new Utterances();
    utterances.ended('nobody');
    expect(utterances.played(SECOND, 1)).toEqual([]);
  });
});

describe('an utterance in progress', () => {
  it('has audio and text', () => {
    const utterances = new Utterances();
    utterances.queued('a', 0, SECOND);
    utterances.said('b', 'text alone', false);
    whole(utterances, 'c', 'Good morning.', SECOND);
    expect(utterances.underWay).toEqual([{ speaker: 'agent', text: 'Good morning.' }]);
    utterances.played(2 * SECOND, 1);
    expect(utterances.underWay).toEqual([]);
  });
});

describe('an interruption', () => {
  it('cuts the text where the audio was cut, at a word', () => {
    const utterances = new Utterances();
    whole(utterances, 'a', 'one two three four');
    expect(utterances.cut(SECOND / 2 + 8, 7)).toEqual({
      played: [{ utterance: 'a', playedMs: 501 }],
      heard: [{ id: 'a', entry: { speaker: 'agent', text: 'one two', at_ms: 7, interrupted: true } }],
    });
    expect(utterances.cut(SECOND, 8)).toEqual({ played: [], heard: [] });
  });

  it('reports only the time of what was not heard, and nothing without audio', () => {
    const utterances = new Utterances();
    whole(utterances, 'a', 'one two', SECOND);
    utterances.said('b', 'three', true);
    expect(utterances.cut(SECOND, 1)).toEqual({ played: [{ utterance: 'a', playedMs: 0 }], heard: [] });
    expect(utterances.hasUnwritten).toBe(false);
  });

  it('leaves what was heard to its end, and what lacks only its text', () => {
    const utterances = new Utterances();
    utterances.queued('a', 0, SECOND);
    utterances.ended('a');
    expect(utterances.cut(SECOND, 1)).toEqual({ played: [], heard: [] });
    utterances.said('a', 'Good morning.', true);
    expect(shown(utterances.played(SECOND, 2))).toEqual(['a: Good morning.']);
  });

  it('behind all that came leaves the text whole where it is the last, and cuts it otherwise', () => {
    for (const isLast of [true, false]) {
      const utterances = new Utterances();
      utterances.queued('a', 0, SECOND);
      utterances.said('a', 'one two', isLast);
      expect(shown(utterances.cut(SECOND, 1).heard)).toEqual([isLast ? 'a: one two' : 'a: one two|']);
    }
  });

  it('of audio whose text never came leaves a note', () => {
    const utterances = new Utterances();
    utterances.queued('a', 0, SECOND);
    expect([utterances.cut(1, 1).heard, utterances.hasUnwritten]).toEqual([[], true]);
  });

  it('estimates what is still to come by 65 ms a character where the text comes first', () => {
    const text = 'one two three four five six seven eight'; // 39 characters: 2.5 s
    const cutAfterASecond = (isTextFirst: boolean, hasAllAudio: boolean): string[] => {
      const utterances = new Utterances(isTextFirst);
      utterances.queued('a', 0, SECOND);
      utterances.said('a', text, true);
      if (hasAllAudio) utterances.ended('a');
      return shown(utterances.cut(SECOND / 2, 1).heard);
    };
    expect(cutAfterASecond(true, false)).toEqual(['a: one two|']);
    expect(cutAfterASecond(true, true)).toEqual(['a: one two three four|']);
    expect(cutAfterASecond(false, false)).toEqual(['a: one two three four|']);
  });
});

describe('the end of a session', () => {
  it('keeps what was not heard yet, under a name of its own, since the next session may use the same', () => {
    const utterances = new Utterances();
    whole(utterances, 'a', 'Good morning.');
    utterances.sessionEnded(SECOND / 2, false, '');
    whole(utterances, 'a', 'Hello again.', SECOND);
    expect(shown(utterances.played(2 * SECOND, 1))).toEqual(['lost-1: Good morning.', 'a: Hello again.']);
  });

  it('cuts what had not come whole, at the length of what came', () => {
    const utterances = new Utterances();
    utterances.queued('a', 0, SECOND);
    utterances.said('a', 'one two three four five six seven eight', false);
    utterances.sessionEnded(0, false, '');
    expect(shown(utterances.played(SECOND, 1))).toEqual(['lost-1: one two three|']);
  });

  it('takes text as whole when the agent had finished, or when all that came was played and the text is whole', () => {
    const ended = (position: number, isComplete: boolean, isLast: boolean): string[] => {
      const utterances = new Utterances();
      utterances.queued('a', 0, SECOND);
      utterances.said('a', 'one two three four five six seven eight', isLast);
      utterances.sessionEnded(position, isComplete, '');
      return shown(utterances.played(SECOND, 1));
    };
    const all = 'lost-1: one two three four five six seven eight';
    expect([ended(0, true, false), ended(SECOND, false, true), ended(SECOND - 1, false, true), ended(SECOND, false, false)]).toEqual([
      [all],
      [all],
      ['lost-1: one two three|'],
      ['lost-1: one two three|'],
    ]);
  });

  it('with all audio, but not all text, leaves all of the text, which counts as cut', () => {
    const utterances = new Utterances();
    utterances.queued('a', 0, SECOND);
    utterances.said('a', 'one two', false);
    utterances.ended('a');
    utterances.sessionEnded(0, false, '');
    expect(shown(utterances.played(SECOND, 1))).toEqual(['lost-1: one two|']);
  });

  it('drops what had no audio, and leaves what is no part of it and what an earlier one left', () => {
    const utterances = new Utterances();
    utterances.said('a', 'never spoken', true);
    whole(utterances, 'ours', 'Goodbye.');
    whole(utterances, 'b', 'Hello.', SECOND);
    utterances.sessionEnded(0, false, 'ours');
    utterances.sessionEnded(0, false, 'ours');
    expect(shown(utterances.played(2 * SECOND, 1))).toEqual(['ours: Goodbye.', 'lost-1: Hello.']);
  });

  it('leaves an utterance that is not reported to the provider when it is interrupted later, nor noted', () => {
    const utterances = new Utterances();
    utterances.queued('a', 0, SECOND);
    utterances.sessionEnded(0, false, '');
    expect([utterances.cut(1, 1), utterances.hasUnwritten]).toEqual([{ played: [], heard: [] }, false]);
    utterances.queued('b', 0, SECOND);
    utterances.sessionEnded(0, true, '');
    expect([utterances.cut(1, 1), utterances.hasUnwritten]).toEqual([{ played: [], heard: [] }, true]);
  });

  it('leaves no note of a cut utterance that is played to its end either', () => {
    const utterances = new Utterances();
    utterances.queued('a', 0, SECOND);
    utterances.sessionEnded(0, false, '');
    expect([utterances.played(SECOND, 1), utterances.hasUnwritten]).toEqual([[], false]);
  });
});

describe('a call of hours', () => {
  it('remembers the last 200 utterances', () => {
    const utterances = new Utterances();
    for (let index = 0; index <= 200; index += 1) utterances.queued(String(index), index, index + 1);
    const { played } = utterances.cut(0, 1);
    expect([played.length, played[0]?.utterance]).toEqual([200, '1']);
  });
});

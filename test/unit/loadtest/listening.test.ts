import { describe, expect, it } from 'vitest';
import { listeningOf } from '../../../src/loadtest/listening.js';

const FLAGS = { hold: 6, media: 10, echo: true, isHeld: false };

describe('what calls with media must hear', () => {
  it('is their key read back and their own tone, when they are long enough', () => {
    expect(listeningOf(FLAGS)).toEqual({ digits: '1', echoes: true, notes: [] });
  });

  it('is nothing of calls that end within the greeting, which is said and is no fault', () => {
    const { digits, echoes, notes } = listeningOf({ ...FLAGS, hold: 3 });
    expect({ digits, echoes }).toEqual({ digits: '', echoes: false });
    expect(notes).toEqual([
      'calls of 3 s are too short for keys to be read back: none are pressed',
      expect.stringMatching(/^calls of 3 s without a key end within the greeting of the test line: their own tone need not come back/),
    ]);
  });

  it('is the own tone after the whole greeting, when no key ends it', () => {
    expect(listeningOf({ ...FLAGS, digits: '' })).toMatchObject({ echoes: false, notes: [expect.stringContaining('6 s without a key')] });
    expect(listeningOf({ ...FLAGS, digits: '', hold: 12 })).toEqual({ digits: '', echoes: true, notes: [] });
    expect(listeningOf({ ...FLAGS, digits: '', isHeld: true })).toEqual({ digits: '', echoes: true, notes: [] });
  });

  it('is as it was asked for: keys of calls that are short, an agent that does not echo', () => {
    expect(listeningOf({ ...FLAGS, hold: 3, digits: '1' })).toEqual({ digits: '1', echoes: true, notes: [] });
    expect(listeningOf({ ...FLAGS, echo: false, digits: '' })).toEqual({ digits: '', echoes: false, notes: [] });
  });

  it('does not concern calls without media', () => {
    expect(listeningOf({ ...FLAGS, media: 0, hold: 2 })).toEqual({ digits: '', echoes: true, notes: [] });
  });
});

import { describe, expect, it } from 'vitest';
import { listeningOf } from '../../../src/loadtest/listening.js';

const FLAGS = { hold: 6, media: 10, echo: true, isHeld: false };

describe('the checks of calls with media', () => {
  it('expect the digit read back and the call’s own tone, when calls are long enough', () => {
    expect(listeningOf(FLAGS)).toEqual({ digits: '1', echoes: true, notes: [] });
  });

  it('expect nothing of calls that end within the greeting, which is a note and no fault', () => {
    const { digits, echoes, notes } = listeningOf({ ...FLAGS, hold: 3 });
    expect({ digits, echoes }).toEqual({ digits: '', echoes: false });
    expect(notes).toEqual([
      'calls of 3 s are too short for keys to be read back: none are pressed',
      expect.stringMatching(/^calls of 3 s without a key end within the greeting of the test line: their own tone need not come back/),
    ]);
  });

  it('expect the own tone after the whole greeting, when no digit ends it', () => {
    expect(listeningOf({ ...FLAGS, digits: '' })).toMatchObject({ echoes: false, notes: [expect.stringContaining('6 s without a key')] });
    expect(listeningOf({ ...FLAGS, digits: '', hold: 12 })).toEqual({ digits: '', echoes: true, notes: [] });
    expect(listeningOf({ ...FLAGS, digits: '', isHeld: true })).toEqual({ digits: '', echoes: true, notes: [] });
  });

  it('follow the flags: digits of short calls, an agent that does not echo', () => {
    expect(listeningOf({ ...FLAGS, hold: 3, digits: '1' })).toEqual({ digits: '1', echoes: true, notes: [] });
    expect(listeningOf({ ...FLAGS, echo: false, digits: '' })).toEqual({ digits: '', echoes: false, notes: [] });
  });

  it('do not apply to calls without media', () => {
    expect(listeningOf({ ...FLAGS, media: 0, hold: 2 })).toEqual({ digits: '', echoes: true, notes: [] });
  });
});

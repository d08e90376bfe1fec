import { describe, expect, it } from 'vitest';
import { adviceOn } from '../../../../src/gateway/model/advice.js';
import { REASONS, reasonHeaderOf, warningOf } from '../../../../src/gateway/model/reasons.js';

describe('the reason of a refused or ended call', () => {
  it('[3261 §20.43] appears in the answer with code, cause and explanation', () => {
    expect(warningOf('NO_COMMON_CODEC', 'gw.example')).toBe('399 gw.example "NO_COMMON_CODEC: The offer has neither PCMU nor PCMA."');
    expect(reasonHeaderOf('BUSY')).toBe('Q.850;cause=17;text="BUSY"');
  });

  it('has advice of its own, or that of the party at fault', () => {
    expect(adviceOn('NO_COMMON_CODEC')).toBe('Have the carrier offer PCMU or PCMA (G.711).');
    expect(adviceOn('BAD_SDP')).toBe("Check in the trace what the carrier sent, and the carrier's settings for this trunk.");
    expect(adviceOn('CALLER_HANGUP')).toBe('Nothing: the call ended normally.');
  });

  it('has Retry-After only where a retry helps', () => {
    const wrong = Object.entries(REASONS).filter(([, { retryable, retryAfter }]) => retryAfter && !retryable);
    expect(wrong).toEqual([]);
  });
});

import { expect, it } from 'vitest';
import { snakeKeys } from '../../../src/lib/snake-keys.js';

it('names become snake_case at every depth; data and values stay unchanged', () => {
  const given = {
    isFine: true,
    jitterMs: 1,
    list: [{ atMs: 2 }],
    byReason: { CALLER_HANGUP: 1, 'sipp 1': 2, 'Other aB': 3 },
    text: 'camelCase',
    none: null,
  };
  expect(snakeKeys(given)).toEqual({
    is_fine: true,
    jitter_ms: 1,
    list: [{ at_ms: 2 }],
    by_reason: { CALLER_HANGUP: 1, 'sipp 1': 2, 'Other aB': 3 },
    text: 'camelCase',
    none: null,
  });
});

import { describe, it } from 'vitest';
import { play } from './play.js';
import type { Step } from './steps.js';

// Scripts of random worlds that found a fault, as they were shrunk.

const KEPT: readonly (readonly [fault: string, script: readonly Step[]])[] = [
  [
    'a placed call has a record although its gateway is killed right after the API has accepted it',
    [
      { do: 'place', callee: 'answers' },
      { do: 'kill', part: 'gateway' },
    ],
  ],
];

describe('a script that found a fault', () => {
  it.each(KEPT)('shows that %s', (_fault, script) => play(script));
});

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
  [
    'an rtpengine that stalled across a restart of its gateway gets queries for its leftover sessions once it runs',
    [
      { do: 'stall', part: 'rtpengine-1' },
      { do: 'call', number: 'own', late: false },
      { do: 'call', number: 'own', late: false },
      { do: 'turns', turns: 29 },
      { do: 'kill', part: 'gateway' },
      { do: 'pass', ms: 100 },
      { do: 'start', part: 'gateway' },
      { do: 'pass', ms: 3_000 },
    ],
  ],
  [
    'what an rtpengine has for a call that was being placed when the gateway died is freed',
    [
      { do: 'stall', part: 'rtpengine-1' },
      { do: 'place', callee: 'answers' },
      { do: 'kill', part: 'gateway' },
      { do: 'pass', ms: 1 },
      { do: 'call', number: 'own', late: false },
      { do: 'turns', turns: 1 },
    ],
  ],
];

describe('a script that found a fault', () => {
  it.each(KEPT)('shows that %s', (_fault, script) => play(script));
});

import { describe, expect, it } from 'vitest';
import { RETRANSMIT_START, stepRetransmit, type RetransmitEvent } from '../../../../src/sip/dialog/retransmission.js';

const SENT = { type: 'sent' } as const;
const RETRANSMIT = { type: 'timer', timer: 'retransmit' } as const;
const GIVE_UP = { type: 'timer', timer: 'give-up' } as const;

function run(events: readonly RetransmitEvent[], times = { t1Ms: 500, longestMs: 4_000 }) {
  let state = RETRANSMIT_START;
  let effects: readonly unknown[] = [];
  for (const event of events) ({ state, effects } = stepRetransmit(state, event, times));
  return { name: state.name, effects };
}

/** The delays to the first retransmissions, in milliseconds. */
function intervals(times: { readonly t1Ms: number; readonly longestMs: number }): unknown[] {
  return [1, 2, 3, 4, 5, 6].map((count) => {
    const { effects } = run([SENT, ...Array.from({ length: count }, () => RETRANSMIT)], times);
    expect(effects).toEqual([{ do: 'resend' }, { do: 'start', timer: 'retransmit', delayMs: expect.any(Number) as unknown }]);
    return (effects[1] as { delayMs: number }).delayMs;
  });
}

describe('a response that the user agent retransmits', () => {
  it.each([500, 100])(
    '[3261 §13.3.1.4] waits T1 for the first retransmission, and 64 times T1 for the acknowledgement (T1 of %i ms)',
    (t1Ms) => {
      expect(run([SENT], { t1Ms, longestMs: 4_000 })).toEqual({
        name: 'Waiting',
        effects: [
          { do: 'start', timer: 'retransmit', delayMs: t1Ms },
          { do: 'start', timer: 'give-up', delayMs: 64 * t1Ms },
        ],
      });
    },
  );

  it('[3261 §13.3.1.4] doubles its interval up to T2 when it is a 2xx', () => {
    expect(intervals({ t1Ms: 500, longestMs: 4_000 })).toEqual([1_000, 2_000, 4_000, 4_000, 4_000, 4_000]);
  });

  it('[3262 §3] doubles its interval without bound when it is a reliable provisional response', () => {
    expect(intervals({ t1Ms: 500, longestMs: Infinity })).toEqual([1_000, 2_000, 4_000, 8_000, 16_000, 32_000]);
  });

  it('[3261 §13.3.1.4] stops when it is acknowledged, and gives up without', () => {
    const acknowledged = [SENT, RETRANSMIT, { type: 'acknowledged' }] as const;
    expect(run(acknowledged)).toEqual({ name: 'Acknowledged', effects: [{ do: 'stop-timers' }] });
    expect(run([SENT, RETRANSMIT, GIVE_UP])).toEqual({ name: 'GaveUp', effects: [{ do: 'stop-timers' }, { do: 'gave-up' }] });
    for (const event of [SENT, RETRANSMIT, GIVE_UP, { type: 'acknowledged' }] as const) {
      expect(run([...acknowledged, event])).toEqual({ name: 'Acknowledged', effects: [] });
      expect(run([SENT, GIVE_UP, event])).toEqual({ name: 'GaveUp', effects: [] });
    }
  });
});

import { expect, it } from 'vitest';
import { publish } from '../../../../src/gateway/ports/events.js';
import { countEvents } from '../../../../src/gateway/wiring/gateway-metrics.js';
import { exposition, Metrics } from '../../../../src/observability/metrics/registry.js';
import { parseExposition } from '../../../support/prometheus-text.js';
import { callOf, endedCall } from '../store/store-contract.js';

it('the metrics count each turn of a call that ended, by its delay', async () => {
  const metrics = new Metrics('gateway');
  const end = countEvents(metrics);
  const turns = { first_audio_ms: 300, delays_ms: [350, 900, 4_000], p50_ms: 900, p95_ms: 4_000 };
  publish('call.ended', endedCall(callOf('org', 0, { turns })));
  end();
  publish('call.ended', endedCall(callOf('org', 0, { turns })));
  const { sum } = parseExposition(await exposition([await metrics.snapshot()]));
  const upTo = (le: string): number | undefined => sum('trunkline_call_turn_seconds_bucket', { le });
  expect([upTo('0.2'), upTo('0.4'), upTo('1'), upTo('3'), upTo('5'), upTo('+Inf')]).toEqual([0, 1, 2, 2, 3, 3]);
  expect(sum('trunkline_call_turn_seconds_sum')).toBeCloseTo(5.25);
  expect(sum('trunkline_calls_ended_total', { reason: 'CALLER_HANGUP' })).toBe(1);
});

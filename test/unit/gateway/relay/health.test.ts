import { expect, it } from 'vitest';
import {
  HEALTHY,
  ROUND_MS,
  ROUNDS_TO_LOSE,
  stepHealth,
  type HealthChange,
  type HealthEvent,
} from '../../../../src/gateway/relay/health.js';

function changes(...events: HealthEvent[]): HealthChange[] {
  let health = HEALTHY;
  return events.map((event) => {
    const next = stepHealth(health, event);
    health = next.health;
    return next.change;
  });
}

const unanswered: HealthEvent = { type: 'unanswered' };
const answered: HealthEvent = { type: 'answered' };
const upSince = (startedAtMs: number, uptimeMs = 60_000): HealthEvent => ({ type: 'uptime', startedAtMs, uptimeMs });

it('the health check loses a node after three rounds without an answer, within a second, and reports it once', () => {
  expect(changes(unanswered, unanswered, unanswered, unanswered)).toEqual([null, null, 'lost', null]);
  expect((ROUNDS_TO_LOSE + 1) * ROUND_MS).toBeLessThan(1_000);
});

it('the health check counts anew after each answer', () => {
  expect(changes(unanswered, unanswered, answered, unanswered, unanswered)).toEqual([null, null, null, null, null]);
});

it('the health check reports a node as back at its first answer', () => {
  expect(changes(unanswered, unanswered, unanswered, answered, answered)).toEqual([null, null, 'lost', 'back', null]);
});

it('the health check detects a restart by uptime, but not by whole seconds or a drifting clock', () => {
  expect(changes(upSince(5_000), upSince(5_900), upSince(4_100), upSince(6_000))).toEqual([null, null, null, 'restarted']);
  expect(changes(upSince(5_000), upSince(60_000), upSince(60_300))).toEqual([null, 'restarted', null]);
});

it('the health check takes a node for restarted that was silent and is young again, which whole seconds do not show', () => {
  expect(changes(upSince(5_000, 1_000), unanswered, answered, upSince(6_300, 0))).toEqual([null, null, null, 'restarted']);
  expect(changes(upSince(5_000, 1_000), upSince(5_900, 1_000))).toEqual([null, null]);
  expect(changes(upSince(5_000, 9_000), unanswered, answered, upSince(5_000, 10_000))).toEqual([null, null, null, null]);
});

it('the health check reports no restart of a node that was lost, whose calls were reported then', () => {
  expect(changes(upSince(0), unanswered, unanswered, unanswered, answered, upSince(90_000))).toEqual([
    null,
    null,
    null,
    'lost',
    'back',
    null,
  ]);
});

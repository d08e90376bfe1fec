/** Whether an rtpengine lives, and since when, by its responses. */
export interface Health {
  readonly isAlive: boolean;
  /** Rounds in a row that ended with an unanswered ping. */
  readonly missed: number;
  /** Its start time by our clock; `null`: unknown. */
  readonly startedAtMs: number | null;
  /** It left a ping unanswered since it reported its uptime last. */
  readonly wasSilent: boolean;
}

export type HealthEvent =
  | { readonly type: 'unanswered' }
  | { readonly type: 'answered' }
  /** It reported its uptime. */
  | { readonly type: 'uptime'; readonly startedAtMs: number; readonly uptimeMs: number };

/** `restarted`: a possible restart, for its clock may have changed; whether it still has its calls decides. */
export type HealthChange = 'lost' | 'back' | 'restarted' | null;

/** Optimistic: the first call does not wait for the first round. */
export const HEALTHY: Health = { isAlive: true, missed: 0, startedAtMs: null, wasSilent: false };

export const ROUND_MS = 200;
/** A node that dies just after a response is lost one round later: within 0.8 s. */
export const ROUNDS_TO_LOSE = 3;
/** Uptime is in whole seconds, so the computed start varies by one. */
const START_TOLERANCE_MS = 1_500;
/** One that was silent and runs for less than this may have restarted twice within the tolerance. */
const YOUNG_MS = 2_000;

export function stepHealth(health: Health, event: HealthEvent): { readonly health: Health; readonly change: HealthChange } {
  switch (event.type) {
    case 'unanswered': {
      const missed = health.missed + 1;
      if (!health.isAlive || missed < ROUNDS_TO_LOSE) return { health: { ...health, missed, wasSilent: health.isAlive }, change: null };
      // All its calls were already reported as lost: a restart meanwhile changes nothing.
      return { health: { isAlive: false, missed, startedAtMs: null, wasSilent: false }, change: 'lost' };
    }
    case 'answered':
      return { health: { ...health, isAlive: true, missed: 0 }, change: health.isAlive ? null : 'back' };
    case 'uptime': {
      const { startedAtMs, wasSilent } = health;
      const isLater = startedAtMs !== null && event.startedAtMs > startedAtMs + START_TOLERANCE_MS;
      // Keep the earliest start: otherwise a drifting clock would hide a restart.
      const kept = startedAtMs === null || isLater ? event.startedAtMs : Math.min(startedAtMs, event.startedAtMs);
      const mayHaveRestarted = isLater || (wasSilent && event.uptimeMs < YOUNG_MS);
      return { health: { ...health, startedAtMs: kept, wasSilent: false }, change: mayHaveRestarted ? 'restarted' : null };
    }
  }
}

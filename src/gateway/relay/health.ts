/** Whether an rtpengine lives, and since when, as far as its answers tell. */
export interface Health {
  readonly isAlive: boolean;
  /** Rounds in a row that ended with a ping unanswered. */
  readonly missed: number;
  /** When it started, on our clock; `null`: not known. */
  readonly startedAtMs: number | null;
}

export type HealthEvent =
  | { readonly type: 'unanswered' }
  | { readonly type: 'answered' }
  /** It says for how long it has run. */
  | { readonly type: 'uptime'; readonly startedAtMs: number };

/** `restarted`: perhaps, for its clock may have been set; whether it still has its calls tells. */
export type HealthChange = 'lost' | 'back' | 'restarted' | null;

/** Optimistic: the first round is not waited for. */
export const HEALTHY: Health = { isAlive: true, missed: 0, startedAtMs: null };

export const ROUND_MS = 200;
/** A node that dies just after an answer is lost after one round more: within 0.8 s. */
export const ROUNDS_TO_LOSE = 3;
/** Uptime is told in whole seconds, so the start moves by one to and fro. */
const START_TOLERANCE_MS = 1_500;

export function stepHealth(health: Health, event: HealthEvent): { readonly health: Health; readonly change: HealthChange } {
  switch (event.type) {
    case 'unanswered': {
      const missed = health.missed + 1;
      if (!health.isAlive || missed < ROUNDS_TO_LOSE) return { health: { ...health, missed }, change: null };
      // All its calls are told as lost now: a restart meanwhile is no news.
      return { health: { isAlive: false, missed, startedAtMs: null }, change: 'lost' };
    }
    case 'answered':
      return { health: { ...health, isAlive: true, missed: 0 }, change: health.isAlive ? null : 'back' };
    case 'uptime': {
      const { startedAtMs } = health;
      const isLater = startedAtMs !== null && event.startedAtMs > startedAtMs + START_TOLERANCE_MS;
      // The earliest is kept, else a clock that drifts would never show a restart.
      const kept = startedAtMs === null || isLater ? event.startedAtMs : Math.min(startedAtMs, event.startedAtMs);
      return { health: { ...health, startedAtMs: kept }, change: isLater ? 'restarted' : null };
    }
  }
}

import type { LRUCache } from 'lru-cache';
import { recentlyUsed } from '../../../../lib/recently-used.js';

/** How long Redis keeps a slot that is leased ahead. A call takes it in the first half, so that Redis hears of that call in the second. */
export const LEASED_AHEAD_MS = 500;
const USED_WITHIN_MS = LEASED_AHEAD_MS / 2;
const MOST_AHEAD = 16;
/** At this remainder more are leased. */
const FEW_AHEAD = 4;

/** What is known of the limits of one number or organization. */
interface Known {
  /** Half of a limit was in use: Redis decides. */
  isNear: boolean;
  /** Redis has not answered yet to a call that was admitted without a leased slot, or was asked for more of them. */
  isAsked: boolean;
  leased: string[];
  usableUntilMs: number;
}

/** What a call takes with it to Redis. */
export interface Claim {
  /** The slot that was leased for it; '': none. */
  readonly leased: string;
  /** How many more to lease, at most. */
  readonly want: number;
  /** What was forgotten before. */
  readonly forgotten: number;
}

/**
 * Slots under limits that calls may take without waiting for Redis: those leased ahead, and while less than half of the limit was in use at
 * Redis' last answer, one more whose taking Redis confirms afterwards. Before that answer no other call gets one, and an answer at the limit
 * lets none through: a limit is exceeded by one call of a gateway at most.
 */
export class SlotsAhead {
  readonly #known: LRUCache<string, Known>;
  #forgotten = 0;

  /** @param maxKeys numbers and organizations under limits */
  constructor(maxKeys: number) {
    this.#known = recentlyUsed(maxKeys);
  }

  /** Whether a call may be admitted at once under the limits of this key. */
  has(key: string, nowMs: number): boolean {
    const known = this.#known.get(key);
    return known !== undefined && (hasLeased(known, nowMs) || !(known.isNear || known.isAsked));
  }

  /** A call takes a slot at once: `has` told that it may. */
  claim(key: string, nowMs: number): Claim {
    const known = this.#known.get(key);
    const leased = known !== undefined && hasLeased(known, nowMs) ? (known.leased.pop() ?? '') : '';
    const forgotten = this.#forgotten;
    if (known === undefined || known.isAsked || (leased !== '' && known.leased.length > FEW_AHEAD)) return { leased, want: 0, forgotten };
    known.isAsked = true;
    return { leased, want: MOST_AHEAD, forgotten };
  }

  /** A call waits for Redis. */
  ask(): Claim {
    return { leased: '', want: 0, forgotten: this.#forgotten };
  }

  /**
   * Redis took the slot of a call.
   * @param left slots that were left below half of the limits
   * @param askedMs when Redis was asked
   */
  answered(key: string, callId: string, { want, forgotten }: Claim, left: number, askedMs: number): void {
    // Of limits that may be other ones now.
    if (forgotten !== this.#forgotten) {
      this.#known.delete(key);
      return;
    }
    const known = this.#known.get(key);
    const granted = Math.min(left, want);
    const leased = Array.from({ length: granted }, (_, index) => `${callId}:${String(index + 1)}`);
    if (known === undefined) {
      this.#known.set(key, { isNear: left <= 0, isAsked: false, leased, usableUntilMs: askedMs + USED_WITHIN_MS });
      return;
    }
    known.isNear = left <= 0;
    if (want > 0) known.isAsked = false;
    if (granted === 0) return;
    // Those leased before end by themselves.
    known.leased = leased;
    known.usableUntilMs = askedMs + USED_WITHIN_MS;
  }

  /** The limits are other ones, or Redis did not answer: the next call waits for it. */
  forget(key: string): void {
    this.#known.delete(key);
    this.#forgotten += 1;
  }
}

function hasLeased({ leased, usableUntilMs }: Known, nowMs: number): boolean {
  return leased.length > 0 && nowMs < usableUntilMs;
}

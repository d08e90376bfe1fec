import type { E164 } from './e164.js';

/** What an organization may dial, as its operator set it. Money is in the operator's currency; a day is one of UTC. */
export interface Dialling {
  /** Price of a minute by prefix of the called number (`+49`): the longest prefix that fits counts. `null`: never dialled. */
  readonly prices: Readonly<Record<string, number | null>>;
  /** Numbers of the organization that its calls may come from: the operator has verified that they are its own. */
  readonly callers: readonly E164[];
  readonly max_calls_per_second: number;
  readonly max_concurrent_calls: number;
  readonly max_calls_per_day: number;
  readonly max_cost_per_day: number;
}

/** What is reserved for one call before it is dialled, and settled after it. */
export interface DialPermit {
  /** Millionths of the currency, a minute. */
  readonly microsPerMinute: number;
  /** For the longest that the call may last. */
  readonly reservedMicros: number;
  /** Of UTC, such as 2026-01-31: the day that the cost counts in. */
  readonly day: string;
}

const MICROS = 1_000_000;
const MINUTE_MS = 60_000;

/** An amount of the operator's currency in millionths, as costs are counted. */
export function microsOf(amount: number): number {
  return Math.round(amount * MICROS);
}

/** @param nowMs epoch milliseconds */
export function dialPermit(pricePerMinute: number, maxDurationMs: number, nowMs: number): DialPermit {
  const microsPerMinute = microsOf(pricePerMinute);
  const reservedMicros = costMicros(microsPerMinute, maxDurationMs);
  return { microsPerMinute, reservedMicros, day: new Date(nowMs).toISOString().slice(0, 10) };
}

/** What a call costs: each minute that began. */
export function costMicros(microsPerMinute: number, talkedMs: number): number {
  return microsPerMinute * Math.ceil(Math.max(0, talkedMs) / MINUTE_MS);
}

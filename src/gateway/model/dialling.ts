import type { E164 } from './e164.js';
import { DEFAULT_SIPS_PORT, sipEndpointParts } from '../../lib/sip-endpoint.js';

/** Limits of placed calls, over all gateways. */
export interface DialLimits {
  readonly max_calls_per_second: number;
  readonly max_concurrent_calls: number;
  readonly max_calls_per_day: number;
}

/** What an organization may dial, as its operator set it. Money is in the operator's currency; a day is one of UTC. */
export interface Dialling extends DialLimits {
  /** Price of a minute by prefix of the called number (`+49`): the longest prefix that fits counts. `null`: never dialled. */
  readonly prices: Readonly<Record<string, number | null>>;
  /** Numbers of the organization that its calls may come from: the operator has verified that they are its own. */
  readonly callers: readonly E164[];
  readonly max_cost_per_day: number;
  /** Limits of each of its trunks, besides its own. Left out, the whole or one of them: no limit. */
  readonly per_trunk?: Partial<DialLimits>;
}

/** What is reserved for one call before it is dialled, and settled after it. */
export interface DialPermit {
  /** Millionths of the currency, a minute. */
  readonly microsPerMinute: number;
  /** For the longest that the call may last. */
  readonly reservedMicros: number;
  /** Of UTC, such as 2026-01-31: the day that the cost counts in. */
  readonly day: string;
  /** The trunk that it counts on, as `limitedTrunk` names it; left out: on none. */
  readonly trunk?: string;
}

/**
 * The trunk that calls to a SIP endpoint count on, `<host>:<port>`: one name for every spelling. `undefined`: trunks of the organization
 * have no limits.
 */
export function limitedTrunk({ per_trunk: limits }: Dialling, endpoint: string): string | undefined {
  if (limits === undefined) return undefined;
  const { host, port = DEFAULT_SIPS_PORT } = sipEndpointParts(endpoint);
  // RFC 5952: an IPv6 address has one canonical text.
  const name = host.startsWith('[') ? new URL(`http://${host}`).hostname : host.toLowerCase();
  return `${name}:${String(port)}`;
}

const MICROS = 1_000_000;
const MINUTE_MS = 60_000;

/** An amount of the operator's currency in millionths, as costs are counted. */
export function microsOf(amount: number): number {
  return Math.round(amount * MICROS);
}

/** @param nowMs epoch milliseconds @param trunk as `limitedTrunk` names it */
export function dialPermit(pricePerMinute: number, maxDurationMs: number, nowMs: number, trunk?: string): DialPermit {
  const microsPerMinute = microsOf(pricePerMinute);
  const reservedMicros = costMicros(microsPerMinute, maxDurationMs);
  const day = new Date(nowMs).toISOString().slice(0, 10);
  return { microsPerMinute, reservedMicros, day, ...(trunk === undefined ? {} : { trunk }) };
}

/** What a call costs: each minute that began. */
export function costMicros(microsPerMinute: number, talkedMs: number): number {
  return microsPerMinute * Math.ceil(Math.max(0, talkedMs) / MINUTE_MS);
}

const LIMITS = ['max_calls_per_second', 'max_concurrent_calls', 'max_calls_per_day', 'max_cost_per_day'] as const;

/** Limits that allow no call at all: each does until it is set. */
export function unsetLimits(dialling: Dialling): readonly string[] {
  return LIMITS.filter((limit) => dialling[limit] === 0);
}

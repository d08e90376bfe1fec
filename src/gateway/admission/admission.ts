import type { Route } from '../model/records.js';
import type { Reason } from '../model/reasons.js';

/** Current use of a number and its organization, over all gateways. */
export interface ConcurrentUsage {
  readonly numberCalls: number;
  /** Calls admitted in the last second. */
  readonly numberCallsLastSecond: number;
  readonly orgCalls: number;
  readonly orgCallsLastSecond: number;
}

export const NO_USAGE: ConcurrentUsage = { numberCalls: 0, numberCallsLastSecond: 0, orgCalls: 0, orgCallsLastSecond: 0 };

/** The limit that one more call would exceed; `null`: none. */
export function brokenLimit(
  route: Route,
  load: ConcurrentUsage,
): Extract<Reason, 'NUMBER_CALL_LIMIT' | 'NUMBER_RATE_LIMIT' | 'ORG_CALL_LIMIT' | 'ORG_RATE_LIMIT'> | null {
  const { max_concurrent_calls: calls = null, max_calls_per_second: rate = null } = route.number.inbound?.options ?? {};
  if (calls !== null && load.numberCalls >= calls) return 'NUMBER_CALL_LIMIT';
  if (rate !== null && load.numberCallsLastSecond >= rate) return 'NUMBER_RATE_LIMIT';
  const { max_concurrent_calls: orgCalls, max_calls_per_second: orgRate } = route.org;
  if (orgCalls !== null && load.orgCalls >= orgCalls) return 'ORG_CALL_LIMIT';
  return orgRate !== null && load.orgCallsLastSecond >= orgRate ? 'ORG_RATE_LIMIT' : null;
}

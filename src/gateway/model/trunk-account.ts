import { createHash } from 'node:crypto';
import type { NumberRecord } from './records.js';

/** The trunk that gets OPTIONS: numbers of one organization with the same endpoint share it. `null`: none is sent. */
export function watchedTrunkOf({ org_id: orgId, outbound }: Pick<NumberRecord, 'org_id' | 'outbound'>): string | null {
  if ((outbound?.options_interval_s ?? 0) === 0) return null;
  return digest(['OPTIONS', orgId, outbound?.sip_endpoint.toLowerCase()]);
}

/** What a registration belongs to: numbers of one organization with the same user at the same registrar share it. `null`: there is none. */
export function accountOf({ org_id: orgId, outbound }: NumberRecord): string | null {
  if (outbound?.registrar === undefined || outbound.username === undefined) return null;
  return digest([orgId, outbound.registrar.toLowerCase(), outbound.username]);
}

/**
 * A number of each trunk or account, by its name: the first that may use it.
 * @param nameOf as `accountOf` and `watchedTrunkOf`
 * @param refusal why a number's organization may not use it; `null`: it may
 */
export async function oneOfEach(
  numbers: readonly NumberRecord[],
  nameOf: (number: NumberRecord) => string | null,
  refusal: (number: NumberRecord) => Promise<string | null>,
): Promise<ReadonlyMap<string, NumberRecord>> {
  const found = new Map<string, NumberRecord>();
  for (const number of numbers) {
    const name = nameOf(number);
    if (name !== null && !found.has(name) && (await refusal(number)) === null) found.set(name, number);
  }
  return found;
}

function digest(parts: readonly unknown[]): string {
  return createHash('sha256').update(JSON.stringify(parts)).digest('hex');
}

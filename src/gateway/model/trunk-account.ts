import { createHash } from 'node:crypto';
import type { NumberRecord } from './records.js';

/** The trunk that gets OPTIONS: numbers of one organization with the same endpoint share it. `null`: none is sent. */
export function watchedTrunkOf({ org_id: orgId, outbound }: Pick<NumberRecord, 'org_id' | 'outbound'>): string | null {
  if ((outbound?.options_interval_s ?? 0) === 0) return null;
  return createHash('sha256')
    .update(JSON.stringify(['OPTIONS', orgId, outbound?.sip_endpoint.toLowerCase()]))
    .digest('hex');
}

/** What a registration belongs to: numbers of one organization with the same user at the same registrar share it. `null`: there is none. */
export function accountOf({ org_id: orgId, outbound }: NumberRecord): string | null {
  if (outbound?.registrar === undefined || outbound.username === undefined) return null;
  return createHash('sha256')
    .update(JSON.stringify([orgId, outbound.registrar.toLowerCase(), outbound.username]))
    .digest('hex');
}

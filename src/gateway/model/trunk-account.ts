import { createHash } from 'node:crypto';
import type { NumberRecord } from './records.js';

/** What a registration belongs to: numbers of one organization with the same user at the same registrar share it. `null`: there is none. */
export function accountOf({ org_id: orgId, outbound }: NumberRecord): string | null {
  if (outbound?.registrar === undefined || outbound.username === undefined) return null;
  return createHash('sha256')
    .update(JSON.stringify([orgId, outbound.registrar.toLowerCase(), outbound.username]))
    .digest('hex');
}

import { createHash, timingSafeEqual } from 'node:crypto';
import { isInBlocks } from '../../lib/address.js';

/** Who may read the metrics. */
export interface MetricsAccess {
  /** Addresses and CIDR blocks; []: any. */
  readonly allowedSources: readonly string[];
  /** Required in addition; `null`: none. */
  readonly bearerToken: string | null;
}

export interface MetricsRefusal {
  readonly status: 401 | 403;
  readonly message: string;
}

/** `null`: access is granted. */
export function metricsRefusal(access: MetricsAccess, address: string, authorization: string | undefined): MetricsRefusal | null {
  const source = address.startsWith('::ffff:') ? address.slice(7) : address;
  if (access.allowedSources.length > 0 && !isInBlocks(access.allowedSources, source))
    return { status: 403, message: 'This address may not read the metrics: metrics.allowed_sources does not name it' };
  if (access.bearerToken === null) return null;
  const given = /^Bearer +(\S+)$/i.exec(authorization ?? '')?.[1] ?? '';
  if (timingSafeEqual(sha256(given), sha256(access.bearerToken))) return null;
  return { status: 401, message: 'The metrics need the token of metrics.bearer_token, as Authorization: Bearer' };
}

function sha256(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}

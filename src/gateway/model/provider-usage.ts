import type { Reason } from './reasons.js';
import type { OrgRecord } from './records.js';

/** What an organization uses of providers of voice models, over all gateways. A day is one of UTC. */
export interface ProviderUsage {
  readonly sessions: number;
  /** Of sessions, today. */
  readonly milliseconds: number;
  /** As the providers reported them, today. */
  readonly tokens: number;
}

export const NO_PROVIDER_USAGE: ProviderUsage = { sessions: 0, milliseconds: 0, tokens: 0 };

export type ProviderLimit = Extract<Reason, 'ORG_SESSION_LIMIT' | 'ORG_MINUTE_LIMIT' | 'ORG_TOKEN_LIMIT'>;

/** The organization's limits on providers; `null`: no limit. */
export type ProviderLimits = Pick<OrgRecord, 'max_provider_sessions' | 'max_provider_minutes_per_day' | 'max_provider_tokens_per_day'>;

/** The limit that one more session would exceed; `null`: none. */
export function brokenProviderLimit(org: ProviderLimits, usage: ProviderUsage): ProviderLimit | null {
  const { max_provider_sessions: sessions, max_provider_minutes_per_day: minutes, max_provider_tokens_per_day: tokens } = org;
  if (sessions !== null && usage.sessions >= sessions) return 'ORG_SESSION_LIMIT';
  if (minutes !== null && usage.milliseconds >= minutes * 60_000) return 'ORG_MINUTE_LIMIT';
  return tokens !== null && usage.tokens >= tokens ? 'ORG_TOKEN_LIMIT' : null;
}

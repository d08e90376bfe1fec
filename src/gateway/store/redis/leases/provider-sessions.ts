import {
  brokenProviderLimit,
  NO_PROVIDER_USAGE,
  type ProviderLimit,
  type ProviderLimits,
  type ProviderUsage,
} from '../../../model/provider-usage.js';
import type { OrgRecord } from '../../../model/records.js';
import { StoreUnavailableError, type ProviderSessions } from '../../../ports/ports.js';
import type { Clock } from '../../../../lib/clock.js';
import type { Log } from '../../../../lib/log.js';
import { errorText } from '../../../../lib/result.js';
import { orgProviderDayKey, orgProviderSessionsKey } from '../keys.js';
import { RedisScript, type RedisCommand, type RedisConnection } from '../redis.js';
import type { TurnWrites } from '../turn-writes.js';

const BEGIN_SESSION = new RedisScript('leases/begin-session');
const RENEW_SLOTS = new RedisScript('leases/renew-slots');
/** What was used in a day is of no use after it. */
const KEPT_S = 2 * 86_400;

interface Session {
  readonly orgId: string;
  /** When its time was counted last. */
  countedMs: number;
  tokens: number;
}

/** Slots of sessions as those of calls: one lives `leaseMs` and is renewed. What is used is counted at each renewal. */
export class RedisProviderSessions implements ProviderSessions {
  readonly #own = new Map<string, Session>();

  constructor(
    private readonly redis: RedisConnection,
    private readonly writes: TurnWrites,
    private readonly leaseMs: number,
    private readonly clock: Clock,
    private readonly log: Log,
  ) {}

  async begin(org: OrgRecord, callId: string, isResumed = false): Promise<ProviderLimit | null> {
    const limits = isResumed ? NO_LIMITS : org;
    const broken = brokenProviderLimit(limits, await this.#take(org.org_id, callId, limits));
    if (broken === null) this.#own.set(callId, { orgId: org.org_id, countedMs: this.clock.nowMs(), tokens: 0 });
    return broken;
  }

  used(callId: string, tokens: number): void {
    const session = this.#own.get(callId);
    if (session !== undefined) session.tokens += tokens;
  }

  end(callId: string): void {
    const session = this.#own.get(callId);
    if (session === undefined) return;
    this.#own.delete(callId);
    this.#write([...this.#counted(session), ['zrem', orgProviderSessionsKey(session.orgId), callId]]);
  }

  async usage(orgId: string): Promise<ProviderUsage> {
    const [sessions, used] = await this.redis.pipeline([
      ['zcard', orgProviderSessionsKey(orgId)],
      ['hmget', this.#dayKey(orgId), 'milliseconds', 'tokens'],
    ]);
    const [milliseconds, tokens] = used as readonly (string | null)[];
    return { sessions: Number(sessions), milliseconds: Number(milliseconds ?? 0), tokens: Number(tokens ?? 0) };
  }

  /** Keeps the slots for another lease, and counts what was used until now. */
  async renew(): Promise<void> {
    const byOrg = new Map<string, string[]>();
    for (const [callId, { orgId }] of this.#own) byOrg.set(orgId, [...(byOrg.get(orgId) ?? []), callId]);
    this.#write([...this.#own.values()].flatMap((session) => this.#counted(session)));
    await this.redis.pipeline(
      [...byOrg].map(([orgId, calls]) => this.redis.scriptCommand(RENEW_SLOTS, [orgProviderSessionsKey(orgId)], [this.leaseMs, ...calls])),
    );
  }

  async #take(orgId: string, callId: string, limits: ProviderLimits): Promise<ProviderUsage> {
    try {
      // What ended in this turn has ended.
      this.writes.flush();
      const keys = [orgProviderSessionsKey(orgId), this.#dayKey(orgId)];
      const { max_provider_sessions: most, max_provider_minutes_per_day: minutes, max_provider_tokens_per_day: mostTokens } = limits;
      const mostMs = minutes === null ? '' : minutes * 60_000;
      const answer = await this.redis.script(BEGIN_SESSION, keys, [this.leaseMs, callId, most ?? '', mostMs, mostTokens ?? '']);
      if (!Array.isArray(answer)) throw new Error('leases/begin-session.lua answered no array');
      const [sessions, milliseconds, tokens] = answer.map(Number);
      return { sessions: sessions ?? 0, milliseconds: milliseconds ?? 0, tokens: tokens ?? 0 };
    } catch (error) {
      if (!(error instanceof StoreUnavailableError)) throw error;
      // As the limits of calls: what this process has in progress is all that is known.
      return { ...NO_PROVIDER_USAGE, sessions: [...this.#own.values()].filter((own) => own.orgId === orgId).length };
    }
  }

  #counted(session: Session): readonly RedisCommand[] {
    const nowMs = this.clock.nowMs();
    const milliseconds = Math.round(nowMs - session.countedMs);
    const { tokens } = session;
    session.countedMs = nowMs;
    session.tokens = 0;
    const key = this.#dayKey(session.orgId);
    return [
      ['hincrby', key, 'milliseconds', milliseconds],
      ...(tokens === 0 ? [] : [['hincrby', key, 'tokens', tokens] as const]),
      ['expire', key, KEPT_S],
    ];
  }

  #dayKey(orgId: string): string {
    return orgProviderDayKey(orgId, new Date(this.clock.wallMs()).toISOString().slice(0, 10));
  }

  /** A slot expires by itself; what was used while Redis was away is not counted. */
  #write(commands: readonly RedisCommand[]): void {
    this.writes.write(commands).catch((error: unknown) => this.log.debug({ error: errorText(error) }, 'provider.usage.not_written'));
  }
}

const NO_LIMITS: ProviderLimits = {
  max_provider_sessions: null,
  max_provider_minutes_per_day: null,
  max_provider_tokens_per_day: null,
};

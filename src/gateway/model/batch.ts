import { z } from 'zod';
import type { BatchEvent } from './batch-log.js';
import { whole, uuid } from './described.js';
import { callingHoursSchema } from './calling-hours.js';
import type { CallRecord } from './call-record.js';
import type { E164 } from './e164.js';
import type { Reason } from './reasons.js';

// Batches that dial: what their owner wants, how far they are, and what follows from the end of a call.

export const BATCH_STATES = ['created', 'validating', 'ready', 'in_progress', 'paused', 'stopped', 'completed', 'failed'] as const;
export type BatchState = (typeof BATCH_STATES)[number];

/** The states in which a batch never calls again. */
export const FINAL_STATES: readonly BatchState[] = ['stopped', 'completed', 'failed'];

/** Ends of a call in which nobody answered: its number may be dialled again. After any other one it never is. */
export const RETRYABLE = ['BUSY', 'NO_ANSWER', 'CALLEE_DECLINED', 'TRUNK_REFUSED', 'TRUNK_UNREACHABLE'] as const;

const retrySchema = z.strictObject({
  times: z.int().min(1).max(10).describe('How often a number is dialled again'),
  after_seconds: z.int().min(1).max(604_800),
});

/** How a batch dials, as its owner set it. */
export const batchPlanSchema = z
  .object({
    from: z.string().describe('E.164'),
    agent_id: uuid().nullable(),
    calls_per_second: z.int().min(1).max(100),
    max_concurrent_calls: z.int().min(1).max(1_000),
    hours: callingHoursSchema.describe('When people are called, in their own time zone'),
    retries: z.partialRecord(z.enum(RETRYABLE), retrySchema).describe('By the reason that a call ended with; others are not repeated'),
    do_not_call_digit: z
      .string()
      .regex(/^[0-9*#]$/, 'must be one of 0-9, * and #')
      .nullable()
      .describe('A person who presses it goes on the do-not-call list'),
    ring_timeout: z.int().describe('Seconds'),
    detect_answerer: z.boolean().describe('As in POST /v1/calls'),
    max_duration: whole("Minutes; null: the agent's").nullable(),
    metadata: z.record(z.string(), z.unknown()).nullable(),
    webhook: z.string().nullable(),
  })
  .meta({ title: 'BatchPlan' });

export type BatchPlan = Readonly<z.output<typeof batchPlanSchema>>;

/** The longest that a call of a batch may last, in minutes. @param agent `null`: the operator's default */
export function longestCallMinutes(
  plan: Pick<BatchPlan, 'max_duration'>,
  agent: { readonly max_duration: number } | null,
  longestMinutes: number,
): number {
  return plan.max_duration ?? agent?.max_duration ?? longestMinutes;
}

const count = (meaning: string) => z.int().describe(meaning);

export const batchCountsSchema = z
  .object({
    requested: count('Rows, or members of `numbers`'),
    validated: count('Different valid numbers among them'),
    waiting: count('Numbers that are due, now or later'),
    dialling: count('Calls in progress'),
    dispatched: count('Calls that were begun'),
    successful: count('Numbers of which somebody answered'),
    failed: count('Numbers that were given up'),
    ambiguous: count('Of these: whether they were called is not known'),
    answered_today: count('Calls that a person answered today (UTC)'),
    abandoned_today: count('Of these: no agent spoke within 2 s'),
  })
  .meta({ title: 'BatchCounts' });

export type BatchCounts = Readonly<z.output<typeof batchCountsSchema>>;

/** A number of a batch, with what its row says. */
export interface BatchNumber {
  readonly number: E164;
  /** The zone of the person, if it is known. */
  readonly zone?: string;
  /** For the agent: the further columns of the row. */
  readonly metadata?: Readonly<Record<string, unknown>>;
  /** Attempts so far, by the reason that they ended with. */
  readonly ended?: Readonly<Partial<Record<Reason, number>>>;
}

/** A call of a batch that stands in the store before its INVITE leaves, until its outcome is known. */
export interface BatchAttempt {
  readonly callId: string;
  readonly sipCallId: string;
  readonly number: E164;
  /** Grows with each attempt of the batch: who settles an attempt names it. */
  readonly token: number;
  /** The gateway that dials. */
  readonly gateway: string;
  /** Epoch milliseconds. */
  readonly atMs: number;
}

/** What becomes of a number. `again`: it is due again at `dueMs`, epoch milliseconds. */
export type NumberOutcome =
  | { readonly kind: 'successful' }
  | { readonly kind: 'failed'; readonly reason: Reason }
  | { readonly kind: 'ambiguous' }
  | { readonly kind: 'again'; readonly dueMs: number; readonly entry: BatchNumber };

/** The end of a call, as far as its batch looks at it. */
export interface EndOfCall {
  readonly reason: Reason;
  readonly isAnswered: boolean;
  /** Milliseconds from the answer to the end; 0: nobody answered. */
  readonly talkMs: number;
  /** Whether its INVITE left. */
  readonly isDialled: boolean;
  /** Milliseconds from the answer to the agent's first audio; `null`: the agent was never heard; `undefined`: nobody knows. */
  readonly silentMs: number | null | undefined;
  /** A machine or a fax answered, as far as anybody looked. */
  readonly isMachine: boolean;
}

/** Ends of a call before its INVITE. */
const NOT_DIALLED: readonly string[] = ['DIAL_NOT_ALLOWED', 'DO_NOT_CALL'];

/** From a record alone, when the process that had the call is gone: what is not known counts as dialled, and not as abandoned. */
export function endOf({ reason, answered_at: answeredAt, answered_by: by, timings, turns }: CallRecord, placed?: PlacedFacts): EndOfCall {
  const { isDialled, silentMs } = placed ?? { isDialled: !NOT_DIALLED.includes(reason), silentMs: turns.first_audio_ms ?? undefined };
  return {
    reason: reason as Reason,
    isAnswered: answeredAt !== null,
    talkMs: timings.talk_ms ?? 0,
    isDialled,
    silentMs,
    isMachine: by === 'machine' || by === 'fax',
  };
}

type PlacedFacts = Pick<EndOfCall, 'isDialled' | 'silentMs'>;

/** A number that was not dialled for reasons of ours is retried this often, after this delay, doubled each time. */
const MOST_SPARED = 100;
const AGAIN_MS = 10_000;
const LATEST_AGAIN_MS = 3_600_000;

/** What follows for a number from the end of its call. @param nowMs epoch milliseconds */
export function outcomeOf(end: EndOfCall, entry: BatchNumber, plan: BatchPlan, nowMs: number): NumberOutcome {
  const { reason, isDialled } = end;
  if (end.isAnswered) return isAbandoned(end) ? { kind: 'failed', reason } : { kind: 'successful' };
  if (reason === 'DIAL_AMBIGUOUS') return { kind: 'ambiguous' };
  if (reason === 'DO_NOT_CALL') return { kind: 'failed', reason };
  const before = entry.ended?.[reason] ?? 0;
  const rule = isDialled ? ruleOf(plan, reason) : { times: MOST_SPARED, delayMs: Math.min(LATEST_AGAIN_MS, AGAIN_MS * 2 ** before) };
  if (rule === undefined || before >= rule.times) return { kind: 'failed', reason };
  return { kind: 'again', dueMs: nowMs + rule.delayMs, entry: { ...entry, ended: { ...entry.ended, [reason]: before + 1 } } };
}

function ruleOf({ retries }: BatchPlan, reason: Reason): { readonly times: number; readonly delayMs: number } | undefined {
  const name = RETRYABLE.find((one) => one === reason);
  const rule = name === undefined ? undefined : retries[name];
  return rule === undefined ? undefined : { times: rule.times, delayMs: rule.after_seconds * 1_000 };
}

/** Longest silence for a person who answers. */
const SILENCE_MS = 2_000;

/** Whether a person answered and no agent spoke within 2 s. Who hangs up before that was not kept waiting. */
export function isAbandoned({ reason, isAnswered, isMachine, talkMs, silentMs }: EndOfCall): boolean {
  if (!isAnswered || isMachine || silentMs === undefined) return false;
  if (silentMs !== null) return silentMs > SILENCE_MS;
  // A call of the version before has CALLER_HANGUP.
  return talkMs > SILENCE_MS || (reason !== 'CALLEE_HANGUP' && reason !== 'CALLER_HANGUP');
}

/** Calls that a person answered, and those of them in which no agent spoke in time. */
export interface AnsweredCalls {
  readonly answered: number;
  readonly abandoned: number;
}

/** Above this part of the calls that people answered in a day, a batch pauses. */
export const MOST_ABANDONED = 0.03;

export function isAbandonedTooOften({ answered, abandoned }: AnsweredCalls): boolean {
  return abandoned > answered * MOST_ABANDONED;
}

/** The day of UTC that a call counts in, such as 2026-01-31. */
export function dayOf(nowMs: number): string {
  return new Date(nowMs).toISOString().slice(0, 10);
}

/** The entry of the log for a change of the state. */
export function lifecycleEvent(
  { counts, plan }: { readonly counts: BatchCounts; readonly plan: BatchPlan },
  to: BatchState,
  why = '',
): BatchEvent {
  return { event_type: 'lifecycle', payload: { message: summaryOf(counts, plan, why), state_change: to } };
}

/** The last entry of the log. */
export function completeEvent({ validated, successful, failed }: BatchCounts): BatchEvent {
  return { event_type: 'complete', payload: { calls_total: validated, calls_failed: failed, calls_successful: successful } };
}

function summaryOf({ requested, validated, dispatched }: BatchCounts, plan: BatchPlan, why = ''): string {
  const rate = `${String(plan.calls_per_second)} calls per second`;
  const line = `${String(requested)} requested, ${String(validated)} validated, ${String(dispatched)} dispatched, ${rate}`;
  return why === '' ? line : `${line}: ${why}`;
}

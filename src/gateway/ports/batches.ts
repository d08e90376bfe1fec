import type { AnsweredCalls, BatchAttempt, BatchCounts, BatchNumber, BatchPlan, BatchState, NumberOutcome } from '../model/batch.js';
import type { BatchPreview } from '../model/batch-preview.js';
import type { BatchEvent } from '../model/batch-log.js';
import type { Dialling } from '../model/dialling.js';
import type { E164 } from '../model/e164.js';
import type { Reason } from '../model/reasons.js';

/** A batch that dials, as it stands. */
export interface BatchRun {
  readonly batchId: string;
  readonly orgId: string;
  readonly state: BatchState;
  readonly plan: BatchPlan;
  readonly counts: BatchCounts;
  /** `null`: its rows are not judged yet. */
  readonly preview: BatchPreview | null;
  /** Of today's answered calls, those since somebody resumed the batch. */
  readonly sinceResumed: AnsweredCalls;
  /** Epoch milliseconds: the last change of the state, or the last numbers that came. */
  readonly changedMs: number;
}

/** A change of a batch's state, and what its log says of it; all or nothing. */
export interface BatchMove {
  /** Left out: the state stays. */
  readonly to?: BatchState;
  /** Nothing happens in any other state. */
  readonly from: readonly BatchState[];
  /** Nothing happens while calls are in progress (`calls`), or numbers wait too (`all`). */
  readonly whenDone?: 'calls' | 'all';
  /** This move ends the batch: it happens once, and nothing is dialled or settled after it. */
  readonly isEnd?: true;
  readonly events: readonly BatchEvent[];
}

/** Batches that dial, as their owners make and steer them. Rejects with `StoreUnavailableError`, here and below. */
export interface BatchRuns {
  /** Makes a batch dial, in the state `validating`. @param requested rows that were given */
  begin(orgId: string, batchId: string, plan: BatchPlan, requested: number): Promise<void>;
  /** Adds numbers; one that the batch has already is not added again. The count of those that are new. */
  add(batchId: string, numbers: readonly BatchNumber[], firstPlace: number): Promise<number>;
  /** Keeps what would be dialled, as its rows were judged. */
  show(batchId: string, preview: BatchPreview): Promise<void>;
  /** `null`: no such batch, another organization's (scope `null`: any), or one that is only a log. In the order of the ids. */
  read(scope: string | null, batchIds: readonly string[]): Promise<readonly (BatchRun | null)[]>;
  /** False: it is in another state, or not done. */
  move(batchId: string, move: BatchMove): Promise<boolean>;
}

/** A number that may be dialled now. */
export interface DueNumber {
  readonly entry: BatchNumber;
  /** Names this turn of the number: an action on another one comes too late. */
  readonly dueMs: number;
}

/** What is to happen with a number that is due. */
export type NumberStep = DueNumber &
  (
    | { readonly do: 'dial'; readonly callId: string; readonly sipCallId: string }
    | { readonly do: 'defer'; readonly untilMs: number }
    | { readonly do: 'refuse'; readonly reason: Reason }
  );

/** The limits of a batch, over all gateways. */
export interface BatchPace {
  readonly callsPerSecond: number;
  readonly maxConcurrentCalls: number;
}

/** How an attempt ended. @param day of UTC, of an answered call */
export interface Settlement {
  readonly outcome: NumberOutcome;
  readonly answered?: { readonly day: string; readonly isAbandoned: boolean };
}

/** The work of all gateways on batches. */
export interface BatchWork extends Pick<BatchRuns, 'read' | 'move'> {
  /** Ids of the batches that are not over. */
  running(): Promise<readonly string[]>;
  /** It is over. */
  forget(batchId: string): Promise<void>;
  due(batchId: string, nowMs: number, limit: number): Promise<readonly DueNumber[]>;
  /**
   * Carries out what is to happen, as far as the batch dials, its pace allows it and nobody was faster. The attempts that this gateway
   * may dial now: they are written, and confirmed.
   */
  take(batchId: string, steps: readonly NumberStep[], pace: BatchPace): Promise<readonly BatchAttempt[]>;
  /** Asked right before its INVITE leaves, and counts as its beginning from then on; false: it is settled, or another one's. */
  confirm(batchId: string, attempt: BatchAttempt): Promise<boolean>;
  /** The outcome of an attempt; false: it is settled, or another one's. */
  settle(batchId: string, attempt: BatchAttempt, settlement: Settlement): Promise<boolean>;
  /** The attempt placed no call: its number is due again at once, and nothing counts. */
  release(batchId: string, attempt: BatchAttempt): Promise<void>;
  attempts(batchId: string): Promise<readonly BatchAttempt[]>;
  entry(batchId: string, number: E164): Promise<BatchNumber | null>;
}

/** Numbers that an organization never dials. */
export interface DoNotCallList {
  /** The count of those that are new. `null`: the list would be too long, and nothing was added. */
  add(orgId: string, numbers: readonly E164[]): Promise<number | null>;
  /** False: it was not on the list. */
  remove(orgId: string, number: E164): Promise<boolean>;
  /** Those of these numbers that are on the list. */
  find(orgId: string, numbers: readonly E164[]): Promise<ReadonlySet<E164>>;
  /** Newest first. */
  list(
    orgId: string,
    page: { readonly take: number; readonly skip: number },
  ): Promise<readonly { readonly phone_number: E164; readonly added_at: string }[]>;
}

/** The most that an organization has. */
export const MAX_DO_NOT_CALL = 1_000_000;

/** What an organization may still dial over one trunk now, on all gateways. */
export interface DialHeadroom {
  readonly calls: number;
  /** Of today's cost, in millionths. */
  readonly micros: number;
}

/** Reads what `DialLedger` counts, and counts nothing. */
export interface DialAllowance {
  /** @param endpoint the trunk's `sip_endpoint` */
  headroom(orgId: string, dialling: Dialling, endpoint: string): Promise<DialHeadroom>;
}

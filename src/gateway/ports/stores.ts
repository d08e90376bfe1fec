import type { AgentRecord, ToolRecord } from '../model/agent-record.js';
import type { AuditChange, AuditEntry } from '../model/audit-entry.js';
import type { AddressedDelivery, DeadLetter, Delivery } from '../model/delivery.js';
import type { BatchEvent, BatchLogEntry, BatchRecord } from '../model/batch-log.js';
import type { CallRecord } from '../model/call-record.js';
import type { TraceEntry } from '../model/call-trace.js';
import type { E164 } from '../model/e164.js';
import type { CallInProgress } from '../model/live-calls.js';
import type { ProviderLimits } from '../model/provider-usage.js';
import type { InboundOptionsChange, NumberRecord, OrgRecord, OutboundTrunk } from '../model/records.js';
import type { Throughput } from '../model/throughput.js';
import type { BatchRuns, DoNotCallList } from './batches.js';
import type { RegistrationStore } from './registrations.js';
import type { CallStore, ProviderSessions, RouteStore, SnapshotStore, ToolDirectory } from './ports.js';
import type { Result } from '../../lib/result.js';
import type { AgentContent, RecordRefusal } from '../model/agent-update.js';
import type { IfMatch } from '../model/revision.js';

// What the rest of the product sees of the store. Everything here rejects with `StoreUnavailableError` when the store does
// not answer in time; nothing else is expected to fail. `memory.ts` and `redis-stores.ts` implement it, under the same tests.

export type DirectionType = 'inbound' | 'outbound';

export interface InboundSetting {
  readonly agent_id: string | null;
  readonly options: InboundOptionsChange;
}

/** What an outbound update leaves out keeps its value; `null` takes it away. */
export type TrunkChange = Pick<OutboundTrunk, 'sip_endpoint'> & {
  readonly [Field in Exclude<keyof OutboundTrunk, 'sip_endpoint'>]?: OutboundTrunk[Field] | null | undefined;
};

/** Directions to set; one that is left out stays as it is. At least one is given. */
export interface AttachChange {
  readonly inbound?: InboundSetting;
  readonly outbound?: OutboundTrunk;
}

/** One direction to change. What an inbound update leaves out keeps its value, or gets its default on a new direction. */
export type UpdateChange =
  | { readonly type: 'inbound'; readonly agent_id?: string | null; readonly options?: InboundOptionsChange }
  | ({ readonly type: 'outbound' } & TrunkChange);

export interface Page {
  readonly take: number;
  readonly skip: number;
}

/** The organization whose records are read; `null`: all, for an operator. */
export type Scope = string | null;

/** Whether the record may be seen; not when there is none. */
export function isOf<T extends { readonly org_id: string }>(scope: Scope, record: T | null): record is T {
  return record !== null && (scope === null || record.org_id === scope);
}

export interface ListQuery {
  /** Left out: all there are. */
  readonly limit?: number;
  /** `next` of the page before. */
  readonly before?: string;
}

/** Oldest first. */
export interface RecordPage<T> {
  readonly records: readonly T[];
  /** Give it back as `before` for the next page; `null`: there is none. */
  readonly next: string | null;
}

/** A page of large records ends at this many bytes, whatever its limit. */
export const MAX_PAGE_BYTES = 524_288;

export interface SweepReport {
  readonly numbers: number;
  /** Index entries that were missing and are there now. */
  readonly added: number;
  /** Index entries that named nothing and are gone now. */
  readonly removed: number;
}

/** SIP configurations of phone numbers. A number of another organization is as good as unknown, save for `attach`. */
export interface NumberStore {
  /**
   * Sets directions, making the record when there is none. `taken`: another organization has the number. `mismatch`: the record is
   * another one than `ifMatch` says, or there is none. Nothing changed then.
   */
  attach(orgId: string, number: E164, change: AttachChange, ifMatch?: IfMatch): Promise<Result<NumberRecord, 'taken' | 'mismatch'>>;
  update(orgId: string, number: E164, change: UpdateChange, ifMatch?: IfMatch): Promise<Result<NumberRecord, RecordRefusal>>;
  /** Unsets directions: all those named, or none when one of them is not set. `null`: the record is gone. */
  detach(
    orgId: string,
    number: E164,
    directions: readonly DirectionType[],
    ifMatch?: IfMatch,
  ): Promise<Result<NumberRecord | null, RecordRefusal>>;
  get(scope: Scope, number: E164): Promise<NumberRecord | null>;
  getByInboundId(scope: Scope, inboundId: string): Promise<NumberRecord | null>;
  /** A number of the organization whose calls this agent takes; `null`: there is none. */
  findByAgent(orgId: string, agentId: string): Promise<E164 | null>;
  /** Sorted by number. */
  list(orgId: string, page: Page): Promise<readonly NumberRecord[]>;
  /** As many as an organization has, or a few more. */
  count(orgId: string): Promise<number>;
  /** Makes the indexes agree with the records. Safe at any time, beside any other operation. */
  sweep(): Promise<SweepReport>;
}

export interface NewOrg {
  readonly name: string;
  readonly sip_enabled: boolean;
  /** Given only to make an organization again that was lost. */
  readonly org_id?: string;
}

export type OrgLimit = 'max_concurrent_calls' | 'max_calls_per_second' | 'allowed_sources' | keyof ProviderLimits;

export type OrgChange = Partial<
  Pick<
    OrgRecord,
    | 'name'
    | 'sip_enabled'
    | 'disabled'
    | 'webhook_secret'
    | 'twilio_token'
    | 'provider_keys'
    | 'operator_keys'
    | 'transcript_days'
    | 'dialling'
    | 'pathway_url'
    | 'pathway_token'
    | OrgLimit
  >
>;

export interface OrgStore {
  create(org: NewOrg): Promise<OrgRecord>;
  get(orgId: string): Promise<OrgRecord | null>;
  /** The changed record; `null`: no such organization. */
  change(orgId: string, change: OrgChange): Promise<OrgRecord | null>;
  /** Sorted by name, then id. */
  list(): Promise<readonly OrgRecord[]>;
}

/** What is kept of an API key: never the key. */
export interface ApiKeyRecord {
  /** UUID: names the key where the key itself must not stand. */
  readonly key_id: string;
  /** `null`: an operator's, which reads of all organizations and changes nothing. */
  readonly org_id: string | null;
  readonly name: string;
  readonly created_at: string;
  /** ISO 8601, to the minute at best; `null`: never used. */
  readonly last_used_at: string | null;
  /** `null`: valid. */
  readonly revoked_at: string | null;
}

export interface ApiKeyStore {
  /** Makes a key. The text of the key is returned here once and kept nowhere. */
  create(orgId: string | null, name: string): Promise<{ readonly key: string; readonly record: ApiKeyRecord }>;
  /** Puts a key whose text the caller keeps; one that is there already stays as it is, revoked or not. */
  restore(orgId: string | null, name: string, key: string): Promise<ApiKeyRecord>;
  /** The record of a key; `null`: unknown or revoked. */
  find(key: string): Promise<ApiKeyRecord | null>;
  /** Notes the use of a key, at most once a minute. */
  touch(record: ApiKeyRecord): Promise<void>;
  /** Newest first, revoked ones too. */
  list(orgId: string | null): Promise<readonly ApiKeyRecord[]>;
  /** The record, revoked now or before; `null`: no such key. */
  revoke(keyId: string): Promise<ApiKeyRecord | null>;
}

export interface AgentStore {
  /** `null`: none, or of another organization. */
  get(scope: Scope, agentId: string): Promise<AgentRecord | null>;
  put(agent: AgentRecord): Promise<void>;
  list(orgId: string, query?: ListQuery): Promise<RecordPage<AgentRecord>>;
  /** Ids of agents of the organization that name the tool, `limit` at most. */
  findByTool(orgId: string, toolId: string, limit: number): Promise<readonly string[]>;
  /** As many as an organization has, or a few more. */
  count(orgId: string): Promise<number>;
  /** Writes what `decide` makes of the agent; it is asked again when another writer was faster. */
  change<F>(
    orgId: string,
    agentId: string,
    decide: (current: AgentRecord) => Result<AgentContent, F>,
    ifMatch?: IfMatch,
  ): Promise<Result<AgentRecord, F | RecordRefusal>>;
  /** What was deleted. A number that names it refuses calls with 480. */
  delete(orgId: string, agentId: string, ifMatch?: IfMatch): Promise<Result<AgentRecord, RecordRefusal>>;
}

/** The most that an organization has. */
export const MAX_AGENTS = 10_000;
export const MAX_TOOLS = 500;

export interface ToolStore extends ToolDirectory {
  /** `null`: none, or of another organization. */
  get(scope: Scope, toolId: string): Promise<ToolRecord | null>;
  put(tool: ToolRecord): Promise<void>;
  list(orgId: string, query?: ListQuery): Promise<RecordPage<ToolRecord>>;
  /** As many as an organization has, or a few more. */
  count(orgId: string): Promise<number>;
  /** What was deleted. */
  delete(orgId: string, toolId: string, ifMatch?: IfMatch): Promise<Result<ToolRecord, RecordRefusal>>;
}

export interface CallPage<Call = CallRecord> {
  readonly calls: readonly Call[];
  /** Give it back as `before` for the next page; `null`: there is none. */
  readonly next: string | null;
}

/** What is left out is no condition. */
export interface CallFilter {
  /** The called number. */
  readonly to?: string;
  /** The caller as recorded, or the same number in another spelling. */
  readonly from?: string;
  readonly reason?: string;
  /** The carrier's Call-ID. */
  readonly sipCallId?: string;
  /** The start of the call, epoch milliseconds: from this moment on, and before that one. */
  readonly sinceMs?: number;
  readonly untilMs?: number;
  /** The call whose caller it was dialled for. */
  readonly parentCallId?: string;
  /** The end of the call, likewise; none that is in progress. */
  readonly endedSinceMs?: number;
  readonly endedUntilMs?: number;
}

export interface CallQuery extends CallFilter {
  readonly limit: number;
  /** `next` of the page before. */
  readonly before?: string;
}

/** Records that one `list` looks at, at most: a page may have fewer calls than its limit, or none, and a `next` all the same. */
export const MAX_SCANNED_CALLS = 1_000;

/** Stands for the organization of calls that belong to none: to numbers that nobody has, say. */
export const NO_ORG = 'none';

/** Records of ended and refused calls. Of those without an organization (`NO_ORG`) only the newest few are kept. */
export interface CallLog extends CallStore {
  get(orgId: string, callId: string): Promise<CallRecord | null>;
  /** What happened in a call; empty: nothing is kept of it. */
  trace(orgId: string, callId: string): Promise<readonly TraceEntry[]>;
  /** Newest first, without transcripts and samples. */
  list(scope: Scope, query: CallQuery): Promise<CallPage>;
  /** Adds what was found after the call. False: there is no record of it (yet). */
  addAnalysis(orgId: string, callId: string, found: FoundAnalysis): Promise<boolean>;
}

/** What a text model found in a call's transcript, or why nothing. */
export type FoundAnalysis = Pick<CallRecord, 'analysis' | 'analysis_rejected' | 'analysis_error'>;

/** The newest calls that a list of all organizations' knows. */
export const MAX_CALLS_OF_ALL = 100_000;
/** The newest calls that are found by one Call-ID. */
export const MAX_CALLS_OF_SIP_CALL_ID = 200;

/** The newest webhooks given up that an organization keeps. */
export const MAX_DEAD_LETTERS = 1_000;

export interface DeadLetterPage {
  readonly letters: readonly DeadLetter[];
  /** Give it back as `before` for the next page; `null`: there is none. */
  readonly next: string | null;
}

/** Webhooks of one organization wait in one lane: one whose receiver is slow holds up few others. */
export const OUTBOX_LANES = 32;

export function outboxLane(orgId: string): number {
  // Ids are random: any part of them spreads them.
  const part = Number.parseInt(orgId.slice(0, 8), 16);
  return Number.isNaN(part) ? 0 : part % OUTBOX_LANES;
}

/** Webhooks until they are delivered, or given up. Nothing is lost by a restart. */
export interface Outbox {
  /** Due at once; nothing when one with this id is under way. */
  add(delivery: Delivery): Promise<void>;
  /** Lanes in which webhooks may be due. One is left out only if a gateway died while it wrote: a claim of the lane finds its webhooks. */
  dueLanes(): Promise<readonly number[]>;
  /**
   * Takes some of a lane that are due: no other gateway gets them within `claimMs`, in which the taker settles, defers or buries each.
   * @param lane 0 to `OUTBOX_LANES` - 1
   */
  claim(lane: number, limit: number, claimMs: number): Promise<readonly Delivery[]>;
  /** It was delivered. */
  settle(delivery: Delivery): Promise<void>;
  /** Keeps what was found out, to be taken again later; nothing when it is settled already. */
  defer(delivery: Delivery, delayMs: number): Promise<void>;
  /** It is given up, and kept among the organization's dead letters. */
  bury(delivery: AddressedDelivery): Promise<void>;
  /** Those that are due or will be, of all organizations. */
  waiting(): Promise<number>;
  /** Newest first. */
  dead(orgId: string, limit: number, before: string | null): Promise<DeadLetterPage>;
  /** Due again, with all its attempts before it. False: there is no such dead letter. */
  revive(orgId: string, deliveryId: string): Promise<boolean>;
}

/** An organization's calls in progress on all gateways. One whose gateway died is there until its lease ends. */
export interface LiveCallLog {
  /** `null`: none, or of another organization. */
  get(orgId: string, callId: string): Promise<CallInProgress | null>;
  /** One that has just ended and whose record is being written, as it was; `null`: there is none. */
  ending(orgId: string, callId: string): Promise<CallInProgress | null>;
  /** Newest first. No call in progress has a reason. */
  list(orgId: string, query: CallQuery): Promise<CallPage<CallInProgress>>;
}

/** Calls a second, of all gateways. */
export interface ThroughputLog {
  read(orgId: string): Promise<Throughput>;
}

/** A request to place a call. */
export interface Placement {
  /** Of its body. */
  readonly digest: string;
  /** Also the id of a batch. */
  readonly callId: string;
}

/** Requests to place calls, and to make batches, by their idempotency keys. */
export interface PlacementStore {
  /** `isKept`: there is what was asked for. Else the gateway is at it, or was killed. */
  find(orgId: string, key: string): Promise<(Placement & { readonly isKept: boolean }) | null>;
  /** `null`: the key is this request's now, for a minute. Otherwise the request that has it. */
  claim(orgId: string, placement: Placement & { readonly key: string }): Promise<(Placement & { readonly isKept: boolean }) | null>;
  /** There is what was asked for: the key is this request's for a day. False: the claim has expired. `DialLedger` does it for calls. */
  keep(orgId: string, placement: Pick<Placement, 'callId'> & { readonly key: string }): Promise<boolean>;
  /** The call was not placed. */
  release(orgId: string, key: string): Promise<void>;
}

export interface LogPage extends Page {
  /** Oldest first, or newest first. */
  readonly direction: 'asc' | 'desc';
}

export interface NewBatch {
  readonly orgId: string;
  readonly name: string;
  /** Left out: a new one. */
  readonly batchId?: string;
}

/** What writers report on batches, and customers read. Batches go when they are older than the retention, logs with them. */
export interface BatchLog {
  create(batch: NewBatch): Promise<BatchRecord>;
  /** `null`: no such batch, or another organization's. */
  get(scope: Scope, batchId: string): Promise<BatchRecord | null>;
  /** `null`: no such batch, or another organization's. */
  append(orgId: string, batchId: string, event: BatchEvent): Promise<BatchLogEntry | null>;
  /** `null`: no such batch, or another organization's. */
  read(scope: Scope, batchId: string, page: LogPage): Promise<readonly BatchLogEntry[] | null>;
  /** Newest first. */
  list(orgId: string, page: Page): Promise<readonly BatchRecord[]>;
}

export interface BatchRetention {
  /** Counted from the making of the batch. */
  readonly days: number;
  /** The newest that a batch keeps. */
  readonly maxEntries: number;
}

export const DEFAULT_BATCH_RETENTION: BatchRetention = { days: 30, maxEntries: 10_000 };

/** Who changed what, for each organization: the newest `MAX_AUDIT_ENTRIES`. */
export interface AuditLog {
  append(orgId: string, change: AuditChange): Promise<void>;
  /** Newest first. */
  list(orgId: string, query: { readonly take: number; readonly before?: string }): Promise<readonly Omit<AuditEntry, 'org_id'>[]>;
}

export const MAX_AUDIT_ENTRIES = 10_000;

/** Requests to one gateway, wherever it is. Rejects with `StoreUnavailableError` when it cannot be sent. */
export interface GatewayBus {
  /** Body and answer are JSON, and small. `null`: no answer came within the limit. */
  request(instance: string, body: unknown, limitMs: number): Promise<unknown>;
  /** Answers the requests to this gateway; they may be anything. */
  onRequest(handler: (body: unknown) => unknown): void;
}

export interface Stores {
  readonly placements: PlacementStore;
  readonly registrations: RegistrationStore;
  readonly outbox: Outbox;
  readonly numbers: NumberStore;
  /** The same numbers, remembered: for calls that come from them. */
  readonly callers: { get(orgId: string, number: E164): Promise<NumberRecord | null> };
  readonly orgs: OrgStore;
  readonly keys: ApiKeyStore;
  readonly agents: AgentStore;
  readonly tools: ToolStore;
  readonly batches: BatchLog;
  readonly batchRuns: BatchRuns;
  readonly doNotCall: DoNotCallList;
  readonly audit: AuditLog;
  readonly calls: CallLog;
  readonly live: LiveCallLog;
  readonly throughput: ThroughputLog;
  readonly routes: RouteStore;
  readonly snapshots: SnapshotStore;
  readonly providerUsage: Pick<ProviderSessions, 'usage'>;
  readonly bus: GatewayBus;
  /** Resolves when the store answers. */
  ping(): Promise<void>;
}

export interface CallRetention {
  /** Records older than this go, counted from the start of the call. */
  readonly days: number;
  /** As `days`, of traces. */
  readonly traceDays: number;
  /** The newest that an organization keeps. */
  readonly maxPerOrg: number;
  /** Of these, the newest calls that came in and were refused: however many come, they push out no other call. */
  readonly maxRefusedPerOrg: number;
  /** The newest kept of calls that belong to no organization. */
  readonly maxUnrouted: number;
  /** Limit for all organizations together, in Redis: beyond it, the oldest traces go, then the oldest records. */
  readonly maxBytes: number;
}

export const DEFAULT_CALL_RETENTION: CallRetention = {
  days: 30,
  traceDays: 7,
  maxPerOrg: 100_000,
  maxRefusedPerOrg: 10_000,
  maxUnrouted: 1000,
  maxBytes: 512 << 20,
};

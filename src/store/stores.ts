import type { AgentRecord, ToolRecord } from '../contracts/agent-record.js';
import type { CallRecord } from '../contracts/call-record.js';
import type { TraceEntry } from '../contracts/call-trace.js';
import type { E164 } from '../contracts/e164.js';
import type { CallInProgress } from '../contracts/live-calls.js';
import type { InboundOptions, NumberRecord, OrgRecord } from '../contracts/records.js';
import type { CallStore, RouteStore, SnapshotStore, ToolDirectory } from '../gateway/ports.js';
import type { Result } from '../lib/result.js';

// What the rest of the product sees of the store. Everything here rejects with `StoreUnavailableError` when the store does
// not answer in time; nothing else is expected to fail. `memory.ts` and `redis-stores.ts` implement it, under the same tests.

export type DirectionType = 'inbound' | 'outbound';

export interface InboundSetting {
  readonly agent_id: string | null;
  readonly options: InboundOptions;
}

/** Directions to set; one that is left out stays as it is. At least one is given. */
export interface AttachChange {
  readonly inbound?: InboundSetting;
  readonly outbound?: { readonly sip_endpoint: string };
}

/** One direction to change. What an inbound update leaves out keeps its value, or gets its default on a new direction. */
export type UpdateChange =
  | { readonly type: 'inbound'; readonly agent_id?: string | null; readonly options?: InboundOptions }
  | { readonly type: 'outbound'; readonly sip_endpoint: string };

export interface Page {
  readonly take: number;
  readonly skip: number;
}

export interface SweepReport {
  readonly numbers: number;
  /** Index entries that were missing and are there now. */
  readonly added: number;
  /** Index entries that named nothing and are gone now. */
  readonly removed: number;
}

/** SIP configurations of phone numbers. A number of another organization is as good as unknown, save for `attach`. */
export interface NumberStore {
  /** Sets directions, making the record when there is none. `taken`: another organization has the number; nothing changed. */
  attach(orgId: string, number: E164, change: AttachChange): Promise<Result<NumberRecord, 'taken'>>;
  update(orgId: string, number: E164, change: UpdateChange): Promise<Result<NumberRecord, 'not-found'>>;
  /** Unsets directions: all those named, or none when one of them is not set. `null`: the record is gone. */
  detach(orgId: string, number: E164, directions: readonly DirectionType[]): Promise<Result<NumberRecord | null, 'not-found'>>;
  get(orgId: string, number: E164): Promise<NumberRecord | null>;
  getByInboundId(orgId: string, inboundId: string): Promise<NumberRecord | null>;
  /** Sorted by number. */
  list(orgId: string, page: Page): Promise<readonly NumberRecord[]>;
  /** Makes the indexes agree with the records. Safe at any time, beside any other operation. */
  sweep(): Promise<SweepReport>;
}

export interface NewOrg {
  readonly name: string;
  readonly sip_enabled: boolean;
  /** Given only to make an organization again that was lost. */
  readonly org_id?: string;
}

export type OrgLimit = 'max_concurrent_calls' | 'max_calls_per_second' | 'allowed_sources';

export type OrgChange = Partial<Pick<OrgRecord, 'name' | 'sip_enabled' | 'disabled' | 'webhook_secret' | OrgLimit>>;

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
  readonly org_id: string;
  readonly name: string;
  readonly created_at: string;
  /** ISO 8601, to the minute at best; `null`: never used. */
  readonly last_used_at: string | null;
  /** `null`: valid. */
  readonly revoked_at: string | null;
}

export interface ApiKeyStore {
  /** Makes a key. The text of the key is returned here once and kept nowhere. */
  create(orgId: string, name: string): Promise<{ readonly key: string; readonly record: ApiKeyRecord }>;
  /** Puts a key whose text the caller keeps; one that is there already stays as it is, revoked or not. */
  restore(orgId: string, name: string, key: string): Promise<ApiKeyRecord>;
  /** The record of a key; `null`: unknown or revoked. */
  find(key: string): Promise<ApiKeyRecord | null>;
  /** Notes the use of a key, at most once a minute. */
  touch(record: ApiKeyRecord): Promise<void>;
  /** Newest first, revoked ones too. */
  list(orgId: string): Promise<readonly ApiKeyRecord[]>;
  /** The record, revoked now or before; `null`: no such key. */
  revoke(keyId: string): Promise<ApiKeyRecord | null>;
}

export interface AgentStore {
  /** `null`: none, or of another organization. */
  get(orgId: string, agentId: string): Promise<AgentRecord | null>;
  put(agent: AgentRecord): Promise<void>;
  /** Oldest first. */
  list(orgId: string): Promise<readonly AgentRecord[]>;
  /** False: none, or of another organization. A number that names it refuses calls with 480. */
  delete(orgId: string, agentId: string): Promise<boolean>;
}

export interface ToolStore extends ToolDirectory {
  /** `null`: none, or of another organization. */
  get(orgId: string, toolId: string): Promise<ToolRecord | null>;
  put(tool: ToolRecord): Promise<void>;
  /** Oldest first. */
  list(orgId: string): Promise<readonly ToolRecord[]>;
  /** False: none, or of another organization. */
  delete(orgId: string, toolId: string): Promise<boolean>;
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
  readonly from?: string;
  readonly reason?: string;
  /** The start of the call, epoch milliseconds: from this moment on, and before that one. */
  readonly sinceMs?: number;
  readonly untilMs?: number;
}

export interface CallQuery extends CallFilter {
  readonly limit: number;
  /** `next` of the page before. */
  readonly before?: string;
}

/** Records that one `list` looks at, at most: a page may have fewer calls than its limit, or none, and a `next` all the same. */
export const MAX_SCANNED_CALLS = 1_000;

/** Records of ended and refused calls. Those without an organization (unknown numbers) are only the newest few. */
export interface CallLog extends CallStore {
  get(orgId: string, callId: string): Promise<CallRecord | null>;
  /** What happened in a call; empty: nothing is kept of it. */
  trace(orgId: string, callId: string): Promise<readonly TraceEntry[]>;
  /** Newest first, without their transcripts. */
  list(orgId: string, query: CallQuery): Promise<CallPage>;
  /** Newest first: calls to numbers that nobody has. */
  listUnrouted(limit: number): Promise<readonly CallRecord[]>;
}

/** An organization's calls in progress on all gateways. One whose gateway died is there until its lease ends. */
export interface LiveCallLog {
  /** `null`: none, or of another organization. */
  get(orgId: string, callId: string): Promise<CallInProgress | null>;
  /** Newest first. No call in progress has a reason. */
  list(orgId: string, query: CallQuery): Promise<CallPage<CallInProgress>>;
}

/** Requests to one gateway, wherever it is. Rejects with `StoreUnavailableError` when it cannot be sent. */
export interface GatewayBus {
  /** Body and answer are JSON, and small. `null`: no answer came within the limit. */
  request(instance: string, body: unknown, limitMs: number): Promise<unknown>;
  /** Answers the requests to this gateway; they may be anything. */
  onRequest(handler: (body: unknown) => unknown): void;
}

export interface Stores {
  readonly numbers: NumberStore;
  readonly orgs: OrgStore;
  readonly keys: ApiKeyStore;
  readonly agents: AgentStore;
  readonly tools: ToolStore;
  readonly calls: CallLog;
  readonly live: LiveCallLog;
  readonly routes: RouteStore;
  readonly snapshots: SnapshotStore;
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
  /** The newest kept of calls that belong to no organization. */
  readonly maxUnrouted: number;
}

export const DEFAULT_CALL_RETENTION: CallRetention = { days: 30, traceDays: 7, maxPerOrg: 100_000, maxUnrouted: 1000 };

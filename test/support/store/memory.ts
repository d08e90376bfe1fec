import type { CallRecord } from '../../../src/gateway/model/call-record.js';
import type { CallSnapshot } from '../../../src/gateway/model/call-snapshot.js';
import type { E164 } from '../../../src/gateway/model/e164.js';
import type { BeginningCall, CallAnswer } from '../../../src/gateway/model/live-calls.js';
import { NO_PROVIDER_USAGE } from '../../../src/gateway/model/provider-usage.js';
import type { NumberRecord, OrgRecord, Route, TrunkRegistration, TrunkState } from '../../../src/gateway/model/records.js';
import type { RegistrationStore } from '../../../src/gateway/ports/registrations.js';
import { brokenLimit } from '../../../src/gateway/admission/admission.js';
import type { CallStore, EndedCall, Lookup, RouteStore, SnapshotStore } from '../../../src/gateway/ports/ports.js';
import { isoNow, type Clock } from '../../../src/lib/clock.js';
import type { Result } from '../../../src/lib/result.js';
import { MemoryAuditLog } from './memory-audit.js';
import { MemoryBatchLog } from './memory-batches.js';
import { MemoryBatchRuns, MemoryDoNotCallList } from './memory-batch-runs.js';
import { MemoryAgentStore, MemoryToolStore } from './memory-agents.js';
import {
  apiKeyDigest,
  newApiKey,
  newApiKeyRecord,
  newInboundId,
  newOrgRecord,
  TOUCH_INTERVAL_MS,
} from '../../../src/gateway/store/new-records.js';
import type { RecordRefusal } from '../../../src/gateway/model/agent-update.js';
import type { IfMatch } from '../../../src/gateway/model/revision.js';
import { decideAttach, decideDetach, decideUpdate, type UpdateTerms } from '../../../src/gateway/store/redis/numbers/number-update.js';
import { readPage } from '../../../src/gateway/store/redis/call-page.js';
import { meteredRoutes, meteredCalls, type CountCall } from '../../../src/gateway/store/redis/throughput/redis-throughput.js';
import { MemoryOutbox } from './memory-outbox.js';
import { MemoryThroughput } from './memory-throughput.js';
import { MemoryBus } from './memory-bus.js';
import { MemoryLiveCalls } from './memory-live-calls.js';
import { LocalCallRegistry } from '../../../src/gateway/store/redis/leases/leases.js';
import { byName, recordMember, callIndexTime, newestFirst } from '../../../src/gateway/ports/listing.js';
import {
  DEFAULT_BATCH_RETENTION,
  DEFAULT_CALL_RETENTION,
  isOf,
  NO_ORG,
  type AgentStore,
  type ApiKeyRecord,
  type ApiKeyStore,
  type AttachChange,
  type BatchRetention,
  type CallLog,
  type CallPage,
  type CallQuery,
  type CallRetention,
  type FoundAnalysis,
  type DirectionType,
  type NewOrg,
  type NumberStore,
  type Placement,
  type PlacementStore,
  type OrgChange,
  type OrgStore,
  type Page,
  type Scope,
  type Stores,
  type SweepReport,
  type UpdateChange,
} from '../../../src/gateway/ports/stores.js';

const DAY_MS = 86_400_000;

export interface MemoryStoresOptions {
  readonly clock: Clock;
  readonly callRetention?: Partial<CallRetention>;
  readonly batchRetention?: Partial<BatchRetention>;
}

/** All stores in this process's memory: for tests and for trying things out. Nothing is kept, nothing fails. */
export function createMemoryStores(options: MemoryStoresOptions): Stores {
  const { clock } = options;
  const batches = new MemoryBatchLog(clock, { ...DEFAULT_BATCH_RETENTION, ...options.batchRetention });
  const numbers = new MemoryNumberStore(clock);
  const orgs = new MemoryOrgStore(clock);
  const agents = new MemoryAgentStore(clock);
  const own = new LocalCallRegistry(clock);
  const throughput = new MemoryThroughput(clock, (orgId) => own.callsOf(orgId));
  const count: CountCall = (orgId, kind) => throughput.count(orgId, kind);
  const calls = new MemoryCallLog(clock, { ...DEFAULT_CALL_RETENTION, ...options.callRetention }, count);
  const snapshots = new MemorySnapshotStore(own, calls);
  return {
    numbers,
    callers: numbers,
    orgs,
    keys: new MemoryApiKeyStore(clock),
    agents,
    tools: new MemoryToolStore(),
    batches,
    batchRuns: new MemoryBatchRuns(clock, batches),
    doNotCall: new MemoryDoNotCallList(clock),
    audit: new MemoryAuditLog(clock),
    calls,
    throughput,
    placements: new MemoryPlacements(),
    registrations: new MemoryRegistrations(numbers),
    live: new MemoryLiveCalls(own, (callId) => snapshots.answerOf(callId)),
    routes: meteredRoutes(new MemoryRouteStore(numbers, orgs, agents, own), count),
    snapshots,
    providerUsage: { usage: () => Promise.resolve(NO_PROVIDER_USAGE) },
    outbox: new MemoryOutbox(clock),
    bus: new MemoryBus(),
    ping: () => Promise.resolve(),
  };
}

class MemoryPlacements implements PlacementStore {
  readonly #byKey = new Map<string, NonNullable<Awaited<ReturnType<PlacementStore['find']>>>>();

  find(orgId: string, key: string): ReturnType<PlacementStore['find']> {
    return Promise.resolve(this.#byKey.get(`${orgId} ${key}`) ?? null);
  }

  async claim(orgId: string, { key, digest, callId }: Placement & { readonly key: string }): ReturnType<PlacementStore['claim']> {
    const known = await this.find(orgId, key);
    if (known === null) this.#byKey.set(`${orgId} ${key}`, { digest, callId, isKept: false });
    return known;
  }

  async keep(orgId: string, { key, callId }: Pick<Placement, 'callId'> & { readonly key: string }): Promise<boolean> {
    const known = await this.find(orgId, key);
    if (known?.callId !== callId) return false;
    this.#byKey.set(`${orgId} ${key}`, { ...known, isKept: true });
    return true;
  }

  release(orgId: string, key: string): Promise<void> {
    this.#byKey.delete(`${orgId} ${key}`);
    return Promise.resolve();
  }
}

/** One gateway alone. */
class MemoryRegistrations implements RegistrationStore {
  readonly #states = new Map<string, TrunkRegistration>();
  readonly #trunks = new Map<string, TrunkState>();

  constructor(private readonly numbers: MemoryNumberStore) {}

  registering(): Promise<readonly NumberRecord[]> {
    return Promise.resolve(this.numbers.all.filter(({ outbound }) => outbound?.registrar !== undefined));
  }

  claim(): Promise<boolean> {
    return Promise.resolve(true);
  }

  watching(): Promise<readonly NumberRecord[]> {
    return Promise.resolve(this.numbers.all.filter(({ outbound }) => (outbound?.options_interval_s ?? 0) > 0));
  }

  noteTrunk(trunk: string, state: TrunkState): Promise<void> {
    this.#trunks.set(trunk, state);
    return Promise.resolve();
  }

  trunkStates(trunks: readonly string[]): Promise<readonly (TrunkState | null)[]> {
    return Promise.resolve(trunks.map((trunk) => this.#trunks.get(trunk) ?? null));
  }

  release(): Promise<void> {
    return Promise.resolve();
  }

  note(account: string, registration: TrunkRegistration): Promise<void> {
    this.#states.set(account, registration);
    return Promise.resolve();
  }

  states(accounts: readonly string[]): Promise<readonly (TrunkRegistration | null)[]> {
    return Promise.resolve(accounts.map((account) => this.#states.get(account) ?? null));
  }
}

class MemoryNumberStore implements NumberStore {
  readonly #records = new Map<E164, NumberRecord>();
  readonly #clock: Clock;

  get all(): readonly NumberRecord[] {
    return [...this.#records.values()];
  }

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  attach(orgId: string, number: E164, change: AttachChange, ifMatch?: IfMatch): Promise<Result<NumberRecord, 'taken' | 'mismatch'>> {
    const request = { orgId, number, change, inboundId: newInboundId() };
    return Promise.resolve(this.#apply(number, decideAttach(this.read(number), request, this.#terms(ifMatch))));
  }

  update(orgId: string, number: E164, change: UpdateChange, ifMatch?: IfMatch): Promise<Result<NumberRecord, RecordRefusal>> {
    return Promise.resolve(this.#apply(number, decideUpdate(this.read(number), orgId, change, this.#terms(ifMatch))));
  }

  detach(
    orgId: string,
    number: E164,
    directions: readonly DirectionType[],
    ifMatch?: IfMatch,
  ): Promise<Result<NumberRecord | null, RecordRefusal>> {
    return Promise.resolve(this.#apply(number, decideDetach(this.read(number), orgId, directions, this.#terms(ifMatch))));
  }

  get(scope: Scope, number: E164): Promise<NumberRecord | null> {
    const record = this.read(number);
    return Promise.resolve(isOf(scope, record) ? record : null);
  }

  getByInboundId(scope: Scope, inboundId: string): Promise<NumberRecord | null> {
    const record = [...this.#records.values()].find((one) => one.inbound_id === inboundId) ?? null;
    return Promise.resolve(isOf(scope, record) ? record : null);
  }

  count(orgId: string): Promise<number> {
    return Promise.resolve([...this.#records.values()].filter((record) => record.org_id === orgId).length);
  }

  list(orgId: string, page: Page): Promise<readonly NumberRecord[]> {
    const owned = [...this.#records.values()].filter((record) => record.org_id === orgId);
    owned.sort((a, b) => (a.phone_number < b.phone_number ? -1 : 1));
    return Promise.resolve(owned.slice(page.skip, page.skip + page.take));
  }

  findByAgent(orgId: string, agentId: string): Promise<E164 | null> {
    const using = [...this.#records.values()].find((record) => record.org_id === orgId && record.inbound?.agent_id === agentId);
    return Promise.resolve(using?.phone_number ?? null);
  }

  sweep(): Promise<SweepReport> {
    return Promise.resolve({ numbers: this.#records.size, added: 0, removed: 0 });
  }

  read(number: E164): NumberRecord | null {
    return this.#records.get(number) ?? null;
  }

  #terms(ifMatch: IfMatch): UpdateTerms {
    return { nowMs: this.#clock.wallMs(), ifMatch };
  }

  /** `null`: the record is gone. */
  #apply<V extends NumberRecord | null, F>(number: E164, decision: Result<V, F>): Result<V, F> {
    if (!decision.ok) return decision;
    if (decision.value === null) this.#records.delete(number);
    else this.#records.set(number, decision.value);
    return decision;
  }
}

class MemoryOrgStore implements OrgStore {
  readonly #records = new Map<string, OrgRecord>();
  readonly #clock: Clock;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  create(org: NewOrg): Promise<OrgRecord> {
    const record = newOrgRecord(org, isoNow(this.#clock));
    const existing = this.#records.get(record.org_id);
    if (existing !== undefined) return Promise.resolve(existing);
    this.#records.set(record.org_id, record);
    return Promise.resolve(record);
  }

  get(orgId: string): Promise<OrgRecord | null> {
    return Promise.resolve(this.#records.get(orgId) ?? null);
  }

  change(orgId: string, change: OrgChange): Promise<OrgRecord | null> {
    const current = this.#records.get(orgId);
    if (current === undefined) return Promise.resolve(null);
    const changed = { ...current, ...change };
    this.#records.set(orgId, changed);
    return Promise.resolve(changed);
  }

  list(): Promise<readonly OrgRecord[]> {
    return Promise.resolve([...this.#records.values()].sort(byName));
  }
}

class MemoryApiKeyStore implements ApiKeyStore {
  readonly #byDigest = new Map<string, ApiKeyRecord>();
  readonly #clock: Clock;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  async create(orgId: string | null, name: string): Promise<{ readonly key: string; readonly record: ApiKeyRecord }> {
    const key = newApiKey();
    return { key, record: await this.restore(orgId, name, key) };
  }

  restore(orgId: string | null, name: string, key: string): Promise<ApiKeyRecord> {
    const digest = apiKeyDigest(key);
    const record = this.#byDigest.get(digest) ?? newApiKeyRecord(orgId, name, isoNow(this.#clock));
    this.#byDigest.set(digest, record);
    return Promise.resolve(record);
  }

  find(key: string): Promise<ApiKeyRecord | null> {
    const record = this.#byDigest.get(apiKeyDigest(key));
    return Promise.resolve(record?.revoked_at === null ? record : null);
  }

  touch(record: ApiKeyRecord): Promise<void> {
    const [digest, current] = this.#entry(record.key_id) ?? [];
    const lastMs = typeof current?.last_used_at === 'string' ? Date.parse(current.last_used_at) : -Infinity;
    if (digest !== undefined && current !== undefined && this.#clock.wallMs() - lastMs >= TOUCH_INTERVAL_MS) {
      this.#byDigest.set(digest, { ...current, last_used_at: isoNow(this.#clock) });
    }
    return Promise.resolve();
  }

  list(orgId: string | null): Promise<readonly ApiKeyRecord[]> {
    return Promise.resolve([...this.#byDigest.values()].filter((record) => record.org_id === orgId).sort(newestFirst));
  }

  revoke(keyId: string): Promise<ApiKeyRecord | null> {
    const [digest, current] = this.#entry(keyId) ?? [];
    if (digest === undefined || current === undefined) return Promise.resolve(null);
    const revoked = { ...current, revoked_at: current.revoked_at ?? isoNow(this.#clock) };
    this.#byDigest.set(digest, revoked);
    return Promise.resolve(revoked);
  }

  #entry(keyId: string): [string, ApiKeyRecord] | undefined {
    return [...this.#byDigest].find(([, record]) => record.key_id === keyId);
  }
}

class MemoryCallLog implements CallLog {
  /** Index member to record, for each organization. */
  readonly #byOrg = new Map<string, Map<string, CallRecord>>();
  readonly #traces = new Map<string, { readonly trace: EndedCall['trace']; readonly startedMs: number }>();
  readonly #clock: Clock;
  readonly #retention: CallRetention;
  readonly #counted: CallStore;

  constructor(clock: Clock, retention: CallRetention, count: CountCall) {
    this.#clock = clock;
    this.#retention = retention;
    this.#counted = meteredCalls({ write: (call) => this.#keep(call) }, count);
  }

  write(call: EndedCall): Promise<void> {
    return this.#counted.write(call);
  }

  #keep({ record, trace }: EndedCall): Promise<void> {
    const orgId = record.org_id ?? NO_ORG;
    const startedMs = Date.parse(record.started_at);
    if (trace.length > 0) this.#traces.set(`${orgId} ${record.call_id}`, { trace, startedMs });
    const calls = this.#byOrg.get(orgId) ?? new Map<string, CallRecord>();
    this.#byOrg.set(orgId, calls.set(recordMember(record.started_at, record.call_id), record));
    const most = orgId === NO_ORG ? this.#retention.maxUnrouted : this.#retention.maxPerOrg;
    for (const member of this.#newestFirst(orgId).slice(most)) calls.delete(member);
    return Promise.resolve();
  }

  get(orgId: string, callId: string): Promise<CallRecord | null> {
    const member = this.#newestFirst(orgId).find((one) => one.endsWith(`:${callId}`));
    return Promise.resolve(member === undefined ? null : this.#record(orgId, member));
  }

  addAnalysis(orgId: string, callId: string, found: FoundAnalysis): Promise<boolean> {
    const calls = this.#byOrg.get(orgId);
    const [member, record] = [...(calls ?? [])].find(([one]) => one.endsWith(`:${callId}`)) ?? [];
    if (calls === undefined || member === undefined || record === undefined) return Promise.resolve(false);
    calls.set(member, { ...record, ...found });
    return Promise.resolve(true);
  }

  list(scope: Scope, query: CallQuery): Promise<CallPage> {
    const orgIds = scope === null ? [...this.#byOrg.keys()] : [scope];
    return readPage(query, ({ from, to }, count) => {
      const entries = orgIds
        .flatMap((orgId) =>
          this.#newestFirst(orgId).map((member) => ({ member, record: withoutDetail(this.#record(orgId, member)), bytes: 0 })),
        )
        .filter(({ member }) => member >= from && (to === null || member < to));
      return Promise.resolve(entries.sort((a, b) => (a.member < b.member ? 1 : -1)).slice(0, count));
    });
  }

  async trace(orgId: string, callId: string): Promise<EndedCall['trace']> {
    const kept = this.#traces.get(`${orgId} ${callId}`);
    const isOld = kept === undefined || this.#clock.wallMs() - kept.startedMs > this.#retention.traceDays * DAY_MS;
    return isOld || (await this.get(orgId, callId)) === null ? [] : kept.trace;
  }

  /** Index members that are not too old. */
  #newestFirst(orgId: string): string[] {
    const oldest = callIndexTime(this.#clock.wallMs() - this.#retention.days * DAY_MS);
    return [...(this.#byOrg.get(orgId)?.keys() ?? [])].filter((member) => member >= oldest).sort((a, b) => (a < b ? 1 : -1));
  }

  #record(orgId: string, member: string): CallRecord | null {
    return this.#byOrg.get(orgId)?.get(member) ?? null;
  }
}

function withoutDetail(record: CallRecord | null): CallRecord | null {
  return record === null ? null : { ...record, transcript: [], samples: [] };
}

class MemoryRouteStore implements RouteStore {
  readonly #numbers: MemoryNumberStore;
  readonly #orgs: OrgStore;
  readonly #agents: AgentStore;
  readonly #own: LocalCallRegistry;
  /** Calls that are looked up; those that ended meanwhile are gone from it. */
  readonly #looking = new Set<string>();

  constructor(numbers: MemoryNumberStore, orgs: OrgStore, agents: AgentStore, own: LocalCallRegistry) {
    this.#numbers = numbers;
    this.#orgs = orgs;
    this.#agents = agents;
    this.#own = own;
  }

  async lookup(number: E164, call: BeginningCall | null): Promise<Lookup> {
    if (call !== null) this.#looking.add(call.call_id);
    const route = await this.#route(number);
    const isLooking = call !== null && this.#looking.delete(call.call_id);
    if (isLooking) this.#own.remove(call.call_id, false);
    const load = this.#own.load(route);
    if (isLooking && route !== null && brokenLimit(route, load) === null) this.#own.add(call, route);
    return { route, load, staleMs: null };
  }

  release(callId: string, wasRefused = false): void {
    this.#looking.delete(callId);
    this.#own.remove(callId, !wasRefused);
  }

  disown(callId: string): void {
    this.#own.remove(callId);
  }

  async #route(number: E164): Promise<Route | null> {
    const record = this.#numbers.read(number);
    if (record === null || record.inbound === null) return null;
    const org = await this.#orgs.get(record.org_id);
    const { agent_id } = record.inbound;
    const agent = agent_id === null ? null : await this.#agents.get(record.org_id, agent_id);
    return org === null ? null : { number: record, org, agent };
  }
}

class MemorySnapshotStore implements SnapshotStore {
  readonly #snapshots = new Map<string, CallSnapshot>();
  readonly #own: LocalCallRegistry;
  readonly #calls: CallLog;

  constructor(own: LocalCallRegistry, calls: CallLog) {
    this.#own = own;
    this.#calls = calls;
  }

  persist(snapshot: CallSnapshot): void {
    this.#snapshots.set(snapshot.call_id, snapshot);
  }

  delete(callId: string): void {
    this.#snapshots.delete(callId);
    this.#own.remove(callId);
  }

  written(): Promise<void> {
    return Promise.resolve();
  }

  flush(): Promise<void> {
    return Promise.resolve();
  }

  answerOf(callId: string): CallAnswer | null {
    return this.#snapshots.get(callId)?.answer ?? null;
  }

  async orphaned(): Promise<readonly CallSnapshot[]> {
    for (const { org_id: orgId, call_id: callId } of this.#snapshots.values())
      if ((await this.#calls.get(orgId, callId)) !== null) this.delete(callId);
    const left = [...this.#snapshots.values()];
    for (const snapshot of left) this.#own.resume(snapshot);
    return left;
  }

  ahead(): Promise<readonly CallSnapshot[]> {
    return Promise.resolve([...this.#snapshots.values()]);
  }

  /** There is no other instance. */
  take(): Promise<readonly CallSnapshot[]> {
    return Promise.resolve([]);
  }
}

import type { AgentRecord, ToolRecord } from '../../../src/gateway/model/agent-record.js';
import type { Clock } from '../../../src/lib/clock.js';
import type { Result } from '../../../src/lib/result.js';
import {
  decideAgentUpdate,
  decideDelete,
  namedTools,
  type AgentContent,
  type RecordRefusal,
} from '../../../src/gateway/model/agent-update.js';
import { recordMember } from '../../../src/gateway/ports/listing.js';
import type { IfMatch } from '../../../src/gateway/model/revision.js';
import {
  isOf,
  MAX_PAGE_BYTES,
  type AgentStore,
  type ListQuery,
  type RecordPage,
  type Scope,
  type ToolStore,
} from '../../../src/gateway/ports/stores.js';

export class MemoryAgentStore implements AgentStore {
  readonly #records = new Map<string, AgentRecord>();
  readonly #clock: Clock;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  get(scope: Scope, agentId: string): Promise<AgentRecord | null> {
    const agent = this.#records.get(agentId) ?? null;
    return Promise.resolve(isOf(scope, agent) ? agent : null);
  }

  put(agent: AgentRecord): Promise<void> {
    this.#records.set(agent.agent_id, agent);
    return Promise.resolve();
  }

  change<F>(
    orgId: string,
    agentId: string,
    decide: (current: AgentRecord) => Result<AgentContent, F>,
    ifMatch?: IfMatch,
  ): Promise<Result<AgentRecord, F | RecordRefusal>> {
    const changed = decideAgentUpdate(this.#records.get(agentId) ?? null, { orgId, decide, ifMatch }, this.#clock.wallMs());
    if (changed.ok) this.#records.set(agentId, changed.value);
    return Promise.resolve(changed);
  }

  delete(orgId: string, agentId: string, ifMatch?: IfMatch): Promise<Result<AgentRecord, RecordRefusal>> {
    const deleted = decideDelete(this.#records.get(agentId) ?? null, orgId, ifMatch);
    if (deleted.ok) this.#records.delete(agentId);
    return Promise.resolve(deleted);
  }

  list(orgId: string, query: ListQuery = {}): Promise<RecordPage<AgentRecord>> {
    return Promise.resolve(pageOf(this.#of(orgId), (agent) => recordMember(agent.created_at, agent.agent_id), query));
  }

  count(orgId: string): Promise<number> {
    return Promise.resolve(this.#of(orgId).length);
  }

  findByTool(orgId: string, toolId: string, limit: number): Promise<readonly string[]> {
    const using = this.#of(orgId).filter((agent) => namedTools(agent).includes(toolId));
    return Promise.resolve(using.slice(0, limit).map((agent) => agent.agent_id));
  }

  #of(orgId: string): AgentRecord[] {
    return [...this.#records.values()].filter((agent) => agent.org_id === orgId);
  }
}

export class MemoryToolStore implements ToolStore {
  readonly #records = new Map<string, ToolRecord>();

  get(scope: Scope, toolId: string): Promise<ToolRecord | null> {
    const tool = this.#records.get(toolId) ?? null;
    return Promise.resolve(isOf(scope, tool) ? tool : null);
  }

  put(tool: ToolRecord): Promise<void> {
    this.#records.set(tool.tool_id, tool);
    return Promise.resolve();
  }

  list(orgId: string, query: ListQuery = {}): Promise<RecordPage<ToolRecord>> {
    return Promise.resolve(pageOf(this.#of(orgId), (tool) => recordMember(tool.created_at, tool.tool_id), query));
  }

  count(orgId: string): Promise<number> {
    return Promise.resolve(this.#of(orgId).length);
  }

  delete(orgId: string, toolId: string, ifMatch?: IfMatch): Promise<Result<ToolRecord, RecordRefusal>> {
    const deleted = decideDelete(this.#records.get(toolId) ?? null, orgId, ifMatch);
    if (deleted.ok) this.#records.delete(toolId);
    return Promise.resolve(deleted);
  }

  find(orgId: string, toolIds: readonly string[]): Promise<readonly ToolRecord[]> {
    const found = toolIds.map((toolId) => this.#records.get(toolId));
    return Promise.resolve(found.filter((tool) => tool?.org_id === orgId) as ToolRecord[]);
  }

  #of(orgId: string): ToolRecord[] {
    return [...this.#records.values()].filter((tool) => tool.org_id === orgId);
  }
}

function pageOf<T>(all: readonly T[], memberOf: (record: T) => string, { limit = Infinity, before = '' }: ListQuery): RecordPage<T> {
  const left = all
    .map((record) => ({ member: memberOf(record), record }))
    .filter(({ member }) => member > before)
    .sort((a, b) => (a.member < b.member ? -1 : 1));
  const records: T[] = [];
  let bytes = 0;
  for (const { member, record } of left) {
    records.push(record);
    bytes += JSON.stringify(record).length;
    const isFull = records.length >= limit || (limit !== Infinity && bytes >= MAX_PAGE_BYTES);
    if (isFull && records.length < left.length) return { records, next: member };
  }
  return { records, next: null };
}

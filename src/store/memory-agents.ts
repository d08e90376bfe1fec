import type { AgentRecord, ToolRecord } from '../contracts/agent-record.js';
import type { Clock } from '../lib/clock.js';
import type { Result } from '../lib/result.js';
import { decideAgentChange, decideDelete, type AgentContent, type RecordRefusal } from './agent-change.js';
import { oldestFirst, oldestToolFirst } from './ordering.js';
import type { IfMatch } from './revision.js';
import type { AgentStore, ToolStore } from './stores.js';

export class MemoryAgentStore implements AgentStore {
  readonly #records = new Map<string, AgentRecord>();
  readonly #clock: Clock;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  get(orgId: string, agentId: string): Promise<AgentRecord | null> {
    const agent = this.#records.get(agentId);
    return Promise.resolve(agent?.org_id === orgId ? agent : null);
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
    const changed = decideAgentChange(this.#records.get(agentId) ?? null, { orgId, decide, ifMatch }, this.#clock.wallMs());
    if (changed.ok) this.#records.set(agentId, changed.value);
    return Promise.resolve(changed);
  }

  delete(orgId: string, agentId: string, ifMatch?: IfMatch): Promise<Result<AgentRecord, RecordRefusal>> {
    const deleted = decideDelete(this.#records.get(agentId) ?? null, orgId, ifMatch);
    if (deleted.ok) this.#records.delete(agentId);
    return Promise.resolve(deleted);
  }

  list(orgId: string): Promise<readonly AgentRecord[]> {
    return Promise.resolve([...this.#records.values()].filter((agent) => agent.org_id === orgId).sort(oldestFirst));
  }

  async count(orgId: string): Promise<number> {
    return (await this.list(orgId)).length;
  }
}

export class MemoryToolStore implements ToolStore {
  readonly #records = new Map<string, ToolRecord>();

  get(orgId: string, toolId: string): Promise<ToolRecord | null> {
    return Promise.resolve(this.#read(orgId, toolId));
  }

  put(tool: ToolRecord): Promise<void> {
    this.#records.set(tool.tool_id, tool);
    return Promise.resolve();
  }

  list(orgId: string): Promise<readonly ToolRecord[]> {
    return Promise.resolve([...this.#records.values()].filter((tool) => tool.org_id === orgId).sort(oldestToolFirst));
  }

  async count(orgId: string): Promise<number> {
    return (await this.list(orgId)).length;
  }

  delete(orgId: string, toolId: string, ifMatch?: IfMatch): Promise<Result<ToolRecord, RecordRefusal>> {
    const deleted = decideDelete(this.#records.get(toolId) ?? null, orgId, ifMatch);
    if (deleted.ok) this.#records.delete(toolId);
    return Promise.resolve(deleted);
  }

  find(orgId: string, toolIds: readonly string[]): Promise<readonly ToolRecord[]> {
    return Promise.resolve(toolIds.flatMap((toolId) => this.#read(orgId, toolId) ?? []));
  }

  #read(orgId: string, toolId: string): ToolRecord | null {
    const tool = this.#records.get(toolId);
    return tool?.org_id === orgId ? tool : null;
  }
}

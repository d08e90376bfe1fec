import type { AgentRecord } from '../../../model/agent-record.js';
import type { Clock } from '../../../../lib/clock.js';
import type { Result } from '../../../../lib/result.js';
import { decideAgentUpdate, decideDelete, namedTools, type AgentContent, type RecordRefusal } from '../../../model/agent-update.js';
import { updateRecord, deleteRecord } from '../optimistic-update.js';
import { agentKey, CHANGES_CHANNEL, orgAgentsKey, toolAgentsKey } from '../keys.js';
import { recordMember } from '../../../ports/listing.js';
import { readRecordPage } from '../record-pages.js';
import { decodeRecord, type RedisConnection } from '../redis.js';
import type { IfMatch } from '../../../model/revision.js';
import { isOf, type AgentStore, type ListQuery, type RecordPage, type Scope } from '../../../ports/stores.js';
import { findUsers, settleUsers } from '../users-index.js';

export class RedisAgentStore implements AgentStore {
  constructor(
    private readonly redis: RedisConnection,
    private readonly clock: Clock,
  ) {}

  async get(scope: Scope, agentId: string): Promise<AgentRecord | null> {
    const agent = await this.#read(agentId);
    return isOf(scope, agent) ? agent : null;
  }

  async put(agent: AgentRecord): Promise<void> {
    // The list first: an id in it without a record is skipped.
    const member = recordMember(agent.created_at, agent.agent_id);
    await this.redis.run((client) => client.zadd(orgAgentsKey(agent.org_id), 0, member));
    const key = agentKey(agent.agent_id);
    // One transaction: a gateway that remembers the agent must not miss the change.
    await this.redis.run((client) => client.multi().set(key, JSON.stringify(agent)).publish(CHANGES_CHANNEL, key).exec());
    await this.#settleTools(agent.agent_id, []);
  }

  async change<F>(
    orgId: string,
    agentId: string,
    decide: (current: AgentRecord) => Result<AgentContent, F>,
    ifMatch?: IfMatch,
  ): Promise<Result<AgentRecord, F | RecordRefusal>> {
    let before: AgentRecord | null = null;
    const change = { orgId, decide, ifMatch };
    const changed = await updateRecord(this.redis, 'agent', agentKey(agentId), (current) => {
      before = current;
      return decideAgentUpdate(current, change, this.clock.wallMs());
    });
    if (changed.ok) await this.#settleTools(agentId, namedTools(before));
    return changed;
  }

  async delete(orgId: string, agentId: string, ifMatch?: IfMatch): Promise<Result<AgentRecord, RecordRefusal>> {
    const deleted = await deleteRecord(this.redis, 'agent', agentKey(agentId), (current) => decideDelete(current, orgId, ifMatch));
    if (!deleted.ok) return deleted;
    const member = recordMember(deleted.value.created_at, agentId);
    await this.redis.run((client) => client.zrem(orgAgentsKey(orgId), member));
    await this.#settleTools(agentId, namedTools(deleted.value));
    return deleted;
  }

  list(orgId: string, query: ListQuery = {}): Promise<RecordPage<AgentRecord>> {
    return readRecordPage(this.redis, { kind: 'agent', indexKey: orgAgentsKey(orgId), keyOf: agentKey }, query);
  }

  count(orgId: string): Promise<number> {
    return this.redis.run((client) => client.zcard(orgAgentsKey(orgId)));
  }

  findByTool(orgId: string, toolId: string, limit: number): Promise<readonly string[]> {
    return findUsers(this.redis, toolAgentsKey(toolId), limit, async (agentIds) => {
      const agents = await Promise.all(agentIds.map((agentId) => this.#read(agentId)));
      return agents.map((agent) => agent?.org_id === orgId && namedTools(agent).includes(toolId));
    });
  }

  async #read(agentId: string): Promise<AgentRecord | null> {
    return decodeRecord('agent', await this.redis.run((client) => client.get(agentKey(agentId))));
  }

  async #settleTools(agentId: string, before: readonly string[]): Promise<void> {
    const read = async (): Promise<readonly string[]> => namedTools(await this.#read(agentId));
    await settleUsers(this.redis, { user: agentId, keyOf: toolAgentsKey, read }, before);
  }
}

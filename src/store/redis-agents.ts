import type { AgentRecord } from '../contracts/agent-record.js';
import type { Clock } from '../lib/clock.js';
import { err, ok, type Result } from '../lib/result.js';
import { decideAgentChange, decideDelete, type AgentContent, type RecordRefusal } from './agent-change.js';
import { changeRecord, deleteRecord } from './change-record.js';
import { agentKey, CHANGES_CHANNEL, orgAgentsKey } from './keys.js';
import { oldestFirst } from './ordering.js';
import { decodeRecord, type RedisConnection } from './redis.js';
import type { IfMatch } from './revision.js';
import type { AgentStore } from './stores.js';

export class RedisAgentStore implements AgentStore {
  readonly #redis: RedisConnection;
  readonly #clock: Clock;

  constructor(redis: RedisConnection, clock: Clock) {
    this.#redis = redis;
    this.#clock = clock;
  }

  async get(orgId: string, agentId: string): Promise<AgentRecord | null> {
    const agent = decodeRecord('agent', await this.#redis.run((client) => client.get(agentKey(agentId))));
    return agent?.org_id === orgId ? agent : null;
  }

  async put(agent: AgentRecord): Promise<void> {
    // The list first: an id in it without a record is skipped.
    await this.#redis.run((client) => client.sadd(orgAgentsKey(agent.org_id), agent.agent_id));
    const key = agentKey(agent.agent_id);
    // One transaction: a gateway that remembers the agent must not miss the change.
    await this.#redis.run((client) => client.multi().set(key, JSON.stringify(agent)).publish(CHANGES_CHANNEL, key).exec());
  }

  async change<F>(
    orgId: string,
    agentId: string,
    decide: (current: AgentRecord) => Result<AgentContent, F>,
    ifMatch?: IfMatch,
  ): Promise<Result<AgentRecord, F | RecordRefusal>> {
    const change = { orgId, decide, ifMatch };
    const changed = await changeRecord(this.#redis, 'agent', agentKey(agentId), (current) =>
      decideAgentChange(current, change, this.#clock.wallMs()),
    );
    if (!changed.ok) return changed;
    return changed.value === null ? err('not-found') : ok(changed.value);
  }

  async delete(orgId: string, agentId: string, ifMatch?: IfMatch): Promise<Result<AgentRecord, RecordRefusal>> {
    const deleted = await deleteRecord(this.#redis, 'agent', agentKey(agentId), (current) => decideDelete(current, orgId, ifMatch));
    if (deleted.ok) await this.#redis.run((client) => client.srem(orgAgentsKey(orgId), agentId));
    return deleted;
  }

  async list(orgId: string): Promise<readonly AgentRecord[]> {
    const ids = await this.#redis.run((client) => client.smembers(orgAgentsKey(orgId)));
    const found = await Promise.all(ids.map((id) => this.get(orgId, id)));
    return found.filter((agent) => agent !== null).sort(oldestFirst);
  }

  count(orgId: string): Promise<number> {
    return this.#redis.run((client) => client.scard(orgAgentsKey(orgId)));
  }
}

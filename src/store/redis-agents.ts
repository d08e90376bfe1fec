import type { AgentRecord } from '../contracts/agent-record.js';
import { agentKey, CHANGES_CHANNEL, orgAgentsKey } from './keys.js';
import { oldestFirst } from './ordering.js';
import { decodeRecord, type RedisConnection } from './redis.js';
import type { AgentStore } from './stores.js';

export class RedisAgentStore implements AgentStore {
  readonly #redis: RedisConnection;

  constructor(redis: RedisConnection) {
    this.#redis = redis;
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

  async delete(orgId: string, agentId: string): Promise<boolean> {
    if ((await this.get(orgId, agentId)) === null) return false;
    const key = agentKey(agentId);
    await this.#redis.run((client) => client.multi().del(key).publish(CHANGES_CHANNEL, key).exec());
    await this.#redis.run((client) => client.srem(orgAgentsKey(orgId), agentId));
    return true;
  }

  async list(orgId: string): Promise<readonly AgentRecord[]> {
    const ids = await this.#redis.run((client) => client.smembers(orgAgentsKey(orgId)));
    const found = await Promise.all(ids.map((id) => this.get(orgId, id)));
    return found.filter((agent) => agent !== null).sort(oldestFirst);
  }
}

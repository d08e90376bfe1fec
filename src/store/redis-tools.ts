import type { ToolRecord } from '../contracts/agent-record.js';
import type { Result } from '../lib/result.js';
import { decideDelete, type RecordRefusal } from './agent-change.js';
import { deleteRecord } from './change-record.js';
import { orgToolsKey, toolKey } from './keys.js';
import { oldestToolFirst } from './ordering.js';
import { decodeRecord, type RedisConnection } from './redis.js';
import type { IfMatch } from './revision.js';
import type { ToolStore } from './stores.js';

export class RedisToolStore implements ToolStore {
  readonly #redis: RedisConnection;

  constructor(redis: RedisConnection) {
    this.#redis = redis;
  }

  async get(orgId: string, toolId: string): Promise<ToolRecord | null> {
    const tool = decodeRecord('tool', await this.#redis.run((client) => client.get(toolKey(toolId))));
    return tool?.org_id === orgId ? tool : null;
  }

  async put(tool: ToolRecord): Promise<void> {
    // The list first: an id in it without a record is skipped.
    await this.#redis.run((client) => client.sadd(orgToolsKey(tool.org_id), tool.tool_id));
    await this.#redis.run((client) => client.set(toolKey(tool.tool_id), JSON.stringify(tool)));
  }

  async list(orgId: string): Promise<readonly ToolRecord[]> {
    const ids = await this.#redis.run((client) => client.smembers(orgToolsKey(orgId)));
    return [...(await this.find(orgId, ids))].sort(oldestToolFirst);
  }

  async delete(orgId: string, toolId: string, ifMatch?: IfMatch): Promise<Result<ToolRecord, RecordRefusal>> {
    const deleted = await deleteRecord(this.#redis, 'tool', toolKey(toolId), (current) => decideDelete(current, orgId, ifMatch));
    if (deleted.ok) await this.#redis.run((client) => client.srem(orgToolsKey(orgId), toolId));
    return deleted;
  }

  count(orgId: string): Promise<number> {
    return this.#redis.run((client) => client.scard(orgToolsKey(orgId)));
  }

  async find(orgId: string, toolIds: readonly string[]): Promise<readonly ToolRecord[]> {
    const found = await Promise.all(toolIds.map((toolId) => this.get(orgId, toolId)));
    return found.filter((tool) => tool !== null);
  }
}

import type { ToolRecord } from '../../../model/agent-record.js';
import type { Result } from '../../../../lib/result.js';
import { decideDelete, type RecordRefusal } from '../../../model/agent-update.js';
import { deleteRecord } from '../optimistic-update.js';
import { orgToolsKey, toolKey } from '../keys.js';
import { recordMember } from '../../../ports/listing.js';
import { readRecordPage } from '../record-pages.js';
import { decodeRecord, type RedisConnection } from '../redis.js';
import type { IfMatch } from '../../../model/revision.js';
import { isOf, type ListQuery, type RecordPage, type Scope, type ToolStore } from '../../../ports/stores.js';

/** Tools of one agent that are read in one round trip: each may be large. */
const FOUND_AT_ONCE = 10;

export class RedisToolStore implements ToolStore {
  constructor(private readonly redis: RedisConnection) {}

  async get(scope: Scope, toolId: string): Promise<ToolRecord | null> {
    const tool = decodeRecord('tool', await this.redis.run((client) => client.get(toolKey(toolId))));
    return isOf(scope, tool) ? tool : null;
  }

  async put(tool: ToolRecord): Promise<void> {
    // The list first: an id in it without a record is skipped.
    await this.redis.run((client) => client.zadd(orgToolsKey(tool.org_id), 0, recordMember(tool.created_at, tool.tool_id)));
    await this.redis.run((client) => client.set(toolKey(tool.tool_id), JSON.stringify(tool)));
  }

  list(orgId: string, query: ListQuery = {}): Promise<RecordPage<ToolRecord>> {
    return readRecordPage(this.redis, { kind: 'tool', indexKey: orgToolsKey(orgId), keyOf: toolKey }, query);
  }

  async delete(orgId: string, toolId: string, ifMatch?: IfMatch): Promise<Result<ToolRecord, RecordRefusal>> {
    const deleted = await deleteRecord(this.redis, 'tool', toolKey(toolId), (current) => decideDelete(current, orgId, ifMatch));
    if (!deleted.ok) return deleted;
    const member = recordMember(deleted.value.created_at, toolId);
    await this.redis.run((client) => client.zrem(orgToolsKey(orgId), member));
    return deleted;
  }

  count(orgId: string): Promise<number> {
    return this.redis.run((client) => client.zcard(orgToolsKey(orgId)));
  }

  async find(orgId: string, toolIds: readonly string[]): Promise<readonly ToolRecord[]> {
    const texts = await this.redis.getMany(toolIds.map(toolKey), FOUND_AT_ONCE);
    return texts.flatMap((text) => {
      const tool = decodeRecord('tool', text);
      return tool?.org_id === orgId ? [tool] : [];
    });
  }
}

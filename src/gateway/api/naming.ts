import type { AgentRecord, ToolRecord } from '../model/agent-record.js';
import type { E164 } from '../model/e164.js';
import type { NumberRecord } from '../model/records.js';
import { err, ok, type Result } from '../../lib/result.js';
import type { RecordRefusal } from '../model/agent-update.js';
import type { IfMatch } from '../model/revision.js';
import type { AttachChange, Stores, UpdateChange } from '../ports/stores.js';

// Numbers name agents, agents name tools, and each record is in a hash slot of its own: no write sees two of them. A
// request that names something writes first, then checks that the target exists; one that deletes deletes first, then checks for
// references. If two cross, one of them sees the other and undoes its change.

type Named = Pick<Stores, 'numbers' | 'agents'>;

const MAX_TOLD = 10;

/** Who keeps a record from being deleted. */
export interface InUse {
  readonly usedBy: readonly string[];
}

/** Deletes an agent unless a number names it. */
export async function deleteAgent(
  { numbers, agents }: Named,
  orgId: string,
  agentId: string,
  ifMatch?: IfMatch,
): Promise<Result<AgentRecord, RecordRefusal | InUse>> {
  const users = async (): Promise<readonly string[]> => {
    const number = await numbers.findByAgent(orgId, agentId);
    return number === null ? [] : [number];
  };
  if ((await agents.get(orgId, agentId)) === null) return err('not-found');
  return deleteUnused(
    users,
    () => agents.delete(orgId, agentId, ifMatch),
    (agent) => agents.put(agent),
  );
}

/** Deletes a tool unless agents name it. */
export async function deleteTool(
  { agents, tools }: Pick<Stores, 'agents' | 'tools'>,
  orgId: string,
  toolId: string,
  ifMatch?: IfMatch,
): Promise<Result<ToolRecord, RecordRefusal | InUse>> {
  if ((await tools.get(orgId, toolId)) === null) return err('not-found');
  return deleteUnused(
    () => agents.findByTool(orgId, toolId, MAX_TOLD),
    () => tools.delete(orgId, toolId, ifMatch),
    (tool) => tools.put(tool),
  );
}

/** As `NumberStore.attach`. `no-agent`: the agent that it names was deleted meanwhile, and nothing changed. */
export async function attachNumber(
  stores: Named,
  orgId: string,
  number: E164,
  change: AttachChange,
  ifMatch?: IfMatch,
): Promise<Result<NumberRecord, 'taken' | 'mismatch' | 'no-agent'>> {
  const before = await stores.numbers.get(orgId, number);
  const attached = await stores.numbers.attach(orgId, number, change, ifMatch);
  return attached.ok ? confirmAgent(stores, attached.value, change.inbound?.agent_id, before) : attached;
}

/** As `NumberStore.update`. `no-agent`: as above. */
export async function updateNumber(
  stores: Named,
  orgId: string,
  number: E164,
  change: UpdateChange,
  ifMatch?: IfMatch,
): Promise<Result<NumberRecord, RecordRefusal | 'no-agent'>> {
  const before = await stores.numbers.get(orgId, number);
  const updated = await stores.numbers.update(orgId, number, change, ifMatch);
  return updated.ok ? confirmAgent(stores, updated.value, change.type === 'inbound' ? change.agent_id : null, before) : updated;
}

async function deleteUnused<T>(
  users: () => Promise<readonly string[]>,
  remove: () => Promise<Result<T, RecordRefusal>>,
  putBack: (record: T) => Promise<void>,
): Promise<Result<T, RecordRefusal | InUse>> {
  // Before as well, so that calls miss nothing for a moment of a record that is in use.
  const before = await users();
  if (before.length > 0) return err({ usedBy: before });
  const removed = await remove();
  if (!removed.ok) return removed;
  const after = await users();
  if (after.length === 0) return removed;
  await putBack(removed.value);
  return err({ usedBy: after });
}

async function confirmAgent(
  { numbers, agents }: Named,
  written: NumberRecord,
  agentId: string | null | undefined,
  before: NumberRecord | null,
): Promise<Result<NumberRecord, 'no-agent'>> {
  if (agentId == null || (await agents.get(written.org_id, agentId)) !== null) return ok(written);
  const { org_id: orgId, phone_number: number } = written;
  // Only if nobody wrote since; who did has looked for the agent by itself.
  const mine = [written.updated_at];
  if (before?.inbound == null) {
    const isNew = before?.outbound == null && written.outbound !== null;
    await numbers.detach(orgId, number, isNew ? ['inbound', 'outbound'] : ['inbound'], mine);
  } else {
    const outbound = before.outbound === null ? {} : { outbound: before.outbound };
    await numbers.attach(orgId, number, { inbound: before.inbound, ...outbound }, mine);
  }
  return err('no-agent');
}

import type { E164 } from '../../../model/e164.js';
import {
  DEFAULT_INBOUND_OPTIONS,
  type InboundOptions,
  type InboundOptionsChange,
  type NumberRecord,
  type OutboundTrunk,
} from '../../../model/records.js';
import { isMeant, revisedAt, type IfMatch } from '../../../model/revision.js';
import { err, ok, type Result } from '../../../../lib/result.js';
import type { RecordRefusal } from '../../../model/agent-update.js';
import type { AttachChange, DirectionType, TrunkChange, UpdateChange } from '../../../ports/stores.js';

// The rules of attach, update and detach, apart from where records are kept. The adapters apply them to the record they
// read and write the outcome only if the record is still that one.

/** When a change is made, and the version of the record that it is meant for. */
export interface UpdateTerms {
  readonly nowMs: number;
  readonly ifMatch: IfMatch;
}

export interface AttachRequest {
  readonly orgId: string;
  readonly number: E164;
  readonly change: AttachChange;
  /** The id that a new record gets. */
  readonly inboundId: string;
}

export function decideAttach(
  current: NumberRecord | null,
  request: AttachRequest,
  { nowMs, ifMatch }: UpdateTerms,
): Result<NumberRecord, 'taken' | 'mismatch'> {
  if (current !== null && current.org_id !== request.orgId) return err('taken');
  if (!isMeant(current, ifMatch)) return err('mismatch');
  const now = current === null ? new Date(nowMs).toISOString() : revisedAt(nowMs, current);
  const base: NumberRecord = current ?? {
    inbound_id: request.inboundId,
    phone_number: request.number,
    org_id: request.orgId,
    inbound: null,
    outbound: null,
    created_at: now,
    updated_at: now,
  };
  const { inbound: setting, outbound = base.outbound } = request.change;
  if (setting === undefined) return ok({ ...base, outbound, updated_at: now });
  const options = changedOptions(base.inbound?.options, setting.options);
  return options === null ? err('mismatch') : ok({ ...base, inbound: { ...setting, options }, outbound, updated_at: now });
}

export function decideUpdate(
  current: NumberRecord | null,
  orgId: string,
  change: UpdateChange,
  terms: UpdateTerms,
): Result<NumberRecord, RecordRefusal> {
  if (current?.org_id !== orgId) return err('not-found');
  if (!isMeant(current, terms.ifMatch)) return err('mismatch');
  const now = revisedAt(terms.nowMs, current);
  if (change.type === 'outbound') {
    const { type: _type, ...trunk } = change;
    return ok({ ...current, outbound: changedTrunk(current.outbound, trunk), updated_at: now });
  }
  const before = current.inbound?.options ?? DEFAULT_INBOUND_OPTIONS;
  const options = change.options === undefined ? before : changedOptions(before, change.options);
  if (options === null) return err('mismatch');
  const agent_id = change.agent_id === undefined ? (current.inbound?.agent_id ?? null) : change.agent_id;
  return ok({ ...current, inbound: { agent_id, options }, updated_at: now });
}

/** `null`: the challenge is to keep a password that there is none of, or not any more. */
function changedOptions(before: InboundOptions | undefined, { challenge, ...options }: InboundOptionsChange): InboundOptions | null {
  if (challenge == null) return options;
  const password = challenge.password ?? before?.challenge?.password;
  return password === undefined ? null : { ...options, challenge: { username: challenge.username, password } };
}

function changedTrunk(before: OutboundTrunk | null, { sip_endpoint, ...change }: TrunkChange): OutboundTrunk {
  const given = Object.entries(change).filter(([, value]) => value !== undefined);
  const merged: Readonly<Record<string, unknown>> = { ...before, ...Object.fromEntries(given) };
  const kept = Object.entries(merged).filter(([, value]) => value !== null);
  return { ...Object.fromEntries(kept), sip_endpoint };
}

/** `null`: the record goes. */
export function decideDetach(
  current: NumberRecord | null,
  orgId: string,
  directions: readonly DirectionType[],
  { nowMs, ifMatch }: UpdateTerms,
): Result<NumberRecord | null, RecordRefusal> {
  if (current?.org_id !== orgId) return err('not-found');
  if (directions.some((direction) => current[direction] === null)) return err('not-found');
  if (!isMeant(current, ifMatch)) return err('mismatch');
  const left: NumberRecord = {
    ...current,
    inbound: directions.includes('inbound') ? null : current.inbound,
    outbound: directions.includes('outbound') ? null : current.outbound,
    updated_at: revisedAt(nowMs, current),
  };
  return ok(left.inbound === null && left.outbound === null ? null : left);
}

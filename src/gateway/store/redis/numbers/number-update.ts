import type { E164 } from '../../../model/e164.js';
import { DEFAULT_INBOUND_OPTIONS, type NumberRecord } from '../../../model/records.js';
import { isMeant, revisedAt, type IfMatch } from '../../../model/revision.js';
import type { AttachChange, DirectionType, UpdateChange } from '../../../ports/stores.js';

// The rules of attach, update and detach, apart from where records are kept. The adapters apply them to the record they
// read and write the outcome only if the record is still that one.

/** `record: null`: the record goes. */
export type NumberDecision =
  | { readonly kind: 'write'; readonly record: NumberRecord | null }
  | { readonly kind: 'refuse'; readonly reason: 'taken' | 'not-found' | 'mismatch' };

const NOT_FOUND: NumberDecision = { kind: 'refuse', reason: 'not-found' };
const MISMATCH: NumberDecision = { kind: 'refuse', reason: 'mismatch' };

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

export function decideAttach(current: NumberRecord | null, request: AttachRequest, { nowMs, ifMatch }: UpdateTerms): NumberDecision {
  if (current !== null && current.org_id !== request.orgId) return { kind: 'refuse', reason: 'taken' };
  if (!isMeant(current, ifMatch)) return MISMATCH;
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
  return {
    kind: 'write',
    record: {
      ...base,
      inbound: request.change.inbound ?? base.inbound,
      outbound: request.change.outbound ?? base.outbound,
      updated_at: now,
    },
  };
}

export function decideUpdate(current: NumberRecord | null, orgId: string, change: UpdateChange, terms: UpdateTerms): NumberDecision {
  if (current?.org_id !== orgId) return NOT_FOUND;
  if (!isMeant(current, terms.ifMatch)) return MISMATCH;
  const now = revisedAt(terms.nowMs, current);
  if (change.type === 'outbound') {
    return { kind: 'write', record: { ...current, outbound: { sip_endpoint: change.sip_endpoint }, updated_at: now } };
  }
  const inbound = {
    agent_id: change.agent_id === undefined ? (current.inbound?.agent_id ?? null) : change.agent_id,
    options: change.options ?? current.inbound?.options ?? DEFAULT_INBOUND_OPTIONS,
  };
  return { kind: 'write', record: { ...current, inbound, updated_at: now } };
}

export function decideDetach(
  current: NumberRecord | null,
  orgId: string,
  directions: readonly DirectionType[],
  { nowMs, ifMatch }: UpdateTerms,
): NumberDecision {
  if (current?.org_id !== orgId) return NOT_FOUND;
  if (directions.some((direction) => current[direction] === null)) return NOT_FOUND;
  if (!isMeant(current, ifMatch)) return MISMATCH;
  const left: NumberRecord = {
    ...current,
    inbound: directions.includes('inbound') ? null : current.inbound,
    outbound: directions.includes('outbound') ? null : current.outbound,
    updated_at: revisedAt(nowMs, current),
  };
  return { kind: 'write', record: left.inbound === null && left.outbound === null ? null : left };
}

import { parseE164, type E164 } from '../model/e164.js';
import { DEFAULT_INBOUND_OPTIONS } from '../model/records.js';
import type { AttachBody, DetachBody, SipQuery, UpdateBody } from './schemas/sip-api.js';
import type { AttachChange, DirectionType, Page, UpdateChange } from '../ports/stores.js';

// From bodies that passed validation to what the store takes.

const DEFAULT_TAKE = 100;

/** The number of a body. */
export function numberOf(body: { readonly phone_number: string }): E164 {
  const number = parseE164(body.phone_number);
  if (number === undefined) throw new Error('the body was not validated');
  return number;
}

export function attachChange(body: AttachBody): AttachChange {
  const directions = body.directions.map((member) => (typeof member === 'string' ? { type: member, sip_endpoint: undefined } : member));
  const outbound = directions.find(({ type }) => type === 'outbound');
  // The endpoint in the direction's own object is the closer one.
  const endpoint = outbound?.sip_endpoint ?? body.sip_endpoint;
  return {
    ...(directions.some(({ type }) => type === 'inbound')
      ? { inbound: { agent_id: agentId(body.agent_id ?? null), options: body.options ?? DEFAULT_INBOUND_OPTIONS } }
      : {}),
    ...(outbound !== undefined && endpoint !== undefined ? { outbound: { sip_endpoint: endpoint } } : {}),
  };
}

export function updateChange({ updates }: UpdateBody): UpdateChange {
  if (updates.type === 'outbound') return updates;
  return {
    type: 'inbound',
    ...(updates.agent_id === undefined ? {} : { agent_id: agentId(updates.agent_id) }),
    ...(updates.options === undefined ? {} : { options: updates.options }),
  };
}

export function detachedDirections(body: DetachBody): DirectionType[] {
  return [body.directions].flat().map((member) => (typeof member === 'string' ? member : member.type));
}

export function pageOf(query: SipQuery): Page {
  return { take: Number(query.take ?? DEFAULT_TAKE), skip: Number(query.skip ?? 0) };
}

/** UUIDs are the same in either case; the store knows them in lower case. */
function agentId(id: string | null): string | null {
  return id === null ? null : id.toLowerCase();
}

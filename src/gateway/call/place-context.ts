import type { NumberRecord, OutboundTrunk } from '../model/records.js';
import type { AgentRecord } from '../model/agent-record.js';
import type { E164 } from '../model/e164.js';
import type { DialLedger } from '../ports/ports.js';
import type { Log } from '../../lib/log.js';
import { beginningOf, type CallOrigin, type OwnSide } from './call.js';
import type { DialTarget } from './placed-invite.js';
import { maxDurationMs, type CallEvent, type CallFacts } from './state.js';

/** A call to be placed. */
export interface PlaceContext {
  readonly origin: CallOrigin;
  readonly orgId: string;
  readonly from: E164;
  readonly to: E164;
  readonly trunk: OutboundTrunk;
  /** With the settings of this call; `null`: the operator's default. */
  readonly agent: AgentRecord | null;
  readonly facts: CallFacts;
  readonly own: OwnSide;
  readonly target: DialTarget;
  readonly ringTimeoutMs: number;
  /** Finds out whether a person, a machine or a fax answers. */
  readonly detectAnswerer: boolean;
  readonly idempotencyKey?: string;
}

/** Why a trunk takes no calls now, for a person; `null`: it does, as far as is known. */
export type TrunkDown = (number: Pick<NumberRecord, 'org_id' | 'outbound'>) => string | null;

/** Whether the call may be placed; if so, it is counted and its cost reserved. Rejects with `StoreUnavailableError`. */
export async function permission(
  context: PlaceContext,
  { dials, trunkDown }: { readonly dials: DialLedger; readonly trunkDown?: TrunkDown },
  log: Log,
): Promise<CallEvent> {
  const { origin, orgId, from, to, trunk, agent, facts, idempotencyKey } = context;
  const down = trunkDown?.({ org_id: orgId, outbound: trunk }) ?? null;
  if (down !== null) return { type: 'not-permitted', reason: 'TRUNK_UNREACHABLE', detail: down };
  const longestMs = maxDurationMs({ facts, route: agent === null ? null : { agent } });
  const permitted = await dials.reserve({
    orgId,
    from,
    to,
    endpoint: trunk.sip_endpoint,
    call: beginningOf(origin),
    maxDurationMs: longestMs,
    ...(idempotencyKey === undefined ? {} : { idempotencyKey }),
  });
  if (!permitted.ok) {
    const { reason, detail } = permitted.error;
    log.warn({ reason, detail }, 'call.not_permitted');
    return { type: 'not-permitted', reason, detail };
  }
  const { org, number, permit } = permitted.value;
  return { type: 'permitted', route: { org, number, agent }, permit };
}

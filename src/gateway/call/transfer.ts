import { NOT_IN_TURBO, type AgentAnswer } from '../model/agent.js';
import { DEFAULT_AGENT_SETTINGS } from '../model/agent-record.js';
import { isServiceNumber, mayDial } from '../admission/dial-guard.js';
import { isTurbo } from './agent.js';
import { dialSecond, mayPlace } from './second-leg.js';
import { mayReferTo, transferTarget, type TransferTarget } from './transfer-target.js';
import type { CallEffect, CallEvent, CallState, LegWish, Transfer } from './state.js';

// The agent hands its caller over: REFER to the carrier, which says by NOTIFY how it goes (RFC 3515). The call lives on until the target
// has answered, or the carrier hangs up. Where the carrier refuses the REFER, we dial the target (second-leg.ts).

type EventOf<Type extends CallEvent['type']> = Extract<CallEvent, { type: Type }>;

/** As a step of the call; `isDone`: the caller is elsewhere, and the call is to end. */
export interface TransferStep {
  readonly state: CallState;
  readonly effects: readonly CallEffect[];
  readonly isDone?: true;
}

const NOTHING: readonly CallEffect[] = [];
/** A carrier that accepted the transfer and is silent this long has failed. */
const SILENCE_MS = 60_000;

const REFUSALS = {
  TRANSFER_TOO_EARLY: 'The call is not in progress yet.',
  TRANSFER_PENDING: 'Another transfer is in progress.',
  TRANSFER_NOT_ALLOWED: "The target is not in the agent's transfer_list, its host not in calls.transfer_hosts, or it may not be dialled.",
  BRIEFING_NOT_POSSIBLE: 'A briefing or consultation needs a call of ours, which the organization may not place to this target.',
  TRANSFER_BAD_TARGET: 'The target is neither a number in E.164 form nor a sip:, sips: or tel: URI.',
} as const;

export function onTransferAsked(state: CallState, { requestId, to, leg }: EventOf<'transfer-asked'>): TransferStep {
  const refuse = (code: keyof typeof REFUSALS): TransferStep => {
    const answer = { type: 'refused', requestId, request: 'transfer', code, message: REFUSALS[code] } as const;
    return { state, effects: [{ do: 'notify-agent', answer }] };
  };
  // The operator's own target is bound by no setting of the agent.
  const isStandIn = state.agent.choice === 'transfer';
  if (!isStandIn && isTurbo(state.route?.agent ?? DEFAULT_AGENT_SETTINGS)) {
    return { state, effects: [{ do: 'notify-agent', answer: { type: 'refused', requestId, request: 'transfer', ...NOT_IN_TURBO } }] };
  }
  if (state.name !== 'Talking') return refuse('TRANSFER_TOO_EARLY');
  if (state.transfer !== null || state.second !== null) return refuse('TRANSFER_PENDING');
  const target = transferTarget(to, isStandIn ? null : state.route?.agent?.transfer_list);
  if (!target.ok) return refuse(target.error);
  if (!isStandIn && !mayReach(state, target.value)) return refuse('TRANSFER_NOT_ALLOWED');
  const wish: LegWish | null = leg === undefined || target.value.kind === 'uri' ? null : { ...leg, to: target.value.number };
  const isBriefed = leg !== undefined && leg.briefing !== null;
  if (isBriefed && !mayPlace(state, wish)) return refuse('BRIEFING_NOT_POSSIBLE');
  // A REFER has no place for it.
  const isOurs = isBriefed || state.route?.number.inbound?.options.refer === false;
  if (isOurs && mayPlace(state, wish)) return dialSecond(state, wish, requestId);
  const referId = state.referCount + 1;
  return {
    state: { ...state, referCount: referId, transfer: { referId, requestId, isAccepted: false, leg: wish } },
    effects: [{ do: 'refer', target: target.value, referId }],
  };
}

/**
 * Emergency and service numbers never, and URIs only at hosts that the operator listed. The trunk of a call that we placed would dial the
 * target at our expense: only what we may dial.
 */
function mayReach({ placing, route, facts }: CallState, target: TransferTarget): boolean {
  if (target.kind === 'uri') return placing === null && mayReferTo(target.uri, facts.transferHosts ?? []);
  return placing === null ? !isServiceNumber(target.number) : route !== null && mayDial(route, target.number).ok;
}

/** The final answer to our REFER. */
export function onReferAnswered(state: CallState, { status, referId, isOurs = false }: EventOf<'refer-answered'>): TransferStep {
  const { transfer } = state;
  if (transfer?.referId !== referId) return { state, effects: NOTHING };
  if (status !== null && status < 300) {
    return {
      state: { ...state, transfer: { ...transfer, isAccepted: true } },
      effects: [progress(transfer, 'accepted', status), { do: 'start-timer', timer: 'transfer', delayMs: SILENCE_MS }],
    };
  }
  // RFC 3261 §12.2.1.2: the carrier may not know the call any more.
  const isInDoubt = status === 481 || status === 408;
  const isRefused = !isInDoubt && !isOurs && status !== null;
  if (isRefused && mayPlace(state, transfer.leg)) return dialSecond(state, transfer.leg, transfer.requestId);
  const failed = transferFailed(state, transfer, status);
  return isInDoubt ? { ...failed, effects: [...failed.effects, { do: 'ping', isHeld: false }] } : failed;
}

/** A NOTIFY, which may overtake the answer to the REFER (RFC 3515 §2.4.4). */
export function onNotified(state: CallState, { requestId, status, isLast }: EventOf<'notified'>): TransferStep {
  const { transfer } = state;
  // RFC 3265 §3.2.4: there is no subscription.
  if (transfer === null) return { state, effects: [{ do: 'reject', requestId, reason: 'NO_DIALOG' }] };
  const accept = { do: 'accept', requestId, sdp: null } as const;
  if (status !== null && status >= 200 && status < 300) {
    return { state: { ...state, transfer: null }, effects: [accept], isDone: true };
  }
  if (isLast || (status !== null && status >= 300)) {
    const failed = transferFailed(state, transfer, status);
    return { ...failed, effects: [accept, ...failed.effects] };
  }
  if (!transfer.isAccepted) return { state, effects: [accept] };
  return { state, effects: [accept, { do: 'start-timer', timer: 'transfer', delayMs: SILENCE_MS }] };
}

export function onTransferTimer(state: CallState): TransferStep {
  return state.transfer === null ? { state, effects: NOTHING } : transferFailed(state, state.transfer, null);
}

/** The call goes on as it was. */
function transferFailed(state: CallState, transfer: Transfer, status: number | null): TransferStep {
  return {
    state: { ...state, transfer: null },
    effects: [{ do: 'stop-timer', timer: 'transfer' }, progress(transfer, 'failed', status)],
  };
}

function progress({ requestId }: Transfer, state: 'accepted' | 'failed', status: number | null): CallEffect {
  const answer: AgentAnswer = { type: 'transfer-progress', requestId, state, status };
  return { do: 'notify-agent', answer };
}

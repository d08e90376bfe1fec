import { NOT_IN_TURBO, type AgentAnswer } from '../model/agent.js';
import { DEFAULT_AGENT_SETTINGS } from '../model/agent-record.js';
import { mayLeave, type Grant } from '../admission/dial-guard.js';
import { readTarget, type Target } from '../admission/target.js';
import { E164_FORM } from '../model/e164.js';
import { err, ok, type Result } from '../../lib/result.js';
import { headerRefusal, headersFromAgent, unlistedHeader } from '../model/passed-headers.js';
import { isTurbo } from './agent.js';
import { dialSecond, mayPlace } from './second-leg.js';
import type { CallEffect, CallEvent, CallState, LegWish, ReferNeeds, Transfer } from './state.js';

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
  BRIEFING_NOT_POSSIBLE: 'A briefing or consultation needs a call of ours, which the organization may not place to this target.',
  TRANSFER_BAD_TARGET: `The target is neither ${E164_FORM}, nor a sip:, sips: or tel: URI.`,
} as const;

export function onTransferAsked(state: CallState, { requestId, to, leg, sipHeaders = {} }: EventOf<'transfer-asked'>): TransferStep {
  const refuseFor = (code: string, message: string): TransferStep => {
    return { state, effects: [{ do: 'notify-agent', answer: { type: 'refused', requestId, request: 'transfer', code, message } }] };
  };
  const refuse = (code: keyof typeof REFUSALS): TransferStep => refuseFor(code, REFUSALS[code]);
  // The operator's own target is bound by no setting of the agent.
  const isStandIn = state.agent.choice === 'transfer';
  if (!isStandIn && isTurbo(state.route?.agent ?? DEFAULT_AGENT_SETTINGS)) {
    return refuseFor(NOT_IN_TURBO.code, NOT_IN_TURBO.message);
  }
  if (state.name !== 'Talking') return refuse('TRANSFER_TOO_EARLY');
  if (state.transfer !== null || state.second !== null) return refuse('TRANSFER_PENDING');
  const target = readTarget(to);
  if (target === undefined) return refuse('TRANSFER_BAD_TARGET');
  const grant = isStandIn ? ok(null) : mayReach(state, target);
  if (!grant.ok) return refuseFor('TRANSFER_NOT_ALLOWED', `Not transferred: ${grant.error}.`);
  const unlisted = state.route === null ? null : unlistedHeader(sipHeaders, headersFromAgent(state.route.number, state.placing !== null));
  if (unlisted !== null) {
    const { code, message } = headerRefusal(unlisted);
    return refuseFor(code, message);
  }
  const wish: LegWish | null = leg === undefined || target.kind === 'uri' ? null : { ...leg, to: target.number, sipHeaders };
  const isBriefed = leg !== undefined && leg.briefing !== null;
  if (isBriefed && !mayPlace(state, wish)) return refuse('BRIEFING_NOT_POSSIBLE');
  // A REFER has no place for it.
  const isOurs = isBriefed || state.route?.number.inbound?.options.refer === false;
  if (isOurs && mayPlace(state, wish)) return dialSecond(state, wish, requestId);
  const referId = state.referCount + 1;
  return {
    state: { ...state, referCount: referId, transfer: { referId, requestId, isAccepted: false, leg: wish } },
    effects: [{ do: 'refer', target, referId, needs: referNeeds(state, grant.value), sipHeaders }],
  };
}

/** The trunk of a call that we placed would dial the target at our expense: only what we may dial, and of that what the agent may choose. */
function mayReach({ placing, route, facts }: CallState, target: Target): Result<Grant, string> {
  if (route === null) return err('the call has no organization');
  const { org, number, agent } = route;
  const transferList = agent?.transfer_list;
  const { transferPrefixes: prefixes = [], transferHosts: hosts = [] } = facts;
  if (placing === null) return mayLeave(target, { door: 'transfer', org, transferList, prefixes, hosts });
  return mayLeave(target, { door: 'placed-call', from: { org, number }, transferList });
}

/** @param grant `null`: the operator's own target */
function referNeeds({ placing }: CallState, grant: Grant | null): ReferNeeds {
  if (placing !== null || grant?.by === 'price') return 'reservation';
  return grant === null ? 'nothing' : 'do-not-call';
}

/** The final answer to our REFER. */
export function onReferAnswered(state: CallState, { status, referId, refusal }: EventOf<'refer-answered'>): TransferStep {
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
  const isRefused = !isInDoubt && refusal === undefined && status !== null;
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
    return { ...failed, effects: [accept, ...CALLER_IN_DOUBT, ...failed.effects] };
  }
  if (!transfer.isAccepted) return { state, effects: [accept] };
  return { state, effects: [accept, { do: 'start-timer', timer: 'transfer', delayMs: SILENCE_MS }] };
}

export function onTransferTimer(state: CallState): TransferStep {
  if (state.transfer === null) return { state, effects: NOTHING };
  const failed = transferFailed(state, state.transfer, null);
  return { ...failed, effects: [...CALLER_IN_DOUBT, ...failed.effects] };
}

/** A carrier that took the REFER may have let the caller go, and keeps the call all the same, as Asterisk does. */
const CALLER_IN_DOUBT: readonly CallEffect[] = [{ do: 'need-packets' }];

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

import type { Reason } from '../model/reasons.js';
import { isReachable, readAnswer, readRelaySdp } from '../sdp/sdp-read.js';
import { endpointOffer, offerInFormat, OWN_OFFER, ownOfferSdp } from '../sdp/sdp-write.js';
import { asAgentSide } from './agent-side.js';
import { maxDurationMs, type CallEffect, type CallEvent, type CallState, type JoinedCall, type Placing } from './state.js';

// A call that we place, until its 200 is acknowledged: permission, our offer, INVITE, CANCEL, the agent, ACK. From then on it is a call
// like any other. The agent is connected before the ACK, so that whoever answers hears it at once. A second leg has no agent: its media
// goes to the call that it joins (second-leg.ts).

type EventOf<Type extends CallEvent['type']> = Extract<CallEvent, { type: Type }>;
type PlacedCall = CallState & { readonly placing: Placing };

/** As a step of the call; `ended`: it is over for this reason. `talks`: both sides are ready. */
export interface PlacingStep {
  readonly state: CallState;
  readonly effects: readonly CallEffect[];
  readonly ended?: Reason;
  readonly talks?: true;
}

const NOTHING: readonly CallEffect[] = [];
/** 64·T1, and a second: an INVITE whose CANCEL is not answered is over (RFC 3261 §9.1). */
const CANCEL_LIMIT_MS = 33_000;
const ACK_AND_BYE = (reason: Reason): readonly CallEffect[] => [{ do: 'acknowledge' }, { do: 'bye', reason }];

/** Whether the call is one that we place, before its ACK. */
export function isPlacing(state: CallState): state is PlacedCall {
  return state.placing !== null && ['Routing', 'Reserving', 'OfferingOutward', 'Dialling', 'Connecting'].includes(state.name);
}

/** `null`: the event is treated as in a call that came in. */
export function stepPlacing(state: PlacedCall, event: CallEvent): PlacingStep | null {
  switch (event.type) {
    case 'failed':
      return event.reason === 'AGENT_UNAVAILABLE' ? onAgentUnavailable(state) : giveUp(state, event.reason);
    case 'hangup':
      if (event.reason === 'AGENT_LOST') return onAgentUnavailable(state);
      return giveUp(state, event.reason === 'DRAINING' ? 'SHUTDOWN' : event.reason);
    case 'leg-lost':
      return giveUp(state, state.name === 'Connecting' ? 'MEDIA_LOST' : 'MEDIA_UNAVAILABLE');
    default:
      break;
  }
  switch (state.name) {
    case 'Routing':
      return onAsking(state, event);
    case 'OfferingOutward':
      return event.type === 'relay-offered-to-carrier' ? onOffer(state, event.sdp) : null;
    case 'Dialling':
      return onDialling(state, event);
    case 'Connecting':
      return onConnecting(state, event);
    default:
      return null;
  }
}

function onAsking(state: PlacedCall, event: CallEvent): PlacingStep | null {
  switch (event.type) {
    case 'placed':
      return { state, effects: [{ do: 'permit' }] };
    case 'permitted':
      return onPermitted(state, event);
    case 'not-permitted':
      return { state, effects: NOTHING, ended: event.reason };
    default:
      return null;
  }
}

function onDialling(state: PlacedCall, event: CallEvent): PlacingStep | null {
  switch (event.type) {
    case 'dial-proceeding':
      return onProceeding(state, event.status);
    case 'dial-answered':
      return onAnswered(state, event.sdp);
    case 'dial-refused':
      return onRefused(state, event);
    case 'relay-lost':
      return giveUp(state, 'MEDIA_UNAVAILABLE');
    case 'timer':
      if (event.timer === 'unanswered') return giveUp(state, 'NO_ANSWER');
      return event.timer === 'cancelling' ? { state, effects: NOTHING, ended: state.placing.givenUp ?? 'DIAL_AMBIGUOUS' } : null;
    default:
      return null;
  }
}

function onConnecting(state: PlacedCall, event: CallEvent): PlacingStep | null {
  switch (event.type) {
    case 'relay-answered-from-carrier':
      return state.facts.joins === undefined || state.isBriefing ? null : join(state, event.sdp, state.facts.joins);
    case 'agent-connected':
      return ready({ ...state, agent: { ...state.agent, isConnected: true } });
    case 'leg-opened':
      return ready({ ...state, placing: { ...state.placing, isLegOpen: true } });
    case 'agent-refused':
      return giveUp(state, event.reason);
    case 'relay-lost':
      return giveUp(state, 'MEDIA_LOST');
    case 'bye':
      return { state, effects: [{ do: 'acknowledge' }], ended: event.reason };
    case 'reoffered':
      // RFC 3261 §14.2: the first exchange is not complete.
      return { state, effects: [{ do: 'reject', requestId: event.requestId, reason: 'REQUEST_PENDING' }] };
    case 'timer':
      return event.timer === 'max-duration' ? giveUp(state, 'MAX_DURATION') : null;
    default:
      return null;
  }
}

function onPermitted(state: PlacedCall, { route, permit }: EventOf<'permitted'>): PlacingStep {
  const permitted = { ...state, route, placing: { ...state.placing, permit } };
  const { joins } = state.facts;
  if (joins === undefined || state.isBriefing) return { state: { ...permitted, name: 'Reserving' }, effects: [{ do: 'reserve-leg' }] };
  const { local, key } = state.wantedSide ?? asAgentSide(joins.side, '1');
  return {
    state: { ...permitted, name: 'OfferingOutward', local, agentSideKey: key },
    effects: [{ do: 'offer-to-carrier', sdp: endpointOffer(local, key, offerOf(state)), passesSrtp: key !== null, attempt: state.attempt }],
  };
}

/** What we offer in a call that we place. */
export function offerOf({ facts }: Pick<CallState, 'facts'>): typeof OWN_OFFER {
  return facts.joins === undefined ? OWN_OFFER : offerInFormat(facts.joins.format);
}

function onProceeding(state: PlacedCall, status: number): PlacingStep {
  const { joins } = state.facts;
  return {
    state: { ...state, placing: { ...state.placing, isProceeding: true } },
    effects:
      joins === undefined || status < 180
        ? NOTHING
        : [{ do: 'tell-call', callId: joins.callId, event: { type: 'leg-ringing', callId: joins.legId } }],
  };
}

function onOffer(state: PlacedCall, sdp: string): PlacingStep {
  const outside = readRelaySdp(sdp);
  const offer = outside === undefined ? undefined : ownOfferSdp(outside, { sessionId: state.facts.sessionId, version: 1 }, offerOf(state));
  if (outside === undefined || offer === undefined) return giveUp(state, 'MEDIA_UNAVAILABLE');
  return {
    state: { ...state, name: 'Dialling', lateOffer: { sdp: offer, outside } },
    effects: [
      // A process that finds it without an outcome dials no second time.
      { do: 'keep' },
      { do: 'dial', sdp: offer },
      { do: 'start-timer', timer: 'unanswered', delayMs: state.placing.ringTimeoutMs },
    ],
  };
}

function onAnswered(state: PlacedCall, sdp: string): PlacingStep {
  const { placing, lateOffer } = state;
  const answered = { ...state, placing: { ...placing, status: 200 } };
  // It crossed our CANCEL.
  if (placing.givenUp !== null) return { state: answered, effects: ACK_AND_BYE(placing.givenUp), ended: placing.givenUp };
  const answer = readAnswer(sdp, offerOf(state));
  if (!answer.ok || lateOffer === null || !isReachable(answer.value.address, lateOffer.outside.address))
    return { state: answered, effects: ACK_AND_BYE('BAD_ANSWER'), ended: 'BAD_ANSWER' };
  const media = answer.value;
  return {
    state: { ...answered, name: 'Connecting', media, facts: { ...state.facts, sdp } },
    effects: [
      { do: 'stop-timer', timer: 'unanswered' },
      { do: 'start-timer', timer: 'max-duration', delayMs: maxDurationMs(state) },
      ...(state.facts.joins === undefined || state.isBriefing ? [{ do: 'connect-agent', choice: state.agent.choice } as const] : []),
      { do: 'answer-from-carrier', media, attempt: state.attempt },
    ],
  };
}

function onRefused(state: PlacedCall, { status, isLocal }: EventOf<'dial-refused'>): PlacingStep {
  const { placing } = state;
  const refused = { ...state, placing: { ...placing, status: isLocal ? null : status } };
  return { state: refused, effects: NOTHING, ended: placing.givenUp ?? reasonOf(status, isLocal, placing.isProceeding) };
}

/** What a final status says of a call that nobody cancelled. */
export function reasonOf(status: number, isLocal: boolean, isProceeding: boolean): Reason {
  // No response: a carrier that was reached may have called, and may have been answered.
  if (isLocal) return status === 503 && !isProceeding ? 'TRUNK_UNREACHABLE' : 'DIAL_AMBIGUOUS';
  switch (status) {
    case 486:
    case 600:
      return 'BUSY';
    case 408:
    case 480:
    case 487:
      return 'NO_ANSWER';
    // RFC 8197, RFC 8688
    case 603:
    case 607:
    case 608:
      return 'CALLEE_DECLINED';
    default:
      return 'TRUNK_REFUSED';
  }
}

/** Answered: ACK, and the call that it joins sends its media here. */
function join(state: PlacedCall, sdp: string, { callId, legId }: JoinedCall): PlacingStep {
  const inside = readRelaySdp(sdp);
  const { media, lateOffer, facts } = state;
  if (inside === undefined || media === null || lateOffer === null) return giveUp(state, 'MEDIA_LOST');
  const session = { media, outside: lateOffer.outside, carrierSdp: facts.sdp, sentSdp: lateOffer.sdp, version: 1 };
  const event = { type: 'leg-answered', callId: legId, side: inside } as const;
  return { state: { ...state, inside, session }, effects: [{ do: 'acknowledge' }, { do: 'tell-call', callId, event }], talks: true };
}

/** The leg is open and the agent is there: ACK, and the agent speaks. */
function ready(state: PlacedCall): PlacingStep {
  const isReady = state.agent.isConnected && state.placing.isLegOpen;
  return isReady ? { state, effects: [{ do: 'acknowledge' }], talks: true } : { state, effects: NOTHING };
}

/** Another agent may stand in, once: whoever answered is waiting. */
function onAgentUnavailable(state: PlacedCall): PlacingStep {
  const { standIn } = state.facts;
  if (state.name !== 'Connecting' || state.agent.choice !== 'own' || standIn === null) return giveUp(state, 'AGENT_UNAVAILABLE');
  return { state: { ...state, agent: { choice: standIn, isConnected: false } }, effects: [{ do: 'connect-agent', choice: standIn }] };
}

/** Ends the call from our side: before the INVITE at once, then with CANCEL, and once it is answered with ACK and BYE. */
function giveUp(state: PlacedCall, reason: Reason): PlacingStep {
  const { placing } = state;
  if (state.name === 'Connecting') return { state, effects: ACK_AND_BYE(reason), ended: reason };
  if (state.name !== 'Dialling') return { state, effects: NOTHING, ended: reason };
  if (placing.givenUp !== null) return { state, effects: NOTHING };
  return {
    state: { ...state, placing: { ...placing, givenUp: reason } },
    effects: [
      { do: 'stop-timer', timer: 'unanswered' },
      { do: 'start-timer', timer: 'cancelling', delayMs: CANCEL_LIMIT_MS },
      // The SIP server keeps it back until a provisional response has come (RFC 3261 §9.1).
      { do: 'cancel-dial', reason },
    ],
  };
}

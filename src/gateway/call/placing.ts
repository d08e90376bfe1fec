import type { Reason } from '../model/reasons.js';
import { isReachable, readAnswer, readRelaySdp, type CarrierMedia } from '../sdp/sdp-read.js';
import { endpointOffer, offerInFormat, OWN_OFFER, ownOfferSdp } from '../sdp/sdp-write.js';
import { asAgentSide } from './agent-side.js';
import { onBriefed } from './second-leg.js';
import {
  byeReason,
  maxDurationMs,
  type AgentSide,
  type CallEffect,
  type CallEvent,
  type CallState,
  type CallStep,
  type PlacedCall,
} from './state.js';

// A call that we place, until its 200 is acknowledged: permission, our offer, INVITE, CANCEL, the agent, ACK. From then on it is a call
// like any other. The agent is connected before the ACK, so that the person who answers hears it at once. A second leg has no agent, or one that
// briefs: its media goes to the call that it joins (second-leg.ts), as early media does before the answer.

type EventOf<Type extends CallEvent['type']> = Extract<CallEvent, { type: Type }>;

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
/** What some trunks answer in place of 487. */
const CANCELLED_LATE = 408;
const ACK_AND_BYE = (reason: Reason): readonly CallEffect[] => [{ do: 'acknowledge' }, { do: 'bye', reason }];

/** `null`: the event is treated as in a call that came in. */
export function stepPlacing(state: PlacedCall, event: CallEvent): PlacingStep | null {
  switch (event.type) {
    case 'failed':
      if (state.name === 'Dialling' && isOfMedia(event.reason)) return unheard(state, event.reason === 'AGENT_UNAVAILABLE');
      return event.reason === 'AGENT_UNAVAILABLE' ? onAgentUnavailable(state) : giveUp(state, event.reason);
    case 'hangup':
      if (event.reason === 'AGENT_LOST') return onAgentUnavailable(state);
      return giveUp(state, event.reason === 'DRAINING' ? 'SHUTDOWN' : event.reason);
    case 'leg-lost':
      if (state.name === 'Dialling') return unheard(state, false);
      return giveUp(state, state.name === 'Connecting' ? 'MEDIA_LOST' : 'MEDIA_UNAVAILABLE');
    default:
      break;
  }
  switch (state.name) {
    case 'Routing':
      return onAsking(state, event);
    case 'Reserving':
      return event.type === 'leg-reserved' ? onReserved(state, event) : null;
    case 'OfferingToCarrier':
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
    case 'not-permitted':
      // The INVITE has not left.
      return { state: { ...state, lateOffer: null }, effects: NOTHING, ended: state.placing.givenUp ?? event.reason };
    case 'dial-proceeding':
      return onProceeding(state, event);
    case 'relay-answered-from-carrier':
      return onEarlyMedia(state, event.sdp);
    case 'leg-opened':
      return { state: { ...state, placing: { ...state.placing, isLegOpen: true } }, effects: NOTHING };
    case 'agent-connected':
      // What hands early media over.
      return { state, effects: NOTHING };
    case 'dial-answered':
      return onAnswered(state, event.sdp);
    case 'dial-refused':
      return onRefused(state, event);
    case 'relay-lost':
      return giveUp(state, 'MEDIA_UNAVAILABLE');
    case 'timer':
      if (event.timer === 'unanswered') return giveUp(state, 'NO_ANSWER');
      return event.timer === 'cancelling' ? { state, effects: NOTHING, ended: inDoubt(state, 'DIAL_AMBIGUOUS') } : null;
    default:
      return null;
  }
}

function onConnecting(state: PlacedCall, event: CallEvent): PlacingStep | null {
  switch (event.type) {
    case 'relay-answered-from-carrier':
      return onRelayAnswered(state, event.sdp);
    case 'agent-connected':
      return hasAgent(state) ? ready({ ...state, agent: { ...state.agent, isConnected: true } }) : { state, effects: NOTHING };
    case 'leg-opened':
      return onLegOpened({ ...state, placing: { ...state.placing, isLegOpen: true } });
    case 'agent-refused':
      return giveUp(state, event.reason);
    case 'relay-lost':
      return giveUp(state, 'MEDIA_LOST');
    case 'bye':
      return { state, effects: [{ do: 'acknowledge' }], ended: byeReason(state, event.reason) };
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
  return { state: { ...state, name: 'Reserving', route, placing: { ...state.placing, permit } }, effects: [{ do: 'reserve-leg' }] };
}

/** Whether an agent of ours talks to the person who answers. */
function hasAgent({ facts: { joins } }: PlacedCall): boolean {
  return joins === undefined || joins.briefing !== null;
}

/** rtpengine makes the offer to the carrier from this agent side. */
export function offerOutward(state: CallState, { local, key }: AgentSide): CallStep {
  const sdp = endpointOffer(local, key, offerOf(state));
  return {
    state: { ...state, name: 'OfferingToCarrier', local, agentSideKey: key },
    effects: [{ do: 'offer-to-carrier', sdp, passesSrtp: key !== null, attempt: state.attempt }],
  };
}

/** Where rtpengine passes SRTP through, a leg that joins a call at once gets that call's key from the start: nothing is sent to it before. */
function onReserved(state: PlacedCall, { local, agentSideKey }: EventOf<'leg-reserved'>): PlacingStep {
  const { joins } = state.facts;
  return offerOutward(state, { local, key: joins === undefined || hasAgent(state) ? agentSideKey : asAgentSide(joins.side, '1').key });
}

/**
 * What we offer in a call that we place. A second leg gets the caller's law alone, also where our media thread joins both at first: in the end
 * rtpengine alone does, and hands packets through as they are.
 */
function offerOf({ facts }: Pick<CallState, 'facts'>): typeof OWN_OFFER {
  return facts.joins === undefined ? OWN_OFFER : offerInFormat(facts.joins.format);
}

function onProceeding(state: PlacedCall, { status, sdp }: EventOf<'dial-proceeding'>): PlacingStep {
  const { joins } = state.facts;
  const early = sdp === '' ? {} : { hasEarlySdp: true as const };
  const proceeding = { ...state, placing: { ...state.placing, isProceeding: true, ...early } };
  if (joins === undefined || status < 180) return { state: proceeding, effects: NOTHING };
  const ringing = { do: 'notify-call', callId: joins.callId, event: { type: 'leg-ringing', callId: joins.legId } } as const;
  const media = state.placing.earlyMedia === 'none' && state.placing.givenUp === null ? usableAnswer(state, sdp) : undefined;
  if (media === undefined) return { state: proceeding, effects: [ringing] };
  return {
    state: { ...proceeding, media, placing: { ...proceeding.placing, earlyMedia: 'asked' } },
    effects: [ringing, { do: 'answer-from-carrier', media, attempt: state.attempt }],
  };
}

/** rtpengine took an early dialog's description: what comes from there goes to the caller, and nothing comes back. */
function onEarlyMedia(state: PlacedCall, sdp: string): PlacingStep {
  const { placing, media, local, agentSideKey } = state;
  const agentFacing = readRelaySdp(sdp);
  if (placing.earlyMedia !== 'asked' || placing.givenUp !== null || agentFacing === undefined || media === null || local === null)
    return { state, effects: NOTHING };
  return {
    state: { ...state, agentFacing, placing: { ...placing, earlyMedia: 'heard' } },
    effects: [
      { do: 'open-leg', media, agentFacing, reserved: { local, agentSideKey } },
      { do: 'connect-agent', choice: 'early-media' },
    ],
  };
}

/** Early media that the caller does not get ends nothing. @param isOpen the leg is there */
function unheard(state: PlacedCall, isOpen: boolean): PlacingStep {
  const { placing } = state;
  return isOpen
    ? { state, effects: NOTHING }
    : { state: { ...state, placing: { ...placing, earlyMedia: 'none', isLegOpen: false } }, effects: NOTHING };
}

function isOfMedia(reason: EventOf<'failed'>['reason']): boolean {
  return reason === 'AGENT_UNAVAILABLE' || reason === 'MEDIA_UNAVAILABLE';
}

function usableAnswer(state: PlacedCall, sdp: string): CarrierMedia | undefined {
  const answer = readAnswer(sdp, offerOf(state));
  if (!answer.ok || state.lateOffer === null || !isReachable(answer.value.address, state.lateOffer.carrierFacing.address)) return undefined;
  return answer.value;
}

function onOffer(state: PlacedCall, sdp: string): PlacingStep {
  const carrierFacing = readRelaySdp(sdp);
  const offer =
    carrierFacing === undefined ? undefined : ownOfferSdp(carrierFacing, { sessionId: state.facts.sessionId, version: 1 }, offerOf(state));
  if (carrierFacing === undefined || offer === undefined) return giveUp(state, 'MEDIA_UNAVAILABLE');
  return {
    state: { ...state, name: 'Dialling', lateOffer: { sdp: offer, carrierFacing } },
    effects: [
      // A process that finds it without an outcome dials no second time.
      { do: 'keep' },
      { do: 'dial', sdp: offer },
      { do: 'start-timer', timer: 'unanswered', delayMs: state.placing.ringTimeoutMs },
    ],
  };
}

function onAnswered(state: PlacedCall, sdp: string): PlacingStep {
  const { placing } = state;
  const answered = { ...state, placing: { ...placing, status: 200 } };
  // It crossed our CANCEL.
  if (placing.givenUp !== null) return { state: answered, effects: ACK_AND_BYE(placing.givenUp), ended: placing.givenUp };
  const media = usableAnswer(state, sdp);
  if (media === undefined) return { state: answered, effects: ACK_AND_BYE('BAD_ANSWER'), ended: 'BAD_ANSWER' };
  // rtpengine's answer to an early dialog may still be on its way.
  const attempt = placing.earlyMedia === 'none' ? state.attempt : state.attempt + 1;
  const isUndecrypted = placing.earlyMedia === 'none' && placing.hasEarlySdp === true;
  return {
    state: { ...answered, name: 'Connecting', media, attempt, facts: { ...state.facts, sdp } },
    effects: [
      { do: 'stop-timer', timer: 'unanswered' },
      { do: 'start-timer', timer: 'max-duration', delayMs: maxDurationMs(state) },
      ...(hasAgent(state) ? [{ do: 'connect-agent', choice: state.agent.choice } as const] : []),
      { do: 'answer-from-carrier', media, attempt, ...(isUndecrypted ? { isAfterEarlyMedia: true } : {}) },
    ],
  };
}

function onRefused(state: PlacedCall, { status, isLocal }: EventOf<'dial-refused'>): PlacingStep {
  const { placing } = state;
  const refused = { ...state, placing: { ...placing, status: isLocal ? null : status } };
  const reason = reasonOf(status, isLocal, placing.isProceeding);
  const isUnclear = isLocal || (reason === 'DIAL_AMBIGUOUS' && status !== CANCELLED_LATE);
  return { state: refused, effects: NOTHING, ended: isUnclear ? inDoubt(state, reason) : (placing.givenUp ?? reason) };
}

/** What rang out is NO_ANSWER, which allows another call, only if the trunk answers our CANCEL. */
function inDoubt({ placing: { givenUp } }: PlacedCall, reason: Reason): Reason {
  return givenUp === 'NO_ANSWER' ? reason : (givenUp ?? reason);
}

/** What a final status says of a call that nobody cancelled. */
export function reasonOf(status: number, isLocal: boolean, isProceeding: boolean): Reason {
  // No response: a carrier that was reached may have called, and may have been answered.
  if (isLocal) return status === 503 && !isProceeding ? 'TRUNK_UNREACHABLE' : 'DIAL_AMBIGUOUS';
  switch (status) {
    case 486:
    case 600:
      return 'BUSY';
    // The trunk, or a server behind it, lost sight of the call.
    case 408:
    case 500:
    case 504:
      return 'DIAL_AMBIGUOUS';
    case 480:
    case 487:
      return 'NO_ANSWER';
    case 482:
      return 'LOOP_DETECTED';
    // RFC 8197, RFC 8688
    case 603:
    case 607:
    case 608:
      return 'CALLEE_DECLINED';
    default:
      return 'TRUNK_REFUSED';
  }
}

/** A party that joins a call at once gets the ACK, and its media changes over; for an agent the leg opens, if it did not for early media. */
function onRelayAnswered(state: PlacedCall, sdp: string): PlacingStep {
  const agreed = agreedOnOffer(state, sdp);
  if (agreed === null) return giveUp(state, 'MEDIA_LOST');
  if (!hasAgent(state)) return { state: onBriefed(agreed.state).state, effects: [{ do: 'acknowledge' }], talks: true };
  if (state.placing.earlyMedia !== 'heard') return { state: agreed.state, effects: [agreed.open] };
  return state.placing.isLegOpen ? onLegOpened(agreed.state) : { state: agreed.state, effects: NOTHING };
}

/** The carrier's answer to our offer is rtpengine's, too: the session, and what opens its leg. `null`: it cannot be used. */
export function agreedOnOffer<S extends CallState>(state: S, sdp: string): { readonly state: S; readonly open: CallEffect } | null {
  const agentFacing = readRelaySdp(sdp);
  const { media, local, agentSideKey, lateOffer, facts } = state;
  if (agentFacing === undefined || media === null || local === null || lateOffer === null) return null;
  const session = { media, carrierFacing: lateOffer.carrierFacing, carrierSdp: facts.sdp, sentSdp: lateOffer.sdp, version: 1 };
  return { state: { ...state, agentFacing, session }, open: { do: 'open-leg', media, agentFacing, reserved: { local, agentSideKey } } };
}

/** A leg that early media opened has what was described there. */
function onLegOpened(state: PlacedCall): PlacingStep {
  const { placing, session, agentFacing, agentSideKey } = state;
  if (placing.earlyMedia !== 'heard' || session === null || agentFacing === null) return ready(state);
  const { effects, ...step } = ready(state);
  return { ...step, effects: [{ do: 'change-leg', media: session.media, agentFacing, agentSideKey }, ...effects] };
}

/** The leg is open and the agent is there: ACK, and the agent speaks. */
function ready(state: PlacedCall): PlacingStep {
  const isReady = state.agent.isConnected && state.placing.isLegOpen && state.session !== null;
  return isReady ? { state, effects: [{ do: 'acknowledge' }], talks: true } : { state, effects: NOTHING };
}

/** Another agent may stand in, once: the person who answered is waiting. */
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

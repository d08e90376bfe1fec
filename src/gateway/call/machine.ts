import { assertNever } from '../../lib/result.js';
import { decide } from '../admission/admission.js';
import type { Reason } from '../model/reasons.js';
import type { MediaAddress } from '../model/media.js';
import { isReachable, readAnswer, readRelaySdp, type CarrierMedia, type RelaySide } from '../sdp/sdp-read.js';
import { endpointSdp, OWN_OFFER, ownOfferSdp, sessionSdp } from '../sdp/sdp-write.js';
import {
  changeOver,
  directLeg,
  offerAnswerFailed,
  IDLE,
  onAnswerInAck,
  onRefreshDue,
  onReinviteAnswered,
  onReinviteTimer,
  onRelayAnsweredAgain,
  moveAway,
  onRelayLost,
  onRelayMovedIn,
  onRelayOfferedAgain,
  onRelayOfferedToCarrier,
  onReoffered,
  rejectPending,
  settle,
  type OfferAnswerStep,
} from './offer-answer.js';
import { HELD_PING_MS, isUnwatched, sideDue } from './agent-side.js';
import {
  isTooLateFromAgent,
  onBriefed,
  introduction,
  onLegReservedAgain,
  onLegRinging,
  partingWords,
  hangUpLeg,
  resumedSecond,
  stepSecondLeg,
  type SecondLegStep,
} from './second-leg.js';
import { onNotified, onReferAnswered, onTransferAsked, onTransferTimer, type TransferStep } from './transfer.js';
import { agreedOnOffer, offerOutward, stepPlacing, type PlacingStep } from './placing.js';
import {
  byeReason,
  isJoined,
  isPlacing,
  maxDurationMs,
  type CallEffect,
  type CallEvent,
  type CallFacts,
  type CallState,
  type CallStep,
  type CallTimer,
  type HangupReason,
  type StandIn,
} from './state.js';

const NOTHING: readonly CallEffect[] = [];
const MAX_UNANSWERED_PROBES = 2;
/** The call itself may crash its media thread. */
const MAX_LEGS_LOST = 3;

type EventOf<Type extends CallEvent['type']> = Extract<CallEvent, { type: Type }>;

/** @param ringTimeoutMs of a call that we place; left out: it came in */
export function startCall(facts: CallFacts, ringTimeoutMs: number | null = null): CallState {
  const isBriefing = facts.joins !== undefined;
  const placing = { isProceeding: false, givenUp: null, status: null, permit: null, isLegOpen: false, earlyMedia: 'none' } as const;
  return {
    name: 'Routing',
    facts,
    route: null,
    isStale: false,
    identity: null,
    agent: { choice: isBriefing ? 'briefing' : 'own', isConnected: false },
    placing: ringTimeoutMs === null ? null : { ...placing, ringTimeoutMs },
    media: null,
    agentFacing: null,
    local: null,
    agentSideKey: null,
    wantedSide: null,
    session: null,
    lateOffer: null,
    exchange: IDLE,
    transfer: null,
    referCount: 0,
    isBriefing,
    second: null,
    attempt: 0,
    unansweredProbes: 0,
    isMoveDue: false,
    moves: 0,
    isLegDue: false,
    legsLost: 0,
    isRingDue: false,
    reason: null,
  };
}

/** One event; the effects are carried out in order before the next event. Events that come too late change nothing. */
export function stepCall(state: CallState, event: CallEvent): CallStep {
  if (state.name === 'Ended') return { state, effects: tooLate(event, state.reason ?? 'INTERNAL_ERROR') };
  // What an earlier exchange asked for.
  if ('attempt' in event && event.attempt !== null && event.attempt !== state.attempt) return { state, effects: NOTHING };
  const placing = isPlacing(state) ? stepPlacing(state, event) : null;
  if (placing !== null) return placed(placing);
  switch (event.type) {
    case 'placed':
    case 'permitted':
    case 'not-permitted':
    case 'dial-proceeding':
    case 'dial-answered':
    case 'dial-refused':
      return { state, effects: NOTHING };
    case 'invited':
      return state.name === 'Routing' ? { state, effects: [...ringingTimer(state), { do: 'route' }] } : { state, effects: NOTHING };
    case 'inadmissible':
      return state.name === 'Routing' ? refuse(state, event.reason, event.detail) : { state, effects: NOTHING };
    case 'routed':
      return state.name === 'Routing' ? onRouted(state, event) : { state, effects: NOTHING };
    case 'agent-connected':
      return onAgentConnected(state);
    case 'agent-away':
      // A call that is not answered yet need not wait for it.
      return isAnswered(state) ? { state, effects: NOTHING } : onAgentUnavailable(state);
    case 'agent-refused':
      return isAnswered(state) ? hangUp(state, 'AGENT_HANGUP') : refuse(state, event.reason);
    case 'relay-offered':
      return state.name === 'Offering' ? onRelayOffered(state, event.sdp) : within(onRelayOfferedAgain(state, event.sdp));
    case 'leg-reserved':
      if (state.name === 'Talking') return onLegReservedInCall(state, event);
      return onLegReserved(state, event);
    case 'leg-opened':
      return onLegOpened(state);
    case 'relay-answered':
      return state.name === 'Answering' ? onRelayAnswered(state, event.sdp) : within(onRelayAnsweredAgain(state, event.sdp));
    case 'relay-offered-to-carrier':
      return state.name === 'OfferingToCarrier' ? onOwnOffer(state, event.sdp) : within(onRelayOfferedToCarrier(state, event.sdp));
    case 'relay-answered-from-carrier':
      return state.name === 'Connecting' ? onConnected(state, event.sdp) : within(onRelayMovedIn(state, event.sdp));
    case 'failed':
      return onFailed(state, event);
    case 'server-lost':
      return finish(state, event.reason, []);
    case 'answer-failed':
      return isAnswered(state) ? finish(state, event.reason, []) : { state, effects: NOTHING };
    case 'cancelled':
      // The SIP server has sent the 487 already. A CANCEL that crosses our 200 is answered there and changes nothing here.
      return isAnswered(state) ? { state, effects: NOTHING } : finish(state, 'CALLER_CANCELLED', []);
    case 'acknowledged':
      return onAcknowledged(state, event.sdp);
    case 'bye':
      return isAnswered(state) ? finish(state, state.reason ?? byeReason(state, event.reason), []) : { state, effects: NOTHING };
    case 'hangup':
      return onHangup(state, event);
    case 'reoffered':
      return within(onReoffered(state, event));
    case 'refresh-due':
      return state.name === 'Talking' ? onRefreshDue(state) : { state, effects: NOTHING };
    case 'reinvite-answered':
      return within(onReinviteAnswered(state, event));
    case 'transfer-asked':
      return onTransferAsked(state, event);
    case 'refer-answered':
      return onReferAnswered(state, event);
    case 'notified':
      return transferring(onNotified(state, event));
    case 'leg-ringing':
      return onLegRinging(state, event);
    case 'leg-consulting':
    case 'leg-answered':
    case 'leg-ended':
    case 'leg-left':
    case 'side-changed':
    case 'transfer-step':
    case 'briefed':
      return joining(stepSecondLeg(state, event));
    case 'pinged':
      return onProbed(state, event.isAnswered);
    case 'relay-lost':
      return onLost(state, event);
    case 'leg-lost':
      return onLegLost(state);
    case 'timer':
      return onTimer(state, event.timer);
    default:
      return assertNever(event);
  }
}

/** Answers requests that crossed the end of the call. */
function tooLate(event: CallEvent, reason: Reason): readonly CallEffect[] {
  // RFC 3261 §13.2.2.4: a 2xx that comes after we gave up is acknowledged, and the call ended.
  if (event.type === 'dial-answered') return [{ do: 'acknowledge' }, { do: 'bye', reason }];
  if (event.type === 'leg-answered' || event.type === 'leg-consulting') return [hangUpLeg(event.callId)];
  const isRequest = event.type === 'reoffered' || event.type === 'notified';
  return isRequest ? [{ do: 'reject', requestId: event.requestId, reason: 'NO_DIALOG' }] : NOTHING;
}

/** A step of a call that we place, which may begin or end its talk. */
function placed({ state, effects, ended, talks }: PlacingStep): CallStep {
  if (ended !== undefined) return finish(state, ended, effects);
  return talks === true ? after({ state, effects }, talk(state)) : { state, effects };
}

/** A step of an exchange within the call, which may end the call. */
function within(step: OfferAnswerStep): CallStep {
  return step.lost === undefined ? step : hangUp(step.state, step.lost, step.effects);
}

/** A step of a transfer, after which the caller may be elsewhere. */
function transferring({ state, effects, isDone }: TransferStep): CallStep {
  return isDone === true ? hangUp(state, 'TRANSFERRED', effects) : { state, effects };
}

/** A step with the other call of a transfer, after which this one's media may change over, or the call is to end. */
function joining({ state, effects, isDone }: SecondLegStep): CallStep {
  return isDone === true ? hangUp(state, 'PEER_HANGUP', effects) : within(changeOver(state, effects));
}

function isAnswered({ name }: CallState): boolean {
  return name === 'AwaitingAck' || name === 'Connecting' || name === 'Talking' || name === 'HangingUp';
}

function ringingTimer(state: CallState): CallEffect[] {
  const { ringingAfterMs } = state.facts;
  return ringingAfterMs === null ? [] : [{ do: 'start-timer', timer: 'ringing', delayMs: ringingAfterMs }];
}

function onRouted(state: CallState, { route, load, isStale, identity, credentials, namedHeaders }: EventOf<'routed'>): CallStep {
  const { sourceAddress, sdp, refusedVerdicts, relayAddress } = state.facts;
  const decision = decide({ route, sourceAddress, credentials, identity, refusedVerdicts, sdp, relayAddress, load });
  const routed = { ...state, route, isStale, identity, ...(namedHeaders === undefined ? {} : { namedHeaders }) };
  if (!decision.ok && decision.error === 'CREDENTIALS_REQUIRED')
    return finish(routed, decision.error, [{ do: 'challenge', isStale: credentials === 'stale' }]);
  if (!decision.ok) return refuse(routed, decision.error);
  const media = decision.value;
  // The agent has the time that the media takes to get ready.
  const connect = { do: 'connect-agent', choice: state.agent.choice } as const;
  const ready = [connect, { do: 'reserve-leg' }] as const;
  if (media === null) return { state: { ...routed, name: 'Reserving' }, effects: ready };
  return { state: { ...routed, name: 'Offering', media }, effects: [...ready, { do: 'offer-relay', media, attempt: state.attempt }] };
}

function onAgentConnected(state: CallState): CallStep {
  if (state.name === 'Routing') return { state, effects: NOTHING };
  // It came while the media of the call changed over to another one.
  if (isJoined(state)) return { state, effects: [{ do: 'close-leg' }] };
  const connected = { ...state, agent: { ...state.agent, isConnected: true } };
  if (state.name === 'AwaitingAgent') return answered(connected);
  if (state.name === 'Talking') return { state: connected, effects: [{ do: 'start-leg' }, { do: 'keep' }] };
  return { state: connected, effects: state.isRingDue && isAccepted(state) ? RING : NOTHING };
}

const RING: readonly CallEffect[] = [{ do: 'ring' }];

/** rtpengine accepted the offer. */
function isAccepted({ name, agentFacing }: CallState): boolean {
  return (name === 'Reserving' && agentFacing !== null) || name === 'Answering' || name === 'AwaitingAgent';
}

/** A refusal never follows an 18x: neither rtpengine nor the agent may have anything left to refuse. */
function mayRing(state: CallState): boolean {
  const { standIn } = state.facts;
  return state.agent.isConnected || (standIn !== null && standIn !== 'second-provider');
}

/** The agent could not be reached, or has no room: before the answer another may stand in for it, once. */
function onAgentUnavailable(state: CallState): CallStep {
  if (isJoined(state)) return { state, effects: NOTHING };
  if (isAnswered(state)) return onAgentLost(state);
  const { standIn } = state.facts;
  if (state.name === 'Routing' || state.agent.choice !== 'own' || standIn === null) return refuse(state, 'AGENT_UNAVAILABLE');
  return standsIn(state, standIn);
}

/** The agent is gone after the 200: another may take the caller over, once. An echo would not help the caller. */
function onAgentLost(state: CallState): CallStep {
  const { standIn } = state.facts;
  if (state.name === 'HangingUp' || state.agent.choice !== 'own' || standIn === null || standIn === 'test-line')
    return hangUp(state, 'AGENT_LOST');
  return standsIn(state, standIn);
}

function standsIn(state: CallState, choice: StandIn): CallStep {
  return { state: { ...state, agent: { choice, isConnected: false } }, effects: [{ do: 'connect-agent', choice }] };
}

function onRelayOffered(state: CallState, sdp: string): CallStep {
  const agentFacing = readRelaySdp(sdp);
  if (agentFacing === undefined || state.media === null) return refuse(state, 'MEDIA_UNAVAILABLE');
  const rings = state.isRingDue && mayRing(state) ? RING : NOTHING;
  if (state.local === null) return { state: { ...state, name: 'Reserving', agentFacing }, effects: rings };
  return after({ state, effects: rings }, connectSides(state, { media: state.media, agentFacing, local: state.local }));
}

/** Both sides of the media are known: the leg opens while rtpengine gets its answer. */
function connectSides(
  state: CallState,
  { media, agentFacing, local }: { readonly media: CarrierMedia; readonly agentFacing: RelaySide; readonly local: MediaAddress },
): CallStep {
  const { crypto } = agentFacing;
  const agentSideKey = crypto === null || state.agentSideKey === null ? null : { ...state.agentSideKey, tag: crypto.tag };
  return {
    state: { ...state, name: 'Answering', agentFacing, local, agentSideKey },
    effects: [
      { do: 'open-leg', media, agentFacing, reserved: { local, agentSideKey } },
      { do: 'answer-relay', sdp: endpointSdp(media, local, agentSideKey), attempt: state.attempt },
    ],
  };
}

function onLegOpened(state: CallState): CallStep {
  if (state.name === 'Connecting') return talk(state);
  if (isJoined(state)) return { state, effects: [{ do: 'close-leg' }] };
  if (state.name === 'Talking' && state.isLegDue) return onLegOpenedAgain({ ...state, isLegDue: false, unansweredProbes: 0 });
  return { state, effects: NOTHING };
}

/** The agent may have been lost with the earlier leg. The caller gets silence until it is back. */
function onLegOpenedAgain(state: CallState): CallStep {
  const { state: next, effects } = talk(state);
  const { choice, isConnected } = state.agent;
  return { state: next, effects: isConnected ? effects : [...effects, { do: 'connect-agent', choice }] };
}

/** The media thread died, and its agents with it. The next thread opens the leg where rtpengine expects it: the carrier notices no change. */
function onLegLost(state: CallState): CallStep {
  const { session, agentFacing, local, agentSideKey, legsLost } = state;
  if (isJoined(state)) return { state, effects: NOTHING };
  const isRestored = state.name === 'Talking' && legsLost < MAX_LEGS_LOST;
  if (!isRestored || session === null || agentFacing === null || local === null)
    return isAnswered(state) ? hangUp(state, 'MEDIA_LOST') : refuse(state, 'MEDIA_UNAVAILABLE');
  const lost = { ...state, agent: { ...state.agent, isConnected: false }, isLegDue: true, legsLost: legsLost + 1 };
  // A leg that waits for a relay opens when it has one.
  if (state.isLegDue) return { state: lost, effects: NOTHING };
  return { state: lost, effects: [{ do: 'open-leg', media: session.media, agentFacing, reserved: { local, agentSideKey } }] };
}

function onRelayAnswered(state: CallState, sdp: string): CallStep {
  const carrierFacing = readRelaySdp(sdp);
  const { media, local, facts } = state;
  if (carrierFacing === undefined || media === null || local === null) return refuse(state, 'MEDIA_UNAVAILABLE');
  if (!isReachable(media.address, carrierFacing.address)) return refuse(state, 'ADDRESS_FAMILY_UNSUPPORTED');
  const answer = sessionSdp(media, carrierFacing, { sessionId: facts.sessionId, version: 1 });
  // rtpengine chose another key than the one offered: never answer with it.
  if (answer === undefined) return refuse(state, 'SRTP_SUITE_UNSUPPORTED');
  const session = { media, carrierFacing, carrierSdp: facts.sdp, sentSdp: answer, version: 1 };
  return answerable({ ...state, session });
}

/** The answer can go out as soon as there is somebody to talk to. */
function answerable(state: CallState): CallStep {
  if (state.agent.isConnected) return answered(state);
  // A carrier that made no offer was not rung before.
  const rings = state.isRingDue && state.lateOffer !== null && mayRing(state);
  return { state: { ...state, name: 'AwaitingAgent' }, effects: rings ? RING : NOTHING };
}

function answered(state: CallState): CallStep {
  const sdp = state.session?.sentSdp ?? state.lateOffer?.sdp;
  if (sdp === undefined) return refuse(state, 'INTERNAL_ERROR');
  return {
    state: { ...state, name: 'AwaitingAck' },
    effects: [
      { do: 'stop-timer', timer: 'ringing' },
      { do: 'answer', sdp },
      { do: 'start-timer', timer: 'max-duration', delayMs: maxDurationMs(state) },
    ],
  };
}

function onLegReserved(state: CallState, { local, agentSideKey }: EventOf<'leg-reserved'>): CallStep {
  const { name, media, agentFacing } = state;
  const reserved = { ...state, local, agentSideKey };
  if (name !== 'Reserving') return { state: name === 'Offering' ? reserved : state, effects: NOTHING };
  // The carrier made no offer (RFC 3261 §13.2.1): the 200 has ours, which rtpengine makes of the endpoint's.
  if (media === null || agentFacing === null) return offerOutward(state, { local, key: agentSideKey });
  return connectSides(reserved, { media, agentFacing, local });
}

function onOwnOffer(state: CallState, sdp: string): CallStep {
  const carrierFacing = readRelaySdp(sdp);
  const offer = carrierFacing === undefined ? undefined : ownOfferSdp(carrierFacing, { sessionId: state.facts.sessionId, version: 1 });
  if (carrierFacing === undefined || offer === undefined) return refuse(state, 'MEDIA_UNAVAILABLE');
  return answerable({ ...state, lateOffer: { sdp: offer, carrierFacing } });
}

function onAcknowledged(state: CallState, sdp: string): CallStep {
  switch (state.name) {
    case 'HangingUp': {
      const reason = state.reason ?? 'INTERNAL_ERROR';
      return finish(state, reason, [{ do: 'bye', reason }]);
    }
    case 'AwaitingAck': {
      if (state.lateOffer !== null) return onLateAnswer(state, sdp);
      // The snapshot of the 200 has the call in all but its ACK.
      const step = talk(state, sdp === '' ? { do: 'keep', mayWait: true } : undefined);
      // The ACK of a re-INVITE that overtook the first one's.
      return sdp === '' ? step : after(step, within(onAnswerInAck(step.state, sdp)));
    }
    case 'Talking':
      return within(onAnswerInAck(state, sdp));
    default:
      return { state, effects: NOTHING };
  }
}

function after(first: CallStep, second: CallStep): CallStep {
  return { state: second.state, effects: [...first.effects, ...second.effects] };
}

/** The answer to our offer in the 200 has to stand in the ACK (RFC 3264 §4, RFC 3261 §13.2.2.4). */
function onLateAnswer(state: CallState, sdp: string): CallStep {
  const answer = readAnswer(sdp, OWN_OFFER);
  const connecting: CallState = { ...state, name: 'Connecting' };
  if (!answer.ok || state.lateOffer === null || !isReachable(answer.value.address, state.lateOffer.carrierFacing.address))
    return hangUp(connecting, 'BAD_ANSWER');
  const media = answer.value;
  return {
    state: { ...connecting, media, facts: { ...state.facts, sdp } },
    effects: [{ do: 'answer-from-carrier', media, attempt: state.attempt }],
  };
}

function onConnected(state: CallState, sdp: string): CallStep {
  const agreed = agreedOnOffer(state, sdp);
  return agreed === null ? hangUp(state, 'MEDIA_LOST') : { state: agreed.state, effects: [agreed.open] };
}

/** Acknowledged, and the leg is open: the agent starts. */
function talk(state: CallState, keep?: CallEffect): CallStep {
  if (isJoined(state)) return settle({ ...state, name: 'Talking' }, [{ do: 'start-timer', timer: 'held', delayMs: HELD_PING_MS }], keep);
  const { direction, isHeld } = state.session?.media ?? { direction: 'sendrecv', isHeld: false };
  // Its media changes over at once.
  if (sideDue(state) !== null) return settle({ ...state, name: 'Talking' }, [], keep);
  const directed = direction === 'sendrecv' ? [] : directLeg(direction, isHeld ? true : null);
  return settle({ ...state, name: 'Talking' }, [{ do: 'start-leg' }, ...directed, ...introduction(state)], keep);
}

function onFailed(state: CallState, { reason, attempt }: EventOf<'failed'>): CallStep {
  if (reason === 'AGENT_UNAVAILABLE') return onAgentUnavailable(state);
  if (!isAnswered(state)) return refuse(state, reason);
  // Nothing else would open its leg.
  const isLegLost = attempt === null && state.isLegDue;
  return isLegLost || state.exchange.name === 'Idle' ? hangUp(state, 'MEDIA_LOST') : within(offerAnswerFailed(state));
}

function onLost(state: CallState, event: EventOf<'relay-lost'>): CallStep {
  switch (state.name) {
    // The relay has not been asked, or the command under way is tried elsewhere.
    case 'Routing':
    case 'Offering':
    case 'OfferingToCarrier':
    case 'Dialling':
    case 'HangingUp':
    case 'Ended':
      return { state, effects: NOTHING };
    case 'Reserving':
      return state.agentFacing === null ? { state, effects: NOTHING } : refuse(state, 'MEDIA_UNAVAILABLE');
    case 'Answering':
    case 'AwaitingAgent':
      return refuse(state, 'MEDIA_UNAVAILABLE');
    case 'AwaitingAck':
    case 'Connecting':
    case 'Talking':
      return within(onRelayLost(state, event));
  }
}

function onHangup(before: CallState, event: EventOf<'hangup'>): CallStep {
  const { reason, sipHeaders } = event;
  const state = sipHeaders === undefined ? before : { ...before, byeHeaders: sipHeaders };
  if (isTooLateFromAgent(state, event)) return { state, effects: NOTHING };
  if (state.isBriefing && state.name === 'Talking' && reason === 'AGENT_HANGUP') return joining(onBriefed(state));
  if (reason === 'AGENT_LOST') return onAgentUnavailable(state);
  if (isAnswered(state)) return hangUp(state, reason === 'DRAINING' ? 'SHUTDOWN' : reason);
  return refuse(state, refusalOf(reason));
}

/** What a caller gets that is not answered yet. */
function refusalOf(reason: HangupReason): Reason {
  switch (reason) {
    case 'SHUTDOWN':
    case 'DRAINING':
      return 'DRAINING';
    case 'AGENT_HANGUP':
    case 'AGENT_LOST':
      return 'AGENT_UNAVAILABLE';
    case 'API_STOPPED':
      return 'DECLINED';
    default:
      return 'MEDIA_UNAVAILABLE';
  }
}

function onTimer(state: CallState, timer: CallTimer): CallStep {
  switch (timer) {
    case 'ringing':
      if (isAccepted(state) && mayRing(state)) return { state, effects: RING };
      return { state: { ...state, isRingDue: true }, effects: NOTHING };
    case 'max-duration':
      return isAnswered(state) ? hangUp(state, 'MAX_DURATION') : { state, effects: NOTHING };
    case 'reinvite':
      return within(onReinviteTimer(state));
    case 'transfer':
      return onTransferTimer(state);
    case 'held':
      return isUnwatched(state) ? { state, effects: [{ do: 'ping', isHeld: true }] } : { state, effects: NOTHING };
    case 'unanswered':
    case 'cancelling':
      return { state, effects: NOTHING };
    default:
      return assertNever(timer);
  }
}

/** A carrier that holds sends no RTP: only OPTIONS detects its loss. */
function onProbed(state: CallState, isAnswered: boolean): CallStep {
  if (!isUnwatched(state)) return { state, effects: NOTHING };
  const unansweredProbes = isAnswered ? 0 : state.unansweredProbes + 1;
  const next = { ...state, unansweredProbes };
  if (unansweredProbes >= MAX_UNANSWERED_PROBES) return hangUp(next, 'SESSION_EXPIRED');
  return { state: next, effects: [{ do: 'start-timer', timer: 'held', delayMs: HELD_PING_MS }] };
}

/** Ends an answered call from our side: BYE now, or as soon as the ACK has come. */
function hangUp(state: CallState, reason: Reason, before: readonly CallEffect[] = NOTHING): CallStep {
  const ack = isPlacing(state) ? [{ do: 'acknowledge' } as const] : [];
  if (state.name === 'Talking' || state.name === 'Connecting') return finish(state, reason, [...before, ...ack, { do: 'bye', reason }]);
  return { state: { ...state, name: 'HangingUp', reason: state.reason ?? reason }, effects: before };
}

function refuse(state: CallState, reason: Reason, detail: string | null = null): CallStep {
  return finish(state, reason, [{ do: 'refuse', reason, detail }]);
}

/** What is not asked for any more; `held` ends with its call. */
const TIMERS: readonly CallTimer[] = ['ringing', 'max-duration', 'reinvite', 'transfer'];

function finish(state: CallState, reason: Reason, before: readonly CallEffect[]): CallStep {
  return {
    state: { ...state, name: 'Ended', exchange: IDLE, transfer: null, second: null, reason },
    effects: [
      ...TIMERS.map((timer) => ({ do: 'stop-timer', timer }) as const),
      // A re-INVITE or UPDATE that waits must not be left without an answer.
      ...rejectPending(state, 'NO_DIALOG'),
      ...before,
      ...partingWords(state, reason),
      { do: 'finish', reason },
    ],
  };
}

/** How much of its longest duration a call has left after so much talk. */
export function remainingMs(state: CallState, talkedMs: number): number {
  return Math.max(1, maxDurationMs(state) - talkedMs);
}

/** A kept call as it goes on in another process: acknowledged, and with no exchange and no transfer under way. */
export function resumable(kept: CallState): CallState {
  return {
    ...kept,
    name: 'Talking',
    exchange: IDLE,
    transfer: null,
    second: resumedSecond(kept),
    wantedSide: null,
    attempt: kept.attempt + 1,
    unansweredProbes: 0,
    isMoveDue: false,
    moves: 0,
    isLegDue: false,
    legsLost: 0,
    reason: null,
  };
}

function onLegReservedInCall(state: CallState, event: EventOf<'leg-reserved'>): CallStep {
  const back = onLegReservedAgain(state, event);
  return back === null ? onLegReplaced(state, event) : within(changeOver(back));
}

/** Versions that the last owner of the call may have used after its last snapshot. */
const VERSIONS_AHEAD = 9;

/** A call from another host: it gets a leg and a relay here, and the carrier a re-INVITE. */
function onLegReplaced(state: CallState, { local, agentSideKey }: EventOf<'leg-reserved'>): CallStep {
  const { session } = state;
  if (session === null) return { state, effects: NOTHING };
  const moved = { ...session, version: session.version + VERSIONS_AHEAD };
  return within(moveAway({ ...state, local, agentSideKey, isLegDue: true, session: moved }, true));
}

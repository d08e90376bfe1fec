import type { TestLineSettings, MediaAddress } from '../../contracts/media.js';
import type { Route } from '../../contracts/records.js';
import { assertNever } from '../../lib/assert-never.js';
import type { Load } from '../policy/admission.js';
import { decide } from '../policy/decide.js';
import type { Reason } from '../policy/reasons.js';
import { carrierAnswer, endpointAnswer, readRelaySdp, type NegotiableOffer, type RelaySide } from '../policy/sdp.js';

/** Where a call stands. docs/call-lifecycle.md has the picture. */
export type CallStateName =
  /** The number is being looked up. */
  | 'Routing'
  /** rtpengine has the offer. */
  | 'Offering'
  /** The media endpoint opens its leg. */
  | 'Opening'
  /** rtpengine has the endpoint's answer. */
  | 'Answering'
  /** The 200 is out, its ACK has not come. */
  | 'AwaitingAck'
  | 'Talking'
  /** Somebody on our side hung up before the ACK: BYE must wait for it (RFC 3261 §15). */
  | 'HangingUp'
  | 'Ended';

export interface CallState {
  readonly name: CallStateName;
  /** What the INVITE said, for the decision. */
  readonly facts: CallFacts;
  readonly route: Route | null;
  readonly offer: NegotiableOffer | null;
  /** rtpengine's inside, where the endpoint sends to. */
  readonly inside: RelaySide | null;
  /** The 180 is due as soon as rtpengine has accepted the call: a refusal never follows an 18x. */
  readonly isRingDue: boolean;
  /** Why the call ended, or will: set once. */
  readonly reason: Reason | null;
}

export interface CallFacts {
  readonly sourceAddress: string;
  readonly sdp: string;
  /** The id of our answers' o= line. */
  readonly sessionId: string;
  /** This process's longest call; the agent's own limit may be shorter. */
  readonly maxDurationMs: number;
  /** `null`: never; a caller that requires reliable provisional answers (RFC 3262 §3) gets none. */
  readonly ringingAfterMs: number | null;
}

export type CallTimer = 'ringing' | 'max-duration';

export type CallEvent =
  | { readonly type: 'invited' }
  /** The INVITE itself breaks a rule, or the gateway takes no calls: refused before anything is looked up. */
  | { readonly type: 'inadmissible'; readonly reason: Reason }
  /** `load`: of the moment of this event, so that two calls at once cannot both take the last place. */
  | { readonly type: 'routed'; readonly route: Route | null; readonly load: Load }
  | { readonly type: 'relay-offered'; readonly sdp: string }
  | {
      readonly type: 'leg-opened';
      readonly local: MediaAddress;
      readonly insideKey: { readonly tag: string; readonly inline: string } | null;
    }
  | { readonly type: 'relay-answered'; readonly sdp: string }
  /** An effect failed; the reason says which. */
  | { readonly type: 'failed'; readonly reason: Extract<Reason, 'STORE_UNAVAILABLE' | 'MEDIA_UNAVAILABLE' | 'INTERNAL_ERROR'> }
  /** The 200 could not be sent: a CANCEL crossed it, or the SIP server refused it. */
  | { readonly type: 'answer-failed'; readonly reason: Extract<Reason, 'CALLER_CANCELLED' | 'INTERNAL_ERROR'> }
  /** The SIP server has forgotten the call: nothing can be said to the caller any more. */
  | { readonly type: 'server-lost' }
  /** CANCEL, or the caller's connection is gone before the answer. */
  | { readonly type: 'cancelled' }
  | { readonly type: 'acknowledged' }
  /** The caller's BYE, or the SIP server gave the call up. */
  | { readonly type: 'bye'; readonly reason: Extract<Reason, 'CALLER_HANGUP' | 'ACK_TIMEOUT' | 'SESSION_EXPIRED'> }
  /** Our side wants the call ended. */
  | {
      readonly type: 'hangup';
      readonly reason: Extract<Reason, 'AGENT_HANGUP' | 'MEDIA_TIMEOUT' | 'API_STOPPED' | 'SHUTDOWN' | 'MEDIA_LOST' | 'DRAINING'>;
    }
  | { readonly type: 'timer'; readonly timer: CallTimer };

export type CallEffect =
  | { readonly do: 'route' }
  /** The call is admitted: it counts towards the limits from now on. */
  | { readonly do: 'count'; readonly route: Route }
  | { readonly do: 'offer-relay'; readonly offer: NegotiableOffer }
  | { readonly do: 'open-leg'; readonly offer: NegotiableOffer; readonly inside: RelaySide; readonly agent: TestLineSettings }
  | { readonly do: 'answer-relay'; readonly sdp: string }
  /** 180. */
  | { readonly do: 'ring' }
  /** 200 with this SDP. */
  | { readonly do: 'answer'; readonly sdp: string }
  | { readonly do: 'refuse'; readonly reason: Reason }
  | { readonly do: 'start-leg' }
  | { readonly do: 'bye'; readonly reason: Reason }
  | { readonly do: 'start-timer'; readonly timer: CallTimer; readonly delayMs: number }
  | { readonly do: 'stop-timer'; readonly timer: CallTimer }
  /** Free everything and write the record. */
  | { readonly do: 'finish'; readonly reason: Reason };

export interface CallStep {
  readonly state: CallState;
  readonly effects: readonly CallEffect[];
}

/** The built-in test line as it is without an agent of the owner's: an empty first sentence is its own greeting. */
const DEFAULT_AGENT: TestLineSettings = { firstSentence: '', language: 'ENG', pronunciationGuide: [] };

const NOTHING: readonly CallEffect[] = [];

export function startCall(facts: CallFacts): CallState {
  return { name: 'Routing', facts, route: null, offer: null, inside: null, isRingDue: false, reason: null };
}

/** One event; the effects are carried out in order before the next event. Events that come too late change nothing. */
export function stepCall(state: CallState, event: CallEvent): CallStep {
  if (state.name === 'Ended') return { state, effects: NOTHING };
  switch (event.type) {
    case 'invited':
      return state.name === 'Routing' ? { state, effects: [...ringingTimer(state), { do: 'route' }] } : { state, effects: NOTHING };
    case 'inadmissible':
      return state.name === 'Routing' ? refuse(state, event.reason) : { state, effects: NOTHING };
    case 'routed':
      return state.name === 'Routing' ? onRouted(state, event.route, event.load) : { state, effects: NOTHING };
    case 'relay-offered':
      return state.name === 'Offering' ? onRelayOffered(state, event.sdp) : { state, effects: NOTHING };
    case 'leg-opened':
      return state.name === 'Opening' ? onLegOpened(state, event) : { state, effects: NOTHING };
    case 'relay-answered':
      return state.name === 'Answering' ? onRelayAnswered(state, event.sdp) : { state, effects: NOTHING };
    case 'failed':
      return isAnswered(state) ? hangUp(state, 'MEDIA_LOST') : refuse(state, event.reason);
    case 'server-lost':
      return finish(state, 'INTERNAL_ERROR', []);
    case 'answer-failed':
      return isAnswered(state) ? finish(state, event.reason, []) : { state, effects: NOTHING };
    case 'cancelled':
      // The SIP server has sent the 487 already. A CANCEL that crosses our 200 is answered there and changes nothing here.
      return isAnswered(state) ? { state, effects: NOTHING } : finish(state, 'CALLER_CANCELLED', []);
    case 'acknowledged':
      return onAcknowledged(state);
    case 'bye':
      return isAnswered(state) ? finish(state, state.reason ?? event.reason, []) : { state, effects: NOTHING };
    case 'hangup':
      return onHangup(state, event.reason);
    case 'timer':
      return onTimer(state, event.timer);
    default:
      return assertNever(event);
  }
}

function isAnswered(state: CallState): boolean {
  return state.name === 'AwaitingAck' || state.name === 'Talking' || state.name === 'HangingUp';
}

function ringingTimer(state: CallState): CallEffect[] {
  const { ringingAfterMs } = state.facts;
  return ringingAfterMs === null ? [] : [{ do: 'start-timer', timer: 'ringing', delayMs: ringingAfterMs }];
}

function onRouted(state: CallState, route: Route | null, load: Load): CallStep {
  const decision = decide({ route, sourceAddress: state.facts.sourceAddress, sdp: state.facts.sdp, load });
  const routed = { ...state, route };
  if (!decision.ok) return refuse(routed, decision.error);
  if (route === null) return refuse(routed, 'NUMBER_NOT_ATTACHED');
  const offer = decision.value;
  return {
    state: { ...routed, name: 'Offering', offer },
    effects: [
      { do: 'count', route },
      { do: 'offer-relay', offer },
    ],
  };
}

function onRelayOffered(state: CallState, sdp: string): CallStep {
  const inside = readRelaySdp(sdp);
  if (inside === undefined || state.offer === null) return refuse(state, 'MEDIA_UNAVAILABLE');
  return {
    state: { ...state, name: 'Opening', inside },
    effects: [
      ...(state.isRingDue ? [{ do: 'ring' } as const] : []),
      { do: 'open-leg', offer: state.offer, inside, agent: agentOf(state.route) },
    ],
  };
}

function onLegOpened(state: CallState, event: Extract<CallEvent, { type: 'leg-opened' }>): CallStep {
  if (state.offer === null) return refuse(state, 'INTERNAL_ERROR');
  return {
    state: { ...state, name: 'Answering' },
    effects: [{ do: 'answer-relay', sdp: endpointAnswer(state.offer, event.local, event.insideKey) }],
  };
}

function onRelayAnswered(state: CallState, sdp: string): CallStep {
  const outside = readRelaySdp(sdp);
  if (outside === undefined || state.offer === null) return refuse(state, 'MEDIA_UNAVAILABLE');
  const answer = carrierAnswer(state.offer, outside, { sessionId: state.facts.sessionId, version: 1 });
  // rtpengine chose another key than the one offered: never answer with it.
  if (answer === undefined) return refuse(state, 'SRTP_SUITE_UNSUPPORTED');
  return {
    state: { ...state, name: 'AwaitingAck' },
    effects: [
      { do: 'stop-timer', timer: 'ringing' },
      { do: 'answer', sdp: answer },
      { do: 'start-timer', timer: 'max-duration', delayMs: maxDurationMs(state) },
    ],
  };
}

function onAcknowledged(state: CallState): CallStep {
  if (state.name === 'AwaitingAck') return { state: { ...state, name: 'Talking' }, effects: [{ do: 'start-leg' }] };
  if (state.name !== 'HangingUp') return { state, effects: NOTHING };
  const reason = state.reason ?? 'INTERNAL_ERROR';
  return finish(state, reason, [{ do: 'bye', reason }]);
}

function onHangup(state: CallState, reason: Extract<CallEvent, { type: 'hangup' }>['reason']): CallStep {
  if (isAnswered(state)) return hangUp(state, reason === 'DRAINING' ? 'SHUTDOWN' : reason);
  return refuse(state, reason === 'SHUTDOWN' || reason === 'DRAINING' ? 'DRAINING' : 'MEDIA_UNAVAILABLE');
}

function onTimer(state: CallState, timer: CallTimer): CallStep {
  switch (timer) {
    case 'ringing':
      if (state.name === 'Opening' || state.name === 'Answering') return { state, effects: [{ do: 'ring' }] };
      return { state: { ...state, isRingDue: true }, effects: NOTHING };
    case 'max-duration':
      return isAnswered(state) ? hangUp(state, 'MAX_DURATION') : { state, effects: NOTHING };
    default:
      return assertNever(timer);
  }
}

/** Ends an answered call from our side: BYE now, or as soon as the ACK has come. */
function hangUp(state: CallState, reason: Reason): CallStep {
  if (state.name === 'Talking') return finish(state, reason, [{ do: 'bye', reason }]);
  return { state: { ...state, name: 'HangingUp', reason: state.reason ?? reason }, effects: NOTHING };
}

function refuse(state: CallState, reason: Reason): CallStep {
  return finish(state, reason, [{ do: 'refuse', reason }]);
}

function finish(state: CallState, reason: Reason, before: readonly CallEffect[]): CallStep {
  return {
    state: { ...state, name: 'Ended', reason },
    effects: [{ do: 'stop-timer', timer: 'ringing' }, { do: 'stop-timer', timer: 'max-duration' }, ...before, { do: 'finish', reason }],
  };
}

function agentOf(route: Route | null): TestLineSettings {
  const agent = route?.agent ?? null;
  if (agent === null) return DEFAULT_AGENT;
  return {
    firstSentence: agent.first_sentence ?? DEFAULT_AGENT.firstSentence,
    language: agent.language,
    pronunciationGuide: agent.pronunciation_guide,
  };
}

function maxDurationMs(state: CallState): number {
  const agentMs = (state.route?.agent?.max_duration ?? Infinity) * 60_000;
  return Math.min(agentMs, state.facts.maxDurationMs);
}

import type { AgentAnswer } from '../model/agent.js';
import { mayLeave } from '../admission/dial-guard.js';
import { agentSideOf, asAgentSide } from './agent-side.js';
import { isJoined, type CallEffect, type CallEvent, type CallState, type LegWish, type SecondLeg } from './state.js';

// A transfer by a second call of ours, where the carrier takes no REFER. The second leg is a call like any other that we place, with its own
// permission, record and dialog; instead of an agent it has rtpengine's agent side of this call. When it is answered, both calls' agent
// sides send to each other: neither carrier notices, and our own processes have no part in the media.

type EventOf<Type extends CallEvent['type']> = Extract<CallEvent, { type: Type }>;

export interface SecondLegStep {
  readonly state: CallState;
  readonly effects: readonly CallEffect[];
  /** The call is to end, as the other party hung up. */
  readonly isDone?: true;
}

const NOTHING: readonly CallEffect[] = [];

/** What becomes of the other call, and what the agent wants of it. */
export function stepSecondLeg(
  state: CallState,
  event: EventOf<'leg-consulting' | 'leg-answered' | 'leg-ended' | 'leg-left' | 'side-changed' | 'transfer-step' | 'briefed'>,
): SecondLegStep {
  switch (event.type) {
    case 'leg-consulting':
      return onLegConsulting(state, event);
    case 'leg-answered':
      return onLegAnswered(state, event);
    case 'leg-ended':
      return onLegEnded(state, event);
    case 'leg-left':
      return onLegLeft(state);
    case 'side-changed':
      return onSideChanged(state, event);
    case 'transfer-step':
      return onTransferStep(state, event);
    case 'briefed':
      return state.name === 'Talking' ? onBriefed(state) : { state, effects: NOTHING };
  }
}

/** May it be dialled from this call's own number? Another one is judged with its own record, when the call is placed. */
export function mayPlace({ route }: Pick<CallState, 'route'>, leg: LegWish | null): leg is LegWish {
  return (
    route !== null &&
    leg !== null &&
    (leg.from !== null || mayLeave({ kind: 'number', number: leg.to }, { door: 'placed-call', from: route }).ok)
  );
}

/** The caller stays with the agent until the second leg is answered. */
export function dialSecond(state: CallState, leg: LegWish, requestId: string | null): SecondLegStep {
  const { agentFacing, session } = state;
  if (agentFacing === null || session === null) return { state, effects: [progress(requestId, { state: 'failed', status: null })] };
  const { codec, telephoneEvent, events } = session.media;
  const { callId, afterwards, briefing } = leg;
  const joins = { legId: callId, side: agentFacing, format: { codec, telephoneEvent, events }, briefing };
  return {
    state: { ...state, transfer: null, second: { callId, requestId, afterwards, phase: 'dialling' } },
    effects: [{ do: 'dial-leg', leg, joins }, progress(requestId, { state: 'accepted', status: null })],
  };
}

export function onLegRinging(state: CallState, { callId }: EventOf<'leg-ringing'>): SecondLegStep {
  const { second } = state;
  // A caller who hears nothing for long hangs up.
  const isOurs = second?.callId === callId && second.phase === 'dialling';
  return { state, effects: isOurs ? [{ do: 'ring-back', isOn: true }] : NOTHING };
}

/** The answerer talks with the agent. */
function onLegConsulting(state: CallState, { callId }: EventOf<'leg-consulting'>): SecondLegStep {
  const { second } = state;
  // It was given up meanwhile, or a restart has forgotten it.
  if (second?.callId !== callId || second.phase === 'leaving') return { state, effects: [hangUpLeg(callId)] };
  if (second.phase !== 'dialling') return { state, effects: NOTHING };
  return {
    state: { ...state, second: { ...second, phase: 'consulting' } },
    effects: [RING_BACK_OFF, progress(second.requestId, { state: 'answered', status: null })],
  };
}

function onTransferStep(state: CallState, { requestId, step }: EventOf<'transfer-step'>): SecondLegStep {
  const { second } = state;
  if (second?.phase !== 'consulting') {
    const answer = { type: 'refused', requestId, request: 'transfer', ...NOBODY_TO_TALK_TO } as const;
    return { state, effects: [{ do: 'notify-agent', answer }] };
  }
  const accepted = progress(requestId, { state: 'accepted', status: null });
  switch (step) {
    case 'conference':
      return { state, effects: [{ do: 'three-way' }, accepted] };
    case 'complete':
      return { state, effects: [{ do: 'notify-call', callId: second.callId, event: { type: 'briefed' } }, accepted] };
    case 'cancel':
      return { state: { ...state, second: null }, effects: [hangUpLeg(second.callId), accepted] };
  }
}

const NOBODY_TO_TALK_TO = {
  code: 'TRANSFER_NOT_ANSWERED',
  message: 'Only a transfer with the step consult, and only after its state is answered, has further steps.',
} as const;

/** A leg that talks from now on is the agent's first. */
export function introduction({ isBriefing, facts }: CallState): CallEffect[] {
  const { joins } = facts;
  if (!isBriefing || joins?.briefing !== 'by-agent') return [];
  return [{ do: 'notify-call', callId: joins.callId, event: { type: 'leg-consulting', callId: joins.legId } }];
}

function onLegAnswered(state: CallState, { callId, side }: EventOf<'leg-answered'>): SecondLegStep {
  const { second } = state;
  // It was given up meanwhile, or a restart has forgotten it.
  if (second?.callId !== callId || second.phase === 'leaving') return { state, effects: [hangUpLeg(callId)] };
  const wantedSide = sideFor(state, side);
  if (second.phase !== 'dialling' && second.phase !== 'consulting') return { state: { ...state, wantedSide }, effects: NOTHING };
  return { state: { ...state, wantedSide, second: { ...second, phase: 'joining' } }, effects: [RING_BACK_OFF] };
}

/** rtpengine's ports of the other call are others: it moved to another relay. */
function onSideChanged(state: CallState, { callId, side }: EventOf<'side-changed'>): SecondLegStep {
  const { second, facts } = state;
  // Where its media is to go after the briefing.
  if (state.isBriefing && facts.joins?.legId === callId)
    return {
      state: {
        ...state,
        facts: { ...facts, joins: { ...facts.joins, side } },
        wantedSide: state.wantedSide === null ? null : sideFor(state, side),
      },
      effects: NOTHING,
    };
  const isOurs = facts.joins?.legId === callId || (second?.callId === callId && (second.phase === 'joining' || second.phase === 'joined'));
  return { state: isOurs ? { ...state, wantedSide: sideFor(state, side) } : state, effects: NOTHING };
}

/** The briefing is over: the caller may join. */
export function onBriefed(state: CallState): SecondLegStep {
  const { joins } = state.facts;
  return {
    state: joins === undefined || !state.isBriefing ? state : { ...state, wantedSide: sideFor(state, joins.side) },
    effects: NOTHING,
  };
}

/** The second leg is over, or never began. */
function onLegEnded(state: CallState, { callId, reason, status }: EventOf<'leg-ended'>): SecondLegStep {
  const { second } = state;
  if (second?.callId !== callId) return { state, effects: NOTHING };
  const { requestId, afterwards, phase } = second;
  switch (phase) {
    case 'dialling':
    case 'consulting':
      return {
        state: { ...state, second: null },
        effects: [RING_BACK_OFF, progress(requestId, { state: 'failed', status, reason })],
      };
    case 'joining':
      // The endpoint's leg is still there.
      return {
        state: { ...state, second: { ...second, phase: 'leaving' }, wantedSide: agentSideOf(state) },
        effects: [progress(requestId, { state: 'failed', status, reason })],
      };
    case 'joined':
      if (afterwards === 'end') return { state: { ...state, second: null }, effects: NOTHING, isDone: true };
      return {
        state: { ...state, second: { ...second, phase: 'leaving' }, isLegDue: true },
        effects: [...comeBack(state), progress(requestId, { state: 'ended', status, reason })],
      };
    case 'leaving':
      return { state, effects: NOTHING };
  }
}

/** A new document takes the caller back, or ends the attempt. */
function onLegLeft(state: CallState): SecondLegStep {
  const { second } = state;
  if (second === null || second.phase === 'leaving') return { state, effects: NOTHING };
  const hangUp = hangUpLeg(second.callId);
  const left = { ...state, second: { ...second, phase: 'leaving' } as const };
  switch (second.phase) {
    case 'dialling':
    case 'consulting':
      return { state: { ...state, second: null }, effects: [RING_BACK_OFF, hangUp] };
    case 'joining':
      return { state: { ...left, wantedSide: agentSideOf(state) }, effects: [hangUp] };
    case 'joined':
      return { state: { ...left, isLegDue: true }, effects: [hangUp, ...comeBack(state)] };
  }
}

/** The call gets a media leg again. */
function comeBack({ session }: CallState): CallEffect[] {
  const held = session?.media.isHeld === true ? [] : [{ do: 'stop-timer', timer: 'held' } as const];
  return [{ do: 'reserve-leg' }, ...held];
}

/** A call that comes back from the other one has a port pair again. `null`: it does not come back. */
export function onLegReservedAgain(state: CallState, { local, agentSideKey }: EventOf<'leg-reserved'>): CallState | null {
  if (state.second?.phase !== 'leaving') return null;
  return { ...state, wantedSide: { local, key: agentSideKey } };
}

/** The caller's carrier, or rtpengine, refused the change: the caller stays with the agent. */
export function failJoining(state: CallState, status: number | null): SecondLegStep {
  const { second } = state;
  // The other party has hung up, and the agent heard so.
  if (second?.phase !== 'joining') return { state: { ...state, wantedSide: null }, effects: NOTHING };
  return {
    state: { ...state, wantedSide: null, second: { ...second, phase: 'leaving' } },
    effects: [hangUpLeg(second.callId), progress(second.requestId, { state: 'failed', status, reason: 'MEDIA_LOST' })],
  };
}

/** For the other call, when this one ends. */
export function partingWords(state: CallState, reason: EventOf<'leg-ended'>['reason']): CallEffect[] {
  const { second, facts, placing } = state;
  if (facts.joins !== undefined) {
    const { callId, legId } = facts.joins;
    return [{ do: 'notify-call', callId, event: { type: 'leg-ended', callId: legId, reason, status: placing?.status ?? null } }];
  }
  return second === null || second.phase === 'leaving' ? [] : [hangUpLeg(second.callId)];
}

/** What the other call of a transfer means when it is not on this gateway. */
export function peerMissing({ facts, second }: Pick<CallState, 'facts' | 'second'>): CallEvent {
  if (facts.joins !== undefined) return { type: 'hangup', reason: 'PEER_HANGUP' };
  return { type: 'leg-ended', callId: second?.callId ?? '', reason: 'GATEWAY_RESTARTED', status: null };
}

/** A call as it goes on in another process: only what was joined still is. */
export function resumedSecond({ second }: Pick<CallState, 'second'>): SecondLeg | null {
  return second?.phase === 'joined' ? second : null;
}

/** Events of an agent, or of its media, that come after their end. */
export function isTooLateFromAgent(state: CallState, { reason }: EventOf<'hangup'>): boolean {
  return isJoined(state) && (reason === 'AGENT_HANGUP' || reason === 'AGENT_LOST' || reason === 'MEDIA_TIMEOUT');
}

const RING_BACK_OFF: CallEffect = { do: 'ring-back', isOn: false };

export function hangUpLeg(callId: string): CallEffect {
  return { do: 'notify-call', callId, event: { type: 'hangup', reason: 'PEER_HANGUP' } };
}

function sideFor({ agentFacing }: CallState, side: EventOf<'leg-answered'>['side']) {
  return asAgentSide(side, agentFacing?.crypto?.tag ?? '1');
}

function progress(
  requestId: string | null,
  how: Pick<Extract<AgentAnswer, { type: 'transfer-progress' }>, 'state' | 'status' | 'reason'>,
): CallEffect {
  return { do: 'notify-agent', answer: { type: 'transfer-progress', requestId, ...how } };
}

import type { MediaAddress } from '../model/media.js';
import type { RelaySide } from '../sdp/sdp-read.js';
import { isJoined, type AgentSide, type CallEffect, type CallState } from './state.js';

// What rtpengine's agent side sends to: the endpoint or, in a call that is joined with another one, rtpengine's ports of that call. Then
// both carriers' packets pass through rtpengine alone: each call keeps its own session there, and its carrier notices no change.

/** The interval of OPTIONS to a carrier whose media we do not watch. */
export const HELD_PING_MS = 60_000;

/** Whether only OPTIONS shows that the carrier still has the call. */
export function isUnwatched(state: CallState): boolean {
  return state.name === 'Talking' && (isJoined(state) || state.session?.media.isHeld === true);
}

/** The endpoint's side, or that of a joined call; `null`: there is none yet. */
export function agentSideOf({ local, agentSideKey }: Pick<CallState, 'local' | 'agentSideKey'>): AgentSide | null {
  return local === null ? null : { local, key: agentSideKey };
}

/** rtpengine's side of another call, as the agent side of this one. */
export function asAgentSide({ address, rtpPort, rtcpPort, crypto }: RelaySide, tag: string): AgentSide {
  return { local: { address, rtpPort, rtcpPort }, key: crypto === null ? null : { tag, inline: crypto.inline, mki: null } };
}

/** Where the media is to change over to; `null`: it is where it should be. */
export function sideDue(state: CallState): AgentSide | null {
  const { wantedSide } = state;
  const side = agentSideOf(state);
  return wantedSide === null || (side !== null && isSameSide(wantedSide, side)) ? null : wantedSide;
}

export function isSameSide(one: AgentSide, other: AgentSide): boolean {
  return isSameAddress(one.local, other.local) && one.key?.inline === other.key?.inline;
}

function isSameAddress(one: MediaAddress, other: MediaAddress): boolean {
  return one.address === other.address && one.rtpPort === other.rtpPort && one.rtcpPort === other.rtcpPort;
}

/** Whether a carrier, or another call, may go on without being told. */
export function isSameRelaySide(one: RelaySide | null, other: RelaySide): boolean {
  return one !== null && isSameAddress(one, other) && one.crypto?.inline === other.crypto?.inline;
}

/** Our side of rtpengine changed: the call that is joined with this one sends there from now on. */
export function notifySide({ facts, second }: CallState, side: RelaySide): CallEffect[] {
  const [callId, legId] = facts.joins === undefined ? [second?.callId, second?.callId] : [facts.joins.callId, facts.joins.legId];
  if (callId === undefined || legId === undefined) return [];
  return [{ do: 'notify-call', callId, event: { type: 'side-changed', callId: legId, side } }];
}

/**
 * rtpengine sends to another agent side from now on: a call that is joined with another one needs no leg any more, and one that comes back
 * has its own again.
 * @param legEffects what the endpoint has to know of it
 */
export function sideTaken(state: CallState, legEffects: readonly CallEffect[]): SideStep {
  const { second, agentFacing } = state;
  if (sideDue(state) !== null) return { state, effects: legEffects };
  const taken = { ...state, wantedSide: null };
  const { joins } = state.facts;
  if (state.isBriefing && joins !== undefined && agentFacing !== null && isSameAddress(state.local ?? joins.side, joins.side)) {
    const told = { type: 'leg-answered', callId: joins.legId, side: agentFacing } as const;
    return {
      state: { ...taken, isBriefing: false, isLegDue: false, agent: { ...state.agent, isConnected: false } },
      effects: [{ do: 'close-leg' }, heldTimer(), { do: 'notify-call', callId: joins.callId, event: told }],
    };
  }
  if (second?.phase === 'leaving') return { state: { ...taken, second: null }, effects: legEffects };
  if (second?.phase !== 'joining' || agentFacing === null) return { state: taken, effects: legEffects };
  return {
    state: {
      ...taken,
      isLegDue: false,
      second: { ...second, phase: 'joined' },
      agent: { ...state.agent, isConnected: second.afterwards === 'go-on' },
    },
    effects: [{ do: 'close-leg' }, heldTimer(), ...notifySide(taken, agentFacing)],
  };
}

function heldTimer(): CallEffect {
  return { do: 'start-timer', timer: 'held', delayMs: HELD_PING_MS };
}

/** A call whose other one ended before the media changed over has never left. */
export function atHome(state: CallState): CallState {
  const { second, wantedSide, isLegDue } = state;
  return second?.phase === 'leaving' && wantedSide !== null && !isLegDue ? { ...state, second: null, wantedSide: null } : state;
}

interface SideStep {
  readonly state: CallState;
  readonly effects: readonly CallEffect[];
}

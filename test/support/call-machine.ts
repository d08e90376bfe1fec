import { startCall, stepCall } from '../../src/gateway/call/machine.js';
import type { CallEffect, CallEvent, CallFacts, CallState } from '../../src/gateway/call/state.js';
import { NO_USAGE } from '../../src/gateway/admission/admission.js';
import { ROUTE } from './route.js';
import { KEY, offerSdp, OTHER_KEY } from './sdp.js';

const SUITE = 'AES_CM_128_HMAC_SHA1_80';

export const FACTS: CallFacts = {
  sourceAddress: '203.0.113.7',
  sdp: offerSdp(),
  sessionId: '7',
  maxDurationMs: 600_000,
  ringingAfterMs: 500,
  standIn: null,
  refusedVerdicts: [],
  relayAddress: null,
  transferPrefixes: ['+1555'],
};
export const LATE_FACTS: CallFacts = { ...FACTS, sdp: '' };
export const LOCAL = { address: '127.0.0.1', rtpPort: 20_000, rtcpPort: 20_001 };

/** rtpengine's side towards the endpoint. */
export const INSIDE = offerSdp({ profile: 'RTP/AVP', crypto: [], port: 31_000, payloads: '0 101' });
/** rtpengine's side towards the carrier. */
export const OUTSIDE = offerSdp({ port: 30_000, payloads: '0 101', crypto: [`1 ${SUITE} inline:${OTHER_KEY}`] });
/** Another rtpengine's. */
export const OTHER_OUTSIDE = offerSdp({ port: 50_000, payloads: '0 101', crypto: [`1 ${SUITE} inline:${KEY}`] });
/** It passes the carrier's key through. */
export const OTHER_INSIDE = offerSdp({ port: 51_000, payloads: '0 101' });
/** The carrier's answer to an offer of ours. */
export const ANSWER = offerSdp({ payloads: '0 101', port: 40_000 });

export const ROUTED: CallEvent = { type: 'routed', route: ROUTE, load: NO_USAGE, isStale: false, identity: null, credentials: null };
export const AGENT_CONNECTED: CallEvent = { type: 'agent-connected' };
export const AGENT_FAILED: CallEvent = { type: 'failed', reason: 'AGENT_UNAVAILABLE', attempt: null };
const ACK: CallEvent = { type: 'acknowledged', sdp: '' };

/** A call whose INVITE has an offer, event by event. */
export const CALL: readonly CallEvent[] = [
  { type: 'invited' },
  ROUTED,
  { type: 'leg-reserved', local: LOCAL, agentSideKey: null },
  { type: 'relay-offered', sdp: INSIDE, attempt: 0 },
  AGENT_CONNECTED,
  { type: 'relay-answered', sdp: OUTSIDE, attempt: 0 },
  ACK,
];

/** A call whose INVITE has none. */
export const LATE_CALL: readonly CallEvent[] = [
  { type: 'invited' },
  ROUTED,
  { type: 'leg-reserved', local: LOCAL, agentSideKey: null },
  AGENT_CONNECTED,
  { type: 'relay-offered-to-carrier', sdp: OUTSIDE, attempt: 0 },
  { type: 'acknowledged', sdp: ANSWER },
  { type: 'relay-answered-from-carrier', sdp: INSIDE, attempt: 0 },
  { type: 'leg-opened' },
];

export const PERMITTED: CallEvent = {
  type: 'permitted',
  route: ROUTE,
  permit: { microsPerMinute: 20_000, reservedMicros: 600_000, day: '2026-01-01' },
};

/** A call that we place. */
export const PLACED: readonly CallEvent[] = [
  { type: 'placed' },
  PERMITTED,
  { type: 'leg-reserved', local: LOCAL, agentSideKey: null },
  { type: 'relay-offered-to-carrier', sdp: OUTSIDE, attempt: 0 },
  { type: 'dial-proceeding', status: 180, sdp: '' },
  { type: 'dial-answered', sdp: ANSWER },
  { type: 'relay-answered-from-carrier', sdp: INSIDE, attempt: 0 },
  { type: 'leg-opened' },
  AGENT_CONNECTED,
];

export interface Played {
  readonly state: CallState;
  /** Effects of the last event. */
  readonly effects: readonly CallEffect[];
  readonly all: readonly CallEffect[];
}

export function play(events: readonly CallEvent[], facts = FACTS): Played {
  return playOn(startCall(facts), events);
}

export function playOn(before: CallState, events: readonly CallEvent[]): Played {
  let state = before;
  let effects: readonly CallEffect[] = [];
  const all: CallEffect[] = [];
  for (const event of events) {
    ({ state, effects } = stepCall(state, event));
    all.push(...effects);
  }
  return { state, effects, all };
}

export const kinds = (effects: readonly CallEffect[]): string[] => effects.map((effect) => effect.do);

/** The last event's effect of this kind. */
export function effect<Kind extends CallEffect['do']>(played: Played, kind: Kind): Extract<CallEffect, { do: Kind }> | undefined {
  return played.effects.find((one): one is Extract<CallEffect, { do: Kind }> => one.do === kind);
}

/** The call's rtpengine is gone; another one may have the call, or not. */
export const RELAY_LOST = { type: 'relay-lost', mayMove: true, cause: 'node', newKey: { tag: '1', inline: OTHER_KEY, mki: null } } as const;
export const RELAY_LOST_FOR_GOOD = { ...RELAY_LOST, mayMove: false } as const;

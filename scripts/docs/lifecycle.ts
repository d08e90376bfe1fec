import type { AgentAnswer } from '../../src/gateway/model/agent.js';
import { startCall, stepCall } from '../../src/gateway/call/machine.js';
import type { CallEffect, CallEvent, CallFacts, CallState, CallTimer } from '../../src/gateway/call/state.js';
import { NO_USAGE } from '../../src/gateway/admission/admission.js';
import {
  AGENT_CONNECTED,
  ANSWER,
  CALL,
  FACTS,
  INSIDE,
  LATE_CALL,
  LATE_FACTS,
  LOCAL,
  OTHER_INSIDE,
  OTHER_OUTSIDE,
  OUTSIDE,
  PERMITTED,
  PLACED,
  play,
  playOn,
  RELAY_LOST,
  RELAY_LOST_FOR_GOOD,
  ROUTED,
} from '../../test/support/call-machine.js';
import { offerSdp } from '../../test/support/sdp.js';
import { table } from './table.js';

// Every state of the call machine is reached by playing ordinary calls, then given every event.

const HELD = offerSdp({ direction: 'sendonly' });
const CHANGED: CallEvent = { type: 'reoffered', requestId: 1, method: 'INVITE', sdp: HELD };
const OFFERLESS: CallEvent = { type: 'reoffered', requestId: 1, method: 'INVITE', sdp: '' };

type ReasonOf<Type extends CallEvent['type']> = Extract<CallEvent, { type: Type; reason: unknown }>['reason'];

/** All members of a union: does not compile when one is missing or too many. */
const all = <Member extends string>(members: Record<Member, true>): Member[] => Object.keys(members) as Member[];

const FAILED = all<ReasonOf<'failed'>>({
  STORE_UNAVAILABLE: true,
  MEDIA_UNAVAILABLE: true,
  AGENT_UNAVAILABLE: true,
  INTERNAL_ERROR: true,
  ORG_SESSION_LIMIT: true,
  ORG_MINUTE_LIMIT: true,
  ORG_TOKEN_LIMIT: true,
});
const ANSWER_FAILED = all<ReasonOf<'answer-failed'>>({ CALLER_CANCELLED: true, INTERNAL_ERROR: true });
const LOST = all<ReasonOf<'server-lost'>>({ INTERNAL_ERROR: true, GATEWAY_RESTARTED: true });
const BYE = all<ReasonOf<'bye'>>({ CALLER_HANGUP: true, ACK_TIMEOUT: true, SESSION_EXPIRED: true });
const HANGUP = all<ReasonOf<'hangup'>>({
  AGENT_HANGUP: true,
  AGENT_LOST: true,
  MEDIA_TIMEOUT: true,
  API_STOPPED: true,
  SHUTDOWN: true,
  DRAINING: true,
  GATEWAY_RESTARTED: true,
  DIAL_AMBIGUOUS: true,
  PEER_HANGUP: true,
});
const TIMERS = all<CallTimer>({
  ringing: true,
  'max-duration': true,
  reinvite: true,
  transfer: true,
  held: true,
  unanswered: true,
  cancelling: true,
});

interface NamedEvent {
  readonly name: string;
  readonly event: CallEvent;
}

const relay = (
  type: 'relay-offered' | 'relay-answered' | 'relay-offered-to-carrier' | 'relay-answered-from-carrier',
  sdp: string,
  unusable: string,
): NamedEvent[] => [
  { name: `\`${type}\``, event: { type, sdp, attempt: 0 } },
  { name: `\`${type}\`, unusable`, event: { type, sdp: unusable, attempt: 0 } },
];

const ENDS: readonly NamedEvent[] = [
  ...FAILED.map((reason) => ({ name: `\`failed\` ${reason}`, event: { type: 'failed', reason, attempt: null } as const })),
  ...LOST.map((reason) => ({ name: `\`server-lost\` ${reason}`, event: { type: 'server-lost', reason } as const })),
  ...BYE.map((reason) => ({ name: `\`bye\` ${reason}`, event: { type: 'bye', reason } as const })),
  ...HANGUP.map((reason) => ({ name: `\`hangup\` ${reason}`, event: { type: 'hangup', reason } as const })),
  { name: '`relay-lost`, may move', event: RELAY_LOST },
  { name: '`relay-lost`, may not', event: RELAY_LOST_FOR_GOOD },
  { name: '`leg-lost`', event: { type: 'leg-lost' } },
];

const EVENTS: readonly NamedEvent[] = [
  { name: '`invited`', event: { type: 'invited' } },
  { name: '`inadmissible`', event: { type: 'inadmissible', reason: 'BAD_EXTENSION', detail: null } },
  { name: '`routed`, acceptable', event: ROUTED },
  {
    name: '`routed`, not attached',
    event: { type: 'routed', route: null, load: NO_USAGE, isStale: false, identity: null, credentials: null },
  },
  { name: '`agent-connected`', event: AGENT_CONNECTED },
  { name: '`agent-away`', event: { type: 'agent-away' } },
  { name: '`agent-refused`', event: { type: 'agent-refused', reason: 'AGENT_DECLINED' } },
  ...relay('relay-offered', INSIDE, 'garbage'),
  { name: '`leg-reserved`', event: { type: 'leg-reserved', local: LOCAL, agentSideKey: null } },
  { name: '`leg-opened`', event: { type: 'leg-opened' } },
  ...relay('relay-answered', OUTSIDE, INSIDE),
  ...relay('relay-offered-to-carrier', OUTSIDE, INSIDE),
  ...relay('relay-answered-from-carrier', INSIDE, 'garbage'),
  { name: '`cancelled`', event: { type: 'cancelled' } },
  { name: '`acknowledged`, with an answer', event: { type: 'acknowledged', sdp: ANSWER } },
  { name: '`acknowledged`', event: { type: 'acknowledged', sdp: '' } },
  ...ANSWER_FAILED.map((reason) => ({ name: `\`answer-failed\` ${reason}`, event: { type: 'answer-failed', reason } as const })),
  ...ENDS,
  ...TIMERS.map((timer) => ({ name: `\`timer\` ${timer}`, event: { type: 'timer', timer } as const })),
];

/** The exchanges within a call: what the carrier and rtpengine say. */
const EXCHANGE_EVENTS: readonly NamedEvent[] = [
  { name: '`reoffered`, INVITE with an offer', event: { ...CHANGED, requestId: 2 } },
  { name: '`reoffered`, INVITE without', event: { ...OFFERLESS, requestId: 2 } },
  { name: '`reoffered`, UPDATE with an offer', event: { ...CHANGED, requestId: 2, method: 'UPDATE' } },
  { name: '`reoffered`, UPDATE without', event: { ...OFFERLESS, requestId: 2, method: 'UPDATE' } },
  ...relay('relay-offered', INSIDE, 'garbage'),
  ...relay('relay-answered', OUTSIDE, INSIDE),
  ...relay('relay-offered-to-carrier', OTHER_OUTSIDE, INSIDE),
  ...relay('relay-answered-from-carrier', OTHER_INSIDE, 'garbage'),
  { name: '`acknowledged`, another answer', event: { type: 'acknowledged', sdp: ANSWER } },
  { name: '`acknowledged`, the same or none', event: { type: 'acknowledged', sdp: '' } },
  { name: '`acknowledged`, unusable', event: { type: 'acknowledged', sdp: 'garbage' } },
  { name: '`refresh-due`', event: { type: 'refresh-due' } },
  ...[200, 488, 491].map((status) => ({
    name: `\`reinvite-answered\` ${String(status)}`,
    event: { type: 'reinvite-answered', status, sdp: ANSWER, retryAfterMs: 0, attempt: 0 } as const,
  })),
  { name: '`failed`', event: { type: 'failed', reason: 'MEDIA_UNAVAILABLE', attempt: null } },
  { name: '`relay-lost`, may move', event: RELAY_LOST },
  { name: '`relay-lost`, may not', event: RELAY_LOST_FOR_GOOD },
  { name: '`leg-lost`', event: { type: 'leg-lost' } },
  { name: '`timer` reinvite', event: { type: 'timer', timer: 'reinvite' } },
  { name: '`bye`', event: { type: 'bye', reason: 'CALLER_HANGUP' } },
];

const TRANSFER: CallEvent = { type: 'transfer-asked', requestId: 't', to: '+15550100300' };
const ACCEPTED: CallEvent = { type: 'refer-answered', status: 202, referId: 1 };

/** A transfer: what the agent and the carrier say. */
const TRANSFER_EVENTS: readonly NamedEvent[] = [
  { name: '`transfer-asked`', event: TRANSFER },
  { name: '`transfer-asked`, no target', event: { ...TRANSFER, to: 'nobody' } },
  ...[202, 481, 603].map((status) => ({
    name: `\`refer-answered\` ${String(status)}`,
    event: { type: 'refer-answered', status, referId: 1 } as const,
  })),
  ...[180, 200, 486].map((status) => ({
    name: `\`notified\` ${String(status)}`,
    event: { type: 'notified', requestId: 2, status, isLast: false } as const,
  })),
  { name: '`notified`, the last, without a final status', event: { type: 'notified', requestId: 2, status: null, isLast: true } },
  { name: '`timer` transfer', event: { type: 'timer', timer: 'transfer' } },
  { name: '`bye` CALLER_HANGUP', event: { type: 'bye', reason: 'CALLER_HANGUP' } },
];

/** The events of all tables: does not compile when the machine gets another one. */
type Named =
  | 'invited'
  | 'inadmissible'
  | 'routed'
  | 'agent-connected'
  | 'agent-away'
  | 'relay-offered'
  | 'leg-reserved'
  | 'leg-opened'
  | 'relay-answered'
  | 'relay-offered-to-carrier'
  | 'relay-answered-from-carrier'
  | 'agent-refused'
  | 'cancelled'
  | 'acknowledged'
  | 'answer-failed'
  | 'failed'
  | 'server-lost'
  | 'pinged'
  | 'bye'
  | 'hangup'
  | 'relay-lost'
  | 'leg-lost'
  | 'timer'
  | 'reoffered'
  | 'refresh-due'
  | 'reinvite-answered'
  | 'transfer-asked'
  | 'refer-answered'
  | 'notified'
  | 'leg-ringing'
  | 'leg-consulting'
  | 'transfer-step'
  | 'briefed'
  | 'leg-answered'
  | 'leg-ended'
  | 'leg-left'
  | 'side-changed'
  | 'placed'
  | 'permitted'
  | 'not-permitted'
  | 'dial-proceeding'
  | 'dial-answered'
  | 'dial-refused';
type Missing = Exclude<CallEvent['type'], Named>;
const _NONE_IS_MISSING: [Missing] extends [never] ? true : Missing = true;

interface NamedState {
  readonly name: string;
  readonly state: CallState;
}

/** One state of each name, in the order of a call; those that a late offer takes as well. The agent is slow, save where the name says it is not. */
function states(): NamedState[] {
  const slow = (call: readonly CallEvent[], facts: CallFacts): CallState[] => {
    const events = call.filter((event) => event !== AGENT_CONNECTED);
    return events.map((_event, index) => play(events.slice(0, index + 1), facts).state).filter(({ name }) => name !== 'Ended');
  };
  const connected = (call: readonly CallEvent[], length: number, facts: CallFacts): NamedState => {
    const { state } = play(call.slice(0, length), facts);
    return { name: `${state.name}, agent connected`, state };
  };
  const named = (state: CallState): NamedState => ({ name: state.name, state });
  const first = slow(CALL, FACTS).slice(0, 5).map(named);
  const late = slow(LATE_CALL, LATE_FACTS)
    .slice(1, 4)
    .map(named)
    .filter(({ name }) => name !== 'AwaitingAgent');
  const lateAck = play(LATE_CALL.slice(0, 5), LATE_FACTS).state;
  return [
    ...first.slice(0, 2),
    { name: 'Offering, port reserved', state: play(CALL.slice(0, 3)).state },
    { name: 'Reserving, offer accepted', state: play([...CALL.slice(0, 2), ...CALL.slice(3, 4)]).state },
    ...first.slice(3, 4),
    connected(CALL, 5, FACTS),
    ...late,
    connected(LATE_CALL, 4, LATE_FACTS),
    ...first.slice(4),
    named(play(CALL.slice(0, 6)).state),
    { name: 'AwaitingAck, our offer', state: lateAck },
    named(play(LATE_CALL.slice(0, 6), LATE_FACTS).state),
    { name: 'Connecting, leg opens', state: play(LATE_CALL.slice(0, 7), LATE_FACTS).state },
    named(play(CALL).state),
    named(play([...CALL.slice(0, 6), { type: 'hangup', reason: 'AGENT_HANGUP' }]).state),
  ];
}

/** The exchanges of a call in progress, each in every step. */
function exchangeStates(): NamedState[] {
  const talking = play(CALL).state;
  const lost: CallEvent = RELAY_LOST;
  const outward: CallEvent = { type: 'relay-offered-to-carrier', sdp: OTHER_OUTSIDE, attempt: 1 };
  const answered = (status: number): CallEvent => ({ type: 'reinvite-answered', status, sdp: ANSWER, retryAfterMs: 0, attempt: 1 });
  const paths: readonly (readonly CallEvent[])[] = [
    [],
    [CHANGED],
    [CHANGED, { type: 'relay-offered', sdp: INSIDE, attempt: 1 }],
    [OFFERLESS],
    [lost],
    [lost, outward],
    [lost, outward, answered(491)],
    [lost, outward, answered(200)],
    [{ type: 'refresh-due' }],
  ];
  return paths.map((path) => {
    const { state } = playOn(talking, path);
    return { name: state.exchange.name, state };
  });
}

function effectText(effect: CallEffect): string {
  switch (effect.do) {
    case 'refuse':
    case 'bye':
    case 'finish':
    case 'reject':
      return `${effect.do} ${effect.reason}`;
    case 'notify-agent':
      return `tell-agent ${answerText(effect.answer)}`;
    case 'start-timer':
    case 'stop-timer':
      return `${effect.do} ${effect.timer}`;
    default:
      return effect.do;
  }
}

function answerText(answer: AgentAnswer): string {
  switch (answer.type) {
    case 'tool-result':
    case 'answered-by':
      return answer.type;
    case 'transfer-progress':
      return `${answer.state}${answer.status === null ? '' : ` ${String(answer.status)}`}`;
    case 'refused':
      return answer.code;
  }
}

interface Row {
  readonly from: string;
  /** With its reasons or timers: `failed` MEDIA_UNAVAILABLE. */
  event: string;
  readonly to: string;
  /** REASON stands for the event's own. */
  readonly effects: string;
}

/** The events of a table expect the first exchange; a state may be in a later one. */
function atAttempt(event: CallEvent, state: CallState): CallEvent {
  return 'attempt' in event && event.attempt !== null ? { ...event, attempt: state.attempt } : event;
}

/** What changes a state or makes something happen. Rows that differ in the event's reason alone are one. */
function rows(from: readonly NamedState[], events: readonly NamedEvent[], nameOf: (state: CallState, before: NamedState) => string): Row[] {
  const merged: Row[] = [];
  for (const before of from) {
    for (const { name, event } of events) {
      // The first event of a call: no other state sees them.
      if (before.state.name !== 'Routing' && (event.type === 'invited' || event.type === 'inadmissible')) continue;
      const step = stepCall(before.state, atAttempt(event, before.state));
      const note = noteOf(before.state, step.state);
      const to = nameOf(step.state, before);
      if (to === before.name && step.effects.length === 0 && note === '') continue;
      // All timers are stopped at every end: said once, in the text.
      const isEnd = step.state.name === 'Ended';
      const texts = step.effects.filter((effect) => !(isEnd && effect.do === 'stop-timer')).map(effectText);
      const own = 'reason' in event ? event.reason : undefined;
      const all_ = [texts.join(', '), note].filter((text) => text !== '').join('; ') || '—';
      add(merged, {
        from: before.name,
        event: name,
        to,
        effects: own === undefined ? all_ : all_.replaceAll(new RegExp(`\\b${own}\\b`, 'g'), 'REASON'),
      });
    }
  }
  return merged;
}

function add(merged: Row[], row: Row): void {
  const [type = '', reason] = row.event.split(' ');
  const same = merged.find(
    ({ from, event, to, effects }) => from === row.from && event.startsWith(`${type} `) && to === row.to && effects === row.effects,
  );
  if (same === undefined || reason === undefined) merged.push(row);
  else same.event += `, ${row.event.slice(type.length + 1)}`;
}

function noteOf(before: CallState, after: CallState): string {
  if (before.name === after.name && !before.agent.isConnected && after.agent.isConnected) return 'the agent is connected';
  if (!before.isRingDue && after.isRingDue) return 'the 180 is due';
  if (!before.isMoveDue && after.isMoveDue) return 'moves after the ACK';
  if (after.name === 'HangingUp' && before.name !== 'HangingUp') return `the reason is ${after.reason ?? ''}`;
  return '';
}

function callRows(): Row[] {
  return rows(states(), EVENTS, (state, before) => {
    if (state.name === before.state.name && state.lateOffer === before.state.lateOffer && state.agentFacing === before.state.agentFacing)
      return before.name;
    if (state.name === 'AwaitingAck' && state.lateOffer !== null) return 'AwaitingAck, our offer';
    return state.name === 'Connecting' && state.agentFacing !== null ? 'Connecting, leg opens' : state.name;
  });
}

/** Per state: the events with an effect; all others change nothing. */
export function transitionTable(): string {
  return tableOf(callRows(), 'state');
}

/** The same of the exchanges within a call in progress. */
export function exchangeTable(): string {
  const found = rows(exchangeStates(), EXCHANGE_EVENTS, (state) => (state.name === 'Ended' ? 'Ended' : state.exchange.name));
  return tableOf(found, 'exchange');
}

/** The same of a transfer. */
export function transferTable(): string {
  const nameOf = ({ name, transfer }: CallState): string => {
    if (name === 'Ended') return 'Ended';
    return transfer === null ? 'none' : transfer.isAccepted ? 'accepted' : 'asked';
  };
  const from = [[], [TRANSFER], [TRANSFER, ACCEPTED]].map((path) => {
    const { state } = playOn(play(CALL).state, path);
    return { name: nameOf(state), state };
  });
  return tableOf(rows(from, TRANSFER_EVENTS, nameOf), 'transfer');
}

const LEG = 'f47ac10b-58cc-4372-a567-0e02b2c3d479';
const LEG_SIDE = { address: '127.0.0.1', rtpPort: 32_000, rtcpPort: 32_001, crypto: null };
const OTHER_SIDE = { ...LEG_SIDE, rtpPort: 33_000, rtcpPort: 33_001 };
const LEG_ANSWERED: CallEvent = { type: 'leg-answered', callId: LEG, side: LEG_SIDE };
const CONSULTING: CallEvent = { type: 'leg-consulting', callId: LEG };
const SILENT = { type: 'relay-offered-to-carrier', sdp: OUTSIDE, attempt: 1 } as const;
const OVER: CallEvent = { type: 'relay-answered-from-carrier', sdp: INSIDE, attempt: 1 };

/** A transfer by a second leg: what becomes of it, and of the media that changes over. */
const LEG_EVENTS: readonly NamedEvent[] = [
  { name: '`leg-ringing`', event: { type: 'leg-ringing', callId: LEG } },
  { name: '`leg-consulting`', event: CONSULTING },
  { name: '`transfer-step` conference', event: { type: 'transfer-step', requestId: 's', step: 'conference' } },
  { name: '`transfer-step` complete', event: { type: 'transfer-step', requestId: 's', step: 'complete' } },
  { name: '`transfer-step` cancel', event: { type: 'transfer-step', requestId: 's', step: 'cancel' } },
  { name: '`leg-answered`', event: LEG_ANSWERED },
  { name: '`side-changed`', event: { type: 'side-changed', callId: LEG, side: OTHER_SIDE } },
  { name: '`leg-ended`', event: { type: 'leg-ended', callId: LEG, reason: 'BUSY', status: 486 } },
  { name: '`leg-left`', event: { type: 'leg-left' } },
  { name: '`relay-offered-to-carrier`, the same side', event: SILENT },
  { name: '`relay-offered-to-carrier`, another', event: { ...SILENT, sdp: OTHER_OUTSIDE } },
  { name: '`reinvite-answered` 488', event: { type: 'reinvite-answered', status: 488, sdp: '', retryAfterMs: 0, attempt: 1 } },
  { name: '`relay-answered-from-carrier`', event: OVER },
  { name: '`leg-reserved`', event: { type: 'leg-reserved', local: LOCAL, agentSideKey: null } },
  { name: '`failed`', event: { type: 'failed', reason: 'MEDIA_UNAVAILABLE', attempt: null } },
  { name: '`hangup` AGENT_HANGUP', event: { type: 'hangup', reason: 'AGENT_HANGUP' } },
  { name: '`hangup` API_STOPPED', event: { type: 'hangup', reason: 'API_STOPPED' } },
  { name: '`bye` CALLER_HANGUP', event: { type: 'bye', reason: 'CALLER_HANGUP' } },
];

/** The same of a second leg. */
export function legTable(): string {
  const nameOf = ({ name, second, exchange }: CallState): string => {
    if (name === 'Ended') return 'Ended';
    if (second === null) return 'none';
    return exchange.name === 'Idle' ? second.phase : `${second.phase}, ${exchange.name}`;
  };

  const dialled = (afterwards: 'end' | 'go-on'): CallState => {
    const { state } = play(CALL);
    return { ...state, second: { callId: LEG, requestId: 't', afterwards, phase: 'dialling' } };
  };
  const left: CallEvent = { type: 'leg-left' };
  const moved: CallEvent = { ...SILENT, sdp: OTHER_OUTSIDE };
  const paths: readonly (readonly CallEvent[])[] = [
    [],
    [CONSULTING],
    [LEG_ANSWERED],
    [LEG_ANSWERED, moved],
    [LEG_ANSWERED, SILENT],
    [LEG_ANSWERED, SILENT, OVER],
    [LEG_ANSWERED, SILENT, OVER, left],
  ];
  const from = (afterwards: 'end' | 'go-on') =>
    paths.map((path) => {
      const { state } = playOn(dialled(afterwards), path);
      return { name: nameOf(state), state };
    });
  const goesOn = from('go-on').filter(({ name }) => name === 'joined');
  const all_ = rows(from('end'), LEG_EVENTS, nameOf);
  const others = rows(
    goesOn,
    LEG_EVENTS.filter(({ event }) => event.type === 'leg-ended'),
    nameOf,
  );
  return tableOf([...all_, ...others.map((row) => ({ ...row, from: 'joined by `<Dial>`' }))], 'second leg');
}

const REFUSED = [
  [486, false],
  [603, false],
  [404, false],
  [503, true],
] as const;

/** A call that we place, until its ACK. */
const PLACING_EVENTS: readonly NamedEvent[] = [
  { name: '`placed`', event: PLACED[0] ?? ROUTED },
  { name: '`permitted`', event: PERMITTED },
  { name: '`not-permitted`', event: { type: 'not-permitted', reason: 'DIAL_NOT_ALLOWED', detail: '' } },
  { name: '`leg-reserved`', event: { type: 'leg-reserved', local: LOCAL, agentSideKey: null } },
  ...relay('relay-offered-to-carrier', OUTSIDE, INSIDE),
  ...REFUSED.map(([status, isLocal]) => ({
    name: `\`dial-refused\` ${String(status)}${isLocal ? ', nobody reached' : ''}`,
    event: { type: 'dial-refused', status, isLocal } as const,
  })),
  { name: '`dial-answered`', event: { type: 'dial-answered', sdp: ANSWER } },
  { name: '`dial-answered`, unusable', event: { type: 'dial-answered', sdp: 'garbage' } },
  { name: '`agent-connected`', event: AGENT_CONNECTED },
  { name: '`leg-opened`', event: { type: 'leg-opened' } },
  ...relay('relay-answered-from-carrier', INSIDE, 'garbage'),
  { name: '`failed` AGENT_UNAVAILABLE', event: { type: 'failed', reason: 'AGENT_UNAVAILABLE', attempt: null } },
  { name: '`failed` MEDIA_UNAVAILABLE', event: { type: 'failed', reason: 'MEDIA_UNAVAILABLE', attempt: null } },
  { name: '`hangup` API_STOPPED', event: { type: 'hangup', reason: 'API_STOPPED' } },
  { name: '`relay-lost`', event: RELAY_LOST },
  { name: '`leg-lost`', event: { type: 'leg-lost' } },
  { name: '`bye`', event: { type: 'bye', reason: 'CALLER_HANGUP' } },
  { name: '`timer` unanswered', event: { type: 'timer', timer: 'unanswered' } },
  { name: '`timer` cancelling', event: { type: 'timer', timer: 'cancelling' } },
  { name: '`timer` max-duration', event: { type: 'timer', timer: 'max-duration' } },
];

/** The same of a call that we place. */
export function placingTable(): string {
  const nameOf = ({ name, placing, agentFacing, agent }: CallState): string => {
    if (name === 'Dialling') return placing?.givenUp === null ? name : 'Dialling, cancelled';
    if (name !== 'Connecting') return name;
    if (placing?.isLegOpen === true) return 'Connecting, leg open';
    return agent.isConnected ? 'Connecting, agent connected' : agentFacing === null ? name : 'Connecting, leg opens';
  };
  const stop: CallEvent = { type: 'hangup', reason: 'API_STOPPED' };
  const paths = [
    ...[0, 1, 2, 3, 4, 6, 7].map((length) => PLACED.slice(0, length)),
    [...PLACED.slice(0, 6), AGENT_CONNECTED],
    [...PLACED.slice(0, 6), ...PLACED.slice(6, 8)],
    [...PLACED.slice(0, 4), stop],
  ];
  const from = paths.map((path) => playOn(startCall(LATE_FACTS, 60_000), path).state).map((state) => ({ name: nameOf(state), state }));
  const distinct = from.filter(({ name }, index) => from.findIndex((one) => one.name === name) === index);
  return tableOf(rows(distinct, PLACING_EVENTS, nameOf), 'state');
}

function tableOf(found: readonly Row[], what: string): string {
  return table(
    [what, 'event', `next ${what}`, 'effects, in order'],
    found.map((row) => [row.from, row.event, row.to, row.effects]),
  );
}

export function stateDiagram(): string {
  const edges = new Map<string, Set<string>>();
  const plain = (name: string): string => name.replace(/,.*/, '');
  for (const { from, event, to } of callRows()) {
    if (plain(from) === plain(to)) continue;
    const key = `${plain(from)} --> ${plain(to)}`;
    edges.set(key, (edges.get(key) ?? new Set()).add((/`([^`]+)`/.exec(event) ?? [])[1] ?? event));
  }
  const lines = [...edges].map(([edge, events]) => `  ${edge}: ${[...events].join(', ')}`);
  return ['```mermaid', 'stateDiagram-v2', '  [*] --> Routing: INVITE', ...lines, '  Ended --> [*]', '```'].join('\n');
}

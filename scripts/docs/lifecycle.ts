import {
  startCall,
  stepCall,
  type CallEffect,
  type CallEvent,
  type CallState,
  type CallStateName,
  type CallTimer,
} from '../../src/gateway/call/machine.js';
import { NO_LOAD } from '../../src/gateway/policy/admission.js';
import { ROUTE } from '../../test/support/route.js';
import { offerSdp, OTHER_KEY } from '../../test/support/sdp.js';
import { table } from './table.js';

// Every state of the call machine is reached by playing an ordinary call, then given every event.

const FACTS = { sourceAddress: '203.0.113.7', sdp: offerSdp(), sessionId: '1', maxDurationMs: 7_200_000, ringingAfterMs: 500 };
const KEYED = offerSdp({ port: 30_000, payloads: '0 101', crypto: [`1 AES_CM_128_HMAC_SHA1_80 inline:${OTHER_KEY}`] });
const PLAIN = offerSdp({ profile: 'RTP/AVP', crypto: [], port: 31_000, payloads: '0 101' });

const CALL: readonly CallEvent[] = [
  { type: 'invited' },
  { type: 'routed', route: ROUTE, load: NO_LOAD },
  { type: 'relay-offered', sdp: PLAIN },
  { type: 'leg-opened', local: { address: '127.0.0.1', rtpPort: 20_000, rtcpPort: 20_001 }, insideKey: null },
  { type: 'relay-answered', sdp: KEYED },
  { type: 'acknowledged' },
];

type ReasonOf<Type extends CallEvent['type']> = Extract<CallEvent, { type: Type; reason: unknown }>['reason'];

/** All members of a union: does not compile when one is missing or too many. */
const all = <Member extends string>(members: Record<Member, true>): Member[] => Object.keys(members) as Member[];

const FAILED = all<ReasonOf<'failed'>>({ STORE_UNAVAILABLE: true, MEDIA_UNAVAILABLE: true, INTERNAL_ERROR: true });
const ANSWER_FAILED = all<ReasonOf<'answer-failed'>>({ CALLER_CANCELLED: true, INTERNAL_ERROR: true });
const BYE = all<ReasonOf<'bye'>>({ CALLER_HANGUP: true, ACK_TIMEOUT: true, SESSION_EXPIRED: true });
const HANGUP = all<ReasonOf<'hangup'>>({
  AGENT_HANGUP: true,
  MEDIA_TIMEOUT: true,
  MEDIA_LOST: true,
  API_STOPPED: true,
  SHUTDOWN: true,
  DRAINING: true,
});
const TIMERS = all<CallTimer>({ ringing: true, 'max-duration': true });

interface NamedEvent {
  readonly name: string;
  readonly event: CallEvent;
}

const EVENTS: readonly NamedEvent[] = [
  { name: '`invited`', event: { type: 'invited' } },
  { name: '`inadmissible`', event: { type: 'inadmissible', reason: 'BAD_EXTENSION' } },
  { name: '`routed`, acceptable', event: { type: 'routed', route: ROUTE, load: NO_LOAD } },
  { name: '`routed`, not attached', event: { type: 'routed', route: null, load: NO_LOAD } },
  { name: '`relay-offered`', event: { type: 'relay-offered', sdp: PLAIN } },
  { name: '`relay-offered`, unusable', event: { type: 'relay-offered', sdp: 'garbage' } },
  { name: '`leg-opened`', event: CALL[3] ?? { type: 'invited' } },
  { name: '`relay-answered`', event: { type: 'relay-answered', sdp: KEYED } },
  { name: '`relay-answered`, no key', event: { type: 'relay-answered', sdp: PLAIN } },
  { name: '`relay-answered`, unusable', event: { type: 'relay-answered', sdp: 'garbage' } },
  ...FAILED.map((reason) => ({ name: `\`failed\` ${reason}`, event: { type: 'failed', reason } as const })),
  ...ANSWER_FAILED.map((reason) => ({ name: `\`answer-failed\` ${reason}`, event: { type: 'answer-failed', reason } as const })),
  { name: '`server-lost`', event: { type: 'server-lost' } },
  { name: '`cancelled`', event: { type: 'cancelled' } },
  { name: '`acknowledged`', event: { type: 'acknowledged' } },
  ...BYE.map((reason) => ({ name: `\`bye\` ${reason}`, event: { type: 'bye', reason } as const })),
  ...HANGUP.map((reason) => ({ name: `\`hangup\` ${reason}`, event: { type: 'hangup', reason } as const })),
  ...TIMERS.map((timer) => ({ name: `\`timer\` ${timer}`, event: { type: 'timer', timer } as const })),
];

/** The events above by type: does not compile when the machine gets another one. */
type Named =
  'invited' | 'inadmissible' | 'routed' | 'relay-offered' | 'leg-opened' | 'relay-answered' | 'server-lost' | 'cancelled' | 'acknowledged';
type Missing = Exclude<CallEvent['type'], Named | 'failed' | 'answer-failed' | 'bye' | 'hangup' | 'timer'>;
const _NONE_IS_MISSING: [Missing] extends [never] ? true : Missing = true;

/** One state of each name, in the order of a call. */
function states(): CallState[] {
  const found: CallState[] = [];
  let state = startCall(FACTS);
  for (const event of CALL) {
    state = stepCall(state, event).state;
    found.push(state);
  }
  const awaitingAck = found[4] ?? state;
  const hangingUp = stepCall(awaitingAck, { type: 'hangup', reason: 'AGENT_HANGUP' }).state;
  const ended = stepCall(state, { type: 'bye', reason: 'CALLER_HANGUP' }).state;
  return [...found, hangingUp, ended];
}

function effectText(effect: CallEffect): string {
  switch (effect.do) {
    case 'refuse':
    case 'bye':
    case 'finish':
      return `${effect.do} ${effect.reason}`;
    case 'start-timer':
    case 'stop-timer':
      return `${effect.do} ${effect.timer}`;
    default:
      return effect.do;
  }
}

interface Row {
  readonly from: CallStateName;
  /** With its reasons or timers: `failed` MEDIA_UNAVAILABLE. */
  event: string;
  readonly to: CallStateName;
  /** REASON stands for the event's own. */
  readonly effects: string;
}

/** What changes a state or makes something happen. Rows that differ in the event's reason alone are one. */
function rows(): Row[] {
  const merged: Row[] = [];
  for (const state of states()) {
    for (const { name, event } of EVENTS) {
      // The first event of a call: no other state sees them.
      if (state.name !== 'Routing' && (event.type === 'invited' || event.type === 'inadmissible')) continue;
      const step = stepCall(state, event);
      const note = noteOf(state, step.state);
      if (step.state.name === state.name && step.effects.length === 0 && note === '') continue;
      // Both timers are stopped at every end: said once, in the text.
      const isEnd = step.state.name === 'Ended';
      const texts = step.effects.filter((effect) => !(isEnd && effect.do === 'stop-timer')).map(effectText);
      const own = 'reason' in event ? event.reason : undefined;
      const all = [texts.join(', '), note].filter((text) => text !== '').join('; ') || '—';
      add(merged, {
        from: state.name,
        event: name,
        to: step.state.name,
        effects: own === undefined ? all : all.replaceAll(new RegExp(`\\b${own}\\b`, 'g'), 'REASON'),
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
  else same.event += `, ${reason}`;
}

function noteOf(before: CallState, after: CallState): string {
  if (!before.isRingDue && after.isRingDue) return 'the 180 is due';
  if (after.name === 'HangingUp' && before.name !== 'HangingUp') return `the reason is ${after.reason ?? ''}`;
  return '';
}

/** Of a state: what changes it or makes something happen; every other event changes nothing. */
export function transitionTable(): string {
  return table(
    ['state', 'event', 'next state', 'effects, in order'],
    rows().map((row) => [row.from, row.event, row.to, row.effects]),
  );
}

export function stateDiagram(): string {
  const edges = new Map<string, Set<string>>();
  for (const { from, event, to } of rows()) {
    if (from === to) continue;
    const key = `${from} --> ${to}`;
    edges.set(key, (edges.get(key) ?? new Set()).add((/`([^`]+)`/.exec(event) ?? [])[1] ?? event));
  }
  const lines = [...edges].map(([edge, events]) => `  ${edge}: ${[...events].join(', ')}`);
  return ['```mermaid', 'stateDiagram-v2', '  [*] --> Routing: INVITE', ...lines, '  Ended --> [*]', '```'].join('\n');
}

import type { AgentAnswer } from '../model/agent.js';
import type { VerifiedIdentity } from '../model/verified-identity.js';
import type { LegEvent } from '../model/media.js';
import type { CallEvent, CallState, CallTimer } from './state.js';

// What a call's trace says of its events, one line each, without what the messages of both sides have already.

/** `null`: nothing changed that the trace does not show otherwise. */
export function eventSummary(event: CallEvent, before: CallState, after: CallState): string | null {
  const why = after.reason === null || after.reason === before.reason ? '' : `: ${after.reason}`;
  const hasMoved = before.name !== after.name || before.exchange.name !== after.exchange.name;
  if (!hasMoved && why === '' && event.type !== 'failed') return null;
  return `${happened(event)}${why}`;
}

/** In words of the field; what the machine makes of it is for docs/call-lifecycle.md. */
function happened(event: CallEvent): string {
  switch (event.type) {
    case 'invited':
      return 'the call begins';
    case 'inadmissible':
      return 'refused before the number is looked up';
    case 'routed':
      return looked(event);
    case 'agent-connected':
      return 'the agent is connected';
    case 'relay-offered':
      return 'rtpengine has taken the offer';
    case 'relay-answered':
      return 'rtpengine has taken the answer';
    case 'relay-offered-to-carrier':
      return 'rtpengine has made the offer for the carrier';
    case 'relay-answered-from-carrier':
      return "rtpengine has taken the carrier's answer";
    case 'leg-reserved':
      return "the agent's media port is reserved";
    case 'leg-opened':
      return "the agent's media is ready";
    case 'failed':
      return `a step failed (${event.reason})`;
    case 'answer-failed':
      return 'the 200 could not be sent';
    case 'server-lost':
      return 'the SIP server has lost the call';
    case 'cancelled':
      return 'the caller gave up before the answer';
    case 'acknowledged':
      return 'established: the ACK is here';
    case 'bye':
      return event.reason === 'CALLER_HANGUP' ? 'the caller hung up' : 'the SIP server gave the call up';
    case 'hangup':
      return 'the gateway hangs up';
    case 'reoffered':
      return `the carrier changes the session (${event.method === 'INVITE' ? 're-INVITE' : 'UPDATE'})`;
    case 'reinvite-answered':
      return `the carrier answered our re-INVITE: ${String(event.status)}`;
    case 'transfer-asked':
      return 'the agent asks for a transfer';
    case 'refer-answered':
      return event.status === null ? 'the REFER could not be sent' : `the carrier answered the REFER: ${String(event.status)}`;
    case 'notified':
      return 'the carrier tells how the transfer goes';
    case 'relay-lost':
      return 'rtpengine has lost the call';
    case 'pinged':
      return `the carrier ${event.isAnswered ? 'answered' : 'did not answer'} our OPTIONS`;
    case 'timer':
      return TIMERS[event.timer];
  }
}

const TIMERS: Readonly<Record<CallTimer, string>> = {
  ringing: 'the agent is not there yet: ringing',
  'max-duration': 'the longest duration is over',
  reinvite: 'the re-INVITE is due again',
  held: 'held for a minute: the carrier is asked by OPTIONS',
  transfer: 'nothing was told of the transfer in time',
};

function looked({ route, isStale, identity }: Extract<CallEvent, { type: 'routed' }>): string {
  const what = route === null ? 'is not attached' : `is attached, agent ${route.agent?.agent_id ?? 'of the operator'}`;
  return `looked up: the number ${what}${isStale ? ', as it was remembered' : ''}${identityText(identity)}`;
}

function identityText(identity: VerifiedIdentity | null): string {
  if (identity === null) return '';
  const { verdict, attestation, detail } = identity;
  return `; identity ${verdict}${attestation === null ? '' : `, attestation ${attestation}`}${detail === null ? '' : `: ${detail}`}`;
}

export function legSummary(event: LegEvent): string {
  if (event.type === 'agent-note') return event.text;
  if (event.type !== 'agent-request') return event.type;
  const { request } = event;
  switch (request.type) {
    case 'transcript':
      return `transcript, ${String(request.entries.length)} entries`;
    case 'analysis':
      return `analysis, ${String(Object.keys(request.analysis).length)} data points`;
    case 'tool':
      return `tool ${request.name} asked for`;
    case 'transfer':
      return `transfer asked for, to ${request.to}`;
  }
}

/** With the sentence of a refusal. */
export function answerSummary(answer: AgentAnswer): [string, string | null] {
  switch (answer.type) {
    case 'tool-result':
      return [`tool answered${answer.httpStatus === null ? '' : `, HTTP ${String(answer.httpStatus)}`}`, null];
    case 'transfer-progress':
      return [`transfer ${answer.state}${answer.status === null ? '' : `, ${String(answer.status)}`}`, null];
    case 'refused':
      return [`${answer.request} refused, ${answer.code}`, answer.message];
  }
}

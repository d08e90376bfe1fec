import type { AgentAnswer } from '../contracts/agent.js';
import type { VerifiedIdentity } from '../contracts/verified-identity.js';
import type { LegEvent } from '../contracts/media.js';
import type { CallEvent, CallState } from './call/state.js';

// What a call's trace says of its events, one line each, without what the messages of both sides have already.

/** `null`: nothing changed that the trace does not show otherwise. */
export function eventSummary(event: CallEvent, before: CallState, after: CallState): string | null {
  const moved = before.name === after.name ? '' : `, ${before.name} → ${after.name}`;
  const why = after.reason === null || after.reason === before.reason ? '' : `, ${after.reason}`;
  if (event.type === 'routed') return `${looked(event)}${why}${moved}`;
  const exchange = before.exchange.name === after.exchange.name ? '' : `, exchange ${before.exchange.name} → ${after.exchange.name}`;
  const failed = event.type === 'failed' ? ` ${event.reason}` : '';
  return moved === '' && why === '' && exchange === '' && failed === '' ? null : `${event.type}${failed}${why}${moved}${exchange}`;
}

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

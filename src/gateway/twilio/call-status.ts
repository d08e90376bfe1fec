import type { CallRecord } from '../model/call-record.js';

/** https://www.twilio.com/docs/voice/api/call-resource#call-status-values */
export type CallStatus = 'queued' | 'ringing' | 'in-progress' | 'completed' | 'busy' | 'failed' | 'no-answer' | 'canceled';

/** `direction` of the resource, `Direction` of requests. */
export function twilioDirection(direction: CallRecord['direction']): 'inbound' | 'outbound-api' {
  return direction === 'inbound' ? 'inbound' : 'outbound-api';
}

/** Ends of an unanswered call that somebody wanted. */
const CANCELS: ReadonlySet<CallRecord['reason']> = new Set(['CALLER_CANCELLED', 'AGENT_HANGUP', 'API_STOPPED']);

/** How a call that has ended went, in Twilio's words. */
export function callStatusOf({
  answered_at: answeredAt,
  reason,
  sip_status: status,
}: Pick<CallRecord, 'answered_at' | 'reason' | 'sip_status'>): CallStatus {
  if (answeredAt !== null) return 'completed';
  if (CANCELS.has(reason)) return 'canceled';
  if (status === 486 || status === 600) return 'busy';
  // The number may have rung.
  if (reason === 'DIAL_AMBIGUOUS' && status === null) return 'no-answer';
  return reason === 'NO_ANSWER' || status === 408 || status === 480 ? 'no-answer' : 'failed';
}

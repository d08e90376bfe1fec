import type { CallRecord } from '../model/call-record.js';

/** https://www.twilio.com/docs/voice/api/call-resource#call-status-values */
export type CallStatus = 'ringing' | 'in-progress' | 'completed' | 'busy' | 'failed' | 'no-answer' | 'canceled';

/** How a call that has ended went, in Twilio's words. */
export function callStatusOf({
  answered_at: answeredAt,
  reason,
  sip_status: status,
}: Pick<CallRecord, 'answered_at' | 'reason' | 'sip_status'>): CallStatus {
  if (answeredAt !== null) return 'completed';
  if (reason === 'CALLER_CANCELLED') return 'canceled';
  if (status === 486 || status === 600) return 'busy';
  return status === 408 || status === 480 ? 'no-answer' : 'failed';
}

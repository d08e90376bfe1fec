import type { CallRecord } from '../model/call-record.js';
import type { Route } from '../model/records.js';
import type { VoiceRequest } from '../ports/ports.js';
import { callParameters } from '../twilio/call-parameters.js';
import { callStatusOf } from '../twilio/call-status.js';

/** What the number's owner gets when a call has ended; `null`: nothing. */
export function statusCallback(record: CallRecord, route: Route | null): VoiceRequest | null {
  const url = route?.number.inbound?.options.status_callback;
  // A setting of calls that come in.
  if (route === null || url === undefined || record.direction === 'outbound') return null;
  const { call_id: callId, to, caller, identity, answered_at: answeredAt, ended_at: endedAt } = record;
  const seconds = answeredAt === null ? 0 : Math.round((Date.parse(endedAt) - Date.parse(answeredAt)) / 1_000);
  return {
    url,
    method: 'POST',
    token: route.org.twilio_token,
    parameters: {
      ...callParameters({ callId, orgId: route.org.org_id, to, caller, identity }, callStatusOf(record)),
      CallDuration: String(seconds),
      Timestamp: new Date(endedAt).toUTCString(),
      CallbackSource: 'call-progress-events',
      SequenceNumber: '0',
    },
  };
}

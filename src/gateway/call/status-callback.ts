import type { CallRecord } from '../model/call-record.js';
import type { Route, StatusCallbackEvent } from '../model/records.js';
import type { VerifiedIdentity } from '../model/verified-identity.js';
import type { VoiceRequest } from '../ports/ports.js';
import { callParameters } from '../twilio/call-parameters.js';
import { callStatusOf, type CallStatus } from '../twilio/call-status.js';
import type { CallOrigin } from './call-record.js';

const STATUS: Readonly<Record<StatusCallbackEvent, CallStatus | 'initiated'>> = {
  initiated: 'initiated',
  ringing: 'ringing',
  answered: 'in-progress',
  completed: 'completed',
};

export interface CallMoment {
  readonly event: StatusCallbackEvent;
  /** Milliseconds of the epoch. */
  readonly atMs: number;
  /** Status callbacks before this one. */
  readonly sequence: number;
  /** `null`: the call has not ended. */
  readonly record: CallRecord | null;
}

/** What the number's owner gets at this moment of a call; `null`: nothing. */
export function statusCallback(
  { callId, direction, to, caller }: CallOrigin,
  route: Route | null,
  identity: VerifiedIdentity | null,
  { event, atMs, sequence, record }: CallMoment,
): VoiceRequest | null {
  const { status_callback: url, status_callback_events: wanted = ['completed'] } = route?.number.inbound?.options ?? {};
  // A setting of calls that come in.
  if (route === null || url === undefined || direction === 'outbound' || !wanted.includes(event)) return null;
  const status = record === null ? STATUS[event] : callStatusOf(record);
  return {
    url,
    method: 'POST',
    token: route.org.twilio_token,
    parameters: {
      ...callParameters({ callId, orgId: route.org.org_id, to, caller, identity }, status),
      ...(record === null ? {} : { CallDuration: String(secondsOf(record)) }),
      Timestamp: new Date(atMs).toUTCString(),
      CallbackSource: 'call-progress-events',
      SequenceNumber: String(sequence),
    },
  };
}

function secondsOf({ answered_at: answeredAt, ended_at: endedAt }: CallRecord): number {
  return answeredAt === null ? 0 : Math.round((Date.parse(endedAt) - Date.parse(answeredAt)) / 1_000);
}

import type { CallRecord } from '../model/call-record.js';
import type { StatusCallbackEvent } from '../model/records.js';
import type { CallbackUrl } from '../model/voice-application.js';
import type { VoiceRequest } from '../ports/ports.js';
import { callParameters, type VoiceFacts } from '../twilio/call-parameters.js';
import { callStatusOf, type CallStatus } from '../twilio/call-status.js';

const STATUS: Readonly<Record<StatusCallbackEvent, CallStatus | 'initiated'>> = {
  initiated: 'initiated',
  ringing: 'ringing',
  answered: 'in-progress',
  completed: 'completed',
};

interface CallMoment {
  readonly event: StatusCallbackEvent;
  /** Milliseconds of the epoch. */
  readonly atMs: number;
  /** Status callbacks of the call before this one. */
  readonly sequence: number;
  /** `null`: the call has not ended. */
  readonly record: CallRecord | null;
}

/** What a call's application gets at this moment, at the address that it gave for it. */
export function statusCallback(
  token: string,
  { url, method }: CallbackUrl,
  facts: VoiceFacts,
  { event, atMs, sequence, record }: CallMoment,
): VoiceRequest {
  return {
    url,
    method,
    token,
    parameters: {
      ...callParameters(facts, record === null ? STATUS[event] : callStatusOf(record)),
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

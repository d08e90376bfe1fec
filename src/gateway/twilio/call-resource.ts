import type { CallRecord } from '../model/call-record.js';
import { accountSidOf, callSidOf } from '../model/twilio-ids.js';
import { answeredBy, type Answerer } from './answered-by.js';
import { callStatusOf, twilioDirection, type CallStatus } from './call-status.js';

/** What Twilio's resource of a call shows of it. Times are milliseconds of the epoch. */
export interface CallSeen {
  readonly callId: string;
  readonly direction: CallRecord['direction'];
  readonly from: string;
  readonly to: string;
  readonly status: CallStatus;
  readonly startedAtMs: number;
  /** `null`: not answered. */
  readonly answeredAtMs: number | null;
  /** `null`: in progress. */
  readonly endedAtMs: number | null;
  /** Left out or `null`: not known, or nobody asked. */
  readonly answerer?: Answerer | null;
  /** The call whose caller this one was dialled for; left out or `null`: none. */
  readonly parentCallId?: string | null;
}

/** RFC 2822, as Twilio's libraries read it. */
export function twilioDate(ms: number): string {
  return new Date(ms).toUTCString().replace('GMT', '+0000');
}

export function callsUri(orgId: string): string {
  return `/2010-04-01/Accounts/${accountSidOf(orgId)}/Calls`;
}

export function endedCallSeen(record: CallRecord): CallSeen {
  const { call_id: callId, direction, from, to, started_at: startedAt, answered_at: answeredAt, ended_at: endedAt } = record;
  return {
    callId,
    direction,
    from,
    to,
    status: callStatusOf(record),
    startedAtMs: Date.parse(startedAt),
    answeredAtMs: answeredAt === null ? null : Date.parse(answeredAt),
    endedAtMs: Date.parse(endedAt),
    answerer: record.answered_by ?? null,
    parentCallId: record.parent_call_id,
  };
}

/** Fields that Twilio has and Trunkline has nothing to say about are null. */
export function callResource(call: CallSeen, orgId: string) {
  const { callId, direction, from, to, status, startedAtMs, answeredAtMs, endedAtMs, answerer = null, parentCallId } = call;
  return {
    sid: callSidOf(callId),
    account_sid: accountSidOf(orgId),
    parent_call_sid: parentCallId == null ? null : callSidOf(parentCallId),
    phone_number_sid: null,
    from,
    from_formatted: from,
    to,
    to_formatted: to,
    direction: twilioDirection(direction),
    status,
    date_created: twilioDate(startedAtMs),
    date_updated: twilioDate(endedAtMs ?? answeredAtMs ?? startedAtMs),
    start_time: answeredAtMs === null ? null : twilioDate(answeredAtMs),
    end_time: endedAtMs === null ? null : twilioDate(endedAtMs),
    duration: endedAtMs === null ? null : String(answeredAtMs === null ? 0 : Math.max(0, Math.round((endedAtMs - answeredAtMs) / 1_000))),
    answered_by: answerer === null ? null : answeredBy(answerer),
    caller_name: null,
    forwarded_from: null,
    group_sid: null,
    trunk_sid: null,
    queue_time: '0' as const,
    price: null,
    price_unit: null,
    annotation: null,
    api_version: '2010-04-01' as const,
    uri: `${callsUri(orgId)}/${callSidOf(callId)}.json`,
    subresource_uris: {},
  };
}

import type { CallerIdentity, CallRecord } from '../model/call-record.js';
import type { AnsweredBy } from './answered-by.js';
import { twilioDirection, type CallStatus } from './call-status.js';
import { accountSidOf, callSidOf } from '../model/twilio-ids.js';
import type { VerifiedIdentity } from '../model/verified-identity.js';

/** What the parameters of a request say of a call. */
export interface VoiceFacts {
  readonly callId: string;
  readonly orgId: string;
  readonly direction: CallRecord['direction'];
  readonly to: string;
  readonly caller: CallerIdentity;
  readonly identity: VerifiedIdentity | null;
  /** `null` or left out: it is not known, or nobody asked. */
  readonly answeredBy?: AnsweredBy | null;
}

const STIR: Readonly<Record<string, string>> = { A: 'TN-Validation-Passed-A', B: 'TN-Validation-Passed-B', C: 'TN-Validation-Passed-C' };

/** The parameters that Twilio sends with each request: https://www.twilio.com/docs/voice/twiml#request-parameters */
export function callParameters(
  { callId, orgId, direction, to, caller, identity, answeredBy = null }: VoiceFacts,
  status: CallStatus | 'initiated',
): Readonly<Record<string, string>> {
  const [forwarder] = caller.diversions;
  const verstat = identity?.verdict === 'valid' ? STIR[identity.attestation ?? ''] : undefined;
  const userToUser = caller.user_to_user === null ? {} : { 'User-to-User': caller.user_to_user };
  const custom = Object.entries({ ...userToUser, ...caller.headers }).map(([name, value]) => [`SipHeader_${name}`, value] as const);
  return {
    CallSid: callSidOf(callId),
    AccountSid: accountSidOf(orgId),
    ApiVersion: '2010-04-01',
    Direction: twilioDirection(direction),
    CallStatus: status,
    From: caller.number,
    Caller: caller.number,
    To: to,
    Called: to,
    ...(caller.display_name === null ? {} : { CallerName: caller.display_name }),
    ...(forwarder === undefined ? {} : { ForwardedFrom: forwarder.uri }),
    ...(verstat === undefined ? {} : { StirVerstat: verstat }),
    ...(answeredBy === null ? {} : { AnsweredBy: answeredBy }),
    ...Object.fromEntries(custom),
  };
}

/** Whose doing it was that a call was refused or ended. */
export type Fault = 'caller' | 'customer' | 'gateway' | 'agent' | 'nobody';

export interface ReasonFacts {
  /** Status of the refusal; of a reason that only ends answered calls, 200. */
  readonly sipStatus: number;
  readonly sipPhrase: string;
  /** ITU-T Q.850 cause. */
  readonly q850: number;
  readonly fault: Fault;
  /** Whether the same INVITE may succeed later, or by another way. */
  readonly retryable: boolean;
  /** Whether the answer carries Retry-After. */
  readonly retryAfter: boolean;
  /** A sentence for a person. */
  readonly explanation: string;
}

const refuse = (
  sipStatus: number,
  sipPhrase: string,
  q850: number,
  fault: Fault,
  explanation: string,
  more: { retryable?: boolean; retryAfter?: boolean } = {},
): ReasonFacts => ({
  sipStatus,
  sipPhrase,
  q850,
  fault,
  explanation,
  retryable: more.retryable ?? false,
  retryAfter: more.retryAfter ?? false,
});

const end = (q850: number, fault: Fault, explanation: string): ReasonFacts => refuse(200, 'OK', q850, fault, explanation);

const RETRY = { retryable: true };
const RETRY_AFTER = { retryable: true, retryAfter: true };

/** The one table: the same code stands in the SIP answer, the log, the metrics, the call record and the API. */
export const REASONS = {
  MALFORMED_REQUEST: refuse(400, 'Bad Request', 96, 'caller', 'The request is not valid SIP.'),
  SOURCE_NOT_ALLOWED: refuse(403, 'Forbidden', 21, 'caller', 'The number does not accept calls from this source address.'),
  CREDENTIALS_REQUIRED: refuse(
    401,
    'Unauthorized',
    21,
    'caller',
    'The number has a challenge, and the INVITE has no right answer to it. Such an INVITE leaves no record.',
    RETRY,
  ),
  ORG_NOT_ENTITLED: refuse(403, 'Forbidden', 21, 'customer', 'The organization that owns the number does not have the SIP entitlement.'),
  ORG_DISABLED: refuse(403, 'Forbidden', 21, 'customer', 'The organization that owns the number is disabled.'),
  NUMBER_NOT_ATTACHED: refuse(404, 'Not Found', 1, 'customer', 'The called number is not attached for inbound calls.'),
  // RFC 8224 §6.2.2
  IDENTITY_STALE: refuse(403, 'Stale Date', 21, 'caller', 'The signature of the caller identity is too old, or dated in the future.'),
  IDENTITY_REQUIRED: refuse(428, 'Use Identity Header', 21, 'caller', 'The call has no signed caller identity, and one is required.'),
  IDENTITY_INFO_BAD: refuse(436, 'Bad Identity Info', 21, 'caller', 'The gateway could not fetch the certificate of the caller identity.'),
  IDENTITY_CREDENTIAL_UNSUPPORTED: refuse(
    437,
    'Unsupported Credential',
    21,
    'caller',
    'The certificate of the caller identity is not trusted, or not valid for this number.',
  ),
  IDENTITY_INVALID: refuse(
    438,
    'Invalid Identity Header',
    21,
    'caller',
    'The signed caller identity is invalid, or belongs to another call.',
  ),
  INVALID_NUMBER: refuse(404, 'Not Found', 28, 'caller', 'The called user is not a phone number in E.164 form.'),
  NUMBER_TOO_SHORT: refuse(484, 'Address Incomplete', 28, 'caller', 'The called number has too few digits to be an E.164 number.'),
  METHOD_NOT_ALLOWED: refuse(405, 'Method Not Allowed', 79, 'caller', 'The gateway does not support this method here.'),
  NOT_ACCEPTABLE: refuse(406, 'Not Acceptable', 79, 'caller', 'The caller does not accept a session description in the answer.'),
  BAD_BODY: refuse(
    415,
    'Unsupported Media Type',
    79,
    'caller',
    'The body is of a type that the gateway does not support here, or has no part that it supports.',
  ),
  BAD_SCHEME: refuse(416, 'Unsupported URI Scheme', 79, 'caller', 'The Request-URI is neither sip, sips nor tel.'),
  BAD_EXTENSION: refuse(420, 'Bad Extension', 79, 'caller', 'The request requires an extension that the gateway does not support.'),
  NO_DIALOG: refuse(481, 'Call/Transaction Does Not Exist', 95, 'caller', 'The request belongs to a call that does not exist.'),
  LOOP_DETECTED: refuse(
    482,
    'Loop Detected',
    25,
    'caller',
    'The same request arrived by two routes, or a call that was placed came back to where it had been.',
  ),
  NUMBER_CALL_LIMIT: refuse(486, 'Busy Here', 17, 'customer', 'The number has reached its limit of concurrent calls.', RETRY_AFTER),
  NUMBER_RATE_LIMIT: refuse(486, 'Busy Here', 17, 'customer', 'The number receives more calls a second than its limit.', RETRY_AFTER),
  ORG_CALL_LIMIT: refuse(486, 'Busy Here', 17, 'customer', 'The organization has reached its limit of concurrent calls.', RETRY_AFTER),
  SESSION_INTERVAL_TOO_SMALL: refuse(422, 'Session Interval Too Small', 79, 'caller', 'The caller requested a session timer below 90 s.'),
  ORG_RATE_LIMIT: refuse(486, 'Busy Here', 17, 'customer', 'The organization receives more calls a second than its limit.', RETRY_AFTER),
  ORG_SESSION_LIMIT: refuse(
    486,
    'Busy Here',
    17,
    'customer',
    'The organization has reached its limit of concurrent sessions at providers.',
    RETRY_AFTER,
  ),
  ORG_MINUTE_LIMIT: refuse(486, 'Busy Here', 17, 'customer', 'The organization has used its minutes at providers for today (UTC).'),
  ORG_TOKEN_LIMIT: refuse(486, 'Busy Here', 17, 'customer', 'The organization has used its tokens at providers for today (UTC).'),
  CALLER_CANCELLED: refuse(487, 'Request Terminated', 16, 'caller', 'The caller cancelled before the answer.'),
  SRTP_REQUIRED: refuse(
    488,
    'Not Acceptable Here',
    88,
    'caller',
    'The offer has no SRTP with keys in the SDP, and the number requires it.',
  ),
  SRTP_SUITE_UNSUPPORTED: refuse(
    488,
    'Not Acceptable Here',
    88,
    'caller',
    'The offer has SRTP, but no usable key for AES_CM_128_HMAC_SHA1_80.',
  ),
  NO_COMMON_CODEC: refuse(488, 'Not Acceptable Here', 88, 'caller', 'The offer has neither PCMU nor PCMA.'),
  BAD_SDP: refuse(488, 'Not Acceptable Here', 88, 'caller', 'The session description has no audio that can be negotiated.'),
  ADDRESS_FAMILY_UNSUPPORTED: refuse(
    488,
    'Not Acceptable Here',
    88,
    'caller',
    'The session description has an IPv4 or IPv6 address, and the media relay has only the other family.',
  ),
  REQUEST_PENDING: refuse(491, 'Request Pending', 41, 'nobody', 'Another change of the session is in progress.', RETRY),
  EXCHANGE_PENDING: refuse(
    500,
    'Server Internal Error',
    41,
    'caller',
    'The previous change of the session is not answered yet.',
    RETRY_AFTER,
  ),
  AGENT_UNAVAILABLE: refuse(480, 'Temporarily Unavailable', 20, 'agent', 'The agent could not be reached.', RETRY),
  INTERNAL_ERROR: refuse(500, 'Server Internal Error', 41, 'gateway', 'The gateway failed; its log has details under the call id.', RETRY),
  OVERLOADED: refuse(503, 'Service Unavailable', 42, 'gateway', 'The gateway accepts no more calls at the moment.', RETRY_AFTER),
  DRAINING: refuse(503, 'Service Unavailable', 42, 'gateway', 'The gateway is shutting down.', RETRY_AFTER),
  MEDIA_UNAVAILABLE: refuse(503, 'Service Unavailable', 47, 'gateway', 'No media relay is available for the call.', RETRY_AFTER),
  STORE_UNAVAILABLE: refuse(503, 'Service Unavailable', 41, 'gateway', 'The gateway could not look up the number.', RETRY_AFTER),
  AGENT_BUSY: refuse(486, 'Busy Here', 17, 'agent', 'The voice webhook of the number rejected the call as busy.'),
  AGENT_DECLINED: refuse(603, 'Decline', 21, 'agent', 'The voice webhook of the number rejected the call.'),
  DECLINED: refuse(603, 'Decline', 21, 'nobody', 'The request was declined.'),

  DIAL_NOT_ALLOWED: refuse(403, 'Forbidden', 52, 'customer', 'The organization may not place this call.'),
  DO_NOT_CALL: refuse(403, 'Forbidden', 21, 'customer', 'The number is on the do-not-call list of the organization.'),
  OUTSIDE_HOURS: refuse(403, 'Forbidden', 21, 'customer', 'The hours in which the person may be called are not known, or never come.'),
  BUSY: refuse(486, 'Busy Here', 17, 'nobody', 'The dialled number was busy.', RETRY),
  NO_ANSWER: refuse(480, 'Temporarily Unavailable', 19, 'nobody', 'Nobody answered the dialled number in time.', RETRY),
  CALLEE_DECLINED: refuse(603, 'Decline', 21, 'nobody', 'Whoever was dialled declined the call.'),
  TRUNK_REFUSED: refuse(502, 'Bad Gateway', 21, 'customer', 'The outbound trunk refused the call.'),
  TRUNK_UNREACHABLE: refuse(504, 'Server Time-out', 38, 'customer', 'The outbound trunk could not be reached.', RETRY),
  DIAL_AMBIGUOUS: refuse(408, 'Request Timeout', 102, 'nobody', 'Whether the dialled number was called is not known.'),

  CALLER_HANGUP: end(16, 'nobody', 'The caller hung up.'),
  CALLEE_HANGUP: end(16, 'nobody', 'Whoever was dialled hung up.'),
  AGENT_HANGUP: end(16, 'nobody', 'The agent hung up.'),
  MAX_DURATION: end(16, 'nobody', 'The call reached its maximum duration.'),
  MEDIA_TIMEOUT: end(41, 'caller', 'The caller sent no audio for too long.'),
  SESSION_EXPIRED: end(102, 'caller', 'The session was not refreshed in time, or the caller did not answer while it held the call.'),
  ACK_TIMEOUT: end(102, 'caller', 'The caller never acknowledged the answer.'),
  MEDIA_LOST: end(41, 'gateway', 'The media relay or endpoint of the call was lost.'),
  MEDIA_MOVE_REFUSED: end(41, 'caller', "The call's media had to move to another address, and the trunk refused the re-INVITE."),
  BAD_ANSWER: end(58, 'caller', 'The caller answered our offer with an unusable session description.'),
  AGENT_LOST: end(41, 'agent', 'The connection to the agent was lost.'),
  TRANSFERRED: end(16, 'nobody', 'The caller was transferred.'),
  PEER_HANGUP: end(16, 'nobody', 'The other call of a transfer ended.'),
  GATEWAY_RESTARTED: end(41, 'gateway', 'The gateway was killed and could not resume the call.'),
  API_STOPPED: end(16, 'nobody', 'The call was stopped through the API.'),
  SHUTDOWN: end(41, 'gateway', 'The gateway was shut down.'),
} as const satisfies Record<string, ReasonFacts>;

export type Reason = keyof typeof REASONS;

/** `Warning: 399 host "CODE: sentence Detail."` (RFC 3261 §20.43). @param detail a clause of our own; it quotes nothing that a peer sent */
export function warningOf(reason: Reason, host: string, detail: string | null = null): string {
  const more = detail === null ? '' : ` ${detail.charAt(0).toUpperCase()}${detail.slice(1)}.`;
  return `399 ${host} "${reason}: ${REASONS[reason].explanation}${more}"`;
}

/** `Reason: Q.850;cause=N;text="CODE"` (RFC 3326, RFC 6432). */
export function reasonHeaderOf(reason: Reason): string {
  return `Q.850;cause=${REASONS[reason].q850};text="${reason}"`;
}

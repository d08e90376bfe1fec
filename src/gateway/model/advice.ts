import { REASONS, type Fault, type Reason } from './reasons.js';

// What to do about a call that was refused or ended, for people who look at its record.

const BY_FAULT: Readonly<Record<Fault, string>> = {
  caller: "Check in the trace what the carrier sent, and the carrier's settings for this trunk.",
  customer: 'Check the settings of the number and the organization.',
  gateway: "Give the operator the call id: the gateway's log has details under it.",
  agent: "Check the agent's own log for the time of the call.",
  nobody: 'Nothing: the call ended normally.',
};

const BY_REASON: Readonly<Partial<Record<Reason, string>>> = {
  SOURCE_NOT_ALLOWED: "Add the carrier's address to allowed_sources of the number, or of the organization, if it is the carrier's.",
  CREDENTIALS_REQUIRED: "Have the carrier answer the challenge with the user name and password of the number's challenge.",
  ORG_NOT_ENTITLED: 'Ask the operator to give the organization the SIP entitlement (trunkline org).',
  ORG_DISABLED: 'Ask the operator why the organization is disabled.',
  NUMBER_NOT_ATTACHED: 'Attach the number for inbound calls, or have the carrier send it elsewhere.',
  INVALID_NUMBER: 'Have the carrier send the called number in E.164 form (+ and digits) in the Request-URI or To.',
  NUMBER_TOO_SHORT: 'Have the carrier send the whole number, country code included.',
  LOOP_DETECTED:
    'In a placed call: the trunk leads back here, or round in a circle; set sip_endpoint of the number to the carrier. In a call that came in: have the carrier send each INVITE by one route.',
  NUMBER_CALL_LIMIT: 'Raise max_concurrent_calls of the number, or have the carrier send fewer concurrent calls.',
  NUMBER_RATE_LIMIT: 'Raise max_calls_per_second of the number, or have the carrier send them more slowly.',
  ORG_CALL_LIMIT: "Ask the operator to raise the organization's limit of concurrent calls.",
  ORG_RATE_LIMIT: "Ask the operator to raise the organization's limit of calls a second.",
  ORG_SESSION_LIMIT: "Ask the operator to raise the organization's limit of concurrent sessions at providers.",
  ORG_MINUTE_LIMIT: "Ask the operator to raise the organization's limit of minutes a day at providers, or wait until 00:00 UTC.",
  ORG_TOKEN_LIMIT: "Ask the operator to raise the organization's limit of tokens a day at providers, or wait until 00:00 UTC.",
  CALLER_CANCELLED: 'Nothing, unless it happens often: then find in the trace what delayed the answer.',
  SRTP_REQUIRED: `Turn on SRTP with SDES on the carrier's trunk; or, where the operator allows it, media_encryption "optional" on the number.`,
  SRTP_SUITE_UNSUPPORTED: 'Have the carrier offer AES_CM_128_HMAC_SHA1_80.',
  NO_COMMON_CODEC: 'Have the carrier offer PCMU or PCMA (G.711).',
  ADDRESS_FAMILY_UNSUPPORTED: 'Have the carrier offer the address family of the media relay, or ask the operator to add the other one.',
  AGENT_UNAVAILABLE:
    "See agent_error of the record, and the trace, for the failure of the connection; check the agent's URL, token and log.",
  AGENT_BUSY: "Nothing, if the number's voice webhook is to reject such calls: it answered with <Reject>.",
  AGENT_DECLINED: "Nothing, if the number's voice webhook is to reject such calls: it answered with <Reject>.",
  AGENT_LOST: "See agent_error of the record, and the trace, for how the connection broke; check the agent's log for that time.",
  OVERLOADED: 'Have the carrier retry or use another gateway; if it happens often, ask the operator to add capacity.',
  DRAINING: 'Have the carrier use the next gateway meanwhile.',
  MEDIA_UNAVAILABLE: 'Ask the operator to check rtpengine: /readyz and `trunkline doctor` show its state.',
  STORE_UNAVAILABLE: 'Ask the operator to check Redis: /readyz shows its state.',
  MAX_DURATION: 'Raise max_duration of the agent if calls should last longer.',
  MEDIA_TIMEOUT:
    "If reason_detail says that packets do not decrypt, have the carrier send with the key and MKI of its own description. Otherwise none arrived: look for a firewall or NAT between the carrier's media address and the relay.",
  SESSION_EXPIRED:
    'The trace shows which side was to refresh the session. If the carrier: check its session timer. If we did, and our re-INVITE or UPDATE got no answer: look for a firewall, a Contact that has moved, or set no_reinvite for a carrier that takes none.',
  ACK_TIMEOUT:
    'If the trace says that an ACK had another CSeq, the carrier must send the number of the INVITE. Otherwise our 200 or the ACK was lost: look for a firewall, or a Contact address that the carrier cannot reach.',
  MEDIA_MOVE_REFUSED:
    "The trace has the trunk's answer to our re-INVITE, or says that the number has no_reinvite. Ask the carrier to accept one that changes the media address, and the operator why the media had to move.",
  MEDIA_LOST: 'Ask the operator what happened to rtpengine at that time.',
  API_STOPPED: 'Nothing: a user ended it with an API key or in the console; GET /v1/audit shows which.',
  DIAL_NOT_ALLOWED: 'See in the trace which rule refused it, and ask the operator to change it (trunkline org set-dialling).',
  BUSY: 'Call again later.',
  NO_ANSWER: 'Call again later.',
  CALLEE_DECLINED: 'Nothing: whoever was called does not want the call.',
  TRUNK_REFUSED: "See the SIP status and the trace; check the number's sip_endpoint and credentials, and what the trunk allows.",
  TRUNK_UNREACHABLE:
    "See signalling_error of the record for what failed. A name that is not found, or a refused connection: check the number's sip_endpoint. No answer: look for a firewall. A certificate: set ca or tls_names of the trunk, or have the trunk renew it. A trunk that wants a certificate of ours: set client_certificate.",
  DIAL_AMBIGUOUS: 'Find out from the trunk whether it placed the call before you dial again.',
  REQUEST_PENDING: 'Nothing: the carrier retries.',
};

/** What to do about it, in a sentence. */
export function adviceOn(reason: Reason): string {
  return BY_REASON[reason] ?? BY_FAULT[REASONS[reason].fault];
}

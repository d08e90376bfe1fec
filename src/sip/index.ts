// `trunkline/sip`: the SIP stack alone. Start with `parseMessage` and `serialize`, or with `UserAgent` on a `SipStack` on `Transports`
// (example: src/loadtest/test-caller/sip-client.ts). Messages are byte strings: one character a byte (latin1).

export { parseMessage, type MessageLimits, type ParseError } from './message/parse.js';
export { serialize } from './message/message.js';
export {
  getHeader,
  getHeaders,
  getList,
  hasHeader,
  header,
  type Header,
  type RequestParts,
  type SipMessage,
  type SipRequest,
  type SipResponse,
} from './message/message.js';
export { parseNameAddr, type NameAddr } from './message/uri.js';
export { parseSipUri, type SipUri } from './message/uri.js';
export { SipStack, type StackLimits, type StackOptions, type TransactionUser } from './stack.js';
export { DEFAULT_TIMERS, type TimerSettings } from './transaction/timers.js';
export { DnsNames } from './transport/dns-names.js';
export type { Endpoint, Flow, FlowListener, Target, TransportName } from './transport/flow.js';
export type { NameResolver } from './transport/locator.js';
export type { TlsCertificate, TlsMaterial } from './transport/tls-server-contexts.js';
export { Transports, type TransportLimits, type TransportOptions } from './transport/transports.js';
export { UserAgent } from './user-agent.js';
export type { IncomingRequest } from './user-agent/user-agent-context.js';
export type { OutgoingRequest } from './user-agent/user-agent-context.js';
export type { FlowSource, RespondProblem, ResponseParts, SendProblem, UserAgentListener } from './user-agent/user-agent-context.js';
export type { DialogEntry } from './dialog/dialog-table.js';
/** Required by every part of the stack: real time, and a log that discards. */
export { systemClock } from '../lib/system-clock.js';
export { silentLog, type Log } from '../lib/log.js';
export type { Clock } from '../lib/clock.js';

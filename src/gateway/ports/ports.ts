import type { LegCommand } from '../model/leg-command.js';
import type { AgentDescription, ForkSettings } from '../model/agent.js';
import type { ToolRecord } from '../model/agent-record.js';
import type { ToolDefinition } from '../model/tool-definition.js';
import type { CallRecord } from '../model/call-record.js';
import type { Completion } from '../model/completion.js';
import type { TraceEntry } from '../model/call-trace.js';
import type { CallSnapshot } from '../model/call-snapshot.js';
import type { DialPermit } from '../model/dialling.js';
import type { E164 } from '../model/e164.js';
import type { BeginningCall } from '../model/live-calls.js';
import type { LegChange, LegDescription, LegEvent, LegFigures, MediaAddress, RelayFigures } from '../model/media.js';
import type { ProviderLimit, ProviderUsage } from '../model/provider-usage.js';
import type { OrgRecord, OutboundTrunk, Route } from '../model/records.js';
import type { VerifiedIdentity } from '../model/verified-identity.js';
import type { Result } from '../../lib/result.js';
import type { Timeline } from '../model/call-trace.js';
import type { ConcurrentUsage } from '../admission/admission.js';

/** The result of one look-up of a called number. */
export interface Lookup {
  /** `null`: the number is not attached inbound. */
  readonly route: Route | null;
  /** How busy the number and its organization are on all gateways, this call not counted; zeros for a call that took slots ahead. */
  readonly load: ConcurrentUsage;
  /** The store is away: how old the answer is that was kept of an earlier look-up. `null`: fresh. */
  readonly staleMs: number | null;
}

/** Reads what an INVITE needs to be decided, and counts calls in progress. */
export interface RouteStore {
  /**
   * The number, its organization and agent, and how busy they are. A call that is given is counted and listed from this moment, under its
   * id, as long as no limit is reached; without one nothing is counted (a dry run).
   * Rejects with `StoreUnavailableError` when the store is away and nothing is known of the number from before.
   */
  lookup(number: E164, call: BeginningCall | null): Promise<Lookup>;
  /**
   * The call counts no more, and is not listed; nothing when it was not. Never fails: what cannot be taken back now expires by itself.
   * @param wasRefused the call was refused: it does not count as one of the last second either, so that refused calls (of a source
   *   that is not allowed, say) cannot use up a number's calls a second
   */
  release(callId: string, wasRefused?: boolean): void;
  /** Another gateway counts the call. */
  disown(callId: string): void;
}

/** A call that is about to be dialled. */
export interface DialRequest {
  readonly orgId: string;
  readonly from: E164;
  readonly to: E164;
  /** Where its INVITE goes: the trunk's `sip_endpoint`. `null`: the carrier of a call that came in dials it, for our REFER. */
  readonly endpoint: string | null;
  readonly call: BeginningCall;
  /** A carrier dials it, for our REFER, which ends a call: it counts and costs as any other, but takes no slot of its own. */
  readonly isReferred?: boolean;
  /** The request that claimed it is kept with the call; refused when another one has it by now. */
  readonly idempotencyKey?: string;
  /** The cost of so long a call is reserved. */
  readonly maxDurationMs: number;
}

/** The records that allow a call, and what is reserved for it. */
export interface PermittedDial extends Pick<Route, 'org' | 'number'> {
  readonly permit: DialPermit;
}

/** Why a call is not dialled. */
export interface DialRefusal {
  readonly reason: 'DIAL_NOT_ALLOWED' | 'DO_NOT_CALL';
  /** A sentence for the customer. */
  readonly detail: string;
}

/** Placed calls of all gateways under the limits of their organizations: no INVITE leaves without a reservation here. */
export interface DialLedger {
  /**
   * Judges the call by the organization's records of this moment; counts and lists it, and reserves its cost. Rejects with `StoreUnavailableError`: while the store is away nothing is dialled.
   */
  reserve(request: DialRequest): Promise<Result<PermittedDial, DialRefusal>>;
  /** The call is over. Nothing when it has no reservation; never fails: what cannot be settled stays reserved. @param talkedMs 0: not answered */
  settle(callId: string, talkedMs: number): void;
  /** A call that was reserved for a REFER is not dialled: it neither costs nor counts. Never fails. */
  withdraw(callId: string): void;
  /** Another gateway has the call. */
  disown(callId: string): void;
  /** The outbound trunk of a number of the organization; `null`: there is none. Rejects with `StoreUnavailableError`. */
  trunkOf(orgId: string, from: E164): Promise<OutboundTrunk | null>;
}

/** Sessions at providers of voice models, counted over all gateways under the limits of their organizations. */
export interface ProviderSessions {
  /**
   * Counts a call's session until `end`. `null`: it has its slot; otherwise the limit that it would exceed. While the store is away, only
   * the sessions of this process count.
   * @param isResumed it goes on after a restart, whatever the limits
   */
  begin(org: OrgRecord, callId: string, isResumed?: boolean): Promise<ProviderLimit | null>;
  /** The provider reported tokens. */
  used(callId: string, tokens: number): void;
  /** Nothing when it was not counted. */
  end(callId: string): void;
  /** Rejects with `StoreUnavailableError`. */
  usage(orgId: string): Promise<ProviderUsage>;
}

/** The store did not answer: the call is refused with 503 STORE_UNAVAILABLE. */
export class StoreUnavailableError extends Error {
  override readonly name = 'StoreUnavailableError';

  /** @param answer what the store answered, such as `OOM command not allowed …`; `null`: nothing */
  constructor(
    message: string,
    readonly answer: string | null = null,
    options?: ErrorOptions,
  ) {
    super(message, options);
  }
}

/** All that is kept of a call that ended or was refused. */
export interface EndedCall {
  readonly record: CallRecord;
  /** Days for which the transcript is kept; left out: as long as the record. */
  readonly transcriptDays?: number;
  /** What happened in it, oldest first; empty: nothing is kept. */
  readonly trace: readonly TraceEntry[];
  /** When its steps ran; left out: nobody wants to know. */
  readonly timeline?: Timeline;
  /** The webhook to be called; `null`: there is none. */
  readonly completion: Completion | null;
  /** Left out: the call came in. */
  readonly placed?: PlacedEnd;
}

/** What the record of a placed call leaves out. */
export interface PlacedEnd {
  /** Whether its INVITE left. */
  readonly isDialled: boolean;
  /** Milliseconds from the answer to the agent's first audio; `null`: the agent was never heard, or nobody answered. */
  readonly silentMs: number | null;
}

export interface CallStore {
  write(call: EndedCall): Promise<void>;
}

/** What a call says of who calls and who is called, and the signature over it. */
export interface IdentityClaim {
  /** All Identity headers (RFC 8224), with commas between; `undefined`: none. */
  readonly header: string | undefined;
  /** The Date header. */
  readonly date: string | undefined;
  /** URIs of P-Asserted-Identity and From. */
  readonly callers: readonly string[];
  readonly called: E164;
}

export interface IdentityVerifier {
  /** Never rejects, and has a time limit of its own. `null`: there is nothing to verify, and nothing was expected. */
  verify(claim: IdentityClaim): Promise<VerifiedIdentity | null>;
}

export interface ToolDirectory {
  /** Those of an organization's tools that are there, in the order of the ids. Rejects with `StoreUnavailableError`. */
  find(orgId: string, toolIds: readonly string[]): Promise<readonly ToolRecord[]>;
}

export type ToolOutcome = Result<
  { readonly result: unknown; readonly httpStatus: number },
  { readonly code: 'TOOL_BAD_INPUT' | 'TOOL_FAILED' | 'TOOL_TIMEOUT'; readonly message: string }
>;

export interface ToolRunner {
  /**
   * Calls a tool; never rejects.
   * @param orgId whose work it is
   * @param ended the call is over, and nobody waits for the result
   * @param headers beside those of the tool
   */
  run(
    orgId: string,
    tool: ToolDefinition,
    input: unknown,
    ended: AbortSignal,
    headers?: Readonly<Record<string, string>>,
  ): Promise<ToolOutcome>;
}

/** A request to the server of a voice webhook, signed with the organization's Twilio token. */
export interface VoiceRequest {
  readonly url: string;
  readonly method: 'GET' | 'POST';
  readonly parameters: Readonly<Record<string, string>>;
  readonly token: string;
  /** The header `Cookie`; left out: none. */
  readonly cookie?: string;
}

export interface VoiceDocument {
  readonly text: string;
  /** `null`: the server did not say. */
  readonly contentType: string | null;
  /** Each header `Set-Cookie`. */
  readonly setCookies: readonly string[];
}

/** Servers that answer voice webhooks. Nothing rejects; an error is a sentence that names no URL. */
export interface VoiceServer {
  /** A TwiML document. @param ended the call is over, and nobody waits */
  document(request: VoiceRequest, ended: AbortSignal): Promise<Result<VoiceDocument, string>>;
  /** A status callback: sent once. */
  notify(request: VoiceRequest): Promise<Result<true, string>>;
}

/** Answered calls of this gateway, kept so that a gateway that was killed finds them. Neither write ever fails the call. */
export interface SnapshotStore {
  /** Keeps a call, in place of what was kept of it before. @param mayWait 0.1 s: its session is as it was */
  persist(snapshot: CallSnapshot, mayWait?: boolean): void;
  /** Resolves when calls that were persisted for the first time are written, or cannot be now. */
  written(): Promise<void>;
  delete(callId: string): void;
  /** Resolves when everything is kept, or the store is away. */
  flush(): Promise<void>;
  /**
   * What an earlier process of the same instance left, and counts those calls again until they are forgotten. A call whose record is
   * written has ended: it is forgotten, and not among them. Rejects with `StoreUnavailableError`.
   */
  orphaned(): Promise<readonly CallSnapshot[]>;
  /** What a process of the same instance has that still runs: nothing is changed. Rejects with `StoreUnavailableError`. */
  ahead(): Promise<readonly CallSnapshot[]>;
  /** The same of another instance, whose host is lost: its calls are this one's from now on. */
  take(instance: string): Promise<readonly CallSnapshot[]>;
}

/** What rtpengine answered: an SDP. */
export interface RelayAnswer {
  readonly sdp: string;
}

/** rtpengine refused a command, or did not answer it. */
export class MediaUnavailableError extends Error {
  override readonly name = 'MediaUnavailableError';
}

/**
 * The media relays between the carrier (SRTP) and the endpoint. A call stays on the node that took its first command.
 * All commands reject with `MediaUnavailableError`.
 */
export interface MediaRelay {
  /** The carrier's offer; the answer is the agent-facing SDP. `toTag` once the call is answered. */
  offer(call: RelayCall, sdp: string): Promise<RelayAnswer>;
  /** The endpoint's answer to the carrier's offer; the answer is the carrier-facing SDP. */
  answer(call: RelayCall, sdp: string): Promise<RelayAnswer>;
  /** The endpoint's offer, where the carrier made none or the call moves; the answer is the carrier-facing SDP, with a key. */
  offerToCarrier(call: RelayCall, sdp: string): Promise<RelayAnswer>;
  /** The carrier's answer to it; the answer is the agent-facing SDP. */
  answerFromCarrier(call: RelayCall, sdp: string): Promise<RelayAnswer>;
  /** What it has received of a call so far; `null`: it has no such call. Rejects when it does not answer. */
  figures(relayId: string): Promise<RelayFigures | null>;
  /** Frees the session, after the call's command under way. Asked until it is confirmed or the retries are used up. */
  delete(relayId: string): Promise<RelayFigures | null>;
  /** The node that a call is on; `null`: on none. */
  nodeOf(relayId: string): string | null;
  /** A call of an earlier process is on this node; false: there is no such node now. */
  adopt(relayId: string, node: string): boolean;
  /** The next command of this call goes to a node that lives. What the old one has of it is freed when it is back. */
  leave(relayId: string): void;
}

/** An RTP port of the relay's that a call uses. */
export interface RelayPort {
  readonly relayId: string;
  /** Whose packets it receives. */
  readonly side: 'carrier' | 'agent';
  /** As the relay's SDP has it: behind a NAT the public address. */
  readonly address: string;
  readonly port: number;
}

export interface RelayCall {
  /** The call's own id, not the carrier's Call-ID: two carriers may use the same one. */
  readonly relayId: string;
  /** Its first command goes to the node of this call, if that takes any; `null`, left out: to whichever has the fewest calls. */
  readonly beside?: string | null;
  /** Encrypt the agent-facing leg too. */
  readonly agentSideSrtp: boolean;
  /** The carrier-facing leg is encrypted; `offerToCarrier` asks for it, elsewhere the offer decides. */
  readonly carrierSideSrtp: boolean;
}

/** The agent could not be reached, or refused the call. */
export class AgentUnavailableError extends Error {
  override readonly name = 'AgentUnavailableError';
}

/** The organization has no session at providers left. */
export class ProviderLimitError extends Error {
  override readonly name = 'ProviderLimitError';

  constructor(readonly limit: ProviderLimit) {
    super(`the organization is at its limit: ${limit}`);
  }
}

/** Media legs towards rtpengine, and the agents on them. */
export interface MediaEndpoint {
  /**
   * Connects the call's agent, before its leg is opened: it is ready to talk, and hears nothing of the call until `start`. Once a
   * call; after a failure again. Rejects with `AgentUnavailableError`, or `MediaUnavailableError` when there is no room.
   */
  connectAgent(callId: string, agent: AgentDescription, onEvent: (event: LegEvent) => void): Promise<void>;
  /**
   * Copies the call's audio to a WebSocket beside its agent, from the start of its leg at the earliest, until `stop-fork` or the end of the
   * leg. Throws `MediaUnavailableError` when there is no room.
   */
  startFork(callId: string, fork: ForkSettings, onEvent: (event: LegEvent) => void): void;
  /** Has no effect when the leg or the agent is gone. */
  send(callId: string, command: LegCommand): void;
  /**
   * Keeps a place for a leg whose far side is not known yet; `open` takes it, `close` frees it. Resolves with the endpoint's own address,
   * which the agent-facing SDP names. Rejects with `MediaUnavailableError` when there is no room.
   * @param beside a call with which this one may have a conference
   */
  reserve(callId: string, beside?: string | null): Promise<MediaAddress>;
  /**
   * Opens a leg: from now on it receives, but sends and says nothing. Rejects with `MediaUnavailableError` without such a port, or room on it.
   */
  open(leg: LegDescription, onEvent: (event: LegEvent) => void): Promise<void>;
  /** Rejects with `MediaUnavailableError` when there is no such leg, or another one has that far side. */
  change(callId: string, change: LegChange): Promise<void>;
  /** What the leg saw so far; `null`: it is not open. */
  figures(callId: string): Promise<LegFigures | null>;
  /** Closes the leg and lets the agent go; resolves with what it saw, or `null` when it was not open. */
  close(callId: string): Promise<LegFigures | null>;
}

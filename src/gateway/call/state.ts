import type { LegCommand } from '../model/leg-command.js';
import type { SipHeaders } from '../../agent-protocol/sip-headers.js';
import type { AgentAnswer, TransferStepName } from '../model/agent.js';
import type { DialPermit } from '../model/dialling.js';
import type { E164 } from '../model/e164.js';
import type { MediaAddress, MediaDirection } from '../model/media.js';
import type { ProviderLimit } from '../model/provider-usage.js';
import type { Route } from '../model/records.js';
import type { IdentityVerdict, VerifiedIdentity } from '../model/verified-identity.js';
import type { CredentialsVerdict } from '../admission/challenge.js';
import type { ConcurrentUsage } from '../admission/admission.js';
import type { CryptoLine, CarrierMedia, RelaySide } from '../sdp/sdp-read.js';
import type { Reason } from '../model/reasons.js';
import type { Target } from '../admission/target.js';
import type { ReferProgress } from './refer-progress.js';

/** The phase of a call. docs/call-lifecycle.md draws them. */
export type CallStateName =
  /** The number is being looked up. */
  | 'Routing'
  /** rtpengine has the offer. */
  | 'Offering'
  /** rtpengine has the endpoint's answer. */
  | 'Answering'
  /** The media endpoint reserves a port pair, and nothing else is waited for: the carrier made no offer, or rtpengine has taken it already. */
  | 'Reserving'
  /** rtpengine makes the offer for the 200. */
  | 'OfferingToCarrier'
  /** A call that we place: our INVITE is out, or its CANCEL. */
  | 'Dialling'
  /** Media and the 200 are ready; the call waits for the agent. */
  | 'AwaitingAgent'
  /** The 200 is out, its ACK has not come. */
  | 'AwaitingAck'
  /** The carrier has answered our offer, in its ACK or its 200: rtpengine gets the answer, and the leg opens. */
  | 'Connecting'
  | 'Talking'
  /** Our side hung up before the ACK: BYE must wait for it (RFC 3261 §15). */
  | 'HangingUp'
  | 'Ended';

/** The phase of an exchange within the call. At most one runs at a time. */
export type Exchange =
  | { readonly name: 'Idle' }
  /** rtpengine gets the carrier's new description; `requestId: null` when it came in an ACK, which needs no answer. */
  | { readonly name: 'Offering'; readonly requestId: number | null; readonly media: CarrierMedia; readonly sdp: string }
  /** rtpengine gets the endpoint's side again. */
  | {
      readonly name: 'Answering';
      readonly requestId: number | null;
      readonly media: CarrierMedia;
      readonly sdp: string;
      readonly agentFacing: RelaySide;
    }
  /** Our offer went out in the 200 to a re-INVITE that had none: the ACK brings the answer. `carrierFacing`: of the relay that the call moves to. */
  | { readonly name: 'AwaitingAnswer'; readonly carrierFacing: RelaySide | null }
  /** Another relay gets our offer (`isMove`), or the same one for another agent side. */
  | { readonly name: 'MovingOut'; readonly to: AgentSide; readonly isMove: boolean }
  /** Our re-INVITE is on its way to the carrier. */
  | { readonly name: 'Inviting'; readonly sdp: string; readonly carrierFacing: RelaySide; readonly to: AgentSide }
  /** Our re-INVITE with the description of before refreshes the session timer. */
  | { readonly name: 'Refreshing' }
  /** The carrier answered 491: our re-INVITE goes out again. */
  | { readonly name: 'Retrying'; readonly sdp: string; readonly carrierFacing: RelaySide; readonly to: AgentSide }
  /** The relay gets the carrier's answer. */
  | {
      readonly name: 'MovingIn';
      readonly media: CarrierMedia;
      readonly sdp: string;
      readonly carrierFacing: RelaySide;
      readonly to: AgentSide;
    };

/** Where rtpengine sends what the carrier says: the endpoint, or rtpengine's ports of another call. */
export interface AgentSide {
  readonly local: MediaAddress;
  /** With SRTP on the agent side. */
  readonly key: CryptoLine | null;
}

/** What was negotiated with the carrier. */
export interface AgreedSession {
  readonly media: CarrierMedia;
  /** rtpengine's side towards the carrier. */
  readonly carrierFacing: RelaySide;
  /** The carrier's last description, as received. */
  readonly carrierSdp: string;
  /** Our last description, and the version in its o= line. */
  readonly sentSdp: string;
  readonly version: number;
}

/** The agent's transfer request, until the carrier reports the outcome. */
export interface Transfer {
  readonly referId: number;
  /** The agent's. */
  readonly requestId: string | null;
  /** The carrier took the REFER. */
  readonly isAccepted: boolean;
  /** Dialled by us when the carrier refuses; `null`: it is not. */
  readonly leg: LegWish | null;
}

/** A call that we may place to the target of a transfer. */
export interface LegWish extends LegRules {
  readonly to: E164;
}

/** What is spoken to the answerer; `by-agent`: the agent of the call talks with them. */
export type Briefing =
  | {
      readonly text: string;
      /** A language code of the product (`ENG`). */
      readonly language: string;
    }
  | 'by-agent';

/** How a second leg is dialled. */
export interface LegRules {
  /** The new call's UUID. */
  readonly callId: string;
  /** `null`: the number of this call. */
  readonly from: E164 | null;
  readonly ringTimeoutMs: number;
  /** `null`: as long as this call may last. */
  readonly timeLimitMs: number | null;
  /** For the answerer, before the caller joins; `null`: nothing. */
  readonly briefing: Briefing | null;
  /** Headers of its INVITE; left out: none. */
  readonly sipHeaders?: SipHeaders;
  /** When the other one has hung up, or could not be reached: `end` ends a call that was joined; `go-on` gives the caller back to the document. */
  readonly afterwards: 'end' | 'go-on';
}

/** The call of ours that the caller is transferred to. */
export interface SecondLeg {
  readonly callId: string;
  /** The agent's. */
  readonly requestId: string | null;
  readonly afterwards: LegRules['afterwards'];
  /**
   * `consulting`: it is answered, and the agent talks there. `joining`: it is answered, and the media changes over. `joined`: the call has no
   * media leg and no agent. `leaving`: the media comes back.
   */
  readonly phase: 'dialling' | 'consulting' | 'joining' | 'joined' | 'leaving';
}

/** The call that a second leg of ours is for. */
export interface JoinedCall {
  readonly callId: string;
  /** The second leg's own id. */
  readonly legId: string;
  /** rtpengine's agent side of that call. */
  readonly side: RelaySide;
  /** What that call's carrier sends and gets: rtpengine hands it through. */
  readonly format: Pick<CarrierMedia, 'codec' | 'telephoneEvent' | 'events'>;
  readonly briefing: Briefing | null;
}

/** What answers in place of an agent that cannot be reached, or is gone in the call (`agents.on_failure`). */
export type StandIn = 'test-line' | 'second-provider' | 'sentence' | 'transfer';

/** Which agent the call gets: the number's, or what stands in for it. */
export type AgentChoice = 'own' | StandIn | 'briefing' | 'early-media';

/** What a call that we place has more. */
export interface Placing {
  readonly ringTimeoutMs: number;
  /** The carrier sent a provisional response: it has the INVITE. */
  readonly isProceeding: boolean;
  /** Why the INVITE is cancelled; `null`: it is not. */
  readonly givenUp: Reason | null;
  /** The carrier's final status; `null`: none yet, or not the carrier's. */
  readonly status: number | null;
  /** `null`: nothing is reserved yet. */
  readonly permit: DialPermit | null;
  readonly isLegOpen: boolean;
  /** For a second leg: the caller gets one early dialog's media, the first that has any. `asked`: rtpengine is to answer with it. */
  readonly earlyMedia: 'none' | 'asked' | 'heard';
  /** A provisional response had a description: media may have come before the answer. */
  readonly hasEarlySdp?: true;
}

/** Plain data throughout: the snapshot for a killed gateway is its JSON. */
export interface CallState {
  readonly name: CallStateName;
  /** What the INVITE said, for the decision. */
  readonly facts: CallFacts;
  readonly route: Route | null;
  /** The route is a cached one: the store was unavailable. */
  readonly isStale: boolean;
  /** The STIR verdict on the caller; `null`: not verified. */
  readonly identity: VerifiedIdentity | null;
  /** Headers of the INVITE that the number's `headers_to_agent` names one by one; left out: none. */
  readonly namedHeaders?: SipHeaders;
  /** Headers of our BYE; left out: none. */
  readonly byeHeaders?: SipHeaders;
  readonly agent: { readonly choice: AgentChoice; readonly isConnected: boolean };
  /** `null`: the call came in. */
  readonly placing: Placing | null;
  /** The carrier's offer. */
  readonly media: CarrierMedia | null;
  /** rtpengine's agent side, which the endpoint sends to. */
  readonly agentFacing: RelaySide | null;
  /** What rtpengine's agent side sends to: the endpoint's own address, or that of a joined call. With SRTP on the agent side, its key. */
  readonly local: MediaAddress | null;
  readonly agentSideKey: CryptoLine | null;
  /** Where that is to be as soon as no exchange is in progress; `null`: where it is. */
  readonly wantedSide: AgentSide | null;
  /** `null` until the 200, or for a late offer until its answer. */
  readonly session: AgreedSession | null;
  /** Our offer to a carrier that made none. */
  readonly lateOffer: { readonly sdp: string; readonly carrierFacing: RelaySide } | null;
  readonly exchange: Exchange;
  /** At most one at a time. */
  readonly transfer: Transfer | null;
  readonly referCount: number;
  /** A second leg that rings, or whose callee is being briefed: until it is joined it has a port, perhaps a media leg and an agent, of its own. */
  readonly isBriefing: boolean;
  /** At most one at a time, and not beside a REFER. */
  readonly second: SecondLeg | null;
  /** Counts exchanges, to ignore results of an earlier one. */
  readonly attempt: number;
  /** Unanswered pings in a row, while the carrier holds the call; unsent re-INVITEs, while its leg is due. */
  readonly unansweredProbes: number;
  /** The relay was lost while no re-INVITE may be sent. */
  readonly isMoveDue: boolean;
  /** Tries of the move in progress. */
  readonly moves: number;
  /** The call has no leg, but a port pair: another host had the call, or the media thread died. */
  readonly isLegDue: boolean;
  /** How often the media thread died in the call, since the process has it. */
  readonly legsLost: number;
  /** The 180 is due as soon as rtpengine has accepted the call: a refusal never follows an 18x. */
  readonly isRingDue: boolean;
  /** Why the call ended, or will: set once. */
  readonly reason: Reason | null;
}

export interface CallFacts {
  readonly sourceAddress: string;
  /** '': the INVITE has no offer. */
  readonly sdp: string;
  /** The session id of our o= line. */
  readonly sessionId: string;
  /** This process's longest call; the agent's own limit may be shorter. */
  readonly maxDurationMs: number;
  /** `null`: never, as for a caller that requires reliable provisional responses (RFC 3262 §3). */
  readonly ringingAfterMs: number | null;
  /** `null`: nothing stands in for an agent that cannot be reached. */
  readonly standIn: StandIn | null;
  /** Which STIR verdicts refuse the call. */
  readonly refusedVerdicts: readonly IdentityVerdict[];
  /** The media relay's address on the carrier side; `null`: unknown until it answers. */
  readonly relayAddress: string | null;
  /** At these hosts the carrier may be asked to call SIP URIs; left out: at none. */
  readonly transferHosts?: readonly string[];
  /** Numbers that begin so may be reached by a transfer; left out: none. */
  readonly transferPrefixes?: readonly string[];
  /** The call that this one is a second leg of; left out: an agent talks. */
  readonly joins?: JoinedCall;
}

/** `reservation`: it counts as a call that the organization places. `nothing`: the target is the operator's own. */
export type ReferNeeds = 'reservation' | 'do-not-call' | 'nothing';

export type CallTimer =
  | 'ringing'
  | 'max-duration'
  | 'reinvite'
  | 'transfer'
  | 'held'
  /** Nobody answers a call that we place. */
  | 'unanswered'
  /** Nor does the carrier answer its CANCEL. */
  | 'cancelling';

/** How the gateway knows that nothing of a call arrives at its relay. */
export type RelayLossCause = 'node' | 'deaf-port' | 'sender-reports';

export type ByeReason = Extract<Reason, 'CALLER_HANGUP' | 'ACK_TIMEOUT' | 'SESSION_EXPIRED'>;

/** Why a call is not placed. */
export type NotPermitted = Extract<Reason, 'DIAL_NOT_ALLOWED' | 'DO_NOT_CALL' | 'STORE_UNAVAILABLE' | 'TRUNK_UNREACHABLE'>;

export type CallEvent =
  | { readonly type: 'invited' }
  /** We place the call. */
  | { readonly type: 'placed' }
  | { readonly type: 'permitted'; readonly route: Route; readonly permit: DialPermit }
  /** `detail`: a sentence. */
  | { readonly type: 'not-permitted'; readonly reason: NotPermitted; readonly detail: string }
  /** A provisional response to our INVITE; `sdp`: of its early dialog, '' without one. */
  | { readonly type: 'dial-proceeding'; readonly status: number; readonly sdp: string }
  /** A 2xx to our INVITE. */
  | { readonly type: 'dial-answered'; readonly sdp: string }
  /** Its final refusal. `isLocal`: the SIP server's own, in place of a response. */
  | { readonly type: 'dial-refused'; readonly status: number; readonly isLocal: boolean }
  /** The INVITE itself breaks a rule, or the gateway takes no calls: refused before anything is looked up. */
  | { readonly type: 'inadmissible'; readonly reason: Reason; readonly detail: string | null }
  | {
      readonly type: 'routed';
      readonly route: Route | null;
      readonly load: ConcurrentUsage;
      readonly isStale: boolean;
      readonly identity: VerifiedIdentity | null;
      /** `null`: the number has no challenge. */
      readonly credentials: CredentialsVerdict | null;
      /** As the number's `headers_to_agent` names them. */
      readonly namedHeaders?: SipHeaders;
    }
  | { readonly type: 'agent-connected' }
  /** Its connection broke before the ACK, and is made again. */
  | { readonly type: 'agent-away' }
  /** The agent does not take the call. */
  | { readonly type: 'agent-refused'; readonly reason: Extract<Reason, 'AGENT_BUSY' | 'AGENT_DECLINED'> }
  | { readonly type: 'relay-offered'; readonly sdp: string; readonly attempt: number }
  | { readonly type: 'relay-answered'; readonly sdp: string; readonly attempt: number }
  | { readonly type: 'relay-offered-to-carrier'; readonly sdp: string; readonly attempt: number }
  | { readonly type: 'relay-answered-from-carrier'; readonly sdp: string; readonly attempt: number }
  | { readonly type: 'leg-reserved'; readonly local: MediaAddress; readonly agentSideKey: CryptoLine | null }
  | { readonly type: 'leg-opened' }
  /** An effect failed; the reason identifies it. `attempt: null`: any effect in progress. */
  | {
      readonly type: 'failed';
      readonly reason: Extract<Reason, 'STORE_UNAVAILABLE' | 'MEDIA_UNAVAILABLE' | 'AGENT_UNAVAILABLE' | 'INTERNAL_ERROR'> | ProviderLimit;
      readonly attempt: number | null;
    }
  /** The 200 could not be sent: a CANCEL crossed it, or the SIP server refused it. */
  | { readonly type: 'answer-failed'; readonly reason: Extract<Reason, 'CALLER_CANCELLED' | 'INTERNAL_ERROR'> }
  /** The SIP server or the caller has lost the dialog: no request can reach the caller any more. */
  | { readonly type: 'server-lost'; readonly reason: Extract<Reason, 'INTERNAL_ERROR' | 'GATEWAY_RESTARTED'> }
  /** CANCEL, or the caller's connection closed before the answer. */
  | { readonly type: 'cancelled' }
  /** An ACK; `sdp`: the answer to an offer of ours, '' without one. */
  | { readonly type: 'acknowledged'; readonly sdp: string }
  /** CALLER_HANGUP: the other side sent BYE, also that of a call that we placed. Else the SIP server gave the call up. */
  | { readonly type: 'bye'; readonly reason: ByeReason }
  /** Our side ends the call. */
  | { readonly type: 'hangup'; readonly reason: HangupReason; readonly sipHeaders?: SipHeaders }
  /** A re-INVITE or UPDATE that can be read; `sdp` is '' without an offer. */
  | { readonly type: 'reoffered'; readonly requestId: number; readonly method: 'INVITE' | 'UPDATE'; readonly sdp: string }
  /** The session timer wants a re-INVITE. */
  | { readonly type: 'refresh-due' }
  /** The final answer to a re-INVITE of ours; 408 when none came. `refusal`: we did not send it, a sentence why. */
  | {
      readonly type: 'reinvite-answered';
      readonly status: number;
      readonly sdp: string;
      readonly retryAfterMs: number;
      readonly attempt: number;
      readonly refusal?: string;
    }
  /** The agent transfers the caller to this target. `leg`: how we dial it where the carrier takes no REFER; left out: we do not. */
  | {
      readonly type: 'transfer-asked';
      readonly requestId: string | null;
      readonly to: string;
      readonly leg?: LegRules;
      readonly sipHeaders?: SipHeaders;
    }
  /** What follows while the agent talks with the other party. */
  | { readonly type: 'transfer-step'; readonly requestId: string | null; readonly step: TransferStepName }
  /** The briefing is over: the caller may join. */
  | { readonly type: 'briefed' }
  /** The second leg rings; it talks with this call's agent; it is answered, and `side` is rtpengine's agent side of it; it is over, or never began. */
  | { readonly type: 'leg-ringing'; readonly callId: string }
  | { readonly type: 'leg-consulting'; readonly callId: string }
  | { readonly type: 'leg-answered'; readonly callId: string; readonly side: RelaySide }
  | { readonly type: 'leg-ended'; readonly callId: string; readonly reason: Reason; readonly status: number | null }
  /** The caller is to come back from it, or not to wait for it any more. */
  | { readonly type: 'leg-left' }
  /** rtpengine's agent side of the other call is another one. */
  | { readonly type: 'side-changed'; readonly callId: string; readonly side: RelaySide }
  /** The final answer to our REFER; `null`: it could not be sent. `refusal`: we did not send it, a sentence why. */
  | { readonly type: 'refer-answered'; readonly status: number | null; readonly referId: number; readonly refusal?: string }
  /** The carrier's NOTIFY about a REFER. */
  | ({ readonly type: 'notified'; readonly requestId: number } & ReferProgress)
  /** Whether the carrier, which holds the call, answered an OPTIONS ping. */
  | { readonly type: 'pinged'; readonly isAnswered: boolean }
  /** rtpengine died or restarted: it has lost the call. */
  | { readonly type: 'relay-lost'; readonly mayMove: boolean; readonly cause: RelayLossCause; readonly newKey: CryptoLine }
  /** The media thread of the call died. */
  | { readonly type: 'leg-lost' }
  | { readonly type: 'timer'; readonly timer: CallTimer };

export type HangupReason = Extract<
  Reason,
  | ('AGENT_HANGUP' | 'AGENT_LOST' | 'MEDIA_TIMEOUT' | 'API_STOPPED' | 'SHUTDOWN' | 'DRAINING')
  | ('GATEWAY_RESTARTED' | 'DIAL_AMBIGUOUS' | 'PEER_HANGUP')
>;

export type CallEffect =
  | { readonly do: 'route' }
  /** May the call be placed? Counts it, and reserves its cost. */
  | { readonly do: 'permit' }
  /** INVITE with this offer. */
  | { readonly do: 'dial'; readonly sdp: string }
  | { readonly do: 'cancel-dial'; readonly reason: Reason }
  /** ACK to the 2xx. */
  | { readonly do: 'acknowledge' }
  | { readonly do: 'connect-agent'; readonly choice: AgentChoice }
  | { readonly do: 'offer-relay'; readonly media: CarrierMedia; readonly attempt: number }
  | { readonly do: 'answer-relay'; readonly sdp: string; readonly attempt: number }
  /** Towards the carrier: the endpoint's offer, then the carrier's answer. */
  | { readonly do: 'offer-to-carrier'; readonly sdp: string; readonly passesSrtp: boolean; readonly attempt: number }
  /** `isAfterEarlyMedia`: what came before it could not be decrypted, and is no error of the call. */
  | { readonly do: 'answer-from-carrier'; readonly media: CarrierMedia; readonly attempt: number; readonly isAfterEarlyMedia?: true }
  | { readonly do: 'leave-relay' }
  | { readonly do: 'reserve-leg' }
  | {
      readonly do: 'open-leg';
      readonly media: CarrierMedia;
      readonly agentFacing: RelaySide;
      /** The reserved port pair and key. */
      readonly reserved: { readonly local: MediaAddress; readonly agentSideKey: CryptoLine | null };
    }
  | { readonly do: 'start-leg' }
  /** The agent and its media end; the call goes on without. */
  | { readonly do: 'close-leg' }
  | Extract<LegCommand, { do: 'ring-back' | 'need-packets' | 'three-way' }>
  /** Places the second leg, which joins this call. */
  | { readonly do: 'dial-leg'; readonly leg: LegWish; readonly joins: Omit<JoinedCall, 'callId'> }
  /** For the other call of a transfer, on the same gateway. */
  | { readonly do: 'notify-call'; readonly callId: string; readonly event: CallEvent }
  /** The caller's direction. `isHeld`: whether the caller holds now; `null`: as before. */
  | { readonly do: 'direct-leg'; readonly direction: MediaDirection; readonly isHeld: boolean | null }
  /** rtpengine's agent side changed its address or key, or the codec or a payload type changed. */
  | { readonly do: 'change-leg'; readonly media: CarrierMedia; readonly agentFacing: RelaySide; readonly agentSideKey: CryptoLine | null }
  /** 180. */
  | { readonly do: 'ring' }
  /** 200 with this SDP. */
  | { readonly do: 'answer'; readonly sdp: string }
  | { readonly do: 'refuse'; readonly reason: Reason; readonly detail: string | null }
  /** 401. `isStale`: the credentials are right, the nonce is too old. */
  | { readonly do: 'challenge'; readonly isStale: boolean }
  /** 200 to a re-INVITE, UPDATE or NOTIFY; `null`: without an SDP. */
  | { readonly do: 'accept'; readonly requestId: number; readonly sdp: string | null }
  | { readonly do: 'reject'; readonly requestId: number; readonly reason: Reason }
  | { readonly do: 'reinvite'; readonly sdp: string; readonly attempt: number }
  /** `needs`: what is asked before it leaves. */
  | {
      readonly do: 'refer';
      readonly target: Target;
      readonly referId: number;
      readonly needs: ReferNeeds;
      readonly sipHeaders?: SipHeaders;
    }
  /** OPTIONS ping: does the carrier still have the call? `isHeld`: repeat it when the carrier does not answer. */
  | { readonly do: 'ping'; readonly isHeld: boolean }
  | { readonly do: 'notify-agent'; readonly answer: AgentAnswer }
  | { readonly do: 'bye'; readonly reason: Reason }
  | { readonly do: 'start-timer'; readonly timer: CallTimer; readonly delayMs: number }
  | { readonly do: 'stop-timer'; readonly timer: CallTimer }
  /** Stores a snapshot of the call for a restart. `mayWait`: its session is as it was in the last one. */
  | { readonly do: 'keep'; readonly mayWait?: true }
  /** Free everything and write the record. */
  | { readonly do: 'finish'; readonly reason: Reason };

export interface CallStep {
  readonly state: CallState;
  readonly effects: readonly CallEffect[];
}

/** How long the call may last: its agent's limit, or the gateway's. */
export function maxDurationMs({ route, facts }: { readonly route: Pick<Route, 'agent'> | null; readonly facts: CallFacts }): number {
  return Math.min((route?.agent?.max_duration ?? Infinity) * 60_000, facts.maxDurationMs);
}

/** Why a call ends with a BYE. A carrier that took a REFER may hang up without a word of what came of it. */
export function byeReason({ transfer, placing }: Pick<CallState, 'transfer' | 'placing'>, reason: ByeReason): Reason {
  if (reason !== 'CALLER_HANGUP') return reason;
  if (transfer?.isAccepted === true) return 'TRANSFERRED';
  return placing === null ? 'CALLER_HANGUP' : 'CALLEE_HANGUP';
}

/** Whether the media of the call does not pass the endpoint. */
export function isJoined({ facts, second, isBriefing }: Pick<CallState, 'facts' | 'second' | 'isBriefing'>): boolean {
  return (facts.joins !== undefined && !isBriefing) || second?.phase === 'joined';
}

export type PlacedCall = CallState & { readonly placing: Placing };

/** Whether the call is one that we place, before its ACK. */
export function isPlacing(state: CallState): state is PlacedCall {
  return state.placing !== null && ['Routing', 'Reserving', 'OfferingToCarrier', 'Dialling', 'Connecting'].includes(state.name);
}

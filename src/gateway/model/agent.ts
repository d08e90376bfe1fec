import type { AnswererEvent } from '../../rtp/answerer/answerer-detector.js';
import type { SipHeaders } from '../../agent-protocol/sip-headers.js';
import type { StreamFormat } from '../../agent-protocol/stream-format.js';
import type { ConversationRules } from './conversation.js';
import type { PronunciationEntry } from './agent-record.js';
import type { CallRecord } from './call-record.js';
import type { ProviderSettings } from './provider-settings.js';
import type { Reason } from './reasons.js';
import type { ListenService, SpeechServices } from './speech-service.js';

// What the gateway and the media workers say to each other about the agent of a call.

/** What the built-in agent says and how. */
export interface TestLineSettings {
  /** Whose texts wait for one another; '': a call without an organization. */
  readonly accountSid: string;
  readonly firstSentence: string;
  /** A language code of the product (`ENG`), mapped to a voice by the speech module. */
  readonly language: string;
  /** A name of `supportedVoices`; `null`: the language's own. */
  readonly voice: string | null;
  readonly pronunciationGuide: readonly PronunciationEntry[];
}

/** An agent behind a WebSocket of its own. */
export interface StreamSettings {
  /** `wss://`, or `ws://` towards an address of a private network. */
  readonly url: string;
  readonly format: StreamFormat;
  /** Sent as `Authorization: Bearer` on the upgrade; `null`: none. */
  readonly bearerToken: string | null;
  /** Key of `X-Twilio-Signature`. */
  readonly signatureKey: string;
  /** `AC` and `CA` with 32 hex digits: the organization's and the call's ids as Twilio's format spells them. */
  readonly accountSid: string;
  readonly callSid: string;
  readonly customParameters: Readonly<Record<string, string>>;
  /** Silence after which the caller counts as having finished speaking, in milliseconds. */
  readonly endOfSpeechMs: number;
  /** Marks that an earlier stream got and that nobody will play: it gets them back as it starts; left out: none. */
  readonly marks?: readonly string[];
  /** Wall time of a gateway's death, since when nobody listened; left out: none died. */
  readonly unheardSinceMs?: number;
  /** Whether it may press keys (IVR navigation): not with the model `turbo`. */
  readonly mayPress: boolean;
  /** Headers that it may set in the BYE, see `unlistedHeader`; left out: none. */
  readonly headersFromAgent?: readonly string[];
  /** Sent on the upgrade (W3C Trace Context); left out: traces are off. */
  readonly traceparent?: string;
}

/** `inbound`: what the caller says. `outbound`: what the caller hears. */
export type StreamTrack = 'inbound' | 'outbound';

/** A copy of the call's audio to a WebSocket, in one direction, beside whatever agent the call has: `<Start><Stream>`. */
export interface ForkSettings extends Pick<
  StreamSettings,
  'url' | 'signatureKey' | 'accountSid' | 'callSid' | 'customParameters' | 'traceparent'
> {
  /** `MZ` and 32 hex digits; names the fork. */
  readonly streamSid: string;
  readonly tracks: readonly StreamTrack[];
}

/** An application behind a WebSocket that exchanges text with the call, as Twilio's ConversationRelay does. */
export interface ConversationSettings extends Pick<
  StreamSettings,
  'url' | 'bearerToken' | 'signatureKey' | 'accountSid' | 'callSid' | 'customParameters' | 'traceparent'
> {
  /** `VX` and 32 hex digits. */
  readonly sessionId: string;
  /** In Twilio's words. */
  readonly direction: 'inbound' | 'outbound-api';
  readonly from: string;
  readonly to: string;
  readonly callerName: string | null;
  readonly forwardedFrom: string | null;
  readonly rules: ConversationRules;
  readonly listen: ListenService;
  readonly speech: SpeechServices;
}

/** Something to play; `loop` 0: until it is interrupted. */
export type PlayerClip =
  /** `language`: BCP 47, or a language code of the product (`ENG`). `voice`: also one of a provider, such as `ElevenLabs.<voice>`. */
  | { readonly kind: 'say'; readonly text: string; readonly language: string | null; readonly voice: string | null; readonly loop: number }
  /** A WAV or MP3 file that the account names. */
  | { readonly kind: 'audio'; readonly url: string; readonly loop: number }
  /** Telephone-events to the caller; `w`: half a second of silence. */
  | { readonly kind: 'digits'; readonly digits: string }
  | { readonly kind: 'pause'; readonly ms: number };

/** What is played, one after the other, and the digits that are gathered meanwhile and afterwards. */
export interface PlayerSettings {
  /** Whose texts and files wait for one another; '': a call without an organization. */
  readonly accountSid: string;
  readonly clips: readonly PlayerClip[];
  readonly gather: {
    /** `null`: any number. */
    readonly numDigits: number | null;
    /** '': none. */
    readonly finishOnKey: string;
    /** Since the last clip, or the last digit. */
    readonly timeoutMs: number;
  } | null;
  /** Where the caller is transferred at the end; `null`: the player has finished then. */
  readonly transferTo: string | null;
  /** For voices of providers; `null`: the speech program speaks. */
  readonly speech: SpeechServices | null;
}

/** Whose agent it is, for the log. */
export interface AgentOwner {
  readonly org_id: string;
  /** Left out: the operator's default agent, or one of a document. */
  readonly agent_id?: string;
}

/** Who talks to the caller. */
export type AgentDescription = { readonly owner?: AgentOwner } & AgentKind;

type AgentKind =
  | ({ readonly kind: 'test-line' } & TestLineSettings)
  | ({ readonly kind: 'stream' } & StreamSettings)
  | ({ readonly kind: 'provider' } & ProviderSettings)
  | ({ readonly kind: 'player' } & PlayerSettings)
  | ({ readonly kind: 'conversation' } & ConversationSettings)
  /** The agent of another call, which hands its caller over: both talk with the answerer. */
  | { readonly kind: 'party'; readonly callId: string }
  /** The same leg before it is answered: the caller of the other call gets what comes, in place of a ring-back tone. */
  | { readonly kind: 'early-media'; readonly callId: string };

/** One thing that was said or pressed; `at_ms`: since the agent was started. */
export type TranscriptEntry = Readonly<CallRecord['transcript'][number]>;

/** What an agent asks of the call. `requestId` is its own, and comes back with the answer. */
export type AgentRequest =
  /** `isByTime`: they take their places by `at_ms`; otherwise they follow what came before. `gap`: why something that was said is not there. `correction`: what was
   * heard of the utterance that was interrupted last. */
  | {
      readonly type: 'transcript';
      readonly entries: readonly TranscriptEntry[];
      readonly isByTime?: true;
      readonly gap?: string;
      readonly correction?: string;
    }
  /** Extracted data points; what the agent's `analysis_schema` does not know is refused. */
  | { readonly type: 'analysis'; readonly requestId: string | null; readonly analysis: Readonly<Record<string, unknown>> }
  /** Run a custom tool. */
  | { readonly type: 'tool'; readonly requestId: string; readonly name: string; readonly input: unknown }
  /** Never dial the person again. */
  | { readonly type: 'do_not_call'; readonly requestId: string | null }
  /**
   * Hand the caller over to a number or SIP URI: by REFER, or by a call of ours where the other party hears a `briefing` first, or talks with
   * the agent first (`isConsultation`).
   */
  | {
      readonly type: 'transfer';
      readonly requestId: string | null;
      readonly to: string;
      readonly briefing?: string;
      readonly isConsultation?: true;
      /** Headers of the REFER, or of our INVITE; left out: none. */
      readonly sipHeaders?: SipHeaders;
    }
  /** The agent talks with the other party: what follows. */
  | { readonly type: 'transfer-step'; readonly requestId: string | null; readonly step: TransferStepName };

/** `conference`: all three talk. `complete`: the agent leaves the other two. `cancel`: the other party goes. */
export type TransferStepName = 'conference' | 'complete' | 'cancel';

/** The call's answers, which go to the agent as they are. */
export type AgentAnswer =
  | { readonly type: 'tool-result'; readonly requestId: string; readonly result: unknown; readonly httpStatus: number | null }
  /**
   * `status: null`: the carrier has not said yet, or never did. `reason`: why a call of ours failed; `ended`: it was answered, and is over;
   * `answered`: the agent talks with the other party.
   */
  | {
      readonly type: 'transfer-progress';
      readonly requestId: string | null;
      readonly state: 'accepted' | 'answered' | 'failed' | 'ended';
      readonly status: number | null;
      readonly reason?: Reason;
    }
  /** Who or what answered a call that we placed. */
  | { readonly type: 'answered-by'; readonly requestId: null; readonly event: AnswererEvent }
  /** A request that was refused; `code` is stable, `message` is for a person. */
  | {
      readonly type: 'refused';
      readonly requestId: string | null;
      readonly request: AgentRequest['type'];
      readonly code: string;
      readonly message: string;
    };

/** What a request gets that an agent of the model `turbo` may not make. */
export const NOT_IN_TURBO = {
  code: 'NOT_IN_TURBO',
  message: 'An agent with the model turbo has no tools, no transfers and no keys to press.',
} as const;

/** What holds for every connection to an agent. */
export interface AgentConnectionLimits {
  /** From the first packet to the answer of the upgrade. */
  readonly connectTimeoutMs: number;
  /** How long a broken connection is tried again. */
  readonly reconnectGraceMs: number;
  /** The interval of pings; without a pong by the next but one the connection counts as broken. */
  readonly pingIntervalMs: number;
  /** A provider's agent asks once whether anybody is there after so long without a word, and hangs up after as long again. */
  readonly maxSilenceMs: number;
  /** Speech of the agent that waits to be played; more is dropped. */
  readonly maxQueuedSpeechMs: number;
  /** The caller's audio that waits for a slow agent; the oldest is dropped. */
  readonly maxUnsentAudioMs: number;
  /** Whether agents may be at private and loopback addresses, and without TLS there. */
  readonly allowPrivate: boolean;
  /** CAs (PEM) of agents, providers and servers of audio, besides the public ones; `null`: none. */
  readonly caPem: string | null;
}

import type { Answerer } from '../../rtp/answerer/answerer-detector.js';
import { isoTime } from '../../lib/clock.js';
import type { CallerIdentity, CallRecord, CallSource } from '../model/call-record.js';
import type { BeginningCall } from '../model/live-calls.js';
import type { Reason } from '../model/reasons.js';
import type { VoiceApplication } from '../model/voice-application.js';
import type { DialogSnapshot } from '../ports/signalling.js';
import type { VoiceScript } from '../twilio/voice-script.js';
import type { CallState } from './state.js';
import { NOTHING_SAID, type TranscriptNotes } from './transcript.js';

/** What is known of a call from its INVITE, whatever becomes of it. */
export interface CallOrigin {
  /** UUID. */
  readonly callId: string;
  readonly sipCallId: string;
  readonly direction: CallRecord['direction'];
  /** Who places the call; left out: it came in, and the called number says whose it is. */
  readonly orgId?: string;
  /** The call that this one is a second leg of; left out: none. */
  readonly parentCallId?: string;
  /** The called number, or the Request-URI when it names none. */
  readonly to: string;
  readonly caller: CallerIdentity;
  readonly source: CallSource;
  /** Milliseconds of the epoch. */
  readonly startedAtMs: number;
  /** For a placed call that has one. */
  readonly voice?: VoiceApplication;
}

/** How the gateway names itself in this call's messages. */
export interface OwnSide {
  /** Our Contact. */
  readonly contact: string;
  readonly warningHost: string;
  /** The carrier's, of its Contact: numbers that callers are transferred to are dialled there. */
  readonly peerHost: string;
}

/** A call of ours to which a caller was, or was to be, transferred. */
export interface LegNote {
  /** UUID. */
  readonly callId: string;
  readonly to: string;
  /** Milliseconds of the epoch; `null`: it did not happen, or not yet. */
  readonly answeredAtMs: number | null;
  readonly endedAtMs: number | null;
  /** Why it ended; `null`: it has not. */
  readonly reason: Reason | null;
}

/** When things happened, in milliseconds of the epoch (`null`: they did not), and what went wrong. */
export interface CallProgress {
  readonly ringingAtMs: number | null;
  readonly answeredAtMs: number | null;
  /** How often a gateway resumed the call after a death. */
  readonly resumed: number;
  /** What went wrong with the connection to the agent last. */
  readonly agentError: string | null;
  /** The request of ours within the dialog that failed last. */
  readonly signallingError: string | null;
  /** The Q.850 cause that the peer gave last. */
  readonly q850Cause?: number;
  /** The status of our refusal; left out: we sent none. */
  readonly refusalStatus?: number;
  /** What the reason of a refusal does not say by itself. */
  readonly reasonDetail: string | null;
  /** Status callbacks that went out. */
  readonly reports: number;
  /** Calls of ours to which the caller was, or was to be, transferred. */
  readonly legs: readonly LegNote[];
  /** Our ACK, of a placed call. */
  readonly acknowledgedAtMs?: number;
  /** For a call that we placed; `null`: nobody wanted to know, or it is not known yet. */
  readonly answeredBy: Answerer | null;
}

/** What the call's record gets of the agent. */
export interface CallNotes {
  readonly said: TranscriptNotes;
  readonly analysis: Readonly<Record<string, unknown>> | null;
  /** What the agent's `analysis_schema` does not have, or not with such values, as it came; `null`: nothing. */
  readonly rejected: Readonly<Record<string, unknown>> | null;
  /** Marks of the agent's that were not played yet. */
  readonly marks: readonly string[];
}

/** All that is known of one call: plain data, whose JSON the next process of this gateway goes on from (call-snapshot.ts). */
export interface Call {
  readonly origin: CallOrigin;
  readonly own: OwnSide;
  /** What the call machine decides by. */
  readonly state: CallState;
  readonly progress: CallProgress;
  /** `null`: the call is not answered, neither by us nor by whom we call. */
  readonly dialog: DialogSnapshot | null;
  /** Id of the dialog that our INVITE makes if it is answered; `null`: none has gone out. */
  readonly dialledId: string | null;
  /** The media relay that had its session when the call was kept last. */
  readonly node: string | null;
  /** `null`: no document decides what the caller hears. */
  readonly script: VoiceScript | null;
  readonly notes: CallNotes;
}

const NO_PROGRESS: CallProgress = {
  ringingAtMs: null,
  answeredAtMs: null,
  resumed: 0,
  agentError: null,
  signallingError: null,
  reasonDetail: null,
  reports: 0,
  legs: [],
  answeredBy: null,
};

const NO_NOTES: CallNotes = { said: NOTHING_SAID, analysis: null, rejected: null, marks: [] };

/** A call that begins. @param dialledId of a call that we place, where it is known before its INVITE leaves */
export function beginningCall(origin: CallOrigin, own: OwnSide, state: CallState, dialledId: string | null): Call {
  return { origin, own, state, progress: NO_PROGRESS, dialog: null, dialledId, node: null, script: null, notes: NO_NOTES };
}

/** As the lists of calls in progress show it. */
export function beginningOf({ callId, sipCallId, direction, caller, source, startedAtMs, parentCallId }: CallOrigin): BeginningCall {
  const started_at = isoTime(startedAtMs);
  const parent = parentCallId === undefined ? {} : { parent_call_id: parentCallId };
  return { call_id: callId, sip_call_id: sipCallId, direction, from: caller.number, source, started_at, ...parent };
}

/** The 200 went out, or came in. */
export function isAnswered({ progress }: Pick<Call, 'progress'>): boolean {
  return progress.answeredAtMs !== null;
}

/** The 200 is on its way, or we have acknowledged theirs: the call will not be refused any more. */
export function isSettled({ dialog }: Pick<Call, 'dialog'>): boolean {
  return dialog !== null;
}

/** Where the data of a call in progress stands, for all that work for it. They keep sockets, timers and open requests, and no data. */
export class CallData {
  constructor(public now: Call) {}

  change(part: Partial<Call>): void {
    this.now = { ...this.now, ...part };
  }

  note(progress: Partial<CallProgress>): void {
    this.change({ progress: { ...this.now.progress, ...progress } });
  }
}

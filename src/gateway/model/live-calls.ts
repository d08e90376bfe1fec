import type { CallRecord } from './call-record.js';
import type { TraceEntry } from './call-trace.js';
import type { QualitySample } from '../../rtp/quality.js';

/** What is known of a call when its number is looked up. */
export interface BeginningCall extends Pick<CallRecord, 'call_id' | 'sip_call_id' | 'direction' | 'from' | 'source' | 'started_at'> {
  /** The call whose caller this one is dialled for; left out: none. */
  readonly parent_call_id?: string;
}

/** What is known more of a call that was answered. `codec` null: the carrier made no offer, and its answer is not there yet. */
export interface CallAnswer extends Pick<
  CallRecord,
  'agent_id' | 'agent_error' | 'signalling_error' | 'codec' | 'crypto_suite' | 'resumed'
> {
  /** ISO 8601. */
  readonly answered_at: string;
}

/** A call in progress, on whichever gateway. */
export interface CallInProgress extends BeginningCall {
  readonly org_id: string;
  readonly to: string;
  /** The instance that has it. */
  readonly gateway: string;
  /** `null`: it is not answered yet. */
  readonly answer: CallAnswer | null;
}

/** A call in progress on this gateway. */
export interface LiveCall {
  readonly callId: string;
  readonly orgId: string | null;
  readonly direction: CallRecord['direction'];
  readonly from: string;
  readonly to: string;
  readonly startedAtMs: number;
  /** `null`: not answered yet. */
  readonly answeredAtMs: number | null;
  /** The call whose caller this one is dialled for; left out: none. */
  readonly parentCallId?: string;
}

/** Where a call is to go on. */
export type CallTarget = { readonly url: string; readonly method: 'GET' | 'POST' } | { readonly twiml: string };

/** Who wants a call ended. */
export type StopReason = 'AGENT_HANGUP' | 'API_STOPPED';

/** The calls in progress on this gateway. */
export interface LiveCalls {
  /** `null`: it is not on this gateway, or not in progress. */
  find(callId: string): LiveCall | null;
  /** Ends a call; false: there is none. */
  stop(callId: string, reason: StopReason): boolean;
  /** An answered call goes on at this URL, or in this TwiML document; false: there is none. */
  redirect(callId: string, to: CallTarget): boolean;
  /** What happened in a call until now; `null`: it is not on this gateway. */
  trace(callId: string): readonly TraceEntry[] | null;
  /** What was said in a call until now, as far as its organization keeps that; `null`: it is not on this gateway. */
  transcript(callId: string): CallRecord['transcript'] | null;
  /** How a call sounded until now; empty: it has no audio yet. `null`: it is not on this gateway. */
  quality(callId: string): Promise<readonly QualitySample[] | null>;
}

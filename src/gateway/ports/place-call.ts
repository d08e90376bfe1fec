import type { SipHeaders } from '../model/passed-headers.js';
import type { AgentRecord } from '../model/agent-record.js';
import type { E164 } from '../model/e164.js';
import type { NumberRecord, OrgRecord, OutboundTrunk } from '../model/records.js';
import type { VoiceApplication } from '../model/voice-application.js';
import type { Reason } from '../model/reasons.js';
import type { Result } from '../../lib/result.js';

/** A call that an organization wants placed. */
export interface PlaceRequest {
  /** UUID; of a repeated request, that of the first. */
  readonly callId: string;
  /** Left out: a new one. */
  readonly sipCallId?: string;
  readonly orgId: string;
  readonly from: E164;
  readonly to: E164;
  readonly trunk: OutboundTrunk;
  /** With the settings of this call; `null`: the operator's default. */
  readonly agent: AgentRecord | null;
  readonly ringTimeoutMs: number;
  readonly detectAnswerer: boolean;
  /** The call's length at most; left out: as its agent and the gateway say. */
  readonly timeLimitMs?: number;
  /** The request that placed the call has claimed it. */
  readonly idempotencyKey?: string;
  /** Asked right before the INVITE leaves: false, and it does not. Rejects with `StoreUnavailableError`. */
  readonly confirm?: () => Promise<boolean>;
  /** Left out: its agent talks. */
  readonly voice?: VoiceApplication;
  /** Headers of the INVITE; left out: none. */
  readonly sipHeaders?: SipHeaders;
}

/** Places calls through this gateway. */
export interface PlaceCall {
  /** Why this call is not placed now; `null`: it may be. */
  refusal(call: {
    readonly org: OrgRecord;
    readonly number: NumberRecord;
    readonly to: E164;
  }): { readonly code: 'DIAL_NOT_ALLOWED' | 'NOT_READY'; readonly message: string } | null;
  /** The price of a minute, or why this number is not dialled: a sentence for the customer. */
  priceOf(call: { readonly org: OrgRecord; readonly number: NumberRecord; readonly to: E164 }): Result<number, string>;
  /** Why nothing is dialled from this number, whatever the called one; `null`: the operator allows it. A sentence for the customer. */
  fromRefusal(from: { readonly org: OrgRecord; readonly number: NumberRecord }): string | null;
  /** Begins the call; everything else stands in its record. */
  place(call: PlaceRequest): Result<string, Reason>;
  /** Resolves once Redis has a call that was begun, or its record is written: whatever dies then, the call has a record. */
  kept(callId: string): Promise<void>;
}

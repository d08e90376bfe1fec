import type { AgentRecord } from './agent-record.js';
import type { E164 } from './e164.js';

export type { PronunciationEntry } from './pronunciation.js';

/** `required`: a call without SRTP is refused. `optional`: plain RTP is accepted too. */
export type MediaEncryption = 'required' | 'optional';

/** What a number's owner set for calls that come in on it. */
export interface InboundOptions {
  /** CIDR blocks or addresses that INVITEs may come from; empty: any. */
  readonly allowed_sources: readonly string[];
  /** `null`: no limit. */
  readonly max_concurrent_calls: number | null;
  /** `null`: no limit. */
  readonly max_calls_per_second: number | null;
  readonly media_encryption: MediaEncryption;
}

export const DEFAULT_INBOUND_OPTIONS: InboundOptions = {
  allowed_sources: [],
  max_concurrent_calls: null,
  max_calls_per_second: null,
  media_encryption: 'required',
};

/** The SIP configuration of one number, as it is stored and as `GET /sip` returns it. */
export interface NumberRecord {
  /** `IN-` and a UUID. */
  readonly inbound_id: string;
  readonly phone_number: E164;
  readonly org_id: string;
  /** `null`: not attached inbound. `agent_id: null` is the operator's default agent. */
  readonly inbound: { readonly agent_id: string | null; readonly options: InboundOptions } | null;
  /** `null`: not attached outbound. */
  readonly outbound: { readonly sip_endpoint: string } | null;
  /** ISO 8601. */
  readonly created_at: string;
  readonly updated_at: string;
}

export interface OrgRecord {
  /** UUID. */
  readonly org_id: string;
  readonly name: string;
  /** The SIP entitlement. */
  readonly sip_enabled: boolean;
  readonly disabled: boolean;
  /** Calls in progress over all the organization's numbers; `null`: no limit. */
  readonly max_concurrent_calls: number | null;
  /** New calls a second over all the organization's numbers; `null`: no limit. */
  readonly max_calls_per_second: number | null;
  /** CIDR blocks or addresses that INVITEs to any of its numbers may come from; empty: any. */
  readonly allowed_sources: readonly string[];
  /** Signs webhooks. Never shown by the API. */
  readonly webhook_secret: string;
  /** The key of `X-Twilio-Signature` on the connections to its agents. Never shown by the API. */
  readonly stream_key: string;
  readonly created_at: string;
}

/** Everything that one INVITE needs to know, read in one round trip. */
export interface Route {
  readonly number: NumberRecord;
  readonly org: OrgRecord;
  /** `null`: the operator's default with the default settings. */
  readonly agent: AgentRecord | null;
}

import { z } from 'zod';
import type { AgentRecord } from './agent-record.js';
import type { Dialling } from './dialling.js';
import type { E164 } from './e164.js';
import type { ProviderKeys } from './provider.js';

/** Moments of a call of which a status callback can tell. */
export const STATUS_CALLBACK_EVENTS = ['initiated', 'ringing', 'answered', 'completed'] as const;
export type StatusCallbackEvent = (typeof STATUS_CALLBACK_EVENTS)[number];

const optionsSchema = z.object({
  /** CIDR blocks or addresses that INVITEs may come from; empty: any. */
  allowed_sources: z.array(z.string()).readonly(),
  /** `null`: no limit, here and below. */
  max_concurrent_calls: z.number().nullable(),
  max_calls_per_second: z.number().nullable(),
  /** `required`: a call without SRTP is refused. `optional`: plain RTP is accepted too. */
  media_encryption: z.enum(['required', 'optional']),
  /** `false`: the carrier takes no REFER, and a transfer is a call of ours; left out: a REFER is tried first. */
  refer: z.boolean().optional(),
  /** A server that answers each call with TwiML, in place of the agent. */
  voice_url: z.string().optional(),
  /** Asked when `voice_url` fails. */
  voice_fallback_url: z.string().optional(),
  /** Gets a form at each of these moments of a call. */
  status_callback: z.string().optional(),
  /** Left out: at the end only. */
  status_callback_events: z.array(z.enum(STATUS_CALLBACK_EVENTS)).readonly().optional(),
});

/** A number's options in the examples of requests and answers. */
export const EXAMPLE_OPTIONS = {
  allowed_sources: ['203.0.113.0/24'],
  max_concurrent_calls: 100,
  max_calls_per_second: 20,
  media_encryption: 'required' as const,
};

const trunkSchema = z.object({
  sip_endpoint: z.string(),
  username: z.string().optional().describe('Answers challenges of the trunk'),
  realm: z.string().optional().describe('Only challenges of this realm are answered'),
});

/** Where a number's calls go out. The password is never shown. */
export interface OutboundTrunk extends Readonly<z.output<typeof trunkSchema>> {
  readonly password?: string;
}

/** The SIP configuration of one number, as it is stored and as `GET /sip` returns it. */
export const sipConfigurationSchema = z
  .object({
    inbound_id: z.string().describe('IN- and a UUID'),
    phone_number: z.string().describe('E.164 with the plus'),
    org_id: z.string(),
    inbound: z.object({ agent_id: z.string().nullable(), options: optionsSchema }).nullable().describe('null: not attached inbound'),
    outbound: trunkSchema.nullable().describe('null: not attached outbound'),
    created_at: z.string().describe('ISO 8601'),
    updated_at: z.string().describe('ISO 8601'),
  })
  .meta({
    id: 'SipConfiguration',
    description: 'The SIP configuration of one phone number',
    examples: [
      {
        inbound_id: 'IN-8f6f6bb0-6a53-4c53-9f5b-0f0d8a2d1c11',
        phone_number: '+15551234567',
        org_id: '0b0e7e0c-6f3f-4b0e-9a44-0a2f7a0f4b52',
        inbound: {
          agent_id: null,
          options: EXAMPLE_OPTIONS,
        },
        outbound: null,
        created_at: '2026-01-01T00:00:00.000Z',
        updated_at: '2026-01-01T00:00:00.000Z',
      },
    ],
  });

export type MediaEncryption = InboundOptions['media_encryption'];

/** What a number's owner set for calls that come in on it. */
export type InboundOptions = Readonly<z.output<typeof optionsSchema>>;

export const DEFAULT_INBOUND_OPTIONS: InboundOptions = {
  allowed_sources: [],
  max_concurrent_calls: null,
  max_calls_per_second: null,
  media_encryption: 'required',
};

/** `inbound.agent_id` null: the operator's default agent. */
export interface NumberRecord extends Readonly<Omit<z.output<typeof sipConfigurationSchema>, 'outbound'>> {
  readonly phone_number: E164;
  readonly outbound: OutboundTrunk | null;
}

/** As the API shows it. */
export function shownNumber(record: NumberRecord): z.output<typeof sipConfigurationSchema> {
  if (record.outbound === null) return record;
  const { password: _secret, ...outbound } = record.outbound;
  return { ...record, outbound };
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
  /** Calls in progress with a session at a provider; `null`: no limit, here and below. */
  readonly max_provider_sessions: number | null;
  /** Of sessions at providers, in a day of UTC. */
  readonly max_provider_minutes_per_day: number | null;
  /** As the providers report them, in a day of UTC. */
  readonly max_provider_tokens_per_day: number | null;
  /** CIDR blocks or addresses that INVITEs to any of its numbers may come from; empty: any. */
  readonly allowed_sources: readonly string[];
  /** Signs webhooks. Never shown by the API. */
  readonly webhook_secret: string;
  /** The key of `X-Twilio-Signature` on the connections to its agents. Never shown by the API. */
  readonly twilio_token: string;
  /** Its keys at providers. Never shown by the API. */
  readonly provider_keys: ProviderKeys;
  /** Whether its agents may use the operator's keys. */
  readonly operator_keys: boolean;
  /** Where the texts of pathways are, with `{pathway_id}` in it; `null`: pathways have no effect. */
  readonly pathway_url: string | null;
  /** Sent there as `Authorization: Bearer`; `null`: none. Never shown. */
  readonly pathway_token: string | null;
  /** Transcripts of its calls are kept for so many days; 0: not at all; `null`: as long as the records. */
  readonly transcript_days: number | null;
  /** What it may dial; `null`: nothing. */
  readonly dialling: Dialling | null;
  readonly created_at: string;
}

/** Everything that one INVITE needs to know, read in one round trip. */
export interface Route {
  readonly number: NumberRecord;
  readonly org: OrgRecord;
  /** `null`: the operator's default with the default settings. */
  readonly agent: AgentRecord | null;
}

import { z } from 'zod';
import type { AgentRecord } from './agent-record.js';
import { moment, whole, uuid } from './described.js';
import type { Dialling } from './dialling.js';
import type { E164 } from './e164.js';
import type { ProviderKeys } from './provider.js';
import type { TrunkTls } from '../../lib/own-headers.js';

/** Moments of a call of which a status callback can tell. */
export const STATUS_CALLBACK_EVENTS = ['initiated', 'ringing', 'answered', 'completed'] as const;
export type StatusCallbackEvent = (typeof STATUS_CALLBACK_EVENTS)[number];

const optionsSchema = z
  .object({
    /** CIDR blocks or addresses that INVITEs may come from; empty: any. */
    allowed_sources: z.array(z.string()).readonly(),
    /** `null`: no limit, here and below. */
    max_concurrent_calls: whole('Calls in progress on this number; null: no limit').nullable(),
    max_calls_per_second: whole('New calls a second on this number; null: no limit').nullable(),
    /** `required`: a call without SRTP is refused. `optional`: plain RTP is accepted too. */
    media_encryption: z.enum(['required', 'optional']),
    /** `false`: the carrier takes no REFER, and a transfer is a call of ours; left out: a REFER is tried first. */
    refer: z.boolean().optional(),
    /** `true`: the carrier refuses re-INVITEs, UPDATEs and session timers: we send none, nor agree to one. */
    no_reinvite: z.boolean().optional(),
    /** Names, or `X-*`: headers of the INVITE that the agent gets, and that it may set in the REFER and the BYE; left out: the defaults. */
    headers_to_agent: z.array(z.string()).readonly().optional(),
    headers_from_agent: z.array(z.string()).readonly().optional(),
    /** INVITEs without these credentials are challenged (digest, RFC 8760); left out: none are. */
    challenge: z.object({ username: z.string() }).meta({ title: 'ShownChallenge' }).optional(),
    /** A server that answers each call with TwiML, in place of the agent. */
    voice_url: z.string().optional(),
    /** Asked when `voice_url` fails. */
    voice_fallback_url: z.string().optional(),
    /** Gets a form at each of these moments of a call. */
    status_callback: z.string().optional(),
    /** Left out: at the end only. */
    status_callback_events: z.array(z.enum(STATUS_CALLBACK_EVENTS)).readonly().optional(),
  })
  .meta({ title: 'ShownInboundOptions' });

/** A number's options in the examples of requests and answers. */
export const EXAMPLE_OPTIONS = {
  allowed_sources: ['203.0.113.0/24'],
  max_concurrent_calls: 100,
  max_calls_per_second: 20,
  media_encryption: 'required' as const,
};

/** How a trunk gets the number that calls. */
export const CALLER_ID_HEADERS = ['From', 'P-Asserted-Identity'] as const;

const trunkSchema = z.object({
  sip_endpoint: z.string(),
  username: z.string().optional().describe('Answers challenges of the trunk'),
  realm: z.string().optional().describe('Only challenges of this realm are answered'),
  ca: z.string().optional().describe("PEM: the trunk's certificate is from one of these CAs"),
  tls_names: z.array(z.string()).readonly().optional().describe("The trunk's certificate has one of these names"),
  client_certificate: z
    .object({ certificate: z.string() })
    .meta({ title: 'ShownCertificate' })
    .optional()
    .describe('PEM: shown to the trunk'),
  caller_id_header: z.enum(CALLER_ID_HEADERS).optional(),
  registrar: z.string().optional().describe('Where the gateway registers `username`'),
  options_interval_s: z.int().optional().describe('Seconds between two OPTIONS to the trunk; left out or 0: none'),
  no_reinvite: z.boolean().optional().describe('true: we send no re-INVITE, UPDATE or session timer'),
  headers_from_agent: z.array(z.string()).readonly().optional().describe('Names, or X-*: headers that agents and requests may set'),
});

type ShownTrunk = Readonly<z.output<typeof trunkSchema>>;

/** Where a number's calls go out. Password and key are never shown. */
export interface OutboundTrunk extends Omit<ShownTrunk, 'client_certificate'> {
  readonly password?: string;
  readonly client_certificate?: { readonly certificate: string; readonly key: string };
}

/** Settings of the TLS connection to the trunk; `null`: it has none. Only Trunkline's SIP server takes them. */
export function ownTlsOf({ ca, tls_names: names, client_certificate: own }: OutboundTrunk): TrunkTls | null {
  if (ca === undefined && names === undefined && own === undefined) return null;
  return { ...(ca === undefined ? {} : { ca }), ...(names === undefined ? {} : { names }), ...own };
}

const registrationSchema = z
  .object({
    state: z.enum(['registered', 'refused', 'unreachable']),
    status: z.int().nullable().describe('SIP status of the answer; null: there was none'),
    expires_at: moment('null: not registered').nullable(),
    changed_at: moment(),
  })
  .meta({ title: 'TrunkRegistration' });

/** How a trunk's registration stands. */
export type TrunkRegistration = Readonly<z.output<typeof registrationSchema>>;

/** Whether a trunk answers OPTIONS. `error`: why not, for a person. */
export interface TrunkState {
  readonly state: 'up' | 'down';
  readonly error: string | null;
  /** ISO 8601. */
  readonly changed_at: string;
}

/** The SIP configuration of one number, as it is stored and as `GET /sip` returns it. */
export const sipConfigurationSchema = z
  .object({
    inbound_id: z.string().describe('IN- and a UUID'),
    phone_number: z.string().describe('E.164 with the plus'),
    org_id: uuid(),
    inbound: z
      .object({ agent_id: uuid().nullable(), options: optionsSchema })
      .meta({ title: 'InboundDirection' })
      .nullable()
      .describe('null: not attached inbound'),
    outbound: trunkSchema
      .extend({
        registration: registrationSchema.optional().describe('Of the last REGISTER; left out: there is none'),
        trunk_state: z.enum(['up', 'down']).optional().describe('By OPTIONS; left out: not asked, or not known yet'),
        trunk_error: z.string().optional().describe('Why the trunk is down'),
      })
      .meta({ title: 'OutboundDirection' })
      .nullable()
      .describe('null: not attached outbound'),
    created_at: moment(),
    updated_at: moment(),
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

type ShownOptions = Readonly<z.output<typeof optionsSchema>>;

/** What a number's owner set for calls that come in on it. The password is never shown. */
export interface InboundOptions extends Omit<ShownOptions, 'challenge'> {
  readonly challenge?: { readonly username: string; readonly password: string };
}

/** Options as they are to be: `null`: no challenge; one without a password keeps the password of before. */
export interface InboundOptionsChange extends Omit<InboundOptions, 'challenge'> {
  readonly challenge?: { readonly username: string; readonly password?: string | undefined } | null | undefined;
}

export const DEFAULT_INBOUND_OPTIONS: InboundOptions = {
  allowed_sources: [],
  max_concurrent_calls: null,
  max_calls_per_second: null,
  media_encryption: 'required',
};

/** `inbound.agent_id` null: the operator's default agent. */
export interface NumberRecord extends Readonly<Omit<z.output<typeof sipConfigurationSchema>, 'inbound' | 'outbound'>> {
  readonly phone_number: E164;
  readonly inbound: { readonly agent_id: string | null; readonly options: InboundOptions } | null;
  readonly outbound: OutboundTrunk | null;
}

/** As the API shows it. */
export function shownNumber(
  record: NumberRecord,
  registration: TrunkRegistration | null = null,
  watched: TrunkState | null = null,
): z.output<typeof sipConfigurationSchema> {
  const inbound = shownInbound(record.inbound);
  if (record.outbound === null) return { ...record, inbound, outbound: null };
  const { password: _secret, client_certificate: own, ...outbound } = record.outbound;
  return {
    ...record,
    inbound,
    outbound: {
      ...outbound,
      ...(own === undefined ? {} : { client_certificate: { certificate: own.certificate } }),
      ...(registration === null ? {} : { registration }),
      ...(watched === null ? {} : { trunk_state: watched.state, ...(watched.error === null ? {} : { trunk_error: watched.error }) }),
    },
  };
}

function shownInbound(inbound: NumberRecord['inbound']): z.output<typeof sipConfigurationSchema>['inbound'] {
  if (inbound === null) return null;
  const { challenge, ...options } = inbound.options;
  return { ...inbound, options: { ...options, ...(challenge === undefined ? {} : { challenge: { username: challenge.username } }) } };
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
  /** Days for which transcripts of its calls are kept; 0: not at all; `null`: as long as the records. */
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

import { z } from 'zod';
import { REASONS } from '../../model/reasons.js';
import { EXAMPLE_CALL, EXAMPLE_CALL_DETAIL, EXAMPLE_SAMPLES, EXAMPLE_TRACE } from './call-example.js';
import { IDENTITY_VERDICTS } from '../../model/verified-identity.js';
import { parseE164 } from '../../model/e164.js';
import { EXAMPLE_CURSOR, nextCursor, pageQuery } from './page-query.js';

const REASON_CODES = Object.keys(REASONS);

const text = z.string().nullable();
const time = z.string().describe('ISO 8601, UTC, with milliseconds');
const maybeTime = z.string().nullable().describe('ISO 8601, UTC, with milliseconds; null: did not happen, or not yet');
const milliseconds = (meaning: string) => z.number().nullable().describe(`Milliseconds ${meaning}; null: did not happen, or not yet`);
const count = (meaning: string) => z.number().describe(meaning);

const callerSchema = z
  .object({
    number: z.string().describe("The From header's number in E.164, or its user part; `anonymous` when withheld"),
    display_name: text,
    asserted: z.array(z.string()).readonly().describe('P-Asserted-Identity: URIs; empty when the caller asked for privacy'),
    remote_party: text.describe('Remote-Party-ID: a URI'),
    diversions: z
      .array(z.object({ uri: z.string(), reason: text }))
      .readonly()
      .describe('Diversion, latest first'),
    history: z
      .array(z.object({ uri: z.string(), index: text }))
      .readonly()
      .describe('History-Info, in order'),
    privacy: z.array(z.string()).readonly().describe('Values of Privacy'),
    user_to_user: text.describe('User-to-User, as received'),
    headers: z.record(z.string(), z.string()).describe('X- headers by their name in lower case'),
  })
  .describe('The caller, from the headers of the INVITE');

const sourceSchema = z
  .object({
    ip: z.string(),
    port: z.number(),
    transport: z.string().describe('`tls`, `tcp` or `udp`'),
    tls_version: text,
    tls_cipher: text,
  })
  .describe('The connection of the INVITE');

const identitySchema = z
  .object({
    verdict: z.enum(IDENTITY_VERDICTS).describe('docs/stir-shaken.md explains each'),
    detail: text.describe('Why it is not `valid`; null: it is valid'),
    attestation: z.enum(['A', 'B', 'C']).nullable().describe('As claimed: trust it only if `valid`'),
    origid: text.describe("SHAKEN's id of the call's origin; as claimed"),
    signer: text.describe('Subject of the certificate; null: not checked'),
  })
  .describe('Result of STIR/SHAKEN verification');

const timingsSchema = z.object({
  ring_ms: milliseconds('from the INVITE to the 180'),
  answer_ms: milliseconds('from the INVITE to the 200'),
  first_audio_ms: milliseconds("from the ACK to the caller's first audio"),
  talk_ms: milliseconds('from the 200 to the end'),
});

const endpointFiguresSchema = z
  .object({
    packets_sent: count('RTP packets'),
    packets_received: count('RTP packets'),
    packets_lost: count('RTP packets'),
    jitter_ms: count('Interarrival jitter (RFC 3550 §6.4.1), milliseconds'),
    round_trip_ms: z.number().nullable().describe('Milliseconds, from RTCP; null: no report'),
    digits_received: count('Key presses'),
  })
  .describe("The media endpoint's figures of its leg to the relay");

const streamFiguresSchema = z.object({
  packets: count('RTP packets'),
  bytes: count('Bytes'),
  errors: count('Packets that could not be relayed'),
  lost: z.number().nullable().describe('RTP packets, from RTCP; null: no report'),
  jitter_ms: z.number().nullable().describe('Milliseconds'),
  round_trip_ms: z.number().nullable().describe('Milliseconds'),
  mos: z.number().nullable().describe('Mean opinion score, 1.0 to 4.5'),
});

const qualitySchema = z.object({
  endpoint: endpointFiguresSchema.nullable(),
  relay: z
    .object({ from_carrier: streamFiguresSchema, from_agent: streamFiguresSchema })
    .nullable()
    .describe("The media relay's figures of both sides"),
});

export const CALL_STATES = ['ringing', 'in_progress', 'ended'] as const;

const LISTED_STATES = [...CALL_STATES, 'live'] as const;

/** A call as the API returns it, in progress or ended: what is not known yet is null. */
export const callSchema = z
  .object({
    call_id: z.uuid(),
    state: z.enum(CALL_STATES).describe('`ringing`: not answered yet; `in_progress`: answered; `ended`: ended or refused'),
    org_id: text,
    agent_id: text.describe("null: the operator's default agent, or no agent (yet)"),
    sip_call_id: z.string().describe("The carrier's Call-ID"),
    from: z.string().describe('As `caller.number`'),
    to: z.string().describe('The called number in E.164'),
    caller: callerSchema.nullable().describe('Who calls, by the headers of the INVITE; null: the call is in progress'),
    source: sourceSchema,
    identity: identitySchema.nullable().describe('null: not verified, or the call is in progress'),
    reason: text.describe('Why the call was refused or ended: a code of docs/errors.md; null: in progress'),
    sip_status: z.number().nullable().describe('Status of the refusal, or 200; null: not answered yet'),
    codec: text.describe('`PCMU` or `PCMA`; null: none was chosen'),
    crypto_suite: text.describe("SRTP suite of the carrier's leg; null: plain RTP, or not answered (yet)"),
    started_at: time,
    answered_at: maybeTime,
    ended_at: maybeTime,
    timings: timingsSchema,
    quality: qualitySchema,
    analysis: z.record(z.string(), z.unknown()).nullable().describe("The agent's analysis; null: it sent none"),
    stale_route: z
      .boolean()
      .nullable()
      .describe('Whether the gateway used a cached route because the store was unavailable; null: the call is in progress'),
    agent_error: z
      .string()
      .nullable()
      .describe('Last failure of the connection to the agent: URL (without the query), error, after how long; null: none, or in progress'),
    resumed: z.number().describe('How often the gateway was killed during the call and resumed it'),
  })
  .meta({ id: 'Call', description: 'A call: in progress, ended or refused', examples: [EXAMPLE_CALL] });

export type CallAnswerBody = z.output<typeof callSchema>;

/** The same with what was said and what did not fit, which lists leave out. */
export const callDetailSchema = callSchema
  .extend({
    transcript: z
      .array(z.object({ speaker: z.enum(['agent', 'caller']), text: z.string(), at_ms: z.number().describe('Since the agent began') }))
      .readonly()
      .describe('As the agent sent it'),
    analysis_rejected: z
      .record(z.string(), z.unknown())
      .nullable()
      .describe('Analysis values that do not match `analysis_schema`, as received; null: none'),
  })
  .meta({
    id: 'CallDetail',
    description: 'A call with its transcript, available when the call has ended',
    examples: [EXAMPLE_CALL_DETAIL],
  });

export type CallDetail = z.output<typeof callDetailSchema>;

/** The answer to GET /v1/calls/{call_id}. */
export const callFoundSchema = z
  .object({ status: z.literal('success'), call: callDetailSchema })
  .meta({ examples: [{ status: 'success', call: EXAMPLE_CALL_DETAIL }] });

export const traceEntrySchema = z
  .object({
    at: time,
    source: z.enum(['sip', 'rtpengine', 'agent', 'gateway']),
    direction: z.enum(['in', 'out']).nullable().describe('To the gateway, or from it; null: within it'),
    summary: z.string().describe('One line'),
    text: text.describe('The message, without keys and credentials; null: only a summary'),
  })
  .meta({ id: 'TraceEntry', description: "An event in a call's trace" });

/** The answer to GET /v1/calls/{call_id}/trace. */
export const traceSchema = z
  .object({ status: z.literal('success'), trace: z.array(traceEntrySchema).readonly() })
  .meta({ examples: [{ status: 'success', trace: EXAMPLE_TRACE }] });

const streamSampleSchema = z.object({
  lost_percent: count('Of the packets since the sample before, 0 to 100'),
  jitter_ms: count('Interarrival jitter (RFC 3550 §6.4.1), milliseconds'),
  mos: count('Mean opinion score by the E-model, 1.0 to 4.5'),
});

export const qualitySampleSchema = z
  .object({
    at_ms: count('Milliseconds after audio began'),
    from_caller: streamSampleSchema.nullable().describe('null: no packets since the previous sample, for example on hold'),
    to_caller: streamSampleSchema.nullable().describe("From the caller's RTCP reports; null: none since the previous sample"),
    round_trip_ms: z.number().nullable().describe('Milliseconds, from RTCP; null: unknown'),
  })
  .meta({ id: 'QualitySample', description: 'The quality of a call at one moment' });

/** The answer to GET /v1/calls/{call_id}/quality. */
export const callQualitySchema = z
  .object({
    status: z.literal('success'),
    live: z.boolean().describe('Whether the call is in progress'),
    samples: z.array(qualitySampleSchema).readonly().describe('Oldest first, about every 5 s; less often in long calls'),
  })
  .meta({ examples: [{ status: 'success', live: false, samples: EXAMPLE_SAMPLES }] });

/** The body of POST /v1/calls/{call_id}/stop: none, or empty. */
export const stopBodySchema = z
  .strictObject({})
  .nullish()
  .meta({ examples: [{}] });

export const stoppedSchema = z
  .object({ status: z.literal('success'), message: z.string() })
  .meta({ examples: [{ status: 'success', message: 'Call 153ee546-05b9-4d95-bd6d-f899f082d48b is being ended' }] });

const moment = z.iso.datetime({ offset: true, error: 'must be a time in ISO 8601 with its zone, such as 2026-01-01T00:00:00Z' });

/** The query of GET /v1/calls. */
export const callsQuerySchema = z.strictObject({
  phone_number: z
    .string()
    .max(32)
    .refine((value) => parseE164(value) !== undefined, 'must be a phone number in E.164 form, such as +15551234567')
    .optional()
    .meta({ description: 'The called number, with or without the plus', examples: ['+15551234567'] }),
  from: z
    .string()
    .min(1)
    .max(256)
    .optional()
    .meta({ description: "The record's `from`; a phone number in any spelling", examples: ['+15550100999'] }),
  reason: z
    .enum(REASON_CODES, 'must be a code of the table of reasons')
    .optional()
    .meta({ description: 'Reason code of docs/errors.md', examples: ['CALLER_HANGUP'] }),
  sip_call_id: z
    .string()
    .min(1)
    .max(1_024)
    .optional()
    .meta({ description: "The carrier's Call-ID, as received", examples: ['a84b4c76e66710@pc33.example.com'] }),
  state: z
    .enum(LISTED_STATES, `must be one of ${LISTED_STATES.join(', ')}`)
    .optional()
    .meta({
      description:
        '`ended`, the default: ended and refused calls. `live`: calls in progress on all gateways; of these, `ringing`: not answered yet, `in_progress`: answered',
      examples: ['in_progress'],
    }),
  since: moment.optional().meta({ description: 'Calls that began at this time or later', examples: ['2026-01-01T00:00:00Z'] }),
  until: moment.optional().meta({ description: 'Calls that began before this time', examples: ['2027-01-01T00:00:00Z'] }),
  ...pageQuery,
});

export type CallsQuery = z.output<typeof callsQuerySchema>;

/** The answer to GET /v1/calls. */
export const callPageSchema = z
  .object({
    status: z.literal('success'),
    calls: z.array(callSchema).readonly(),
    next: nextCursor,
  })
  .meta({ examples: [{ status: 'success', calls: [EXAMPLE_CALL], next: EXAMPLE_CURSOR }] });

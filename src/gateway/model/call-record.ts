import { z } from 'zod';
import type { QualitySample } from '../../rtp/quality.js';
import { large, moment, whole, uuid } from './described.js';
import { identitySchema } from './verified-identity.js';

// What is kept of a call: the same words for the store and for the control API.

const text = z.string().nullable();
const milliseconds = (meaning: string) => z.number().nullable().describe(`Milliseconds ${meaning}; null: did not happen, or not yet`);
const count = large;
const figure = (meaning: string) => z.number().describe(meaning);
const time = (also: string) => moment(`With milliseconds${also}`);

/** Who calls, by the headers of the INVITE, without what the caller asked to keep private. */
export const callerSchema = z
  .object({
    number: z.string().describe("The From header's number in E.164, or its user part; `anonymous` when withheld"),
    display_name: text,
    asserted: z.array(z.string()).readonly().describe('P-Asserted-Identity: URIs; empty when the caller asked for privacy'),
    remote_party: text.describe('Remote-Party-ID: a URI'),
    diversions: z
      .array(z.object({ uri: z.string(), reason: text }).meta({ title: 'Diversion' }))
      .readonly()
      .describe('Diversion, latest first'),
    history: z
      .array(z.object({ uri: z.string(), index: text }).meta({ title: 'HistoryEntry' }))
      .readonly()
      .describe('History-Info, in order'),
    privacy: z.array(z.string()).readonly().describe('Values of Privacy'),
    user_to_user: text.describe('User-to-User, as received'),
    headers: z.record(z.string(), z.string()).describe('X- headers, and those that headers_to_agent names, by their name in lower case'),
  })
  .meta({ title: 'Caller', description: 'The caller, from the headers of the INVITE' });

/** The connection that the INVITE came by. */
export const sourceSchema = z
  .object({
    ip: z.string(),
    port: whole('0: not known'),
    transport: z.string().describe('`tls`, `tcp` or `udp`'),
    tls_version: text,
    tls_cipher: text,
  })
  .meta({ title: 'CallSource', description: "The connection of the INVITE; in a placed call, the trunk's host and port" });

const timingsSchema = z
  .object({
    ring_ms: milliseconds('from the INVITE to the 180'),
    answer_ms: milliseconds('from the INVITE to the 200'),
    first_audio_ms: milliseconds("from the ACK to the caller's first audio"),
    talk_ms: milliseconds('from the 200 to the end'),
  })
  .meta({ title: 'CallTimings' });

const endpointFiguresSchema = z
  .object({
    packets_sent: count('RTP packets'),
    packets_received: count('RTP packets'),
    packets_lost: count('RTP packets'),
    jitter_ms: figure('Interarrival jitter (RFC 3550 §6.4.1), milliseconds'),
    round_trip_ms: z.number().nullable().describe('Milliseconds, from RTCP; null: no report'),
    digits_received: count('Key presses'),
    frames_late: count('Frames of 20 ms that the endpoint sent a frame or more too late, or skipped'),
  })
  .meta({ title: 'EndpointFigures', description: "The media endpoint's figures of its leg to the relay" });

const streamFiguresSchema = z
  .object({
    packets: count('RTP packets'),
    bytes: count('Bytes'),
    errors: count('Packets that could not be relayed'),
    lost: large('RTP packets, from RTCP; null: no report').nullable(),
    jitter_ms: z.number().nullable().describe('Milliseconds'),
    round_trip_ms: z.number().nullable().describe('Milliseconds'),
    mos: z.number().nullable().describe('Mean opinion score, 1.0 to 4.5'),
  })
  .meta({ title: 'StreamFigures' });

/** What was seen of the audio in both directions. */
export const qualitySchema = z
  .object({
    endpoint: endpointFiguresSchema.nullable(),
    relay: z
      .object({ from_carrier: streamFiguresSchema, from_agent: streamFiguresSchema })
      .meta({ title: 'RelayFigures' })
      .nullable()
      .describe("The media relay's figures of both sides"),
  })
  .meta({ title: 'CallQuality' });

const turnsSchema = z
  .object({
    first_audio_ms: milliseconds("from the ACK to the agent's first audio"),
    delays_ms: z
      .array(z.number())
      .readonly()
      .describe("Of each turn: from the end of the caller's speech to the agent's first audio, as sent"),
    p50_ms: z.number().nullable().describe('Median of the delays; null: no turns'),
    p95_ms: z.number().nullable().describe('95th percentile of the delays; null: no turns'),
  })
  .meta({ title: 'CallTurns' });

export type CallTurns = Readonly<z.output<typeof turnsSchema>>;

/** For a call that no agent has answered. */
export const NO_TURNS: CallTurns = { first_audio_ms: null, delays_ms: [], p50_ms: null, p95_ms: null };

const transcriptSchema = z
  .array(
    z
      .object({
        speaker: z.enum(['agent', 'caller']),
        text: z.string(),
        at_ms: z.number().describe('Since the agent began'),
        interrupted: z
          .literal(true)
          .meta({ type: 'boolean', const: undefined })
          .optional()
          .describe('The caller cut it off: `text` is about what was heard; else omitted'),
      })
      .meta({ title: 'Utterance' }),
  )
  .readonly();

const legSchema = z
  .object({
    call_id: z.uuid(),
    to: z.string().describe('E.164'),
    reason: z.string().describe('Why it ended, or was not answered'),
    answered_at: time('; null: nobody answered').nullable(),
    ended_at: time(''),
  })
  .meta({ title: 'CallLeg' });

export type CallLeg = Readonly<z.output<typeof legSchema>>;

/** An ended or refused call. */
export const callRecordSchema = z.object({
  call_id: z.uuid(),
  org_id: uuid('null: the number was not known').nullable(),
  agent_id: uuid("null: the operator's default agent, or no agent (yet)").nullable(),
  direction: z.enum(['inbound', 'outbound']).describe('`outbound`: placed by POST /v1/calls'),
  parent_call_id: z.uuid().nullable().describe('The call whose caller this one was dialled for; null: none'),
  sip_call_id: z.string().describe("The carrier's Call-ID; ours in a call that we placed"),
  from: z.string().describe('As `caller.number`'),
  to: z.string().describe('The called number in E.164'),
  caller: callerSchema,
  source: sourceSchema,
  identity: identitySchema.nullable().describe('null: not verified, or the call is in progress'),
  reason: z.string().describe('Why the call was refused or ended: a code of docs/errors.md'),
  reason_detail: text.describe(
    'What the code does not say by itself, such as the figure and its limit at OVERLOADED, or at MEDIA_TIMEOUT that packets arrive and do not decrypt; null: nothing',
  ),
  sip_status: whole("Status of the final response to the INVITE, the trunk's in a placed call; null: none was sent, or came").nullable(),
  codec: text.describe('`PCMU` or `PCMA`; null: none was chosen'),
  crypto_suite: text.describe("SRTP suite of the carrier's leg; null: plain RTP, or not answered (yet)"),
  started_at: time(''),
  answered_at: time('; null: did not happen, or not yet').nullable(),
  ended_at: time(''),
  timings: timingsSchema,
  turns: turnsSchema.describe('By the loudness of both sides'),
  quality: qualitySchema,
  samples: z.custom<readonly QualitySample[]>().describe('Quality over time, oldest first; empty where calls are listed'),
  transcript: transcriptSchema.describe('As the agent sent it; empty where calls are listed'),
  transcript_state: z
    .enum(['complete', 'partial', 'failed'])
    .nullable()
    .describe('Whether the transcript has all that was said; null: the agent sent none, or the call is in progress'),
  transcript_error: text.describe('What is missing in the transcript, and why; null: nothing'),
  analysis: z
    .record(z.string(), z.unknown())
    .nullable()
    .describe("The agent's analysis, or a text model's of the transcript; null: there is none"),
  analysis_error: text.describe('Why there is no analysis, or not yet; null: nothing is missing'),
  analysis_rejected: z
    .record(z.string(), z.unknown())
    .nullable()
    .describe('Analysis values that do not match `analysis_schema`, as received; null: none'),
  answered_by: z
    .enum(['person', 'machine', 'fax', 'unknown'])
    .nullable()
    .describe('Who or what answered a call that was placed with `detect_answerer`; null: not examined, or not answered'),
  legs: z.array(legSchema).describe('Calls of ours to which the caller was, or was to be, transferred; empty: none'),
  agent_error: text.describe('Last failure of the connection to the agent: URL (without the query), error, after how long; null: none'),
  signalling_error: text.describe(
    'Last request of ours that failed: its method, and the status, or why there was no answer, such as a refused connection or a certificate; null: none',
  ),
  q850_cause: whole(
    'Q.850 cause that the peer gave for its refusal, CANCEL or BYE, in the Reason header (RFC 3326, RFC 6432); null: none',
  ).nullable(),
  stale_route: z.boolean().describe('Whether the gateway used a cached route because the store was unavailable'),
  resumed: whole('How often the gateway was killed during the call and resumed it'),
  summed_calls: whole(
    'How many calls the record stands for: those refused in one second, at overload or beyond what has records of its own; null: one call',
  ).nullable(),
});

export type CallRecord = Readonly<z.output<typeof callRecordSchema>>;
export type CallerIdentity = Readonly<z.output<typeof callerSchema>>;
export type CallSource = Readonly<z.output<typeof sourceSchema>>;
export type StreamQuality = Readonly<z.output<typeof streamFiguresSchema>>;
export type CallQuality = Readonly<z.output<typeof qualitySchema>>;

/** What a record says of a call of which nothing has come yet, or never came. */
export const NO_OUTCOME = {
  identity: null,
  codec: null,
  crypto_suite: null,
  answered_at: null,
  timings: { ring_ms: null, answer_ms: null, first_audio_ms: null, talk_ms: null },
  turns: NO_TURNS,
  quality: { endpoint: null, relay: null },
  transcript_state: null,
  transcript_error: null,
  analysis: null,
  analysis_error: null,
  agent_error: null,
  signalling_error: null,
  q850_cause: null,
  reason_detail: null,
  answered_by: null,
  legs: [],
  resumed: 0,
  summed_calls: null,
} as const satisfies Partial<CallRecord>;

/** A call that came in and was refused before it rang: nobody of the organization has seen it. */
export function isRefusedInbound(record: CallRecord): boolean {
  const { direction, answered_at: answeredAt, timings, summed_calls: summed } = record;
  return direction === 'inbound' && answeredAt === null && timings.ring_ms === null && summed === null;
}

/** A caller of whom nothing is known. */
export const NOBODY: CallerIdentity = {
  number: '',
  display_name: null,
  asserted: [],
  remote_party: null,
  diversions: [],
  history: [],
  privacy: [],
  user_to_user: null,
  headers: {},
};

/** What several refused calls share a record of. */
interface Summed {
  readonly to: string;
  readonly reason: string;
  readonly detail: string | null;
  readonly status: number | null;
  readonly calls: number;
  /** ISO 8601. */
  readonly at: string;
}

/** One record for several refused calls. */
export function summedRecord(callId: string, orgId: string | null, { to, reason, detail, status, calls, at }: Summed): CallRecord {
  return {
    call_id: callId,
    org_id: orgId,
    agent_id: null,
    direction: 'inbound',
    parent_call_id: null,
    sip_call_id: '',
    from: '',
    to,
    caller: NOBODY,
    source: { ip: '', port: 0, transport: '', tls_version: null, tls_cipher: null },
    ...NO_OUTCOME,
    samples: [],
    transcript: [],
    analysis_rejected: null,
    stale_route: false,
    reason,
    reason_detail: detail,
    sip_status: status,
    started_at: at,
    ended_at: at,
    summed_calls: calls,
  };
}

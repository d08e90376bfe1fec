import type { CallInProgress } from '../../model/live-calls.js';
import { z } from 'zod';
import { REASONS } from '../../model/reasons.js';
import { EXAMPLE_CALL, EXAMPLE_CALL_DETAIL, EXAMPLE_SAMPLES, EXAMPLE_TRACE } from './call-example.js';
import { callRecordSchema, NO_OUTCOME, type CallRecord } from '../../model/call-record.js';
import { traceEntrySchema } from '../../model/call-trace.js';
import { E164_FORM, E164_PATTERN, parseE164 } from '../../model/e164.js';
import { exampleCursor, nextCursor, pageQueryOf } from './page-query.js';

const REASON_CODES = Object.keys(REASONS);

const { shape } = callRecordSchema;
const count = (meaning: string) => z.number().describe(meaning);

export const CALL_STATES = ['ringing', 'in_progress', 'ended'] as const;

const LISTED_STATES = [...CALL_STATES, 'live'] as const;

/** A call as the API returns it, in progress or ended: what is not known yet is null. */
export const callSchema = callRecordSchema
  .omit({ samples: true, transcript: true, analysis_rejected: true })
  .extend({
    state: z.enum(CALL_STATES).describe('`ringing`: not answered yet; `in_progress`: answered; `ended`: ended or refused'),
    caller: shape.caller.nullable().describe('The caller, from the headers of the INVITE; null: the call is in progress'),
    reason: shape.reason.nullable().describe('Why the call was refused or ended: a code of docs/errors.md; null: in progress'),
    sip_status: shape.sip_status.describe(
      "Status of the final response to the INVITE, the trunk's in a placed call; null: none was sent or came, or not yet",
    ),
    ended_at: shape.answered_at,
    stale_route: shape.stale_route
      .nullable()
      .describe('Whether the gateway used a cached route because the store was unavailable; null: the call is in progress'),
  })
  .meta({ id: 'Call', description: 'A call: in progress, ended or refused', examples: [EXAMPLE_CALL] });

export type CallAnswerBody = z.output<typeof callSchema>;

/** The same with what was said and what did not fit, which lists leave out. */
export const callDetailSchema = callSchema.extend({ transcript: shape.transcript, analysis_rejected: shape.analysis_rejected }).meta({
  id: 'CallDetail',
  description: 'A call with its transcript; while it is in progress, what was said until now',
  examples: [EXAMPLE_CALL_DETAIL],
});

export type CallDetail = z.output<typeof callDetailSchema>;

/** The answer to GET /v1/calls/{call_id}. */
export const callFoundSchema = z
  .object({ status: z.literal('success'), call: callDetailSchema })
  .meta({ examples: [{ status: 'success', call: EXAMPLE_CALL_DETAIL }] });

/** The answer to GET /v1/calls/{call_id}/trace. */
export const traceSchema = z
  .object({ status: z.literal('success'), trace: z.array(traceEntrySchema).readonly() })
  .meta({ examples: [{ status: 'success', trace: EXAMPLE_TRACE }] });

const streamSampleSchema = z
  .object({
    lost_percent: count('Of the packets since the sample before, 0 to 100'),
    jitter_ms: count('Interarrival jitter (RFC 3550 §6.4.1), milliseconds'),
    mos: count('Mean opinion score by the E-model, 1.0 to 4.5'),
  })
  .meta({ title: 'StreamSample' });

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

const moment = z.iso.datetime({ offset: true, error: 'must be a time in ISO 8601 with its zone, such as 2026-01-01T00:00:00Z' });

/** The query of GET /v1/calls. */
export const callsQuerySchema = z.strictObject({
  phone_number: z
    .string()
    .max(32)
    .refine((value) => parseE164(value) !== undefined, `must be ${E164_FORM}`)
    .optional()
    .meta({ description: 'The called number, with or without the plus', pattern: E164_PATTERN, examples: ['+15551234567'] }),
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
  ...pageQueryOf('calls'),
});

export type CallsQuery = z.output<typeof callsQuerySchema>;

/** The answer to GET /v1/calls. */
export const callPageSchema = z
  .object({
    status: z.literal('success'),
    calls: z.array(callSchema).readonly(),
    next: nextCursor,
  })
  .meta({ examples: [{ status: 'success', calls: [EXAMPLE_CALL], next: exampleCursor('calls') }] });

// A call as the API shows it: one shape, whether it has ended or not.

export function endedCall<Record extends CallRecord>(record: Record): Record & { readonly state: 'ended' } {
  return { ...record, state: 'ended' };
}

export function liveCall(call: CallInProgress): CallAnswerBody {
  const { org_id, call_id, direction, sip_call_id, from, to, source, started_at, answer } = call;
  const answeredAfterMs = answer === null ? null : Math.max(0, Date.parse(answer.answered_at) - Date.parse(started_at));
  return {
    call_id,
    state: answer === null ? 'ringing' : 'in_progress',
    org_id,
    direction,
    parent_call_id: call.parent_call_id ?? null,
    sip_call_id,
    from,
    to,
    source,
    started_at,
    ...NO_OUTCOME,
    agent_id: null,
    caller: null,
    reason: null,
    ended_at: null,
    stale_route: null,
    sip_status: answer === null ? null : 200,
    timings: { ...NO_OUTCOME.timings, answer_ms: answeredAfterMs },
    ...answer,
  };
}

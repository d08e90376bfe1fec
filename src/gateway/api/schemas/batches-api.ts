import { z } from 'zod';
import { BATCH_STATES, batchCountsSchema, batchPlanSchema } from '../../model/batch.js';
import { batchPreviewSchema, refusedRowSchema } from '../../model/batch-preview.js';
import { batchSchema } from '../../model/batch-log.js';
import { callingHoursSchema, DEFAULT_CALLING_HOURS } from '../../model/calling-hours.js';
import { batchNumbers } from './batch-numbers-api.js';
import { exampleOf } from '../answers.js';
import { agentName, agentSettingsSchema } from './agent-settings.js';
import type { AgentPolicy } from './agent-rules.js';
import { RING_TIMEOUT_S } from './place-call.js';
import { phoneNumber } from './sip-api.js';

/** The largest body: a batch with its numbers. */
export const BATCH_BODY_BYTES = 8 * 1_024 * 1_024;

const EXAMPLE_PLAN = {
  from: '+15551234567',
  agent_id: '4a7c3c52-6a53-4c53-9f5b-0f0d8a2d1c11',
  calls_per_second: 5,
  max_concurrent_calls: 50,
  hours: DEFAULT_CALLING_HOURS,
  retries: { BUSY: { times: 2, after_seconds: 600 } },
  do_not_call_digit: '9',
  ring_timeout: 30,
  detect_answerer: false,
  max_duration: null,
  metadata: null,
  webhook: null,
};

const EXAMPLE_PREVIEW = { refused: 2, callable_now: 98, callable_later: 0, first_call_at: '2026-01-01T09:00:00.000Z', reserved_cost: 29.4 };

/** A batch as the API shows it. */
export const shownBatchSchema = batchSchema
  .extend({
    state: z.enum(BATCH_STATES).nullable().describe('null, as below: a log only, which dials nothing'),
    plan: batchPlanSchema.nullable(),
    counts: batchCountsSchema.nullable(),
    preview: batchPreviewSchema.nullable().describe('What would be dialled, as the rows were judged when they came'),
  })
  .meta({
    id: 'Batch',
    description: 'A batch of calls',
    examples: [
      {
        batch_id: '7f9d7a3e-6a53-4c53-9f5b-0f0d8a2d1c11',
        org_id: '0b0e7e0c-6f3f-4b0e-9a44-0a2f7a0f4b52',
        name: 'Reminders',
        created_at: '2026-01-01T00:00:00.000Z',
        state: 'in_progress' as const,
        plan: EXAMPLE_PLAN,
        counts: {
          requested: 100,
          validated: 98,
          waiting: 60,
          dialling: 5,
          dispatched: 40,
          successful: 30,
          failed: 3,
          ambiguous: 0,
          answered_today: 30,
          abandoned_today: 0,
        },
        preview: EXAMPLE_PREVIEW,
      },
    ],
  });

export type CreatedBatch = z.output<typeof createdBatchSchema>;
export type ShownBatch = z.output<typeof shownBatchSchema>;

/** The answer to the creation of a batch. */
export const createdBatchSchema = shownBatchSchema
  .extend({ refused_rows: z.array(refusedRowSchema).readonly().describe('The first 2,000, by row') })
  .meta({
    id: 'CreatedBatch',
    description: 'A batch of calls, and the rows that are not dialled',
    examples: [{ ...exampleOf(shownBatchSchema), state: 'ready' as const, refused_rows: [exampleOf(refusedRowSchema)] }],
  });

export const CSV_COLUMNS =
  'a column `phone_number` (or `phone`, `telephone`, `number`), if wanted `time_zone` (or `timezone`, `tz`), in any letters, and others as metadata; commas, semicolons or tabs between them';

/** Which fields need or exclude each other, for the document: as the check of the body says. */
const DIALLING = {
  not: { required: ['csv', 'numbers'] },
  dependentRequired: { csv: ['from'], numbers: ['from'] },
  dependentSchemas: {
    from: { anyOf: [{ required: ['csv'] }, { required: ['numbers'] }] },
    start: { anyOf: [{ required: ['from'] }, { properties: { start: { enum: [false] } } }] },
  },
};

/** Fields without which nothing is dialled. */
export function newBatchBody({ languages }: AgentPolicy) {
  const { max_duration, webhook, metadata: forAll } = agentSettingsSchema(languages).shape;
  const plan = batchPlanSchema.shape;
  return z
    .strictObject({
      name: agentName,
      start: z
        .boolean()
        .default(false)
        .describe('Dials at once when no row is refused. false: nothing is dialled before POST /v2/batches/{batch_id}/start'),
      numbers: batchNumbers.optional(),
      csv: z.string().max(BATCH_BODY_BYTES).optional().describe(`In place of \`numbers\`: ${CSV_COLUMNS}`),
      from: phoneNumber.optional().describe('A number of yours that is attached for outbound calls'),
      agent_id: z.uuid('must be the id of an agent of yours, or null').nullable().optional().describe("null: the operator's default agent"),
      calls_per_second: plan.calls_per_second.default(1).describe('On all gateways together'),
      max_concurrent_calls: plan.max_concurrent_calls.default(10),
      hours: callingHoursSchema
        .default(DEFAULT_CALLING_HOURS)
        .describe('When people are called, in their own time zone: the one given, else all those of the prefix at once'),
      retries: plan.retries.default({}),
      do_not_call_digit: plan.do_not_call_digit.default(null),
      ring_timeout: z.int().min(RING_TIMEOUT_S.least).max(RING_TIMEOUT_S.most).default(RING_TIMEOUT_S.usual).describe('Seconds'),
      detect_answerer: plan.detect_answerer.default(false),
      max_duration,
      webhook,
      metadata: forAll,
    })
    .check(({ value: { numbers: list, csv, from, start }, issues }) => {
      const isDialling = list !== undefined || csv !== undefined;
      const tell = (path: string, message: string) => issues.push({ code: 'custom', path: [path], message, input: undefined });
      if (list !== undefined && csv !== undefined) tell('csv', 'cannot be set together with numbers');
      if (isDialling && from === undefined) tell('from', 'is needed to dial');
      if (!isDialling && (from !== undefined || start)) tell('numbers', 'or csv is needed to dial');
    })
    .meta({
      ...DIALLING,
      examples: [
        { name: 'Reminders' },
        { name: 'Reminders', from: '+15551234567', numbers: ['+15550100999', { phone_number: '+4930123456', time_zone: 'Europe/Berlin' }] },
      ],
    });
}

export type NewBatchBody = z.output<ReturnType<typeof newBatchBody>>;

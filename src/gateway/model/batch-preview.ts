import { z } from 'zod';
import { moment } from './described.js';

// What a batch would dial, before it is started.

/** Rows that the answer and the log name; they count the others. */
export const MOST_NAMED_ROWS = 2_000;

export const ROW_REFUSALS = [
  'UNREADABLE_ROW',
  'INVALID_NUMBER',
  'INVALID_TIME_ZONE',
  'DUPLICATE',
  'DO_NOT_CALL',
  'DIAL_NOT_ALLOWED',
  'OUTSIDE_HOURS',
] as const;

/** A row that is not dialled. */
export const refusedRowSchema = z
  .object({
    row: z.int().describe('Line of the CSV, from 1; place in `numbers`, from 0'),
    phone_number: z.string().describe('E.164, or what stands there'),
    reason: z.enum(ROW_REFUSALS),
    message: z.string().describe('Why, for a person'),
  })
  .meta({
    id: 'RefusedRow',
    description: 'A row of a batch that is not dialled',
    examples: [{ row: 3, phone_number: '12', reason: 'INVALID_NUMBER' as const, message: 'is not a phone number in E.164 form' }],
  });

export type RefusedRow = Readonly<z.output<typeof refusedRowSchema>>;

export const batchPreviewSchema = z.object({
  refused: z.int().describe('Rows that are not dialled; the answer to the creation, and the log, name the first 2,000'),
  callable_now: z.int().describe('Numbers whose hours are open'),
  callable_later: z.int().describe('Numbers whose hours come'),
  first_call_at: moment('When the first of these numbers may be called. null: there are none').nullable(),
  reserved_cost: z
    .number()
    .describe(
      "What one call to each number would reserve, in the operator's currency: the price of its longest duration. Each call is settled as it ends",
    ),
});

export type BatchPreview = Readonly<z.output<typeof batchPreviewSchema>>;

import { z } from 'zod';

const LIMIT = /^[1-9]\d{0,2}$/;

/** The query of GET /v1/webhooks/dead-letters. */
export const deadLettersQuerySchema = z.strictObject({
  limit: z
    .string()
    .refine((value) => LIMIT.test(value) && Number(value) <= 500, 'must be an integer from 1 to 500')
    .optional()
    .meta({ description: '1 to 500, 50 when left out', examples: ['50'] }),
  before: z.string().max(200).optional().meta({ description: '`next` of the page before' }),
});

const deadLetterSchema = z
  .object({
    delivery_id: z.string().describe('As in `x-trunkline-delivery`'),
    call_id: z.string().describe('The call that the webhook tells of'),
    url: z.string(),
    attempts: z.number(),
    error: z.string().nullable().describe('Why the last attempt failed'),
    created_at: z.string().describe('ISO 8601: when it was due first'),
    died_at: z.string().describe('ISO 8601: when it was given up'),
  })
  .meta({ id: 'DeadLetter', description: 'A webhook that nobody took' });

/** The answer to GET /v1/webhooks/dead-letters. */
export const deadLetterPageSchema = z.object({
  status: z.literal('success'),
  dead_letters: z.array(deadLetterSchema).readonly(),
  next: z.string().nullable().describe('Give it back as `before` for the next page; null: there is none'),
});

/** The answer to POST /v1/webhooks/dead-letters/{delivery_id}/resend. */
export const resentSchema = z.object({ status: z.literal('success'), message: z.string() });

import { z } from 'zod';
import { nextCursor, pageQuery } from './page-query.js';

const EXAMPLE_LETTER = {
  delivery_id: '153ee546-05b9-4d95-bd6d-f899f082d48b',
  org_id: '0b0e7e0c-6f3f-4b0e-9a44-0a2f7a0f4b52',
  call_id: '153ee546-05b9-4d95-bd6d-f899f082d48b',
  url: 'https://customer.example/calls',
  attempts: 17,
  error: 'it answered 503',
  created_at: '2026-01-01T00:00:00.000Z',
  died_at: '2026-01-02T00:00:00.000Z',
};

/** The query of GET /v1/webhooks/dead-letters. */
export const deadLettersQuerySchema = z.strictObject(pageQuery);

const deadLetterSchema = z
  .object({
    delivery_id: z.string().describe('As in `webhook-id`'),
    org_id: z.string(),
    call_id: z.string().describe('The call that the webhook reports'),
    url: z.string(),
    attempts: z.number(),
    error: z.string().nullable().describe('Why the last attempt failed'),
    created_at: z.string().describe('ISO 8601: when it was first due'),
    died_at: z.string().describe('ISO 8601: when it was given up'),
  })
  .meta({ id: 'DeadLetter', description: 'A webhook that was given up', examples: [EXAMPLE_LETTER] });

/** The answer to GET /v1/webhooks/dead-letters. */
export const deadLetterPageSchema = z
  .object({
    status: z.literal('success'),
    dead_letters: z.array(deadLetterSchema).readonly(),
    next: nextCursor,
  })
  .meta({ examples: [{ status: 'success', dead_letters: [EXAMPLE_LETTER], next: null }] });

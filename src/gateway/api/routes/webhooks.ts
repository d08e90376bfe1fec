import type { RouteContext, ZodApp } from '../context.js';
import { z } from 'zod';
import { moment, whole, uuid } from '../../model/described.js';
import type { DeadLetter } from '../../model/delivery.js';
import { uuidParam, DEFAULT_PAGE_LIMIT, nextCursor, pageQueryOf } from '../schemas/page-query.js';
import { messageAnswer, successAnswer } from '../answers.js';
import { identityOf, scopeOf } from '../auth.js';
import { beforeOf, nextOf } from '../cursor.js';
import { ApiFailure } from '../failure.js';

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
const deadLettersQuerySchema = z.strictObject(pageQueryOf('dead-letters'));

const deadLetterSchema = z
  .object({
    delivery_id: uuid('As in `webhook-id`'),
    org_id: uuid(),
    call_id: uuid('The call that the webhook reports'),
    url: z.string(),
    attempts: whole('How often it was sent'),
    error: z.string().nullable().describe('Why the last attempt failed'),
    created_at: moment('When it was first due'),
    died_at: moment('When it was given up'),
  })
  .meta({ id: 'DeadLetter', description: 'A webhook that was given up', examples: [EXAMPLE_LETTER] });

/** The answer to GET /v1/webhooks/dead-letters. */
const deadLetterPageSchema = z
  .object({
    status: z.literal('success'),
    dead_letters: z.array(deadLetterSchema).readonly(),
    next: nextCursor,
  })
  .meta({ examples: [{ status: 'success', dead_letters: [EXAMPLE_LETTER], next: null }] });

const tags = ['Webhooks'];

/** Webhooks that were given up: GET /v1/webhooks/dead-letters and POST …/{delivery_id}/resend. Registered behind authentication. */
export function webhookRoutes(app: ZodApp, { stores: { outbox }, reads, note }: RouteContext): void {
  app.get('/v1/webhooks/dead-letters', {
    schema: {
      operationId: 'listDeadLetters',
      tags,
      summary: 'List given-up webhooks',
      description: 'Newest first. The gateway keeps the newest 1000.',
      querystring: deadLettersQuerySchema,
      response: { 200: successAnswer('A page of given-up webhooks', deadLetterPageSchema) },
    },
    handler: async (request) => {
      const { limit, before } = request.query;
      const from = beforeOf('dead-letters', before).before ?? null;
      const { letters, next } = await reads.deadLetters(scopeOf(request), Number(limit ?? DEFAULT_PAGE_LIMIT), from);
      return { status: 'success' as const, dead_letters: letters.map(shownLetter), next: nextOf('dead-letters', next) };
    },
  });

  app.post('/v1/webhooks/dead-letters/:delivery_id/resend', {
    config: { failures: ['NOT_FOUND'] },
    schema: {
      operationId: 'resendWebhook',
      tags,
      summary: 'Redeliver a webhook',
      description: 'Due at once, with the same body and `webhook-id`, and with the retries of a new one.',
      params: z.object({
        delivery_id: uuidParam("The given-up webhook's `delivery_id`", '153ee546-05b9-4d95-bd6d-f899f082d48b'),
      }),
      response: { 200: messageAnswer('It is sent again', 'Delivery 153ee546-05b9-4d95-bd6d-f899f082d48b is sent again') },
    },
    handler: async (request) => {
      const { delivery_id: deliveryId } = request.params;
      const isRevived = await outbox.revive(identityOf(request).orgId, deliveryId.toLowerCase());
      if (!isRevived) throw new ApiFailure('NOT_FOUND', 'There is no such dead letter');
      await note(request, 'webhook.resend', deliveryId.toLowerCase());
      return { status: 'success' as const, message: `Delivery ${deliveryId.toLowerCase()} is sent again` };
    },
  });
}

/** Without the body: it is the call's, which GET /v1/calls/{call_id} shows. */
function shownLetter({ delivery_id, org_id, url, attempts, last_error: error, created_at, died_at }: DeadLetter) {
  return { delivery_id, org_id, call_id: delivery_id, url, attempts, error, created_at, died_at };
}

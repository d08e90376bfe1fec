import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod';
import { z } from 'zod';
import type { DeadLetter } from '../../model/delivery.js';
import { DEFAULT_PAGE_LIMIT } from '../schemas/page-query.js';
import { deadLetterPageSchema, deadLettersQuerySchema } from '../schemas/webhooks-api.js';
import type { ScopedReads } from '../scoped-reads.js';
import type { Stores } from '../../ports/stores.js';
import { messageAnswer, successAnswer } from '../answers.js';
import { identityOf, scopeOf } from '../auth.js';
import type { RecordAudit } from '../audit.js';
import { beforeOf, nextOf } from '../cursor.js';
import { ApiFailure } from '../failure.js';

export interface WebhookRoutesOptions {
  readonly stores: Pick<Stores, 'outbox'>;
  readonly reads: ScopedReads;
  readonly note: RecordAudit;
}

const tags = ['Webhooks'];

/** Webhooks that were given up: GET /v1/webhooks/dead-letters and POST …/{delivery_id}/resend. Registered behind authentication. */
export const webhookRoutes: FastifyPluginAsyncZod<WebhookRoutesOptions> = async (app, { stores: { outbox }, reads, note }) => {
  app.get('/v1/webhooks/dead-letters', {
    schema: {
      tags,
      summary: 'List given-up webhooks',
      description: 'Newest first. The gateway keeps the newest 1000.',
      querystring: deadLettersQuerySchema,
      response: { 200: successAnswer('A page of given-up webhooks', deadLetterPageSchema) },
    },
    handler: async (request) => {
      const { limit, before } = request.query;
      const from = beforeOf(before).before ?? null;
      const { letters, next } = await reads.deadLetters(scopeOf(request), Number(limit ?? DEFAULT_PAGE_LIMIT), from);
      return { status: 'success' as const, dead_letters: letters.map(shownLetter), next: nextOf(next) };
    },
  });

  app.post('/v1/webhooks/dead-letters/:delivery_id/resend', {
    config: { failures: ['NOT_FOUND'] },
    schema: {
      tags,
      summary: 'Redeliver a webhook',
      description: 'Due at once, with the same body and `webhook-id`, and with the retries of a new one.',
      params: z.object({
        delivery_id: z
          .string()
          .max(100)
          .meta({ description: "The given-up webhook's `delivery_id`", examples: ['153ee546-05b9-4d95-bd6d-f899f082d48b'] }),
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
  return Promise.resolve();
};

/** Without the body: it is the call's, which GET /v1/calls/{call_id} shows. */
function shownLetter({ delivery_id, org_id, url, attempts, last_error: error, created_at, died_at }: DeadLetter) {
  return { delivery_id, org_id, call_id: delivery_id, url, attempts, error, created_at, died_at };
}

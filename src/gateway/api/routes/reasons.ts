import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod';
import { allReasons, reasonsSchema } from '../schemas/reasons-api.js';
import { keyedFailures, successAnswer } from '../answers.js';

/** GET /v1/reasons. Registered behind authentication. */
export const reasonRoutes: FastifyPluginAsyncZod = async (app) => {
  const reasons = allReasons();
  app.get('/v1/reasons', {
    schema: {
      tags: ['Calls'],
      security: [{ apiKey: [] }],
      summary: 'List the reasons',
      description: 'Every code that `reason` of a call may have, in a sentence, with what to do about it.',
      response: { 200: successAnswer('The reasons', reasonsSchema), ...keyedFailures() },
    },
    handler: () => Promise.resolve({ status: 'success' as const, reasons }),
  });
  return Promise.resolve();
};

import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod';
import { allReasons, reasonsSchema } from '../schemas/reasons-api.js';
import { successAnswer } from '../answers.js';

/** GET /v1/reasons. Registered behind authentication. */
export const reasonRoutes: FastifyPluginAsyncZod = async (app) => {
  const reasons = allReasons();
  app.get('/v1/reasons', {
    schema: {
      tags: ['Calls'],
      summary: 'List the reason codes',
      description: "Every code of a call's `reason`, with an explanation and advice.",
      response: { 200: successAnswer('The reasons', reasonsSchema) },
    },
    handler: () => Promise.resolve({ status: 'success' as const, reasons }),
  });
  return Promise.resolve();
};

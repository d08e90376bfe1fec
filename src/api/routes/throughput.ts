import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod';
import { THROUGHPUT_STEP_S, throughputSchema } from '../../contracts/throughput.js';
import type { Stores } from '../../store/stores.js';
import { keyedFailures, successAnswer } from '../answers.js';
import { identityOf } from '../auth.js';

/** GET /v1/throughput. Registered behind authentication. */
export const throughputRoutes: FastifyPluginAsyncZod<{ readonly stores: Pick<Stores, 'throughput'> }> = async (app, { stores }) => {
  app.get('/v1/throughput', {
    schema: {
      tags: ['Calls'],
      security: [{ apiKey: [] }],
      summary: 'Read how many calls come and go',
      description: 'Calls of all gateways in stretches of 10 s, and how many are in progress. Each gateway tells once a second.',
      response: { 200: successAnswer('The last 15 minutes', throughputSchema), ...keyedFailures() },
    },
    handler: async (request) => {
      const { inProgress, intervals } = await stores.throughput.read(identityOf(request).orgId);
      return { status: 'success' as const, step_seconds: THROUGHPUT_STEP_S, in_progress: inProgress, intervals };
    },
  });
  return Promise.resolve();
};

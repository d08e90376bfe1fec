import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod';
import { z } from 'zod';
import { orgQuery } from '../schemas/page-query.js';
import { THROUGHPUT_STEP_S, throughputSchema } from '../../model/throughput.js';
import type { ScopedReads } from '../scoped-reads.js';
import { successAnswer } from '../answers.js';
import { scopeOf } from '../auth.js';

/** GET /v1/throughput. Registered behind authentication. */
export const throughputRoutes: FastifyPluginAsyncZod<{ readonly reads: ScopedReads }> = async (app, { reads }) => {
  app.get('/v1/throughput', {
    schema: {
      tags: ['Calls'],
      summary: 'Read call throughput',
      description: 'Calls of all gateways in intervals of 10 s, and the calls in progress. Each gateway reports once a second.',
      querystring: z.object(orgQuery),
      response: { 200: successAnswer('The last 15 minutes', throughputSchema) },
    },
    handler: async (request) => {
      const { inProgress, intervals } = await reads.throughput(scopeOf(request));
      return { status: 'success' as const, step_seconds: THROUGHPUT_STEP_S, in_progress: inProgress, intervals };
    },
  });
  return Promise.resolve();
};

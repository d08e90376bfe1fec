import type { RouteContext, ZodApp } from '../context.js';
import { z } from 'zod';
import { orgQuery } from '../schemas/page-query.js';
import { THROUGHPUT_STEP_S, throughputSchema } from '../../model/throughput.js';
import { successAnswer } from '../answers.js';
import { scopeOf } from '../auth.js';

/** GET /v1/throughput. Registered behind authentication. */
export function throughputRoutes(app: ZodApp, { reads }: RouteContext): void {
  app.get('/v1/throughput', {
    schema: {
      operationId: 'getThroughput',
      tags: ['Calls'],
      summary: 'Read call throughput',
      description: 'Calls of all gateways in intervals of 10 s, and the calls in progress. Each gateway reports once a second.',
      querystring: z.strictObject(orgQuery),
      response: { 200: successAnswer('The last 15 minutes', throughputSchema) },
    },
    handler: async (request) => {
      const { inProgress, intervals } = await reads.throughput(scopeOf(request));
      return { status: 'success' as const, step_seconds: THROUGHPUT_STEP_S, in_progress: inProgress, intervals };
    },
  });
}

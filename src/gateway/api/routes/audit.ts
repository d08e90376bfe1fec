import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod';
import { auditEntrySchema } from '../../model/audit-entry.js';
import { auditQuerySchema, DEFAULT_AUDIT_TAKE } from '../schemas/audit-api.js';
import { z } from 'zod';
import type { ScopedReads } from '../scoped-reads.js';
import { exampleOf, fieldsAnswer } from '../answers.js';
import { scopeOf } from '../auth.js';

/** GET /v1/audit. Registered behind authentication. */
export const auditRoutes: FastifyPluginAsyncZod<{ readonly reads: ScopedReads }> = async (app, { reads }) => {
  app.get('/v1/audit', {
    schema: {
      tags: ['Audit'],
      summary: 'List changes',
      description:
        "Changes to the organization's records by its keys and from the command line, newest first. The gateway keeps the newest 10000.",
      querystring: auditQuerySchema,
      response: {
        200: fieldsAnswer('The changes', { entries: z.array(auditEntrySchema).readonly() }, { entries: [exampleOf(auditEntrySchema)] }),
      },
    },
    handler: async (request) => {
      const { take, before } = request.query;
      const query = { take: Number(take ?? DEFAULT_AUDIT_TAKE), ...(before === undefined ? {} : { before }) };
      const entries = await reads.audit(scopeOf(request), query);
      return { status: 'success' as const, entries };
    },
  });
  return Promise.resolve();
};

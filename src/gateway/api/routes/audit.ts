import { auditEntrySchema } from '../../model/audit-entry.js';
import { orgQuery } from '../schemas/page-query.js';
import { wholeNumber } from '../schemas/sip-api.js';
import type { RouteContext, ZodApp } from '../context.js';
import { z } from 'zod';
import { exampleOf, fieldsAnswer } from '../answers.js';
import { scopeOf } from '../auth.js';

const DEFAULT_AUDIT_TAKE = 100;

const auditQuerySchema = z.strictObject({
  take: wholeNumber(1, 1000, DEFAULT_AUDIT_TAKE),
  ...orgQuery,
  before: z
    .string()
    // Redis refuses 0-0, which no entry has.
    .regex(/^(?!0+-0+$)\d{1,15}-\d{1,15}$/, 'must be the id of an entry')
    .optional()
    .meta({ description: 'The `id` of an entry: list the entries before it', examples: ['1767225600000-0'] }),
});

/** GET /v1/audit. Registered behind authentication. */
export function auditRoutes(app: ZodApp, { reads }: RouteContext): void {
  app.get('/v1/audit', {
    schema: {
      operationId: 'listAuditEntries',
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
}

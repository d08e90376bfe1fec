import type { RouteContext, ZodApp } from '../context.js';
import { z } from 'zod';
import { uuid } from '../../model/described.js';
import { orgQuery } from '../schemas/page-query.js';
import { exampleOf, successAnswer } from '../answers.js';
import { isOperator, scopeOf } from '../auth.js';

const orgSchema = z.object({ org_id: uuid(), name: z.string(), sip_enabled: z.boolean(), disabled: z.boolean() }).meta({
  id: 'Organization',
  examples: [{ org_id: '0b0e7e0c-6f3f-4b0e-9a44-0a2f7a0f4b52', name: 'acme', sip_enabled: true, disabled: false }],
});

const answerSchema = z.object({
  status: z.literal('success'),
  operator: z.boolean().describe('Whether the key is an operator key, which reads all organizations and changes nothing'),
  organizations: z.array(orgSchema).readonly(),
});

/** GET /v1/organizations. Registered behind authentication. */
export function orgRoutes(app: ZodApp, { stores }: RouteContext): void {
  app.get('/v1/organizations', {
    schema: {
      operationId: 'listOrganizations',
      tags: ['Organizations'],
      summary: 'List the organizations of the key',
      description: "The key's organization; for an operator key, all organizations by name.",
      querystring: z.strictObject(orgQuery),
      response: {
        200: successAnswer('The organizations', answerSchema, {
          status: 'success',
          operator: false,
          organizations: [exampleOf(orgSchema)],
        }),
      },
    },
    handler: async (request) => {
      const scope = scopeOf(request);
      const orgs = scope === null ? await stores.orgs.list() : [await stores.orgs.get(scope)].filter((org) => org !== null);
      const organizations = orgs.map(({ org_id, name, sip_enabled, disabled }) => ({ org_id, name, sip_enabled, disabled }));
      return { status: 'success' as const, operator: isOperator(request), organizations };
    },
  });
}

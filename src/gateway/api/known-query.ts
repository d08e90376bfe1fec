import type { FastifyInstance, RouteOptions } from 'fastify';
import { z } from 'zod';
import { validationFailure } from './failure.js';

declare module 'fastify' {
  interface FastifyContextConfig {
    /** The route has fields of its body in the query, and refuses unknown ones itself. */
    readonly queryIsBody?: boolean;
  }
}

/**
 * Every route that is added from now on refuses parameters of the query that it does not know, or that come twice: a filter that is ignored shows, and lets
 * programs change, what nobody asked for. Pages and files for browsers are exempt.
 */
export function refuseUnknownQuery(app: FastifyInstance): void {
  app.addHook('preValidation', async ({ query }) => {
    const twice = Object.entries(query as Readonly<Record<string, unknown>>).filter(([, value]) => Array.isArray(value));
    if (twice.length === 0) return Promise.resolve();
    throw validationFailure(twice.map(([name]) => ({ error: 'VALIDATION', message: 'is given more than once', path: name.slice(0, 64) })));
  });
  app.addHook('onRoute', (route: RouteOptions) => {
    if (route.schema === undefined || route.schema.hide === true || route.config?.queryIsBody === true) return;
    const { querystring = z.object({}) } = route.schema;
    if (!(querystring instanceof z.ZodObject)) throw new Error(`the query of ${route.url} has a schema that is no object`);
    route.schema = { ...route.schema, querystring: querystring.strict() };
  });
}

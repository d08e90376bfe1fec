import type { FastifyInstance, RouteOptions } from 'fastify';
import { ApiFailure } from './failure.js';

/** What routes there are, to tell a wrong method from a wrong path. */
export interface RouteTable {
  /** The failure for a request that no route took. */
  failureFor(method: string, url: string): ApiFailure;
}

/** Starts noting every route that is added to `app` from now on. */
export function watchRoutes(app: FastifyInstance): RouteTable {
  const methods = new Map<string, Set<string>>();
  app.addHook('onRoute', (route: RouteOptions) => {
    const known = methods.get(route.url) ?? new Set<string>();
    for (const method of [route.method].flat()) known.add(method);
    methods.set(route.url, known);
  });
  return {
    failureFor(method, url) {
      const path = url.split('?', 1)[0] ?? '';
      const allowed = [...methods].filter(([pattern]) => matches(pattern, path)).flatMap(([, set]) => [...set]);
      // A route may take the request and then find nothing, as one for files does.
      if (allowed.length === 0 || allowed.includes(method)) return new ApiFailure('NOT_FOUND', 'No such route');
      const allow = [...new Set(allowed)].sort().join(', ');
      return new ApiFailure('METHOD_NOT_ALLOWED', `The methods of this route are ${allow}`, { headers: { allow } });
    },
  };
}

function matches(pattern: string, path: string): boolean {
  const escaped = pattern.replace(/[.+?^${}()|[\]\\]/g, '\\$&');
  const expression = escaped.replace(/:[A-Za-z_]\w*/g, '[^/]+').replace(/\*/g, '.*');
  return new RegExp(`^${expression}$`).test(path);
}

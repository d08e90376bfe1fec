import staticFiles from '@fastify/static';
import type { FastifyInstance, FastifyReply } from 'fastify';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { PAGE_HEADERS } from '../page-headers.js';

// The console: files that vite built. What it shows it asks the API for, with the key of who looks.

/** The name holds a hash of what is in it. */
const HASHED = /^assets\/[\w.-]+$/;

/** @param directory where the console was built; null, or empty: there is none, and a text says how it is made */
export async function consoleRoutes(app: FastifyInstance, { directory }: { readonly directory: string | null }): Promise<void> {
  const isBuilt = directory !== null && existsSync(join(directory, 'index.html'));
  if (isBuilt) await app.register(staticFiles, { root: directory, serve: false, cacheControl: false });
  app.get('/', { schema: { hide: true } }, (_request, reply) => reply.headers(PAGE_HEADERS).redirect('/console/'));
  app.get('/console', { schema: { hide: true } }, (_request, reply) => reply.headers(PAGE_HEADERS).redirect('/console/'));
  app.get<{ Params: { '*': string } }>('/console/*', { schema: { hide: true } }, (request, reply) => {
    if (!isBuilt) return notBuilt(reply);
    const path = request.params['*'];
    reply.headers(PAGE_HEADERS);
    // A path of the console itself, such as calls/<id>, which it reads when it runs.
    if (!HASHED.test(path)) return reply.header('cache-control', 'no-store').sendFile('index.html');
    return reply.header('cache-control', 'public, max-age=31536000, immutable').sendFile(path);
  });
}

function notBuilt(reply: FastifyReply): FastifyReply {
  return reply
    .code(404)
    .headers(PAGE_HEADERS)
    .type('text/plain; charset=utf-8')
    .send('The console is not in this build. In a checkout, scripts/build makes it.\n');
}

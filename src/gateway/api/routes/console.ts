import type { FastifyInstance, FastifyReply } from 'fastify';
import { readdirSync, readFileSync } from 'node:fs';
import { extname, join } from 'node:path';

// The console: files that vite built. What it shows it asks the API for, with the key of who looks.

const TYPES: Readonly<Record<string, string>> = {
  '.css': 'text/css; charset=utf-8',
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.svg': 'image/svg+xml',
};
const INDEX = 'index.html';

interface BuiltFile {
  readonly body: Buffer;
  readonly type: string;
}

/** @param directory where the console was built; null, or empty: there is none, and a text says how it is made */
export function consoleRoutes(app: FastifyInstance, { directory }: { readonly directory: string | null }, done: () => void): void {
  let files: ReadonlyMap<string, BuiltFile> | undefined;
  app.get('/', { schema: { hide: true } }, (_request, reply) => reply.headers(PAGE_HEADERS).redirect('/console/'));
  app.get('/console', { schema: { hide: true } }, (_request, reply) => reply.headers(PAGE_HEADERS).redirect('/console/'));
  app.get<{ Params: { '*': string } }>('/console/*', { schema: { hide: true } }, (request, reply) => {
    files ??= builtFiles(directory);
    const path = request.params['*'];
    // The name of an asset holds a hash of what is in it.
    const isHashed = path.startsWith('assets/');
    // Any other path is one of the console itself, such as calls/<id>, which it reads when it runs.
    const file = files.get(isHashed ? path : INDEX);
    if (!files.has(INDEX)) return notBuilt(reply);
    if (file === undefined) {
      reply.callNotFound();
      return reply;
    }
    return reply
      .headers(PAGE_HEADERS)
      .header('cache-control', isHashed ? 'public, max-age=31536000, immutable' : 'no-store')
      .type(file.type)
      .send(file.body);
  });
  done();
}

/** The console's files by their paths: few, and small. Nothing else of the directory can be asked for. */
function builtFiles(directory: string | null): ReadonlyMap<string, BuiltFile> {
  if (directory === null) return new Map();
  try {
    const paths = [INDEX, ...readdirSync(join(directory, 'assets')).map((name) => `assets/${name}`)];
    const typed = paths.flatMap((path) => {
      const type = TYPES[extname(path)];
      return type === undefined ? [] : [[path, { body: readFileSync(join(directory, path)), type }] as const];
    });
    return new Map(typed);
  } catch {
    return new Map();
  }
}

function notBuilt(reply: FastifyReply): FastifyReply {
  return reply
    .code(404)
    .headers(PAGE_HEADERS)
    .type('text/plain; charset=utf-8')
    .send('The console is not in this build. In a checkout, scripts/build makes it.\n');
}

/** Nothing but what this server has, and nothing inline: an answer of the API that is shown as text stays text. */
export const CONTENT_SECURITY_POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; font-src 'self'; " +
  "base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
/** Headers of every page and file for browsers. */
export const PAGE_HEADERS = {
  'content-security-policy': CONTENT_SECURITY_POLICY,
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  'cross-origin-opener-policy': 'same-origin',
};

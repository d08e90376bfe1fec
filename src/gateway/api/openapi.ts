import { createHash } from 'node:crypto';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import swagger from '@fastify/swagger';
import swaggerUi from '@fastify/swagger-ui';
import type { FastifyInstance, FastifyReply, FastifyRequest, RouteOptions } from 'fastify';
import { jsonSchemaTransformObject, jsonSchemaTransform } from 'fastify-type-provider-zod';
import { z } from 'zod';
import { API_ERRORS } from './schemas/api-error.js';
import { failureAnswers, successAnswer } from './answers.js';
import { CSV_TYPE, shapeDocument, type Json, type OpenapiDocument, type Shape } from './openapi-shape.js';
import { isTwilioUrl } from './twilio-failure.js';
import { CONTENT_SECURITY_POLICY, PAGE_HEADERS } from './routes/console.js';

const zip = promisify(gzip);

interface Header extends Json {
  readonly type: 'string' | 'integer';
  readonly description: string;
  readonly examples?: readonly unknown[];
}
type Headers = Readonly<Record<string, Header>>;

const EVERY: Headers = {
  'x-request-id': {
    type: 'string',
    description: "The request's own id if it is up to 64 of `A-Za-z0-9._-`, else a new one; the request's log line has it too",
    examples: ['0f1d3c5e-6a53-4c53-9f5b-0f0d8a2d1c11'],
  },
};
const LIMITED: Headers = {
  'ratelimit-limit': { type: 'integer', description: 'Requests a minute under the limit closest to exhaustion', examples: [6000] },
  'ratelimit-remaining': { type: 'integer', description: 'Remaining requests', examples: [5999] },
  'ratelimit-reset': { type: 'integer', description: 'Seconds until the limit resets', examples: [60] },
};
const RETRY_AFTER: Headers = { 'retry-after': { type: 'integer', description: 'Seconds to wait before a retry', examples: [2] } };
const DOCUMENT_ETAG: Headers = {
  etag: { type: 'string', description: 'The version of the document, for `if-none-match`', examples: ['"f0XKQ3m5pQ1m6c2Zr8hT9w"'] },
};
const BY_STATUS: Readonly<Record<string, Headers>> = {
  401: { 'www-authenticate': { type: 'string', description: 'Always `Bearer`', examples: ['Bearer'] } },
  429: RETRY_AFTER,
  503: RETRY_AFTER,
};

interface Described {
  readonly headers?: Headers;
}
type Answers = Readonly<Record<string, Described>>;

/** The document with the routes of this API, or the one with Twilio's. */
type Kind = 'own' | 'twilio';

/** The route's schemas as JSON Schema, with the headers of its answers; a route of the other document is hidden. @param optionalBodies gets the ids of the operations that need no body */
function describeRoute(kind: Kind, optionalBodies: Set<string>): typeof jsonSchemaTransform {
  return (document) => {
    const { schema, url } = jsonSchemaTransform(document);
    if (isTwilioUrl(url) !== (kind === 'twilio')) return { schema: { ...schema, hide: true }, url };
    const { body } = document.schema;
    if (body instanceof z.ZodType && body.safeParse(undefined).success) optionalBodies.add(String(schema.operationId));
    const csv = document.route.config?.csv;
    if (csv !== undefined)
      schema.body = { content: { 'application/json': { schema: schema.body }, [CSV_TYPE]: { schema: { type: 'string', ...csv } } } };
    if (schema.response === undefined) return { schema, url };
    const given = document.schema.response as Answers;
    const response = Object.entries(schema.response as Answers).map(([status, answer]) => {
      return [status, { ...answer, headers: { ...headersOf(status, document.route), ...given[status]?.headers } }];
    });
    return { schema: { ...schema, response: Object.fromEntries(response) as Answers }, url };
  };
}

function headersOf(status: string, { config }: RouteOptions): Headers {
  return config?.unlimited === true ? EVERY : { ...EVERY, ...LIMITED, ...BY_STATUS[status] };
}

/** The console's own, which its pages have as a file. */
const LOGO =
  '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32" width="32" height="32"><rect width="32" height="32" rx="7" fill="#0f6e5c"/>' +
  '<path d="M6 11h20M6 21h20M11 6v20M21 16v10M21 6v5" stroke="#fff" stroke-width="2.6" stroke-linecap="round" fill="none"/></svg>';

/** As the console's, but for styles and pictures, which Swagger UI writes into its page. */
const DOCS_POLICY = CONTENT_SECURITY_POLICY.replace("style-src 'self'", "style-src 'self' 'unsafe-inline'").replace(
  "img-src 'self'",
  "img-src 'self' data:",
);

const DESCRIPTION = `Routes the calls of a phone number to a voice agent.

Every request carries an API key in the \`authorization\` header, raw or after \`Bearer\`. Every answer has the header
\`x-request-id\`. Every failure has the shape of the schema \`Error\`, with one of these
codes in \`errors[].error\`:

| status | code | |
|---|---|---|
${Object.entries(API_ERRORS)
  .map(([code, [status, meaning]]) => `| ${String(status)} | \`${code}\` | ${meaning} |`)
  .join('\n')}

Bodies must have no other fields than those listed. Answers may get further fields in a later version, so programs should ignore those that
they do not know.

\`/openapi-twilio.json\` describes the routes that applications use with Twilio's libraries. They have Twilio's form, and HTTP Basic in place of
the key.`;

const TWILIO_DESCRIPTION = `The part of Twilio's REST API that applications use for calls, for Twilio's own libraries: set their base URL to this
gateway. \`trunkline org twilio-token\` prints the account SID and the token. \`/openapi.json\` describes Trunkline's own routes.`;

const TAGS = [
  { name: 'SIP', description: 'SIP routing of phone numbers' },
  { name: 'Agents', description: 'Agents, which answer calls' },
  { name: 'Tools', description: 'HTTP APIs that agents may call' },
  { name: 'Batches', description: 'Batches of calls and their logs' },
  { name: 'Calls', description: 'Calls in progress and ended, with traces and quality' },
  { name: 'Webhooks', description: 'Webhooks that were given up' },
  { name: 'Audit', description: 'Audit log of changes' },
  { name: 'Organizations', description: 'The organizations of the API key' },
  { name: 'Health', description: 'For load balancers and supervisors' },
  { name: 'Documentation', description: 'This document' },
];

const API_KEY = { type: 'apiKey', in: 'header', name: 'authorization', description: 'The API key, raw or after `Bearer `' } as const;
const BASIC = {
  type: 'http',
  scheme: 'basic',
  description: "User: the organization's account SID (`AC…`). Password: its Twilio token. API keys open none of these routes",
} as const;

/** Headers as the generator of the document writes those of routes. */
function written(headers: Headers): Readonly<Record<string, Json>> {
  return Object.fromEntries(Object.entries(headers).map(([name, { description, ...schema }]) => [name, { schema, description }]));
}

/** Failures that may come for any request, before a route has it. */
const everywhere = (schema: Json): Shape['everywhere'] => ({
  MethodNotAllowed: {
    status: 405,
    description: '`METHOD_NOT_ALLOWED`: The route does not have this method',
    headers: written({ ...EVERY, allow: { type: 'string', description: 'The methods of the route', examples: ['GET, HEAD'] } }),
    content: { 'application/json': { schema } },
  },
  RequestTimeout: {
    status: 408,
    description: '`REQUEST_TIMEOUT`: The request did not arrive in time',
    headers: written(EVERY),
    content: { 'application/json': { schema } },
  },
  HeadersTooLarge: {
    status: 431,
    description: '`TOO_LARGE`: The headers are larger than 16 KiB',
    headers: written(EVERY),
    content: { 'application/json': { schema } },
  },
});

const OWN = {
  // The pages for people look for this one.
  decorator: 'swagger',
  title: 'Trunkline',
  description: DESCRIPTION,
  tags: TAGS,
  securitySchemes: { apiKey: API_KEY },
  everywhere: everywhere({ $ref: '#/components/schemas/Error' }),
} as const;

const TWILIOS = {
  decorator: 'twilioDocument',
  title: "Trunkline: Twilio's routes",
  description: TWILIO_DESCRIPTION,
  tags: TAGS.filter(({ name }) => name === 'Calls'),
  securitySchemes: { basic: BASIC },
  everywhere: everywhere({ $ref: '#/components/schemas/TwilioError' }),
} as const;

declare module 'fastify' {
  interface FastifyInstance {
    twilioDocument: () => object;
  }
  interface FastifyContextConfig {
    /** The route takes CSV in place of JSON: what the document says of it. */
    readonly csv?: { readonly description: string; readonly examples: readonly string[] };
  }
}

/** Collects the schemas of the routes that are added from now on. Call `openapiRoutes` when all of them are there. */
export async function collectOpenapi(app: FastifyInstance, version: string): Promise<void> {
  for (const [kind, { decorator, title, description, tags, securitySchemes, everywhere: answers }] of [
    ['own', OWN],
    ['twilio', TWILIOS],
  ] as const) {
    const optionalBodies = new Set<string>();
    await app.register(swagger, {
      decorator,
      openapi: {
        openapi: '3.1.0',
        info: { title, version, description, license: { name: 'MIT', identifier: 'MIT' } },
        servers: [{ url: '/', description: 'This gateway' }],
        tags: [...tags],
        components: { securitySchemes },
      },
      transform: describeRoute(kind, optionalBodies),
      transformObject: (document) => {
        const used = withoutUnusedSchemas(jsonSchemaTransformObject(document));
        return shapeDocument(used as unknown as OpenapiDocument, { optionalBodies, everywhere: answers });
      },
    } as Parameters<typeof swagger>[1]);
  }
}

/** A document as it is sent: it does not change while the process runs. */
interface SentDocument {
  readonly plain: Buffer;
  readonly zipped: Buffer;
  readonly etag: string;
}

async function sentDocument(document: object): Promise<SentDocument> {
  const plain = Buffer.from(JSON.stringify(document));
  const etag = `"${createHash('sha256').update(plain).digest('base64url').slice(0, 22)}"`;
  return { plain, zipped: await zip(plain), etag };
}

/** GET /openapi.json, /openapi-twilio.json and the pages for people at /docs. */
export async function openapiRoutes(app: FastifyInstance): Promise<void> {
  documentRoute(app, '/openapi.json', 'getOpenapi', 'This document', () => app.swagger());
  documentRoute(app, '/openapi-twilio.json', 'getTwilioOpenapi', "The document of Twilio's routes", () => app.twilioDocument());
  await app.register(async (docs) => {
    docs.addHook('onRequest', async (_request, reply) => {
      reply.headers({ ...PAGE_HEADERS, 'content-security-policy': DOCS_POLICY });
      return Promise.resolve();
    });
    const content = Buffer.from(LOGO);
    const favicon = [{ filename: 'icon.svg', rel: 'icon', sizes: 'any', type: 'image/svg+xml', content }];
    await docs.register(swaggerUi, {
      routePrefix: '/docs',
      logo: { type: 'image/svg+xml', content, href: '/docs', target: '_self' },
      theme: { title: 'Trunkline: the control API', favicon },
    });
  });
}

function documentRoute(app: FastifyInstance, url: string, operationId: string, summary: string, document: () => object): void {
  let sent: Promise<SentDocument> | null = null;
  app.get(url, {
    schema: {
      operationId,
      tags: ['Documentation'],
      security: [],
      summary,
      description:
        'Generated from the schemas that validate requests. The answer has an `etag`, for `if-none-match`, and is compressed where the client takes gzip.',
      response: {
        200: { ...successAnswer('OpenAPI 3.1', z.looseObject({ openapi: z.string() }), { openapi: '3.1.0' }), headers: DOCUMENT_ETAG },
        ...failureAnswers(['RATE_LIMITED', 'INTERNAL']),
      },
    },
    handler: async (request: FastifyRequest, reply: FastifyReply) => {
      sent ??= sentDocument(document());
      const { plain, zipped, etag } = await sent;
      reply.headers({ etag, vary: 'accept-encoding' });
      if (isNamed(etag, request.headers['if-none-match'])) return reply.code(304).send();
      reply.type('application/json; charset=utf-8');
      return takesGzip(request.headers['accept-encoding']) ? reply.header('content-encoding', 'gzip').send(zipped) : reply.send(plain);
    },
  });
}

/** Whether an `if-none-match` names the tag, weak or not (RFC 9110 §13.1.2). */
function isNamed(etag: string, header = ''): boolean {
  return header.trim() === '*' || header.split(',').some((tag) => tag.trim().replace(/^W\//, '') === etag);
}

/** Whether an `accept-encoding` has gzip, and not with a weight of 0 (RFC 9110 §12.5.3). */
function takesGzip(header = ''): boolean {
  return header.split(',').some((coding) => /^\s*gzip\s*(?:;\s*q=(?!0(?:\.0*)?\s*$).*)?$/i.test(coding));
}

/** The generator makes an input and an output form of every named schema; most documents need one of them. */
function withoutUnusedSchemas<T extends object>(document: T): T {
  const components: unknown = 'components' in document ? document.components : undefined;
  if (typeof components !== 'object' || components === null || !('schemas' in components)) return document;
  const schemas = Object.entries(components.schemas ?? {});
  let used: typeof schemas = [];
  let text = JSON.stringify({ ...document, components: null });
  for (;;) {
    const known = schemas.filter(([name]) => text.includes(`"#/components/schemas/${name}"`));
    if (known.length === used.length) break;
    used = known;
    // What they refer to is used too.
    text += JSON.stringify(used);
  }
  return { ...document, components: { ...components, schemas: Object.fromEntries(used) } };
}

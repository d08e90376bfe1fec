import swagger from '@fastify/swagger';
import swaggerUi from '@fastify/swagger-ui';
import type { FastifyInstance, RouteOptions } from 'fastify';
import { jsonSchemaTransformObject, jsonSchemaTransform } from 'fastify-type-provider-zod';
import { z } from 'zod';
import { API_ERRORS } from './schemas/api-error.js';
import { failureAnswers, successAnswer } from './answers.js';
import { CONTENT_SECURITY_POLICY, PAGE_HEADERS } from './routes/console.js';

interface Header {
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
const BY_STATUS: Readonly<Record<string, Headers>> = {
  401: { 'www-authenticate': { type: 'string', description: 'Always `Bearer`', examples: ['Bearer'] } },
  429: RETRY_AFTER,
  503: RETRY_AFTER,
};

interface Described {
  readonly headers?: Headers;
}
type Answers = Readonly<Record<string, Described>>;

/** The route's schemas as JSON Schema, with the headers of its answers. */
const describeRoute: typeof jsonSchemaTransform = (document) => {
  const { schema: made, url } = jsonSchemaTransform(document);
  const schema = { operationId: operationIdOf(document.route.method, url), ...made };
  if (schema.response === undefined) return { schema, url };
  const given = document.schema.response as Answers;
  const response = Object.entries(schema.response as Answers).map(([status, answer]) => {
    return [status, { ...answer, headers: { ...headersOf(status, document.route), ...given[status]?.headers } }];
  });
  return { schema: { ...schema, response: Object.fromEntries(response) as Answers }, url };
};

/** `getV1AgentsAgentId`: the same as long as the route is. A route may have a name of its own. */
function operationIdOf(method: string | readonly string[], url: string): string {
  const words = url.split(/[^A-Za-z0-9]+/).filter((word) => word !== '');
  const name = words.map((word) => word.charAt(0).toUpperCase() + word.slice(1)).join('');
  return `${String(method).toLowerCase()}${name}`;
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

One operation, which ends calls for bots written for Twilio, uses Twilio's form and HTTP Basic instead of the key.

Each operation lists its failures. \`NOT_FOUND\`, \`METHOD_NOT_ALLOWED\` and \`REQUEST_TIMEOUT\` may come for any request; headers over
16 KiB are answered with 431 \`TOO_LARGE\`.`;

/** Collects the schemas of the routes that are added from now on. Call \`openapiRoutes\` when all of them are there. */
export async function collectOpenapi(app: FastifyInstance, version: string): Promise<void> {
  await app.register(swagger, {
    openapi: {
      openapi: '3.1.0',
      info: { title: 'Trunkline', version, description: DESCRIPTION },
      servers: [{ url: '/', description: 'This gateway' }],
      tags: [
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
      ],
      components: {
        securitySchemes: {
          apiKey: { type: 'apiKey', in: 'header', name: 'authorization', description: 'The API key, raw or after `Bearer `' },
          basic: {
            type: 'http',
            scheme: 'basic',
            description: "User: the organization's id or its account `AC…`. Password: one of its API keys",
          },
        },
      },
    },
    transform: describeRoute,
    transformObject: (document) => withoutUnusedSchemas(jsonSchemaTransformObject(document)),
  });
}

/** GET /openapi.json and the pages for people at /docs. */
export async function openapiRoutes(app: FastifyInstance): Promise<void> {
  app.get('/openapi.json', {
    schema: {
      tags: ['Documentation'],
      security: [],
      summary: 'This document',
      description: 'Generated from the schemas that validate requests. `/docs` shows it as pages.',
      response: {
        200: successAnswer('OpenAPI 3.1', z.looseObject({ openapi: z.string() }), { openapi: '3.1.0' }),
        ...failureAnswers(['RATE_LIMITED', 'INTERNAL']),
      },
    },
    handler: () => app.swagger(),
  });
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

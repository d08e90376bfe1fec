import type { RouteOptions } from 'fastify';
import { jsonSchemaTransform } from 'fastify-type-provider-zod';

// Headers of answers, which the generator takes from nowhere but the route's JSON schema.

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
export const describeRoute: typeof jsonSchemaTransform = (document) => {
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

import type { RouteOptions } from 'fastify';
import { z } from 'zod';
import { API_ERROR_STATUS, errorEnvelopeSchema, type ApiErrorCode } from './schemas/api-error.js';

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Failures of a route behind authentication that the others do not have. */
    failures?: readonly ApiErrorCode[];
  }
}

export const MEANING: Record<ApiErrorCode, string> = {
  VALIDATION: 'A field or the whole body is not valid',
  UNAUTHENTICATED: 'The API key is missing or not valid',
  SIP_NOT_ENABLED: 'The organization does not have SIP enabled',
  ORG_DISABLED: 'The organization is disabled',
  READ_ONLY_KEY: 'An operator key cannot change anything',
  NOT_FOUND: 'Not found, or another organization owns it',
  METHOD_NOT_ALLOWED: 'The route does not have this method; the allow header lists its methods',
  REQUEST_TIMEOUT: 'The request did not arrive in time',
  NUMBER_TAKEN: 'The number belongs to another organization',
  AGENT_IN_USE: 'A number uses the agent',
  TOOL_IN_USE: 'Agents use the tool; the message lists their ids',
  LIMIT_REACHED: 'The organization has reached its limit',
  PRECONDITION_FAILED: 'The if-match header does not match',
  TOO_LARGE: 'The body is larger than 256 KiB',
  UNSUPPORTED_MEDIA_TYPE: 'The body is not application/json',
  RATE_LIMITED: 'Too many requests; retry after the seconds in the retry-after header',
  INTERNAL: 'The service failed; the message contains the request id',
  TOOL_FAILED: 'The tool is unreachable or its answer is unusable; the message explains it',
  TOOL_TIMEOUT: 'The tool did not answer in time',
  STORE_UNAVAILABLE: 'The store does not answer; retry after the seconds in the retry-after header',
  GATEWAY_UNAVAILABLE: 'The gateway with the call does not answer; retry after the seconds in the retry-after header',
  NOT_READY: 'A part of the service is not ready',
};

const ETAG = {
  etag: { type: 'string', description: 'The version of the record, for `if-match`', examples: ['"2026-01-01T00:00:00.000Z"'] },
};

/** Failures of every route behind authentication. */
const COMMON: readonly ApiErrorCode[] = ['UNAUTHENTICATED', 'ORG_DISABLED', 'RATE_LIMITED', 'INTERNAL', 'STORE_UNAVAILABLE', 'VALIDATION'];
/** And of every one of them with a body. */
const OF_BODIES: readonly ApiErrorCode[] = ['TOO_LARGE', 'UNSUPPORTED_MEDIA_TYPE'];

/**
 * `onRoute` hook for the routes behind authentication: their schemas get the API key, and the failures that they share beside those in
 * `config.failures`. What a schema has already stays.
 */
export function describeKeyedRoute(route: RouteOptions): void {
  const { schema = {}, config } = route;
  const codes = [...COMMON, ...(schema.body === undefined ? [] : OF_BODIES), ...(config?.failures ?? [])];
  const response = { ...failureAnswers(codes), ...(schema.response as object | undefined) };
  route.schema = { security: [{ apiKey: [] }], ...schema, response };
}

/** The response entries of a route's schema for the failures it may answer with, by status. */
export function failureAnswers(codes: readonly ApiErrorCode[], schema: typeof errorEnvelopeSchema = errorEnvelopeSchema) {
  const byStatus = new Map<number, ApiErrorCode[]>();
  for (const code of codes) byStatus.set(API_ERROR_STATUS[code], [...(byStatus.get(API_ERROR_STATUS[code]) ?? []), code]);
  return Object.fromEntries([...byStatus].map(([status, list]) => [status, answer(list, schema)]));
}

function answer(codes: readonly ApiErrorCode[], schema: typeof errorEnvelopeSchema) {
  return {
    description: codes.map((code) => `\`${code}\`: ${MEANING[code]}`).join('. '),
    content: { 'application/json': { schema } },
  };
}

/** A successful answer for a route's schema. @param example where the schema has none of its own */
export function successAnswer<T extends z.ZodType>(description: string, schema: T, example?: z.output<T>) {
  const shown = example === undefined ? schema : schema.meta({ examples: [example] });
  return { description, content: { 'application/json': { schema: shown } } };
}

/** A successful answer that has these fields beside its `status`. */
export function fieldsAnswer<T extends z.ZodRawShape>(description: string, fields: T, example: z.output<z.ZodObject<T>>) {
  const schema = z.object({ status: z.literal('success'), ...fields });
  return successAnswer(description, schema.meta({ examples: [{ status: 'success', ...example }] }));
}

/** A successful answer that is a sentence. */
export function messageAnswer(description: string, example: string) {
  return fieldsAnswer(description, { message: z.string() }, { message: example });
}

/** `data` as the /sip and /v2 routes and the probes answer it. */
export function success<T>(data: T): { readonly status: 'success'; readonly data: T; readonly errors: null } {
  return { status: 'success', data, errors: null };
}

/** The schema of `success`. */
export function successSchema<T extends z.ZodType>(data: T) {
  return z.object({ status: z.literal('success'), data, errors: z.null() });
}

/** As `fieldsAnswer`, for `success`. */
export function dataAnswer<T extends z.ZodType>(description: string, data: T, example: z.output<T>) {
  return successAnswer(description, successSchema(data).meta({ examples: [success(example)] }));
}

/** A successful answer that holds one record, whose version is in its headers. */
export function recordAnswer<T extends z.ZodType>(description: string, schema: T, example?: z.output<T>) {
  return { ...successAnswer(description, schema, example), headers: ETAG };
}

/** What a named schema shows as its first example. */
export function exampleOf<T extends z.ZodType>(schema: T): z.output<T> {
  return schema.parse(Object.values(schema.meta()?.examples ?? {})[0]);
}

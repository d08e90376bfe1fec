import type { RouteOptions } from 'fastify';
import { z } from 'zod';
import { API_ERRORS, errorEnvelopeSchema, type ApiErrorCode } from './schemas/api-error.js';

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Failures of a route behind authentication that the others do not have. */
    failures?: readonly ApiErrorCode[];
  }
}

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
  const statusOf = (code: ApiErrorCode): number => API_ERRORS[code][0];
  return Object.fromEntries(
    codes.map(statusOf).map((status) => {
      const meanings = codes.filter((code) => statusOf(code) === status).map((code) => `\`${code}\`: ${API_ERRORS[code][1]}`);
      return [status, { description: meanings.join('. '), content: { 'application/json': { schema } } }];
    }),
  );
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

/** What is null in each success; a list in failures. */
const nothing = z.null().meta({ type: ['array', 'null'], items: {}, description: 'Always null' });

/** The schema of `success`. */
export function successSchema<T extends z.ZodType>(data: T) {
  return z.object({ status: z.literal('success'), data, errors: nothing });
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

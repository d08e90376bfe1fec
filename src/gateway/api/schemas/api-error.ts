import { z } from 'zod';

/** Every code that an HTTP answer's `errors[].error` may carry, with its HTTP status and its meaning. */
export const API_ERRORS = {
  VALIDATION: [400, 'A field or the whole body is not valid'],
  UNAUTHENTICATED: [401, 'The API key is missing or not valid'],
  SIP_NOT_ENABLED: [403, 'The organization does not have SIP enabled'],
  ORG_DISABLED: [403, 'The organization is disabled'],
  DIAL_NOT_ALLOWED: [403, 'The organization may not place this call; the message explains it'],
  READ_ONLY_KEY: [403, 'An operator key cannot change anything'],
  NOT_FOUND: [404, 'Not found, or another organization owns it'],
  METHOD_NOT_ALLOWED: [405, 'The route does not have this method; the allow header lists its methods'],
  REQUEST_TIMEOUT: [408, 'The request did not arrive in time'],
  NUMBER_TAKEN: [409, 'The number belongs to another organization'],
  AGENT_IN_USE: [409, 'A number uses the agent'],
  TOOL_IN_USE: [409, 'Agents use the tool; the message lists their ids'],
  IDEMPOTENCY_KEY_REUSED: [409, 'The idempotency-key belongs to a request with another body'],
  BATCH_STATE: [409, 'The state of the batch does not allow this; the message names it'],
  LIMIT_REACHED: [409, 'The organization has reached its limit'],
  PRECONDITION_FAILED: [412, 'The if-match header does not match'],
  TOO_LARGE: [413, 'The body is larger than the route accepts: 256 KiB, or 8 MiB for a batch'],
  UNSUPPORTED_MEDIA_TYPE: [415, 'The body is not application/json'],
  EXPECTATION_FAILED: [417, 'The gateway meets no expectation of the expect header but 100-continue'],
  RATE_LIMITED: [429, 'Too many requests; retry after the seconds in the retry-after header'],
  INTERNAL: [500, 'The service failed; the message contains the request id'],
  TOOL_FAILED: [502, 'The tool is unreachable or its answer is unusable; the message explains it'],
  STORE_UNAVAILABLE: [503, 'The store does not answer; retry after the seconds in the retry-after header'],
  GATEWAY_UNAVAILABLE: [503, 'The gateway with the call does not answer; retry after the seconds in the retry-after header'],
  NOT_READY: [503, 'A part of the service is not ready'],
  TOOL_TIMEOUT: [504, 'The tool did not answer in time'],
} as const satisfies Record<string, readonly [status: number, meaning: string]>;

export type ApiErrorCode = keyof typeof API_ERRORS;

const CODES = Object.keys(API_ERRORS) as [ApiErrorCode, ...ApiErrorCode[]];

const entrySchema = z
  .object({
    error: z.enum(CODES).describe('Code for programs'),
    message: z.string().describe('Explanation for people'),
    path: z.string().optional().describe('Path of the field; only on validation errors'),
  })
  .meta({ title: 'ErrorEntry' });

export const errorEnvelopeSchema = z
  .object({
    status: z.literal('error'),
    message: z.string(),
    data: z.null().meta({ type: ['object', 'null'], description: 'Always null' }),
    errors: z.array(entrySchema).readonly(),
  })
  .meta({
    id: 'Error',
    description: 'The answer to every failed request',
    examples: [
      {
        status: 'error',
        message: 'The request is not valid: directions[0] must be "inbound" or "outbound"',
        data: null,
        errors: [{ error: 'VALIDATION', message: 'must be "inbound" or "outbound"', path: 'directions[0]' }],
      },
    ],
  });

/** One entry of `errors`. `path` stands on validation errors only: `directions[0]`, `options.allowed_sources[1]`. */
export type ApiErrorEntry = Readonly<z.output<typeof entrySchema>>;

/** The body of every answer that is no success. */
export type ErrorEnvelope = Readonly<z.output<typeof errorEnvelopeSchema>>;

/** The envelope with one entry, or with the entries given. */
export function errorEnvelope(code: ApiErrorCode, message: string, errors?: readonly ApiErrorEntry[]): ErrorEnvelope {
  return { status: 'error', message, data: null, errors: errors ?? [{ error: code, message }] };
}

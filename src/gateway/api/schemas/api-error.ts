import { z } from 'zod';

/** Every code that an HTTP answer's `errors[].error` may carry, with its HTTP status. */
export const API_ERROR_STATUS = {
  VALIDATION: 400,
  UNAUTHENTICATED: 401,
  SIP_NOT_ENABLED: 403,
  ORG_DISABLED: 403,
  READ_ONLY_KEY: 403,
  NOT_FOUND: 404,
  METHOD_NOT_ALLOWED: 405,
  REQUEST_TIMEOUT: 408,
  NUMBER_TAKEN: 409,
  AGENT_IN_USE: 409,
  TOOL_IN_USE: 409,
  LIMIT_REACHED: 409,
  PRECONDITION_FAILED: 412,
  TOO_LARGE: 413,
  UNSUPPORTED_MEDIA_TYPE: 415,
  RATE_LIMITED: 429,
  INTERNAL: 500,
  TOOL_FAILED: 502,
  STORE_UNAVAILABLE: 503,
  GATEWAY_UNAVAILABLE: 503,
  NOT_READY: 503,
  TOOL_TIMEOUT: 504,
} as const satisfies Record<string, number>;

export type ApiErrorCode = keyof typeof API_ERROR_STATUS;

const CODES = Object.keys(API_ERROR_STATUS) as [ApiErrorCode, ...ApiErrorCode[]];

const entrySchema = z.object({
  error: z.enum(CODES).describe('Code for programs'),
  message: z.string().describe('Explanation for people'),
  path: z.string().optional().describe('Path of the field; only on validation errors'),
});

export const errorEnvelopeSchema = z
  .object({
    status: z.literal('error'),
    message: z.string(),
    data: z.null(),
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

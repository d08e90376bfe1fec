import type { components } from './types.js';

export type ApiErrorEntry = components['schemas']['Error']['errors'][number];
type Envelope = components['schemas']['Error'];

interface Facts {
  readonly status: number;
  readonly code: string;
  readonly errors?: readonly ApiErrorEntry[];
  readonly requestId?: string | null;
  readonly retryAfterSeconds?: number | null;
  readonly cause?: unknown;
}

/** A request that failed, for whatever reason; the message is a sentence for a person. */
export class ApiError extends Error {
  override readonly name = 'ApiError';
  /** HTTP status; 0: no answer. */
  readonly status: number;
  /** The first of `errors`. `TIMEOUT`, `UNREACHABLE`: no answer. `BAD_ANSWER`: not an answer of this API. */
  readonly code: string;
  /** On `VALIDATION` one for each bad field. */
  readonly errors: readonly ApiErrorEntry[];
  /** As the service logged it; `null`: it did not say. */
  readonly requestId: string | null;
  /** `null`: it did not say. */
  readonly retryAfterSeconds: number | null;

  constructor(message: string, { status, code, errors = [], requestId = null, retryAfterSeconds = null, cause }: Facts) {
    super(message, { cause });
    this.status = status;
    this.code = code;
    this.errors = errors;
    this.requestId = requestId;
    this.retryAfterSeconds = retryAfterSeconds;
  }
}

/** The error of a response with a status other than 2xx. */
export function refusal(response: Response, body: unknown): ApiError {
  const { status, headers } = response;
  const retryAfter = headers.get('retry-after');
  const facts = {
    status,
    requestId: headers.get('x-request-id'),
    retryAfterSeconds: retryAfter !== null && /^\d{1,9}$/.test(retryAfter) ? Number(retryAfter) : null,
  };
  if (!isEnvelope(body)) return new ApiError(`The server answered ${String(status)} and is no Trunkline`, { ...facts, code: 'BAD_ANSWER' });
  return new ApiError(body.message, { ...facts, code: body.errors[0]?.error ?? 'BAD_ANSWER', errors: body.errors });
}

function isEnvelope(body: unknown): body is Envelope {
  return (
    typeof body === 'object' &&
    body !== null &&
    'message' in body &&
    typeof body.message === 'string' &&
    'errors' in body &&
    Array.isArray(body.errors)
  );
}

/** The failure of a request that got no answer, or half of one. */
export function brokenRequest(cause: unknown, timeoutMs: number): ApiError {
  const name = cause instanceof Error ? cause.name : '';
  if (name === 'TimeoutError') return new ApiError(`No answer within ${String(timeoutMs / 1000)} s`, { status: 0, code: 'TIMEOUT', cause });
  if (name === 'SyntaxError') return new ApiError('The answer is not JSON', { status: 0, code: 'BAD_ANSWER', cause });
  return new ApiError('The server cannot be reached', { status: 0, code: 'UNREACHABLE', cause });
}

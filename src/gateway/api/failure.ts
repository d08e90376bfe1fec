import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { newUuid } from '../../lib/ids.js';
import { API_ERRORS, errorEnvelope, type ApiErrorCode, type ApiErrorEntry, type ErrorEnvelope } from './schemas/api-error.js';
import { StoreUnavailableError } from '../ports/ports.js';

interface RawFailure {
  readonly status: string;
  readonly code: ApiErrorCode;
  readonly message: string;
}

const MALFORMED: RawFailure = { status: `${API_ERRORS.VALIDATION[0]} Bad Request`, code: 'VALIDATION', message: 'This is not HTTP' };
const BY_ERROR_CODE: Readonly<Record<string, RawFailure>> = {
  HPE_HEADER_OVERFLOW: { status: '431 Request Header Fields Too Large', code: 'TOO_LARGE', message: 'The headers are too large' },
  ERR_HTTP_REQUEST_TIMEOUT: {
    status: `${API_ERRORS.REQUEST_TIMEOUT[0]} Request Timeout`,
    code: 'REQUEST_TIMEOUT',
    message: 'The request did not arrive in time',
  },
};

/** Answers a request whose `expect` header asks for something that no server here does (RFC 9110 §10.1.1). */
export function answerExpectation(requestId: string, response: ServerResponse): void {
  const body = JSON.stringify(errorEnvelope('EXPECTATION_FAILED', 'The expect header may only be 100-continue'));
  const headers = { 'content-type': 'application/json; charset=utf-8', 'x-request-id': requestId, connection: 'close' };
  response.writeHead(API_ERRORS.EXPECTATION_FAILED[0], headers).end(body);
}

/** Answers what never became a request, in the shape of any other failure, and closes the connection. */
export function answerClientError(error: Error & { readonly code?: string }, socket: Socket): void {
  if (error.code === 'ECONNRESET' || !socket.writable) {
    socket.destroy();
    return;
  }
  const { status, code, message } = BY_ERROR_CODE[error.code ?? ''] ?? MALFORMED;
  const body = JSON.stringify(errorEnvelope(code, message));
  const head = [
    `HTTP/1.1 ${status}`,
    'content-type: application/json; charset=utf-8',
    `content-length: ${Buffer.byteLength(body)}`,
    `x-request-id: ${newUuid()}`,
    'connection: close',
  ];
  socket.end(`${head.join('\r\n')}\r\n\r\n${body}`);
}

const STORE_RETRY_AFTER_S = 2;
const MAX_SHOWN = 3;

interface FailureDetails {
  readonly errors?: readonly ApiErrorEntry[];
  readonly headers?: Readonly<Record<string, string>>;
  readonly cause?: unknown;
  /** Further fields of the answer. */
  readonly fields?: Readonly<Record<string, unknown>>;
}

/** A request that is answered with a failure: thrown anywhere below a route, turned into its answer in one place. */
export class ApiFailure extends Error {
  override readonly name = 'ApiFailure';
  readonly code: ApiErrorCode;
  readonly headers: Readonly<Record<string, string>>;
  readonly envelope: ErrorEnvelope;
  /** Fastify reads it when the failure comes from a validator. */
  readonly statusCode: number;

  /** @param message a sentence for the caller; nothing secret in it */
  constructor(code: ApiErrorCode, message: string, details: FailureDetails = {}) {
    super(message, { cause: details.cause });
    this.code = code;
    this.statusCode = API_ERRORS[code][0];
    this.headers = details.headers ?? {};
    this.envelope = { ...errorEnvelope(code, message, details.errors), ...details.fields };
  }
}

/** The failure for bad fields, one entry each. */
export function validationFailure(errors: readonly ApiErrorEntry[], fields?: Readonly<Record<string, unknown>>): ApiFailure {
  const named = errors.slice(0, MAX_SHOWN).map(({ path, message }) => (path === undefined ? message : `${path} ${message}`));
  const more = errors.length > MAX_SHOWN ? `; and ${errors.length - MAX_SHOWN} more` : '';
  return new ApiFailure('VALIDATION', `The request is not valid: ${named.join('; ')}${more}`, {
    errors,
    ...(fields === undefined ? {} : { fields }),
  });
}

/** What Redis answers names no key and no value. */
const storeSays = ({ answer }: StoreUnavailableError): string =>
  answer === null ? 'The store does not answer' : `The store cannot serve this now (Redis says: ${answer.replace(/\.$/, '')})`;

/** The one mapping from whatever was thrown to an answer. `requestId` stands in the message of an unexpected error. */
export function failureOf(error: unknown, requestId: string): ApiFailure {
  if (error instanceof ApiFailure) return error;
  if (error instanceof StoreUnavailableError) {
    return new ApiFailure('STORE_UNAVAILABLE', `${storeSays(error)}; nothing may have changed. Try again.`, {
      headers: { 'retry-after': String(STORE_RETRY_AFTER_S) },
      cause: error,
    });
  }
  return frameworkFailure(error) ?? new ApiFailure('INTERNAL', `Internal error; request id ${requestId}`, { cause: error });
}

/** Errors of the HTTP framework, which carry a 4xx status; `undefined` for any other error. */
function frameworkFailure(error: unknown): ApiFailure | undefined {
  if (!(error instanceof Error)) return undefined;
  const status = 'statusCode' in error ? error.statusCode : undefined;
  if (typeof status !== 'number' || status < 400 || status > 499) return undefined;
  const cause = error;
  if (status === 413) return new ApiFailure('TOO_LARGE', 'The body is larger than this service accepts', { cause });
  if (status === 415) return new ApiFailure('UNSUPPORTED_MEDIA_TYPE', 'The body must be application/json', { cause });
  const code = 'code' in error ? error.code : undefined;
  if (code === 'FST_ERR_BAD_URL') return new ApiFailure('VALIDATION', 'The URL is malformed', { cause });
  if (code === 'FST_ERR_MAX_PARAM_LENGTH') return new ApiFailure('NOT_FOUND', 'No such route', { cause });
  // What is left are bodies: empty, cut short, or not JSON.
  return new ApiFailure('VALIDATION', 'The body is not valid JSON', { cause });
}

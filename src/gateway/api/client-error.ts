import type { Socket } from 'node:net';
import { API_ERROR_STATUS, errorEnvelope, type ApiErrorCode } from './schemas/api-error.js';
import { newUuid } from '../../lib/ids.js';

interface RawFailure {
  readonly status: string;
  readonly code: ApiErrorCode;
  readonly message: string;
}

const MALFORMED: RawFailure = { status: `${API_ERROR_STATUS.VALIDATION} Bad Request`, code: 'VALIDATION', message: 'This is not HTTP' };
const BY_ERROR_CODE: Readonly<Record<string, RawFailure>> = {
  HPE_HEADER_OVERFLOW: { status: '431 Request Header Fields Too Large', code: 'TOO_LARGE', message: 'The headers are too large' },
  ERR_HTTP_REQUEST_TIMEOUT: {
    status: `${API_ERROR_STATUS.REQUEST_TIMEOUT} Request Timeout`,
    code: 'REQUEST_TIMEOUT',
    message: 'The request did not arrive in time',
  },
};

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

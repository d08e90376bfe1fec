import { isUtf8 } from 'node:buffer';
import type { IncomingHttpHeaders } from 'node:http';
import { ApiFailure } from './failure.js';

/** Bodies are UTF-8, as RFC 8259 §8.1 has it of JSON. `null`: so is this one. */
export function bodyProblem(headers: IncomingHttpHeaders, bytes: Buffer): ApiFailure | null {
  const coding = headers['content-encoding']?.trim().toLowerCase() ?? 'identity';
  if (coding !== 'identity') return new ApiFailure('UNSUPPORTED_MEDIA_TYPE', 'The body must have no Content-Encoding');
  const charset = /;\s*charset\s*=\s*"?([^\s";]+)/iu.exec(headers['content-type'] ?? '')?.[1]?.toLowerCase() ?? 'utf-8';
  if (!['utf-8', 'utf8', 'us-ascii'].includes(charset)) return new ApiFailure('UNSUPPORTED_MEDIA_TYPE', 'The body must be in UTF-8');
  return isUtf8(bytes) ? null : new ApiFailure('VALIDATION', 'The body is not valid UTF-8');
}

import type { FastifyReply, FastifyRequest } from 'fastify';
import { z } from 'zod';
import type { IfMatch } from '../model/revision.js';
import { ApiFailure } from './failure.js';

// Versions of records in headers (RFC 9110 §8.8.3 and §13.1.1): the entity tag of a record is its `updated_at`.

/** The headers of a request that changes a record. */
export const changeHeaders = z.looseObject({
  'if-match': z
    .string()
    .optional()
    .meta({
      description:
        "The record's `etag` from an earlier answer: the request fails if the record has changed. `*`: fails if there is no record",
      examples: ['"2026-01-01T00:00:00.000Z"'],
    }),
});

/** The versions that the request is meant for. A weak tag stands for none: it is no version of a record here. */
export function ifMatchOf(request: FastifyRequest): IfMatch {
  const header = request.headers['if-match']?.trim();
  if (header === undefined || header === '*') return header;
  return header.split(',').map((tag) => tag.trim().replace(/^"(.*)"$/, '$1'));
}

export function setEtag(reply: FastifyReply, { updated_at }: { readonly updated_at: string }): void {
  reply.header('etag', `"${updated_at}"`);
}

export function preconditionFailed(fields?: Readonly<Record<string, unknown>>): ApiFailure {
  const message = 'The record does not match if-match: read it again; nothing changed';
  return new ApiFailure('PRECONDITION_FAILED', message, fields === undefined ? {} : { fields });
}

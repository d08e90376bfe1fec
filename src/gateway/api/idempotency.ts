import { createHash } from 'node:crypto';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { PlacementStore } from '../ports/stores.js';
import { ApiFailure } from './failure.js';

const RETRY_AFTER_S = 2;

/** The header `idempotency-key`; `null`: there is none. */
export function idempotencyKeyOf({ headers }: FastifyRequest): string | null {
  const key = headers['idempotency-key'];
  return typeof key === 'string' ? key : null;
}

/** Tells bodies apart by what they mean, whatever the order of their fields (RFC 8259 §4); keeps nothing of them. */
export function digestOf(body: unknown): string {
  return createHash('sha256').update(canonicalJson(body)).digest('hex');
}

/** JSON with the fields of each object in one order. */
export function canonicalJson(value: unknown): string {
  return JSON.stringify(value, (_name, part: unknown) =>
    typeof part === 'object' && part !== null && !Array.isArray(part)
      ? Object.fromEntries(Object.entries(part).sort(([one], [other]) => (one < other ? -1 : 1)))
      : part,
  );
}

/** What the earlier request with this key made; the answer says so. Throws when that had another body, or has not made it yet. */
export function madeBefore(known: NonNullable<Awaited<ReturnType<PlacementStore['find']>>>, digest: string, reply: FastifyReply): string {
  if (known.digest !== digest) throw new ApiFailure('IDEMPOTENCY_KEY_REUSED', 'The idempotency-key belongs to a request with another body');
  if (known.isKept) {
    reply.header('idempotent-replayed', 'true');
    return known.callId;
  }
  throw new ApiFailure('NOT_READY', 'A request with this idempotency-key is being carried out', {
    headers: { 'retry-after': String(RETRY_AFTER_S) },
  });
}

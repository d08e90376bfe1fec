import { createHash } from 'node:crypto';
import type { FastifyRequest } from 'fastify';
import type { PlacementStore } from '../ports/stores.js';
import { ApiFailure } from './failure.js';

const RETRY_AFTER_S = 2;

/** The header `idempotency-key`; `null`: there is none. */
export function idempotencyKeyOf({ headers }: FastifyRequest): string | null {
  const key = headers['idempotency-key'];
  return typeof key === 'string' ? key : null;
}

/** Tells bodies apart; keeps nothing of them. */
export function digestOf(body: unknown): string {
  return createHash('sha256').update(JSON.stringify(body)).digest('hex');
}

/** What the earlier request with this key made. Throws when that had another body, or has not made it yet. */
export function madeBefore(known: NonNullable<Awaited<ReturnType<PlacementStore['find']>>>, digest: string): string {
  if (known.digest !== digest) throw new ApiFailure('IDEMPOTENCY_KEY_REUSED', 'The idempotency-key belongs to a request with another body');
  if (known.isKept) return known.callId;
  throw new ApiFailure('NOT_READY', 'A request with this idempotency-key is being carried out', {
    headers: { 'retry-after': String(RETRY_AFTER_S) },
  });
}

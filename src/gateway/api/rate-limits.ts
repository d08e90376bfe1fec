import rateLimit from '@fastify/rate-limit';
import type { FastifyInstance, FastifyReply, FastifyRequest, onRequestAsyncHookHandler } from 'fastify';
import { keyIdOf } from './auth.js';
import { ApiFailure } from './failure.js';

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Probes of the machinery around the service are never limited. */
    unlimited?: boolean;
  }
}

/** Requests in any one minute, of this process. */
export interface RateLimits {
  readonly total: number;
  /** From one IP address, with or without a key. */
  readonly perAddress: number;
  readonly perKey: number;
}

const WINDOW_MS = 60_000;

export interface RateLimitHooks {
  /** Before authentication. */
  readonly beforeAuth: onRequestAsyncHookHandler;
  /** After it. */
  readonly perKey: onRequestAsyncHookHandler;
}

/** Registers the limiter and makes its hooks. */
export async function rateLimitHooks(app: FastifyInstance, limits: RateLimits): Promise<RateLimitHooks> {
  await app.register(rateLimit, { global: false });
  const limiter = (max: number, keyGenerator: (request: FastifyRequest) => string) => {
    const check = app.createRateLimit({ max, timeWindow: WINDOW_MS, keyGenerator });
    return async (request: FastifyRequest, reply: FastifyReply): Promise<void> => {
      const outcome = await check(request);
      if (outcome.isAllowed) return;
      tellLimit(reply, { max, remaining: outcome.remaining, resetS: outcome.ttlInSeconds, isExceeded: outcome.isExceeded });
      if (!outcome.isExceeded) return;
      throw new ApiFailure('RATE_LIMITED', `More than ${max} requests a minute; wait ${outcome.ttlInSeconds} s`, {
        headers: { 'retry-after': String(Math.max(1, outcome.ttlInSeconds)) },
      });
    };
  };
  const perAddress = limiter(limits.perAddress, (request) => request.ip);
  const total = limiter(limits.total, () => 'all');
  const perKey = limiter(limits.perKey, keyIdOf);
  return {
    beforeAuth: async (request, reply) => {
      if (request.routeOptions.config.unlimited === true) return;
      // The address first: one that is over its own limit does not use up everyone's.
      await perAddress(request, reply);
      await total(request, reply);
    },
    perKey: async (request, reply) => perKey(request, reply),
  };
}

interface LimitState {
  readonly max: number;
  readonly remaining: number;
  readonly resetS: number;
  readonly isExceeded: boolean;
}

/** The headers of the limit that leaves the fewest requests, or that was gone over. */
function tellLimit(reply: FastifyReply, { max, remaining, resetS, isExceeded }: LimitState): void {
  const told = reply.getHeader('ratelimit-remaining');
  if (!isExceeded && told !== undefined && Number(told) <= remaining) return;
  reply.headers({ 'ratelimit-limit': String(max), 'ratelimit-remaining': String(remaining), 'ratelimit-reset': String(resetS) });
}

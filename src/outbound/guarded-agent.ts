import { Agent } from 'undici';
import { guardedLookup } from './guarded-lookup.js';

const MAX_CONNECTIONS_PER_ORIGIN = 64;
const IDLE_MS = 10_000;

/** Connections for requests to addresses that customers name. Limits of time are the caller's. */
export function guardedAgent(allowPrivate: boolean, maxResponseBytes: number): Agent {
  return new Agent({
    connect: { lookup: guardedLookup(allowPrivate) },
    connections: MAX_CONNECTIONS_PER_ORIGIN,
    keepAliveTimeout: IDLE_MS,
    maxResponseSize: maxResponseBytes,
    headersTimeout: 0,
    bodyTimeout: 0,
  });
}

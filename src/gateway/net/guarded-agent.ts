import { rootCertificates } from 'node:tls';
import { Agent } from 'undici';
import { guardedLookup } from './guarded-lookup.js';

// A module of its own, which `GuardedClient` loads with its first request: the package takes long to load, and by its own name the bundle
// does not load what it exports.

const MAX_CONNECTIONS_PER_ORIGIN = 64;
const IDLE_MS = 10_000;

/** Its connections, to addresses that customers and strangers may name. */
export function openGuardedAgent(allowPrivate: boolean, caPem: string | null, maxResponseBytes: number): Agent {
  const ca = caPem === null ? {} : { ca: [...rootCertificates, caPem] };
  return new Agent({
    connect: { lookup: guardedLookup(allowPrivate), ...ca },
    connections: MAX_CONNECTIONS_PER_ORIGIN,
    keepAliveTimeout: IDLE_MS,
    maxResponseSize: maxResponseBytes,
    headersTimeout: 0,
    bodyTimeout: 0,
  });
}

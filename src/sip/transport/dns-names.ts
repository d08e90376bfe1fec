import { lookup, Resolver } from 'node:dns/promises';
import type { Found, NameResolver } from './locator.js';
import type { NaptrRecord, SrvRecord } from './service-location.js';

/** Neither Node.js (SRV, NAPTR) nor the system's name service returns a TTL. */
const UNKNOWN_TTL_MS = 60_000;

/**
 * Resolves names with the machine's DNS servers. For addresses of names unknown to DNS or without a dot, it uses the system's name service,
 * which reads /etc/hosts too.
 */
export class DnsNames implements NameResolver {
  constructor(private readonly resolver: Resolver = new Resolver({ timeout: 1_000, tries: 2 })) {}

  naptr(name: string): Promise<Found<NaptrRecord>> {
    return found(this.resolver.resolveNaptr(name));
  }

  srv(name: string): Promise<Found<SrvRecord>> {
    return found(this.resolver.resolveSrv(name));
  }

  async addresses(name: string): Promise<Found<string>> {
    const answers = name.includes('.')
      ? await Promise.allSettled([this.resolver.resolve4(name, { ttl: true }), this.resolver.resolve6(name, { ttl: true })])
      : [];
    const records = answers.flatMap((answer) => (answer.status === 'fulfilled' ? answer.value : []));
    if (records.length > 0) {
      return { records: records.map(({ address }) => address), ttlMs: 1_000 * Math.min(...records.map(({ ttl }) => ttl)) };
    }
    const addresses = await lookup(name, { all: true });
    return { records: addresses.map(({ address }) => address), ttlMs: UNKNOWN_TTL_MS };
  }
}

async function found<T>(asked: Promise<readonly T[]>): Promise<Found<T>> {
  try {
    return { records: await asked, ttlMs: UNKNOWN_TTL_MS };
  } catch (error) {
    if (isAbsent(error)) return { records: [], ttlMs: UNKNOWN_TTL_MS };
    throw error;
  }
}

function isAbsent(error: unknown): boolean {
  const code = error instanceof Error && 'code' in error ? error.code : '';
  return code === 'ENOTFOUND' || code === 'ENODATA';
}

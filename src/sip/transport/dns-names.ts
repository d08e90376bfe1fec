import { lookup, Resolver } from 'node:dns/promises';
import type { Found, NameResolver } from './locator.js';
import type { SrvRecord } from './service-location.js';

/** Neither Node.js (SRV) nor the system's name service returns a TTL. */
const UNKNOWN_TTL_MS = 60_000;

/**
 * Resolves names with the machine's DNS servers. For addresses of names unknown to DNS or without a dot, it uses the system's name service,
 * which reads /etc/hosts too.
 */
export class DnsNames implements NameResolver {
  constructor(private readonly resolver: Resolver = new Resolver({ timeout: 1_000, tries: 2 })) {}

  async srv(name: string): Promise<Found<SrvRecord>> {
    try {
      return { records: await this.resolver.resolveSrv(name), ttlMs: UNKNOWN_TTL_MS };
    } catch (error) {
      if (isAbsent(error)) return { records: [], ttlMs: UNKNOWN_TTL_MS };
      throw error;
    }
  }

  async addresses(name: string): Promise<Found<string>> {
    const answers = name.includes('.')
      ? await Promise.allSettled([this.resolver.resolve4(name, { ttl: true }), this.resolver.resolve6(name, { ttl: true })])
      : [];
    const found = answers.flatMap((answer) => (answer.status === 'fulfilled' ? answer.value : []));
    if (found.length > 0) {
      return { records: found.map(({ address }) => address), ttlMs: 1_000 * Math.min(...found.map(({ ttl }) => ttl)) };
    }
    const addresses = await lookup(name, { all: true });
    return { records: addresses.map(({ address }) => address), ttlMs: UNKNOWN_TTL_MS };
  }
}

function isAbsent(error: unknown): boolean {
  const code = error instanceof Error && 'code' in error ? error.code : '';
  return code === 'ENOTFOUND' || code === 'ENODATA';
}

import { Resolver } from 'node:dns/promises';
import { isAbsent, NameAddresses } from '../../lib/resolve-names.js';
import type { Found, NameResolver } from './locator.js';
import type { NaptrRecord, SrvRecord } from './service-location.js';

/** Neither Node.js (SRV, NAPTR) nor the system's name service returns a TTL. */
const UNKNOWN_TTL_MS = 60_000;

/** Resolves names with the machine's DNS servers. */
export class DnsNames implements NameResolver {
  readonly #addresses: NameAddresses;

  constructor(private readonly resolver: Resolver = new Resolver({ timeout: 1_000, tries: 2 })) {
    this.#addresses = new NameAddresses(resolver);
  }

  naptr(name: string): Promise<Found<NaptrRecord>> {
    return found(this.resolver.resolveNaptr(name));
  }

  srv(name: string): Promise<Found<SrvRecord>> {
    return found(this.resolver.resolveSrv(name));
  }

  async addresses(name: string): Promise<Found<string>> {
    const found = await this.#addresses.of(name);
    return {
      records: found.map(({ address }) => address),
      ttlMs: Math.min(...found.map(({ ttlMs }) => ttlMs ?? UNKNOWN_TTL_MS)),
    };
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

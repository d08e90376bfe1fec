import { isIP } from 'node:net';
import type { Clock } from '../../lib/clock.js';
import {
  defaultPort,
  distinctEndpoints,
  orderServers,
  secureServices,
  serviceName,
  type NaptrRecord,
  type SrvRecord,
} from './service-location.js';
import type { Endpoint, Target } from './flow.js';

export interface Found<T> {
  readonly records: readonly T[];
  /** TTL of the DNS answer. */
  readonly ttlMs: number;
}

/** DNS queries for locating a server. All reject without a DNS answer; a name without such records yields none. */
export interface NameResolver {
  naptr(name: string): Promise<Found<NaptrRecord>>;
  srv(name: string): Promise<Found<SrvRecord>>;
  addresses(name: string): Promise<Found<string>>;
}

export interface LocatorOptions {
  readonly resolver: NameResolver;
  readonly clock: Clock;
  readonly random: () => number;
  /** Upper bound of the TTL. */
  readonly maxTtlMs: number;
}

interface Cached {
  readonly found: Promise<Found<unknown>>;
  expiresMs: number;
}

const MAX_NAMES = 1_000;
/** Bounds the addresses of one target: the request's own timer fires by then. */
const MAX_ENDPOINTS = 16;

/** Locates a target (RFC 3263 §4.2): by SRV for a host without a port, otherwise, or without records, by address. */
export class Locator {
  readonly #cache = new Map<string, Cached>();

  constructor(private readonly options: LocatorOptions) {}

  /** In the order to try. Rejects when there are none. */
  async locate(target: Target): Promise<Endpoint[]> {
    const port = target.port ?? defaultPort(target.transport);
    if (target.address !== undefined) return [{ address: target.address, port }];
    const fallback: SrvRecord = { name: target.host, port, priority: 0, weight: 0 };
    const servers = target.port === null && isIP(target.host) === 0 ? await this.#servers(target, fallback) : [fallback];
    const found = await Promise.allSettled(servers.map((server) => this.#endpoints(server)));
    const endpoints = found.flatMap((result) => (result.status === 'fulfilled' ? result.value : []));
    if (endpoints.length > 0) return distinctEndpoints(endpoints, MAX_ENDPOINTS);
    const failed = found.find((result) => result.status === 'rejected');
    throw failed?.reason instanceof Error ? failed.reason : new Error(`${target.host} has no address for ${target.transport}`);
  }

  async #servers(target: Target, fallback: SrvRecord): Promise<readonly SrvRecord[]> {
    for (const name of [...(await this.#services(target)), serviceName(target.transport, target.host)]) {
      const { records } = await this.#ask(`SRV ${name}`, () => this.options.resolver.srv(name)).catch(() => ({ records: [] }));
      if (records.length === 0) continue;
      // RFC 2782: a target of "." means that the service is not available.
      const usable = records.filter((record) => record.name !== '' && record.name !== '.');
      return orderServers(usable, this.options.random).slice(0, MAX_ENDPOINTS);
    }
    return [fallback];
  }

  /** RFC 3263 §4.1, for TLS alone: nothing in clear is looked up. */
  async #services({ transport, host }: Target): Promise<readonly string[]> {
    if (transport !== 'TLS') return [];
    const { records } = await this.#ask(`NAPTR ${host}`, () => this.options.resolver.naptr(host)).catch(() => ({ records: [] }));
    return secureServices(records);
  }

  async #endpoints({ name, port }: SrvRecord): Promise<Endpoint[]> {
    if (isIP(name) !== 0) return [{ address: name, port }];
    const { records } = await this.#ask(`A ${name}`, () => this.options.resolver.addresses(name));
    return records.map((address) => ({ address, port }));
  }

  /** One query at a time for each name; failures are not cached. */
  #ask<T>(key: string, question: () => Promise<Found<T>>): Promise<Found<T>> {
    const { clock, maxTtlMs } = this.options;
    const known = this.#cache.get(key);
    // The key includes the record type, so the cast is safe.
    if (known !== undefined && clock.nowMs() < known.expiresMs) return known.found as Promise<Found<T>>;
    const found = question();
    const cached: Cached = { found, expiresMs: Infinity };
    this.#cache.delete(key);
    this.#cache.set(key, cached);
    this.#dropOldest();
    found.then(
      ({ ttlMs }) => (cached.expiresMs = clock.nowMs() + Math.min(ttlMs, maxTtlMs)),
      () => (this.#cache.get(key) === cached ? this.#cache.delete(key) : false),
    );
    return found;
  }

  get size(): number {
    return this.#cache.size;
  }

  #dropOldest(): void {
    if (this.#cache.size <= MAX_NAMES) return;
    for (const key of this.#cache.keys()) {
      this.#cache.delete(key);
      return;
    }
  }
}

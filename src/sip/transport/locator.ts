import { isIP } from 'node:net';
import type { Clock } from '../../lib/clock.js';
import { defaultPort, distinctEndpoints, orderServers, serviceName, type SrvRecord } from './service-location.js';
import type { Endpoint, Target } from './flow.js';

export interface Found<T> {
  readonly records: readonly T[];
  /** How long the answer holds, by the DNS. */
  readonly ttlMs: number;
}

/** The questions that locating a server asks. Both reject when nobody answers; a name without such records has none. */
export interface NameResolver {
  srv(name: string): Promise<Found<SrvRecord>>;
  addresses(name: string): Promise<Found<string>>;
}

export interface LocatorOptions {
  readonly resolver: NameResolver;
  readonly clock: Clock;
  readonly random: () => number;
  /** An answer is kept no longer, whatever it says. */
  readonly maxTtlMs: number;
}

interface Cached {
  readonly found: Promise<Found<unknown>>;
  expiresMs: number;
}

const MAX_NAMES = 1_000;
/** More addresses of one target are not tried: the request's own timer has run out by then. */
const MAX_ENDPOINTS = 16;

/** Where a target is served (RFC 3263 §4.2): SRV when it names a host without a port, else, or where there are none, its addresses. */
export class Locator {
  readonly #cache = new Map<string, Cached>();

  constructor(private readonly options: LocatorOptions) {}

  /** In the order in which they are to be tried. Rejects when there are none. */
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
    const name = serviceName(target.transport, target.host);
    const { records } = await this.#ask(`SRV ${name}`, () => this.options.resolver.srv(name)).catch(() => ({ records: [] }));
    if (records.length === 0) return [fallback];
    // RFC 2782: a target of "." says that the service is decidedly not there.
    const usable = records.filter((record) => record.name !== '' && record.name !== '.');
    return orderServers(usable, this.options.random).slice(0, MAX_ENDPOINTS);
  }

  async #endpoints({ name, port }: SrvRecord): Promise<Endpoint[]> {
    if (isIP(name) !== 0) return [{ address: name, port }];
    const { records } = await this.#ask(`A ${name}`, () => this.options.resolver.addresses(name));
    return records.map((address) => ({ address, port }));
  }

  /** One question at a time for each name; a failure is not kept. */
  #ask<T>(key: string, question: () => Promise<Found<T>>): Promise<Found<T>> {
    const { clock, maxTtlMs } = this.options;
    const known = this.#cache.get(key);
    // The key has the kind of record in it, so what is kept under it is of that kind.
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

import { isPublicAddress } from '../../lib/address-scope.js';
import type { Clock } from '../../lib/clock.js';
import { DnsNames } from '../../sip/transport/dns-names.js';
import { Locator, type NameResolver } from '../../sip/transport/locator.js';
import { resolveTarget } from '../../sip/transport/service-location.js';

const MAX_TTL_MS = 60_000;

/** Whether the servers of a URI are all at public addresses: rejects if not. For a drachtio-server, which connects to any. */
export function publicTrunks(clock: Clock, resolver: NameResolver = new DnsNames()): (uri: string) => Promise<void> {
  const locator = new Locator({ resolver, clock, random: Math.random, maxTtlMs: MAX_TTL_MS });
  return async (uri) => {
    const target = resolveTarget(uri);
    const endpoints = target === undefined ? [] : await locator.locate(target);
    const isPublic = endpoints.length > 0 && endpoints.every(({ address }) => isPublicAddress(address));
    if (!isPublic)
      throw new Error(`the trunk ${target?.host ?? ''} has an address that is not public, and trunks.allow_private is not set`);
  };
}

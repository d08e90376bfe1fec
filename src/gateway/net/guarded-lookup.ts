import { isIP, type LookupFunction } from 'node:net';
import { bareHost, isLocalName } from '../../lib/address.js';
import { isPublicAddress } from '../../lib/address-scope.js';
import { NameAddresses } from '../../lib/resolve-names.js';

/** A customer's address names a place that it may not: `code` is `EPRIVATE`. */
export class AddressRefusedError extends Error {
  override readonly name = 'AddressRefusedError';
  readonly code = 'EPRIVATE';
}

type Allowed = (address: string) => boolean;

const names = new NameAddresses();
/** As `options.family` of a look-up has them; 0 and anything else: both. */
const FAMILIES: Readonly<Record<number | string, 4 | 6>> = { 4: 4, 6: 6, IPv4: 4, IPv6: 6 };

/**
 * A `lookup` for sockets that finds only addresses that a customer may name. The check is made on what is connected to, so a name
 * that changes between two look-ups gains nothing. Literal addresses are not looked up by sockets: see `assertAllowedHost`.
 */
export function guardedLookup(allowPrivate: boolean): LookupFunction {
  return allowPrivate ? lookupOf(() => true) : lookupOf(isPublicAddress);
}

/** For connections without TLS: only where nobody else listens. */
export const privateLookup: LookupFunction = lookupOf((address) => !isPublicAddress(address));

/**
 * @param host of a URL, with or without brackets
 * @throws AddressRefusedError when it is a literal address that is not allowed
 */
export function assertAllowedHost(host: string, allowPrivate: boolean): void {
  const address = bareHost(host);
  if (isIP(address) !== 0 && !allowPrivate && !isPublicAddress(address)) throw refused(host);
}

/** Whether a host may be named at all: false for a literal address that is not allowed, and for the machine's own name. */
export function isAllowedHost(host: string, allowPrivate: boolean): boolean {
  if (allowPrivate) return true;
  const address = bareHost(host);
  return isIP(address) === 0 ? !isLocalName(host) : isPublicAddress(address);
}

/**
 * Why an agent at this URL is never connected, whatever its name resolves to; `null`: it may be. `allowPrivate`: `agents.allow_private`.
 */
export function agentUrlRefusal({ protocol, hostname }: URL, allowPrivate: boolean): string | null {
  if (!isAllowedHost(hostname, allowPrivate))
    return `${hostname} is not an address of the public internet, which needs agents.allow_private`;
  if (protocol === 'wss:') return null;
  if (!allowPrivate) return 'an agent without TLS (ws://) needs agents.allow_private';
  return isPublicAddress(hostname) ? 'an agent without TLS (ws://) must be at a private address' : null;
}

function lookupOf(isAllowed: Allowed): LookupFunction {
  return (hostname, options, callback) => {
    names.of(hostname).then(
      (found) => {
        const wanted = FAMILIES[options.family ?? 0];
        const allowed = found
          .filter(({ address }) => isAllowed(address))
          .map(({ address }) => ({ address, family: isIP(address) }))
          .filter(({ family }) => wanted === undefined || family === wanted);
        const [first] = allowed;
        if (first === undefined) return callback(refused(hostname), []);
        if (options.all === true) callback(null, allowed);
        else callback(null, first.address, first.family);
      },
      (error: unknown) => callback(error as NodeJS.ErrnoException, []),
    );
  };
}

function refused(host: string): AddressRefusedError {
  return new AddressRefusedError(`${host} is not an address of the public internet, and the configuration allows no others here`);
}

import { networkInterfaces } from 'node:os';
import { readFileSync } from 'node:fs';
import { ConfigError } from './layers.js';

/** The machine's network as the system describes it. */
export interface OwnNetwork {
  /** IPv4 addresses of each interface. */
  readonly addresses: ReadonlyMap<string, readonly string[]>;
  /** The interface of the default route; `null` without one. */
  readonly defaultInterface: string | null;
}

/**
 * The address for `bind_address: auto`: `public_address` if this machine has it, else the address of the default route's interface.
 * A loopback address is one that every machine has: `PUBLIC_ADDRESS=127.0.0.1` tries the product without a network.
 * Throws a `ConfigError` if there is no default route.
 */
export function ownAddress(publicAddress: string | null, network: OwnNetwork = ownNetwork()): string {
  const { addresses, defaultInterface } = network;
  if (publicAddress !== null && (publicAddress.startsWith('127.') || [...addresses.values()].flat().includes(publicAddress)))
    return publicAddress;
  const found = defaultInterface === null ? undefined : addresses.get(defaultInterface)?.[0];
  if (found !== undefined) return found;
  throw new ConfigError('Invalid bind_address = "auto": no IPv4 interface has a default route. Set it to an address of this machine.');
}

/** Linux lists the default route in /proc; elsewhere the first interface with an outside address replaces it. */
function ownNetwork(): OwnNetwork {
  const ipv4 = Object.entries(networkInterfaces()).map(([name, all = []]) => {
    const addresses = all.filter(({ family, internal }) => family === 'IPv4' && !internal).map(({ address }) => address);
    return [name, addresses] as const;
  });
  return {
    addresses: new Map(ipv4),
    defaultInterface: defaultInterface() ?? ipv4.find(([, addresses]) => addresses.length > 0)?.[0] ?? null,
  };
}

function defaultInterface(): string | null {
  try {
    // Interface, destination, gateway: 0 is the default route.
    return /^(\S+)\t0{8}\t/m.exec(readFileSync('/proc/net/route', 'utf8'))?.[1] ?? null;
  } catch {
    return null;
  }
}

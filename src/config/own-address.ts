import { networkInterfaces } from 'node:os';
import { readFileSync } from 'node:fs';
import { ConfigError } from './layers.js';

/** What the system tells of its network. */
export interface OwnNetwork {
  /** IPv4 addresses of each interface. */
  readonly addresses: ReadonlyMap<string, readonly string[]>;
  /** The interface that packets to the Internet leave by; `null`: there is none. */
  readonly defaultInterface: string | null;
}

/**
 * The address that `bind_address: auto` stands for: `public_address` where this machine has it, else that of the interface of the default
 * route. Throws a `ConfigError` where there is none.
 */
export function ownAddress(publicAddress: string | null, network: OwnNetwork = ownNetwork()): string {
  const { addresses, defaultInterface } = network;
  if (publicAddress !== null && [...addresses.values()].flat().includes(publicAddress)) return publicAddress;
  const found = defaultInterface === null ? undefined : addresses.get(defaultInterface)?.[0];
  if (found !== undefined) return found;
  throw new ConfigError('bind_address: "auto" found no IPv4 interface with a default route: set it to an address of this machine');
}

/** Linux tells the default route in /proc; elsewhere the first interface stands for it that leads out. */
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
    // Interface, destination, gateway: 0 is everywhere.
    return /^(\S+)\t0{8}\t/m.exec(readFileSync('/proc/net/route', 'utf8'))?.[1] ?? null;
  } catch {
    return null;
  }
}

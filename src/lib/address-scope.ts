import { BlockList, isIP } from 'node:net';

/** What a customer's address may not name unless the operator allows it: private, loopback, link-local and reserved networks. */
const NOT_PUBLIC = new BlockList();
for (const [network, prefix] of [
  ['0.0.0.0', 8],
  ['10.0.0.0', 8],
  ['100.64.0.0', 10],
  ['127.0.0.0', 8],
  ['169.254.0.0', 16],
  ['172.16.0.0', 12],
  ['192.0.0.0', 24],
  ['192.0.2.0', 24],
  // Relays of 6to4, which are no more (RFC 7526).
  ['192.88.99.0', 24],
  ['192.168.0.0', 16],
  ['198.18.0.0', 15],
  ['198.51.100.0', 24],
  ['203.0.113.0', 24],
  ['224.0.0.0', 4],
  ['240.0.0.0', 4],
] as const)
  NOT_PUBLIC.addSubnet(network, prefix, 'ipv4');
for (const [network, prefix] of [
  ['2001::', 23],
  ['2001:db8::', 32],
  // 6to4: IPv4 within IPv6, where it could name any of the above.
  ['2002::', 16],
  // Documentation (RFC 9637).
  ['3fff::', 20],
] as const)
  NOT_PUBLIC.addSubnet(network, prefix, 'ipv6');

/** All that is global unicast today (RFC 4291 §2.4, IANA's registry), and IPv4 as IPv6 writes it, which is checked as IPv4. */
const GLOBAL_UNICAST = new BlockList();
GLOBAL_UNICAST.addSubnet('2000::', 3, 'ipv6');
GLOBAL_UNICAST.addSubnet('::ffff:0:0', 96, 'ipv6');

/** Whether a literal address can be reached by everyone. False for what is no literal address. */
export function isPublicAddress(address: string): boolean {
  const family = isIP(address);
  if (family === 6) return GLOBAL_UNICAST.check(address, 'ipv6') && !NOT_PUBLIC.check(address, 'ipv6');
  return family === 4 && !NOT_PUBLIC.check(address, 'ipv4');
}

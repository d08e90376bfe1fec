import { BlockList, isIP } from 'node:net';

// The one pure file that imports node:net: what it takes from there are pure functions of text.

/** 4, 6, or 0 when the text is no IP address. An IPv6 address with a zone (`fe80::1%eth0`) is none: it means nothing to a peer. */
export function ipFamily(text: string): 0 | 4 | 6 {
  const family = /%/.test(text) ? 0 : isIP(text);
  return family === 4 || family === 6 ? family : 0;
}

/** Whether an address is in a list of addresses and CIDR blocks. Entries and addresses that are none match nothing. */
export function isInBlocks(entries: readonly string[], address: string): boolean {
  const family = ipFamily(address);
  if (family === 0) return false;
  const list = new BlockList();
  for (const entry of entries) {
    const [network = '', prefix] = entry.split('/');
    if (ipFamily(network) === 0) continue;
    const type = ipFamily(network) === 6 ? 'ipv6' : 'ipv4';
    if (prefix === undefined) list.addAddress(network, type);
    else list.addSubnet(network, Number(prefix), type);
  }
  return list.check(address, family === 6 ? 'ipv6' : 'ipv4');
}

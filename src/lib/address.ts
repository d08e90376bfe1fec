import { BlockList, isIP } from 'node:net';

// The one pure file that imports node:net: what it takes from there are pure functions of text.

/** 4, 6, or 0 when the text is no IP address. An IPv6 address with a zone (`fe80::1%eth0`) is none: it means nothing to a peer. */
export function ipFamily(text: string): 0 | 4 | 6 {
  const family = /%/.test(text) ? 0 : isIP(text);
  return family === 4 || family === 6 ? family : 0;
}

/** Characters of an IPv4 or IPv6 address: what every address has, as a pattern. */
const ADDRESS = '[0-9A-Fa-f.:]{2,45}';
export const ADDRESS_PATTERN = `^${ADDRESS}$`;
/** The same of what `isSourceAddress` takes. */
export const SOURCE_PATTERN = `^${ADDRESS}(?:/(?:0|[1-9][0-9]{0,2}))?$`;

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

const PREFIX_LENGTH = /^(?:0|[1-9]\d{0,2})$/;

/** True for an IPv4 or IPv6 address, or a CIDR block of them (`203.0.113.0/24`, `2001:db8::/32`). Host bits may be set. */
export function isSourceAddress(text: string): boolean {
  const [address = '', prefix, ...rest] = text.split('/');
  if (rest.length > 0) return false;
  const family = ipFamily(address);
  if (family === 0) return false;
  return prefix === undefined || (PREFIX_LENGTH.test(prefix) && Number(prefix) <= (family === 4 ? 32 : 128));
}

/** A URL's host without the brackets of an IPv6 address. */
export function bareHost(host: string): string {
  return host.replace(/^\[|\]$/g, '');
}

/** A host as it stands in a URI, a Via or an address: IPv6 in brackets. */
export function formatHost(host: string): string {
  return host.includes(':') ? `[${host}]` : host;
}

export function formatHostPort(host: string, port: number): string {
  return `${formatHost(host)}:${String(port)}`;
}

/** The inverse of `formatHostPort`. Throws for anything else. */
export function splitHostPort(text: string): { readonly host: string; readonly port: number } {
  const match = /^(?:\[([0-9A-Fa-f:.]+)\]|([A-Za-z0-9.-]+)):(\d{1,5})$/.exec(text);
  const port = Number(match?.[3]);
  if (match === null || port < 1 || port > 65_535) throw new Error(`${JSON.stringify(text)} is not host:port`);
  return { host: match[1] ?? match[2] ?? '', port };
}

/** Whether a host name is one that a machine has for itself (RFC 6761 §6.3). */
export function isLocalName(host: string): boolean {
  return /^(?:.*\.)?localhost\.?$/i.test(host);
}

import { ipFamily } from './ip-address.js';

const PREFIX_LENGTH = /^(?:0|[1-9]\d{0,2})$/;

/** True for an IPv4 or IPv6 address, or a CIDR block of them (`203.0.113.0/24`, `2001:db8::/32`). Host bits may be set. */
export function isSourceAddress(text: string): boolean {
  const [address = '', prefix, ...rest] = text.split('/');
  if (rest.length > 0) return false;
  const family = ipFamily(address);
  if (family === 0) return false;
  return prefix === undefined || (PREFIX_LENGTH.test(prefix) && Number(prefix) <= (family === 4 ? 32 : 128));
}

import { describe, expect, it } from 'vitest';
import { formatHost, formatHostPort, ipFamily, isInBlocks, splitHostPort } from '../../../src/lib/address.js';
import { cellAmong, cellPrefix } from '../../../src/lib/cells.js';

it.each([
  ['192.0.2.1', 4],
  ['2001:db8::1', 6],
  ['fe80::1%eth0', 0],
  ['carrier.example', 0],
  ['', 0],
])('%s has the family %i', (text, family) => {
  expect(ipFamily(text)).toBe(family);
});

describe('a list of addresses and blocks', () => {
  const BLOCKS = ['203.0.113.7', '198.51.100.0/24', '2001:db8::/32', '2001:db9::1', 'carrier.example', 'fe80::1%eth0'];

  it.each(['203.0.113.7', '198.51.100.0', '198.51.100.255', '2001:db8:ffff::1', '2001:db9::1'])('contains %s', (address) => {
    expect(isInBlocks(BLOCKS, address)).toBe(true);
  });

  it.each(['203.0.113.8', '198.51.101.0', '2001:db9::2', 'carrier.example', 'fe80::1%eth0', ''])('does not contain %j', (address) => {
    expect(isInBlocks(BLOCKS, address)).toBe(false);
  });
});

describe('host and port', () => {
  it.each([
    ['carrier.example', 5_061, 'carrier.example:5061'],
    ['192.0.2.1', 1, '192.0.2.1:1'],
    ['2001:db8::1', 65_535, '[2001:db8::1]:65535'],
  ])('of %s and %i become one text, and two values again', (host, port, text) => {
    expect(formatHostPort(host, port)).toBe(text);
    expect(splitHostPort(text)).toEqual({ host, port });
    expect(text.startsWith(`${formatHost(host)}:`)).toBe(true);
  });

  it.each(['a:0', 'a:65536', 'a:', 'a', ':1', 'a:b', 'a:1:2', '2001:db8::1:5061', '[a b]:1', 'x a:1', 'a:123456', ' a:1', 'a:1 '])(
    'are not read from %j',
    (text) => {
      expect(() => splitHostPort(text)).toThrow(`${JSON.stringify(text)} is not host:port`);
    },
  );
});

it('a tag begins with the number of its cell, except the first; calls of a cell that is gone go to an existing one', () => {
  expect([cellPrefix(1), cellPrefix(2), cellPrefix(10)]).toEqual(['', '2.', '10.']);
  expect([1, 2, 3, 4, 7].map((cell) => cellAmong(cell, 3))).toEqual([1, 2, 3, 1, 1]);
});

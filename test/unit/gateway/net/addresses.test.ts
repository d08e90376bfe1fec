import { describe, expect, it } from 'vitest';
import { isPublicAddress } from '../../../../src/lib/address-scope.js';
import { guardedLookup, isAllowedHost, privateLookup } from '../../../../src/gateway/net/guarded-lookup.js';

describe('a public address', () => {
  it.each(['8.8.8.8', '1.1.1.1', '172.32.0.1', '192.169.0.1', '2606:4700::1111', '2c0f:f248::1', '::ffff:8.8.8.8'])(
    'may be %s',
    (address) => {
      expect(isPublicAddress(address)).toBe(true);
    },
  );

  it.each([
    ...['0.0.0.0', '10.1.2.3', '100.64.0.1', '127.0.0.1', '127.9.9.9', '169.254.169.254', '172.16.0.1', '172.31.255.255'],
    ...['192.168.0.1', '192.0.2.1', '192.88.99.1', '198.18.0.1', '203.0.113.9', '224.0.0.1', '255.255.255.255'],
    ...[
      '::',
      '::1',
      '::127.0.0.1',
      '::ffff:127.0.0.1',
      '::ffff:7f00:1',
      '64:ff9b::7f00:1',
      '::ffff:0:127.0.0.1',
      '4000::1',
      '1fff::1',
      '2002:7f00:1::',
      'fd00::1',
      'fe80::1',
      'fec0::1',
      'feff::1',
      '5f00::1',
      '3fff::1',
      'ff02::1',
    ],
    ...['example.com', '', '127.1'],
  ])('may not be %s', (address) => {
    expect(isPublicAddress(address)).toBe(false);
  });
});

describe('a host in a URL', () => {
  it.each(['127.0.0.1', '[::1]', '10.1.2.3', 'localhost', 'LOCALHOST.', 'a.localhost'])(
    'such as %s is allowed only where private ones are',
    (host) => {
      expect([isAllowedHost(host, false), isAllowedHost(host, true)]).toEqual([false, true]);
    },
  );

  it.each(['8.8.8.8', '[2606:4700::1111]', 'example.com', 'localhost.example.com'])('such as %s is allowed', (host) => {
    expect(isAllowedHost(host, false)).toBe(true);
  });
});

describe('a look-up for names of customers', () => {
  const find = (lookup: ReturnType<typeof guardedLookup>, all: boolean): Promise<unknown> =>
    new Promise((resolve) => lookup('localhost', { all }, (error, found) => resolve(error?.code ?? found)));

  it('finds this machine only where that is allowed', async () => {
    expect(await find(guardedLookup(false), false)).toBe('EPRIVATE');
    expect(await find(guardedLookup(true), false)).toMatch(/^(127\.0\.0\.1|::1)$/);
    expect(await find(privateLookup, true)).toContainEqual(expect.objectContaining({ address: expect.any(String) as string }));
  });
});

import { describe, expect, it } from 'vitest';
import { ownAddress, type OwnNetwork } from '../../../src/config/own-address.js';

const network: OwnNetwork = {
  addresses: new Map([
    ['docker0', ['172.17.0.1']],
    ['eth0', ['192.0.2.10', '192.0.2.11']],
    ['eth1', ['203.0.113.10']],
  ]),
  defaultInterface: 'eth0',
};

describe('bind_address: auto', () => {
  it('is the public address where the machine has it', () => {
    expect(ownAddress('203.0.113.10', network)).toBe('203.0.113.10');
  });

  it('is a loopback public address, also on a machine without a route', () => {
    expect(ownAddress('127.0.0.1', network)).toBe('127.0.0.1');
    expect(ownAddress('127.77.0.2', { addresses: new Map(), defaultInterface: null })).toBe('127.77.0.2');
  });

  it.each(['198.51.100.1', null])(
    'is the address of the default route behind 1:1 NAT, or without a public address (%s)',
    (publicAddress) => {
      expect(ownAddress(publicAddress, network)).toBe('192.0.2.10');
    },
  );

  it('names the remedy on a machine without a route', () => {
    const alone = { addresses: new Map([['docker0', ['172.17.0.1']]]), defaultInterface: null };
    expect(() => ownAddress(null, alone)).toThrow(/bind_address.*Set it to an address of this machine/);
  });
});

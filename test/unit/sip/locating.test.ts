import { beforeEach, describe, expect, it } from 'vitest';
import { orderServers, type NaptrRecord, type SrvRecord } from '../../../src/sip/transport/service-location.js';
import type { Target } from '../../../src/sip/transport/flow.js';
import { Locator, type Found, type NameResolver } from '../../../src/sip/transport/locator.js';
import { VirtualClock } from '../../support/virtual-clock.js';

const server = (name: string, priority: number, weight: number): SrvRecord => ({ name, port: 5_061, priority, weight });
const names = (records: readonly SrvRecord[]): string => records.map(({ name }) => name).join('');

describe('the order of servers', () => {
  it('[2782] follows the priority', () => {
    expect(names(orderServers([server('c', 30, 1), server('a', 10, 1), server('b', 20, 1)], () => 0.5))).toBe('abc');
  });

  it.each([
    [0, 'zab'],
    [0.01, 'azb'],
    [0.24, 'azb'],
    [0.99, 'bza'],
  ])('[2782] is drawn by weight among equals: %d', (first, order) => {
    const draws = [first, 0, 0];
    expect(names(orderServers([server('b', 1, 75), server('z', 1, 0), server('a', 1, 25)], () => draws.shift() ?? 0))).toBe(order);
  });

  it('[2782] gives each server its share', () => {
    let firsts = 0;
    for (let draw = 0; draw < 1_000; draw += 1) {
      const random = (): number => draw / 1_000;
      if (orderServers([server('a', 1, 25), server('b', 1, 75)], random)[0]?.name === 'b') firsts += 1;
    }
    expect(firsts).toBeGreaterThan(730);
    expect(firsts).toBeLessThan(770);
  });
});

describe('the locator', () => {
  let clock: VirtualClock;
  let asked: string[];
  let naptrs: Record<string, readonly NaptrRecord[]>;
  let services: Record<string, readonly SrvRecord[]>;
  let addresses: Record<string, readonly string[]>;
  let ttlMs: number;
  let locator: Locator;

  function answer<T>(table: Record<string, readonly T[]>, kind: string, name: string): Promise<Found<T>> {
    asked.push(`${kind} ${name}`);
    const records = table[name];
    return records === undefined ? Promise.reject(new Error(`${name} is unknown`)) : Promise.resolve({ records, ttlMs });
  }

  beforeEach(() => {
    clock = new VirtualClock();
    asked = [];
    naptrs = {};
    services = {};
    addresses = {};
    ttlMs = 60_000;
    const resolver: NameResolver = {
      naptr: (name) => (naptrs[name] === undefined ? Promise.resolve({ records: [], ttlMs }) : answer(naptrs, 'NAPTR', name)),
      srv: (name) => answer(services, 'SRV', name),
      addresses: (name) => answer(addresses, 'A', name),
    };
    locator = new Locator({ resolver, clock, random: () => 0.5, maxTtlMs: 300_000 });
  });

  const target = (host: string, port: number | null = null, more: Partial<Target> = {}): Target => ({
    transport: 'TLS',
    host,
    port,
    ...more,
  });

  it.each(['192.0.2.1', '2001:db8::1'])('[3263 §4.2] sends no query for %s', async (host) => {
    expect(await locator.locate(target(host))).toEqual([{ address: host, port: 5_061 }]);
    expect(await locator.locate(target(host, 7_000))).toEqual([{ address: host, port: 7_000 }]);
    expect(await locator.locate(target('a.test', 7_000, { address: host }))).toEqual([{ address: host, port: 7_000 }]);
    expect(asked).toEqual([]);
  });

  it('[3263 §4.1] queries the services of SIPS+D2T by their order, nothing in clear, and then _sips._tcp', async () => {
    const naptr = (order: number, preference: number, service: string, replacement: string, flags = 's'): NaptrRecord => ({
      order,
      preference,
      flags,
      service,
      replacement,
    });
    naptrs['a.test'] = [
      naptr(30, 1, 'SIPS+D2T', '_sips._tcp.third.test'),
      naptr(10, 1, 'SIP+D2U', '_sip._udp.a.test'),
      naptr(20, 2, 'sips+d2t', '_sips._tcp.second.test', 'S'),
      naptr(20, 1, 'SIPS+D2T', '_sips._tcp.first.test'),
      naptr(1, 1, 'SIPS+D2T', 'a.test', 'u'),
    ];
    services['_sips._tcp.first.test'] = [];
    services['_sips._tcp.second.test'] = [server('one.test', 10, 0)];
    addresses['one.test'] = ['192.0.2.1'];
    expect(await locator.locate(target('a.test'))).toEqual([{ address: '192.0.2.1', port: 5_061 }]);
    expect(asked).toEqual(['NAPTR a.test', 'SRV _sips._tcp.first.test', 'SRV _sips._tcp.second.test', 'A one.test']);
    naptrs['b.test'] = [naptr(1, 1, 'SIP+D2T', '_sip._tcp.b.test')];
    services['_sips._tcp.b.test'] = [server('one.test', 10, 0)];
    expect(await locator.locate(target('b.test'))).toEqual([{ address: '192.0.2.1', port: 5_061 }]);
    expect(asked.slice(4)).toEqual(['NAPTR b.test', 'SRV _sips._tcp.b.test']);
  });

  it('[3263 §4.2] uses every address of every server in order, each once', async () => {
    services['_sips._tcp.a.test'] = [server('two.test', 20, 0), server('one.test', 10, 0), server('away.test', 15, 0)];
    addresses = { 'one.test': ['192.0.2.1', '2001:db8::1'], 'two.test': ['192.0.2.2', '192.0.2.1'] };
    const found = await locator.locate(target('a.test'));
    expect(found.map(({ address }) => address)).toEqual(['192.0.2.1', '2001:db8::1', '192.0.2.2']);
  });

  it('falls back to the addresses of the host when SRV has no answer', async () => {
    addresses['a.test'] = ['192.0.2.1'];
    expect(await locator.locate(target('a.test'))).toEqual([{ address: '192.0.2.1', port: 5_061 }]);
  });

  it('rejects with the reason when there is no address', async () => {
    await expect(locator.locate(target('a.test'))).rejects.toThrow('a.test is unknown');
    addresses['b.test'] = [];
    await expect(locator.locate(target('b.test'))).rejects.toThrow('b.test has no address for TLS');
  });

  it('caches an answer as long as its TTL, up to the limit, and no failure', async () => {
    const ask = (): Promise<unknown> => locator.locate(target('a.test', 5_061)).catch(() => null);
    await ask();
    addresses['a.test'] = ['192.0.2.1'];
    await Promise.all([ask(), ask()]);
    clock.advance(59_999);
    await ask();
    expect(asked).toHaveLength(2);
    clock.advance(1);
    ttlMs = 86_400_000;
    await ask();
    expect(asked).toHaveLength(3);
    clock.advance(299_999);
    await ask();
    expect(asked).toHaveLength(3);
    clock.advance(1);
    await ask();
    expect(asked).toHaveLength(4);
  });

  it('caches no more than 1000 names', async () => {
    for (let number = 0; number < 1_100; number += 1) {
      addresses[`${String(number)}.test`] = ['192.0.2.1'];
      await locator.locate(target(`${String(number)}.test`, 5_061));
    }
    expect(locator.size).toBe(1_000);
  });
});

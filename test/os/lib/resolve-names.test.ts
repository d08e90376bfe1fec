import { createSocket, type Socket } from 'node:dgram';
import { Resolver } from 'node:dns/promises';
import { once } from 'node:events';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { NameAddresses } from '../../../src/lib/resolve-names.js';
import { DnsServer } from '../../support/dns-server.js';

let server: DnsServer;
let mute: Socket;
let asked: string[];
beforeEach(async () => {
  server = await DnsServer.start({ 'A both.example': ['192.0.2.1'], 'AAAA both.example': ['::1'] }, 30);
  mute = createSocket('udp4').bind(0, '127.0.0.1');
  await once(mute, 'listening');
  asked = [];
});
afterEach(() => {
  server.close();
  mute.close();
});

const system = (name: string): Promise<readonly { readonly address: string }[]> => {
  asked.push(name);
  return name === 'nobody.example' ? Promise.reject(new Error('ENOTFOUND')) : Promise.resolve([{ address: '127.0.0.9' }]);
};

function muteResolver(): Resolver {
  const resolver = new Resolver({ timeout: 50, tries: 1 });
  resolver.setServers([`127.0.0.1:${String(mute.address().port)}`]);
  return resolver;
}

describe('the addresses of a name that others choose', () => {
  it('come from DNS, of both families, with their time to live', async () => {
    expect(await new NameAddresses(server.resolver(), system).of('both.example')).toEqual([
      { address: '192.0.2.1', ttlMs: 30_000 },
      { address: '::1', ttlMs: 30_000 },
    ]);
    expect(asked).toEqual([]);
  });

  it('come from the system where DNS has none, and for a name without a dot', async () => {
    const names = new NameAddresses(server.resolver(), system);
    for (const name of ['of.hosts.file', 'redis']) expect(await names.of(name)).toEqual([{ address: '127.0.0.9', ttlMs: null }]);
    expect(asked).toEqual(['of.hosts.file', 'redis']);
    await expect(names.of('nobody.example')).rejects.toThrow('ENOTFOUND');
  });

  it('do not come from the system where the DNS server is silent, which would block one of four threads', async () => {
    const names = new NameAddresses(muteResolver(), system);
    const all = await Promise.allSettled(Array.from({ length: 20 }, (_none, at) => names.of(`mute-${String(at)}.example`)));
    expect(all.map((one) => (one.status === 'rejected' ? (one.reason as NodeJS.ErrnoException).code : one.value))).toEqual(
      Array(20).fill('ETIMEOUT'),
    );
    expect(asked).toEqual([]);
  });
});

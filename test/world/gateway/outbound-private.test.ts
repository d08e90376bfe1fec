import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { testCertificates } from '../../support/certificates.js';
import { FROM, OutboundSite } from '../../support/outbound-site.js';
import { worldNames } from '../driver/builtins.js';
import { World } from '../world.js';

// A name that is none of the literal addresses which the API refuses.
const NAME = 'loopback.test';
worldNames.set(NAME, ['127.0.0.1']);

describe.each([
  [true, 'gets calls and registrations'],
  [false, 'gets neither calls nor registrations'],
])('with trunks.allow_private %s a trunk whose name resolves to a loopback address', (isAllowed, what) => {
  let site: OutboundSite<World>;

  beforeAll(async () => {
    site = await OutboundSite.startOn((settings) => World.start(settings), true, { TRUNKLINE_TRUNKS_ALLOW_PRIVATE: String(isAllowed) });
    const endpoint = `${NAME}:${String(site.trunk.port)}`;
    const { ca } = await testCertificates();
    const account = { username: 'acme', password: 'p', registrar: endpoint };
    const updates = { type: 'outbound', sip_endpoint: endpoint, ca, tls_names: ['localhost'], ...account };
    expect((await site.gateway.api('POST', '/sip/update', { phone_number: FROM, updates })).status).toBe(200);
  });
  afterAll(() => site.destroy());

  const registration = async (): Promise<{ readonly state: string } | undefined> => {
    const { json } = await site.gateway.api('GET', `/sip?inbound_id=${FROM.slice(1)}`);
    return (json['data'] as { outbound: { registration?: { readonly state: string } } }).outbound.registration;
  };

  it(what, async () => {
    const { json } = await site.place();
    const callId = String(json['call_id']);
    if (isAllowed) {
      const call = await site.trunk.call();
      expect(call.invite.text).not.toMatch(/X-Trunkline/i);
      call.respond('486 Busy Here');
      await call.request('ACK');
      await call.peer.request('REGISTER');
      expect(await site.ended(callId)).toMatchObject({ reason: 'BUSY' });
      return;
    }
    expect(await site.ended(callId)).toMatchObject({ reason: 'TRUNK_UNREACHABLE' });
    await site.gateway.until(async () => (await registration())?.state === 'unreachable');
    expect(site.trunk.peers).toEqual([]);
    await site.gateway.logged('sip-server', `${NAME} is at no public address`);
  });

  it('gets 403 at once as a literal address, unless it is allowed', async () => {
    const updates = { type: 'outbound', sip_endpoint: site.trunk.endpoint };
    await site.gateway.api('POST', '/sip/update', { phone_number: FROM, updates });
    expect((await site.place()).status).toBe(isAllowed ? 200 : 403);
  });
});

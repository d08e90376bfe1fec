import { beforeAll, describe, expect, it } from 'vitest';
import { FROM, OutboundSite } from '../../support/outbound-site.js';
import { offerSdp } from '../../support/sdp.js';
import type { WireMessage } from '../../support/sip-peer.js';
import { World } from '../world.js';
import { respond } from '../../support/sip-message.js';

let site: OutboundSite<World>;

beforeAll(async () => {
  site = await OutboundSite.startOn((settings) => World.start(settings));
  return () => site.destroy();
});

const update = (updates: object): Promise<unknown> =>
  site.gateway.api('POST', '/sip/update', {
    phone_number: FROM,
    updates: { type: 'outbound', sip_endpoint: site.trunk.endpoint, ...updates },
  });

const registration = async (): Promise<{ readonly state: string } | undefined> => {
  const { json } = await site.gateway.api('GET', `/sip?inbound_id=${FROM.slice(1)}`);
  return (json['data'] as { outbound: { registration?: { readonly state: string } } }).outbound.registration;
};

describe('a trunk that requires a registration', () => {
  let contact = '';

  it('[3261 §10.2] gets REGISTER over its connection, with credentials once it challenges, and its state is registered', async () => {
    expect(await registration()).toBeUndefined();
    await update({ username: 'acme', password: 'secret', registrar: site.trunk.endpoint });
    const peer = await site.trunk.peer();
    const register = await peer.request('REGISTER');
    expect(register.startLine).toBe(`REGISTER sip:${site.trunk.endpoint};transport=tls SIP/2.0`);
    expect([register.header('To'), register.header('Expires')]).toEqual(['<sip:acme@127.0.0.1>', '600']);
    contact = /<(sip:[^>]*)>/.exec(register.header('Contact') ?? '')?.[1] ?? '';
    expect(contact).toMatch(new RegExp(`^sip:\\${FROM}@127\\.0\\.0\\.1:\\d+;transport=tls$`));
    const challenge = 'WWW-Authenticate: Digest realm="carrier", qop="auth", algorithm=SHA-256, nonce="r1"';
    respond(peer, register, '401 Unauthorized', { tag: 'reg', extra: [challenge] });
    const again = await peer.request('REGISTER');
    const sameDialog = (message: WireMessage): unknown[] => [message.header('Call-ID'), message.header('From')];
    expect(sameDialog(again)).toEqual(sameDialog(register));
    expect(again.header('Authorization')).toMatch(/^Digest username="acme", realm="carrier", nonce="r1"/);
    const grantedMs = Date.now();
    respond(peer, again, '200 OK', { tag: 'reg', extra: [`Contact: <${contact}>;expires=300`] });
    await site.gateway.until(async () => (await registration())?.state === 'registered');
    expect(await registration()).toMatchObject({ status: 200, expires_at: new Date(grantedMs + 300_000).toISOString() });
    expect(site.trunk.peers).toHaveLength(1);
  });

  it('[5923] may send requests over that connection: the gateway answers a call to the registered number', async () => {
    const directions = ['inbound', { type: 'outbound', sip_endpoint: site.trunk.endpoint, username: 'acme', password: 'secret' }];
    await site.gateway.api('POST', '/sip/attach', { phone_number: FROM, directions, service: 'sip' });
    const peer = await site.trunk.peer();
    const head = [
      `INVITE ${contact} SIP/2.0`,
      'Via: SIP/2.0/TLS 127.0.0.1:5061;branch=z9hG4bK-in1',
      'Max-Forwards: 70',
      'From: <sip:+4930123456@127.0.0.1>;tag=in1',
      `To: <sip:${FROM}@127.0.0.1>`,
      'Call-ID: in1',
      'CSeq: 1 INVITE',
      'Contact: <sip:carrier@127.0.0.1:5061;transport=tls>',
      'Content-Type: application/sdp',
    ];
    peer.send(head, offerSdp());
    const answer = await peer.next('200', (message) => message.status >= 200 && message.header('Call-ID') === 'in1');
    expect(answer.status).toBe(200);
    const inDialog = (method: string, branch: string): void =>
      peer.send([
        `${method} ${contact} SIP/2.0`,
        `Via: SIP/2.0/TLS 127.0.0.1:5061;branch=z9hG4bK-${branch}`,
        'Max-Forwards: 70',
        'From: <sip:+4930123456@127.0.0.1>;tag=in1',
        `To: ${answer.header('To') ?? ''}`,
        'Call-ID: in1',
        `CSeq: ${method === 'ACK' ? '1' : '2'} ${method}`,
      ]);
    inDialog('ACK', 'in2');
    inDialog('BYE', 'in3');
    expect((await peer.next('200 to BYE', (message) => message.header('CSeq') === '2 BYE')).status).toBe(200);
    expect(site.trunk.peers).toHaveLength(1);
  });

  it('[3261 §10.2.2] gets the end of the registration; the API shows its refusal', async () => {
    const peer = await site.trunk.peer();
    const gone = await peer.request('REGISTER');
    expect([gone.header('Expires'), gone.header('To')]).toEqual(['0', '<sip:acme@127.0.0.1>']);
    respond(peer, gone, '200 OK', { tag: 'reg' });
    await update({ registrar: site.trunk.endpoint });
    const register = await peer.next(
      'REGISTER',
      (message) => message.startLine.startsWith('REGISTER ') && message.header('Expires') === '600',
    );
    respond(peer, register, '403 Forbidden', { tag: 'reg' });
    await site.gateway.until(async () => (await registration())?.state === 'refused');
    expect(await registration()).toMatchObject({ status: 403, expires_at: null });
    await site.gateway.logged('gateway', '"msg":"trunk.not_registered"');
    const logs = await site.gateway.log('gateway');
    expect(logs).not.toMatch(/secret|response=/);
  });
});

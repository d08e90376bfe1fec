import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { until } from '../../support/carrier-call.js';
import { PeerDialog, SentRequest, sdpOf } from '../../support/peer-dialog.js';
import { SipSite } from '../../support/sip-site.js';
import { eventOf, finalOf, type SrfApplication, type SrfDialog, type SrfRequest } from '../../support/srf.js';
import { withWorldTime } from '../world-time.js';
import { respond } from '../../support/sip-message.js';

withWorldTime();

let site: SipSite;
let srf: SrfApplication;
const subscriptions = new Map<string, SrfDialog>();
const seen: SrfRequest[] = [];

beforeAll(async () => {
  site = await SipSite.start();
  srf = await site.application((application) => {
    application.subscribe((req, res) => {
      const options = { headers: { Expires: req.get('Expires') } };
      application.createUAS(req, res, options, (_error, dialog) => subscriptions.set(dialog.sip.callId, dialog));
    });
    for (const method of ['message', 'options', 'publish', 'register', 'info', 'notify'] as const) {
      application[method]((req, res) => {
        seen.push(req);
        const granted = method === 'register' ? { headers: { Contact: `${req.get('Contact')};expires=60` } } : {};
        res.send(200, method === 'publish' ? { headers: { 'SIP-ETag': 'e1', Expires: '60' } } : granted);
      });
    }
  });
});
afterEach(() => site.settled());
afterAll(() => site.close());

const SUBSCRIBE = { extra: ['Event: presence', 'Expires: 600'] };

async function subscribed(): Promise<{ ours: SrfDialog; theirs: PeerDialog }> {
  const peer = await site.udp();
  const sent = new SentRequest(peer, 'SUBSCRIBE', 'sip:bob@127.0.0.1', SUBSCRIBE);
  const accepted = await sent.status(202);
  expect([accepted.header('Expires'), accepted.header('Contact')]).toEqual(['600', expect.stringMatching(/^<sip:/)]);
  await until(() => subscriptions.has(sent.callId), 'the application has no subscription');
  return { ours: subscriptions.get(sent.callId)!, theirs: PeerDialog.caller(peer, accepted) };
}

describe('a subscription of a peer', () => {
  it('[6665 §4.2.2] carries NOTIFYs of the application, and the last one ends it', async () => {
    const { ours, theirs } = await subscribed();
    const told = ours.request({
      method: 'NOTIFY',
      headers: { Event: 'presence', 'Subscription-State': 'active;expires=600', 'Content-Type': 'application/pidf+xml' },
      body: '<presence/>',
    });
    const notify = await theirs.request('NOTIFY');
    expect([notify.header('Subscription-State'), notify.body]).toEqual(['active;expires=600', '<presence/>']);
    respond(theirs.peer, notify, '200 OK');
    expect((await told).status).toBe(200);
    void ours.destroy();
    const last = await theirs.request('NOTIFY');
    expect([last.header('Subscription-State'), last.header('Event')]).toEqual(['terminated', 'presence']);
    respond(theirs.peer, last, '200 OK');
  });

  it('[6665 §4.1.2.2] emits a refresh', async () => {
    const { ours, theirs } = await subscribed();
    ours.on('subscribe', (req, res) => res.send(200, { headers: { Expires: req.get('Expires') } }));
    const answer = await theirs.ask('SUBSCRIBE', { extra: ['Event: presence', 'Expires: 300'] });
    expect([answer.status, answer.header('Expires')]).toEqual([200, '300']);
    void ours.destroy();
    respond(theirs.peer, await theirs.request('NOTIFY'), '200 OK');
  });

  it('[6665 §4.1.2.3] emits unsubscribe at Expires: 0, and the application sends the last NOTIFY', async () => {
    const { ours, theirs } = await subscribed();
    const left = eventOf(ours, 'unsubscribe');
    expect((await theirs.ask('SUBSCRIBE', { extra: ['Event: presence', 'Expires: 0'] })).status).toBe(202);
    await left;
    void ours.destroy();
    const last = await theirs.request('NOTIFY');
    expect(last.header('Subscription-State')).toBe('terminated');
    respond(theirs.peer, last, '200 OK');
  });
});

describe('a subscription of the application', () => {
  async function subscribing(): Promise<{ ours: SrfDialog; theirs: PeerDialog }> {
    const peer = await site.udp();
    const made = srf.createUAC(`sip:bob@127.0.0.1:${String(peer.localPort)}`, {
      method: 'SUBSCRIBE',
      headers: { Event: 'presence', Expires: '600', To: `<sip:bob@127.0.0.1:${String(peer.localPort)}>` },
    });
    const subscribe = await peer.request('SUBSCRIBE');
    expect([subscribe.header('Event'), subscribe.header('Expires')]).toEqual(['presence', '600']);
    respond(peer, subscribe, '202 Accepted', { tag: 'n1', extra: ['Expires: 600'] });
    return { ours: await made, theirs: PeerDialog.callee(peer, subscribe, 'n1') };
  }
  const notify = (state: string): { extra: string[] } => ({ extra: ['Event: presence', `Subscription-State: ${state}`] });

  it('[6665 §4.1.3] emits the peer’s NOTIFYs, and the terminated one ends its dialog', async () => {
    const { ours, theirs } = await subscribing();
    const states: string[] = [];
    ours.on('notify', (req, res) => {
      states.push(req.get('Subscription-State'));
      res.send(200);
    });
    expect((await theirs.ask('NOTIFY', notify('active;expires=600'))).status).toBe(200);
    expect((await theirs.ask('NOTIFY', notify('terminated;reason=noresource'))).status).toBe(200);
    expect(states).toEqual(['active;expires=600', 'terminated;reason=noresource']);
    expect((await theirs.ask('NOTIFY', notify('active'))).status).toBe(481);
  });

  it('[6665 §4.1.2.3] unsubscribes in the dialog, and takes the last NOTIFY', async () => {
    const { ours, theirs } = await subscribing();
    const asked = ours.request({ method: 'SUBSCRIBE', headers: { Event: 'presence', Expires: '0' } });
    const last = await theirs.request('SUBSCRIBE');
    expect([last.header('Expires'), last.header('To')]).toEqual(['0', expect.stringContaining(';tag=n1')]);
    respond(theirs.peer, last, '200 OK', { extra: ['Expires: 0'] });
    expect((await asked).status).toBe(200);
    expect((await theirs.ask('NOTIFY', notify('terminated;reason=timeout'))).status).toBe(200);
  });

  it('rejects with the status of a refusal', async () => {
    const peer = await site.udp();
    const made = srf.createUAC(`sip:bob@127.0.0.1:${String(peer.localPort)}`, { method: 'SUBSCRIBE', headers: { Event: 'nothing' } });
    const failed = made.catch((error: unknown) => error);
    respond(peer, await peer.request('SUBSCRIBE'), '489 Bad Event', { tag: 'n2' });
    expect(await failed).toMatchObject({ status: 489 });
  });
});

describe('a request outside a dialog', () => {
  it.each(['MESSAGE', 'OPTIONS', 'PUBLISH', 'INFO', 'NOTIFY'])(
    '[3261 §8.2] reaches the application when it is %s of a peer',
    async (method) => {
      const peer = await site.tcp();
      seen.length = 0;
      const sent = new SentRequest(peer, method, 'sip:bob@127.0.0.1', {
        body: 'text',
        extra: ['Content-Type: text/plain', 'Event: presence'],
      });
      const answer = await sent.status(200);
      expect(answer.header('To')).toMatch(/;tag=\w{13}$/);
      expect(seen.map((request) => [request.method, request.body, request.protocol])).toEqual([[method, 'text', 'tcp']]);
      if (method === 'PUBLISH') expect(answer.header('SIP-ETag')).toBe('e1');
    },
  );

  it.each(['MESSAGE', 'OPTIONS', 'PUBLISH', 'INFO', 'NOTIFY', 'REGISTER'])(
    '[3261 §8.1] reaches the peer when it is %s of the application',
    async (method) => {
      const peer = await site.udp();
      const request = await srf.request(`sip:bob@127.0.0.1:${String(peer.localPort)}`, {
        method,
        headers: { 'Content-Type': 'text/plain', Subject: 'x' },
        body: 'text',
      });
      const answer = finalOf(request);
      const received = await peer.request(method);
      expect([received.body, received.header('Subject'), received.header('Max-Forwards')]).toEqual(['text', 'x', '70']);
      respond(peer, received, '404 Not Found', { tag: 't' });
      expect((await answer).status).toBe(404);
    },
  );

  it('[5626] that is REGISTER over TLS makes a later INVITE use that connection, and none after Expires: 0', async () => {
    const phone = await site.tls();
    const contact = `sip:phone@127.0.0.9:${String(phone.localPort)}`;
    const register = (expires: number): SentRequest =>
      new SentRequest(phone, 'REGISTER', 'sip:127.0.0.1', { extra: [`Contact: <${contact};transport=tls>;expires=${String(expires)}`] });
    const granted = await register(60).status(200);
    expect(granted.header('Contact')).toContain('expires=60');
    const call = srf.createUAC(`${contact};transport=tls`, { localSdp: sdpOf(40_000) });
    const invite = await phone.request('INVITE');
    expect(invite.startLine).toBe(`INVITE ${contact};transport=tls SIP/2.0`);
    respond(phone, invite, '200 OK', { tag: 'ph', body: sdpOf(41_000) });
    const dialog = await call;
    const theirs = PeerDialog.callee(phone, invite, 'ph');
    await theirs.request('ACK');
    const ended = dialog.destroy();
    respond(phone, await theirs.request('BYE'), '200 OK');
    await ended;
    await register(0).status(200);
    // Now it is looked for where its Contact says, and nobody is there.
    await expect(srf.createUAC(`${contact};transport=tls`, { localSdp: sdpOf(40_000) })).rejects.toMatchObject({ status: 503 });
  });
});

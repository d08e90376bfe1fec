import { createHash } from 'node:crypto';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { until } from '../../support/carrier-call.js';
import { answered, PEER_SDP, PeerDialog, sdpOf } from '../../support/peer-dialog.js';
import { SipSite } from '../../support/sip-site.js';
import { finalOf, type SrfApplication, type SrfDialog } from '../../support/srf.js';
import type { WireMessage } from '../../support/wire-peer.js';
import { withWorldTime } from '../world-time.js';
import { respond } from '../../support/sip-message.js';

withWorldTime();

let site: SipSite;
let srf: SrfApplication;
let uas: SrfDialog | undefined;

beforeAll(async () => {
  site = await SipSite.start();
  srf = await site.application((application) => {
    application.invite((req, res) => {
      application.createUAS(req, res, { localSdp: SDP }, (_error, dialog) => (uas = dialog));
    });
  });
});
afterEach(() => site.settled());
afterAll(() => site.close());

const SDP = sdpOf(40_000);
const auth = { username: 'alice', password: 'not-a-real-one' };
const CHALLENGE = 'Digest realm="test", nonce="n1", qop="auth", algorithm=MD5';

const md5 = (...parts: string[]): string => createHash('md5').update(parts.join(':')).digest('hex');
/** RFC 2617 §3.2.2, computed here anew. */
function isGenuine(credentials: string, method: string): boolean {
  const value = (name: string): string => new RegExp(`\\b${name}="?([^",]*)`).exec(credentials)?.[1] ?? '';
  const secret = md5(auth.username, 'test', auth.password);
  const wanted = md5(secret, 'n1', value('nc'), value('cnonce'), 'auth', md5(method, value('uri')));
  return value('username') === 'alice' && value('response') === wanted;
}

const number = (message: WireMessage): number => Number(message.header('CSeq')?.split(' ')[0]);

describe.each([
  ['401 Unauthorized', 'WWW-Authenticate', 'Authorization'],
  ['407 Proxy Authentication Required', 'Proxy-Authenticate', 'Proxy-Authorization'],
])('a challenge by %s', (status, asks, tells) => {
  it.each(['INVITE', 'REGISTER'])(
    '[3261 §8.1.3.5] [3261 §22.2] makes %s go again with the same Call-ID, From and To, and the next CSeq',
    async (method) => {
      const peer = await site.udp();
      const uri = `sip:bob@127.0.0.1:${String(peer.localPort)}`;
      const call = method === 'INVITE' ? srf.createUAC(uri, { localSdp: SDP, auth }) : undefined;
      call?.catch(() => undefined);
      const request = method === 'INVITE' ? undefined : srf.request(uri, { method, auth, headers: { Contact: '<sip:a@127.0.0.1>' } });
      const first = await peer.request(method);
      expect(first.header(tells)).toBeUndefined();
      respond(peer, first, status, { tag: 'd1', extra: [`${asks}: ${CHALLENGE}`] });
      if (method === 'INVITE') expect(number(await peer.request('ACK'))).toBe(number(first));
      const second = await peer.request(method);
      expect(['Call-ID', 'From', 'To'].map((name) => second.header(name))).toEqual(
        ['Call-ID', 'From', 'To'].map((name) => first.header(name)),
      );
      expect(number(second)).toBe(number(first) + 1);
      expect(isGenuine(second.header(tells) ?? '', method)).toBe(true);
      expect(second.body).toBe(first.body);
      if (request !== undefined) {
        const answer = finalOf(await request);
        respond(peer, second, '200 OK', { tag: 'd2' });
        expect((await answer).status).toBe(200);
        return;
      }
      respond(peer, second, '200 OK', { tag: 'd2', body: PEER_SDP });
      const dialog = (await call)!;
      expect(dialog.sip.localTag).toBe(/tag=(.*)$/.exec(first.header('From') ?? '')?.[1]);
      const theirs = PeerDialog.callee(peer, second, 'd2');
      expect(number(await theirs.request('ACK'))).toBe(number(second));
      expect((await theirs.ask('BYE')).status).toBe(200);
    },
  );

  it('is final when it refuses the credentials for the second time', async () => {
    const peer = await site.udp();
    const call = srf.createUAC(`sip:bob@127.0.0.1:${String(peer.localPort)}`, { localSdp: SDP, auth });
    const told = call.catch((error: unknown) => error);
    for (let attempt = 0; attempt < 2; attempt += 1) {
      respond(peer, await peer.request('INVITE'), status, { tag: `w${String(attempt)}`, extra: [`${asks}: ${CHALLENGE}`] });
    }
    expect(await told).toMatchObject({ status: Number(status.slice(0, 3)) });
  });
});

describe('a challenge by 407 to a BYE in a dialog', () => {
  it('[3261 §22.2] makes the BYE go again with credentials, and its answer ends the call', async () => {
    const peer = await site.udp();
    const theirs = await answered(peer, 'x');
    await until(() => uas?.sip.callId === theirs.callId, 'the application has no dialog');
    const ended = uas?.destroy({ auth });
    const first = await theirs.request('BYE');
    respond(peer, first, '407 Proxy Authentication Required', { extra: [`Proxy-Authenticate: ${CHALLENGE}`] });
    const second = await theirs.request('BYE');
    expect(number(second)).toBe(number(first) + 1);
    expect(isGenuine(second.header('Proxy-Authorization') ?? '', 'BYE')).toBe(true);
    expect(site.server.counts['calls']).toBe(1);
    respond(peer, second, '200 OK');
    await ended;
  });

  it('leaves the call up without credentials, and another BYE ends it', async () => {
    const peer = await site.udp();
    const theirs = await answered(peer, 'x');
    await until(() => uas?.sip.callId === theirs.callId, 'the application has no dialog');
    const ended = uas?.destroy();
    respond(peer, await theirs.request('BYE'), '407 Proxy Authentication Required', { extra: [`Proxy-Authenticate: ${CHALLENGE}`] });
    await ended;
    expect(site.server.counts['calls']).toBe(1);
    expect((await theirs.ask('BYE')).status).toBe(404);
  });
});

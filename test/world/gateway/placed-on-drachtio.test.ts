import type { SrvRecord } from 'node:dns';
import { Resolver } from 'node:dns/promises';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { CallTrace } from '../../../src/gateway/call/call-trace.js';
import { PlacedInvite } from '../../../src/gateway/call/placed-invite.js';
import { TrunkAuthorization } from '../../../src/gateway/call/trunk-authorization.js';
import { createSrfApp } from '../../../src/gateway/drachtio/srf-facade.js';
import type { RequestInDialog, SrfApp, SrfDialog } from '../../../src/gateway/ports/signalling.js';
import { silentLog } from '../../../src/lib/log.js';
import { PUBLIC_ONLY_HEADER, TRUNK_TLS_HEADER, writeTrunkTls } from '../../../src/lib/own-headers.js';
import { systemClock } from '../../../src/lib/system-clock.js';
import { DnsNames } from '../../../src/sip/transport/dns-names.js';
import { publicTrunks } from '../../../src/gateway/wiring/public-trunks.js';
import { HandMadeServer, refused, sentRequest, shown, type AppFrame } from '../../support/hand-made-server.js';
import { offerSdp } from '../../support/sdp.js';
import { worldNames } from '../driver/builtins.js';
import type { WorldTime } from '../driver/time.js';
import { withWorldTime } from '../with-world-time.js';

let time: WorldTime;
withWorldTime((started) => (time = started));

// The frames of drachtio-server v0.9.10, as its transcripts have them: tags, CSeq and dialog ids are the server's.

const SDP = offerSdp();
const URI = 'sip:+4930123456@trunk.example;transport=tls';
const CALL_ID = 'our-call-id';
const DIALOG = `${CALL_ID};from-tag=server1`;

let server: HandMadeServer;
let srf: SrfApp;
let seen: string[];
let dialog: SrfDialog | undefined;
let sentAs = '';
let transactions: number;

const open: SrfApp[] = [];

async function connected(port: number, assertPublic?: ReturnType<typeof publicTrunks>): Promise<SrfApp> {
  const app = createSrfApp(assertPublic);
  open.push(app);
  app.onLost(() => undefined);
  await new Promise<void>((resolve) => {
    app.onConnect(() => resolve());
    app.connect({ host: '127.0.0.1', port, secret: 's', tags: [] });
  });
  return app;
}

beforeEach(async () => {
  server = await HandMadeServer.listen();
  srf = await connected(server.port);
  [seen, dialog, transactions] = [[], undefined, 0];
  server.onFrame = (frame) => server.write(sentRequest(frame.id, echoed(frame.text), `t${String((transactions += 1))}`));
});

afterEach(async () => {
  for (const app of open.splice(0)) app.disconnect();
  await server.close();
});

/** With what the server adds: a tag that From lacks, a CSeq. */
function echoed(text: string): string {
  const tagged = text.replace(/^(from: <[^>]*>)$/im, '$1;tag=server1');
  return /^cseq:/im.test(tagged) ? tagged : tagged.replace('\r\n', '\r\nCSeq: 100 INVITE\r\n');
}

const respond = (status: string, transaction: string, headers: readonly string[] = [], body = ''): void => {
  const head = [
    'From: <sip:+15550100555@trunk.example>;tag=server1',
    'To: <sip:+4930123456@trunk.example>;tag=callee',
    `Call-ID: ${CALL_ID}`,
  ];
  const all = [`SIP/2.0 ${status}`, ...head, 'CSeq: 100 INVITE', 'Contact: <sip:callee@192.0.2.9>', ...headers];
  server.write(shown([...all, `Content-Length: ${String(body.length)}`, '', body].join('\r\n'), transaction, DIALOG));
};

const frame = async (count: number): Promise<AppFrame> => {
  await time.until(() => server.frames.length >= count);
  return server.frames[count - 1]!;
};

function invite(password: string | null = null, confirm?: () => Promise<boolean>): PlacedInvite {
  const headers = { From: '<sip:+15550100555@trunk.example>', To: '<sip:+4930123456@trunk.example>', 'Call-ID': CALL_ID };
  const owner = {
    onSent: (dialogId: string) => void (sentAs = dialogId),
    onWithdrawn: (error: string | null) => void seen.push(`withdrawn ${error ?? 'late'}`),
    onProceeding: (status: number) => void seen.push(`proceeding ${String(status)}`),
    onAnswered: (made: SrfDialog, sdp: string) => {
      dialog = made;
      seen.push(`answered ${String(sdp.length)}`);
    },
    onRefused: (status: number, unanswered: string | null) =>
      void seen.push(`refused ${String(status)} ${unanswered === null ? 'by the trunk' : 'by the server'}`),
    request: (id: string, request: RequestInDialog, onAnswer: Parameters<SrfApp['request']>[2]) => srf.request(id, request, onAnswer),
    onUpdate: () => undefined,
  };
  const credentials = password === null ? null : { username: 'u', password, realm: null };
  const trace = new CallTrace(systemClock, true);
  const target = { uri: URI, headers, dialogId: null, ...(confirm === undefined ? {} : { confirm }) };
  const placed = new PlacedInvite(srf, target, SDP, new TrunkAuthorization(credentials), owner, trace, silentLog);
  placed.send();
  return placed;
}

describe('an INVITE that the gateway sends through drachtio-server', () => {
  it('gets its ACK in its dialog, and ends by its dialog id', async () => {
    const placed = invite();
    expect((await frame(1)).text).toMatch(new RegExp(`^INVITE ${URI.replaceAll('+', '\\+')} SIP/2.0\r\n`));
    // Whoever comes after us ends the call by it.
    await time.until(() => sentAs === DIALOG);
    respond('180 Ringing', 't1');
    respond('200 OK', 't1', ['Content-Type: application/sdp'], SDP);
    await time.settle();
    expect(seen).toEqual(['proceeding 180', `answered ${String(SDP.length)}`]);
    expect([dialog?.id, dialog?.sip.localTag, dialog?.sip.remoteTag]).toEqual([DIALOG, 'server1', 'callee']);
    expect(server.frames).toHaveLength(1);
    placed.acknowledge();
    const ack = await frame(2);
    expect([ack.text.split(' ')[0], ack.dialog]).toEqual(['ACK', DIALOG]);
    srf.request(DIALOG, { method: 'BYE' }, () => undefined);
    const bye = await frame(3);
    expect([bye.text.split(' ')[0], bye.dialog]).toEqual(['BYE', DIALOG]);
  });

  it('[3261 §13.2.2.4] keeps its dialog when another fork answers, too, of which drachtio-srf shows nothing', async () => {
    const placed = invite();
    await frame(1);
    respond('200 OK', 't1', ['Content-Type: application/sdp'], SDP);
    await time.settle();
    placed.acknowledge();
    await frame(2);
    const other = shown(
      [
        'SIP/2.0 200 OK',
        'From: <sip:+15550100555@trunk.example>;tag=server1',
        'To: <sip:+4930123456@trunk.example>;tag=other',
        `Call-ID: ${CALL_ID}`,
        'CSeq: 100 INVITE',
        'Contact: <sip:other@192.0.2.10>',
        'Content-Length: 0',
        '',
        '',
      ].join('\r\n'),
      't1',
      DIALOG,
    );
    server.write(other);
    await time.settle();
    expect([seen, dialog?.sip.remoteTag, server.frames.length]).toEqual([[`answered ${String(SDP.length)}`], 'callee', 2]);
  });

  it.each([
    ['its turn is over', () => Promise.resolve(false), 'late'],
    ['the store is away', () => Promise.reject(new Error('away')), 'away'],
  ])('is not sent when %s', async (_what, confirm, why) => {
    invite(null, confirm);
    await time.settle();
    expect(seen).toEqual([`withdrawn ${why}`]);
    invite(null, () => Promise.resolve(true));
    await frame(1);
    expect(server.frames).toHaveLength(1);
  });

  it('is not sent when the call ends while the store is asked', async () => {
    for (const end of [(placed: PlacedInvite) => placed.cancel('API_STOPPED'), (placed: PlacedInvite) => placed.close()]) {
      let answer: (isConfirmed: boolean) => void = () => undefined;
      const placed = invite(null, () => new Promise((resolve) => (answer = resolve)));
      end(placed);
      answer(true);
    }
    await time.settle();
    expect(seen).toEqual(['withdrawn late', 'withdrawn late']);
    invite();
    expect((await frame(1)).text).toMatch(/^INVITE /);
    expect(server.frames).toHaveLength(1);
  });

  it('[3261 §8.1.3.5] is sent again after a challenge as drachtio-srf does: the same Call-ID and tag, the next CSeq', async () => {
    const placed = invite('p');
    await frame(1);
    respond('407 Proxy Authentication Required', 't1', ['Proxy-Authenticate: Digest realm="r", nonce="n", qop="auth"']);
    const { text } = await frame(2);
    expect(text).toMatch(/^From: <sip:\+15550100555@trunk\.example>;tag=server1\r$/m);
    expect(text).toMatch(/^CSeq: 101 INVITE\r$/im);
    expect(text).toMatch(new RegExp(`^Call-ID: ${CALL_ID}\r$`, 'im'));
    expect(text).toMatch(
      /^Proxy-Authorization: Digest username="u", realm="r", nonce="n", uri="sip:\+4930123456@trunk\.example;transport=tls", /m,
    );
    respond('200 OK', 't2', ['Content-Type: application/sdp'], SDP);
    await time.settle();
    expect(seen).toEqual([`answered ${String(SDP.length)}`]);
    placed.acknowledge();
    expect((await frame(3)).text).toMatch(/^Proxy-Authorization: Digest /im);
  });

  it('[3261 §22.3] answers the topmost challenge of each realm, each in a header field of its own, as does its ACK', async () => {
    const placed = invite('p');
    await frame(1);
    const challenges = ['realm="a", nonce="1", qop="auth", algorithm=SHA-256', 'realm="b", nonce="2"', 'realm="a", nonce="3"'];
    respond(
      '407 Proxy Authentication Required',
      't1',
      challenges.map((one) => `Proxy-Authenticate: Digest ${one}`),
    );
    const answers = (text: string): unknown[] =>
      [...text.matchAll(/^Proxy-Authorization: Digest [^\r]*realm="(.)", nonce="(.)"[^\r]*\r$/gim)].map(([, ...found]) => found);
    expect(answers((await frame(2)).text)).toEqual([
      ['a', '1'],
      ['b', '2'],
    ]);
    // Another proxy on the way, and one whose nonce is too old: what was answered before stays.
    respond('407 Proxy Authentication Required', 't2', [
      'Proxy-Authenticate: Digest realm="c", nonce="4"',
      'Proxy-Authenticate: Digest realm="b", nonce="5", stale=true',
    ]);
    const all = [
      ['a', '1'],
      ['c', '4'],
      ['b', '5'],
    ];
    expect(answers((await frame(3)).text)).toEqual(all);
    respond('200 OK', 't3', ['Content-Type: application/sdp'], SDP);
    await time.settle();
    expect(seen).toEqual([`answered ${String(SDP.length)}`]);
    placed.acknowledge();
    expect(answers((await frame(4)).text)).toEqual(all);
  });

  it('[3262 §4] makes each reliable response get its PRACK in its dialog, which the server numbers', async () => {
    invite();
    await frame(1);
    respond('183 Session Progress', 't1', ['Require: 100rel', 'RSeq: 4711', 'Content-Type: application/sdp'], SDP);
    const prack = await frame(2);
    expect([prack.text.split(' ')[0], prack.dialog]).toEqual(['PRACK', DIALOG]);
    expect(prack.text).toMatch(/^RAck: 4711 100 INVITE\r$/im);
    respond('180 Ringing', 't1');
    respond('180 Ringing', 't1', ['Require: 100rel', 'RSeq: 4712']);
    expect((await frame(3)).text).toMatch(/^RAck: 4712 100 INVITE\r$/im);
    respond('486 Busy Here', 't1');
    await time.until(() => seen.includes('refused 486 by the trunk'));
    expect(server.frames).toHaveLength(3);
  });

  it('[4028 §7.3] is sent again with the interval of a 422', async () => {
    invite();
    await frame(1);
    respond('422 Session Interval Too Small', 't1', ['Min-SE: 2700']);
    const { text } = await frame(2);
    expect(text).toMatch(/^Session-Expires: 2700\r$/im);
    expect(text).toMatch(/^Min-SE: 2700\r$/im);
    expect(text).toMatch(/^CSeq: 101 INVITE\r$/im);
  });

  it('keeps the key of a trunk from another server: it fails, and a request in a dialog goes without the key', async () => {
    const tls = { [TRUNK_TLS_HEADER]: writeTrunkTls({ key: 'secret' }) };
    const failed: unknown[] = [];
    const listener = { onSent: () => undefined, onResponse: () => undefined, onUpdate: () => undefined };
    srf.place({ uri: URI, headers: tls, body: SDP }, { ...listener, onFailed: (error) => void failed.push(error) });
    srf.register({ uri: URI, headers: tls }, (error) => void failed.push(error));
    expect(failed.map(String)).toEqual(Array(2).fill(expect.stringMatching(/need Trunkline's SIP server/)));
    srf.request(DIALOG, { method: 'BYE', headers: { ...tls, Reason: 'x' } }, () => undefined);
    const { text } = await frame(1);
    expect(text).toMatch(/^Reason: x\r$/im);
    expect(text).not.toMatch(new RegExp(TRUNK_TLS_HEADER, 'i'));
    expect(server.frames).toHaveLength(1);
  });

  describe('an INVITE where trunks must have public addresses', () => {
    const hosts: Readonly<Record<string, readonly string[]>> = {
      '_sips._tcp.mixed.test': ['sip.public.test', 'sip.private.test'],
      '_sips._tcp.public.test': ['sip.public.test'],
    };
    worldNames.set('sip.public.test', ['8.8.8.8']).set('sip.private.test', ['10.0.0.1']);
    const resolveSrv = (name: string): Promise<SrvRecord[]> => {
      const found = hosts[name];
      if (found === undefined) return Promise.reject(Object.assign(new Error(`querySrv ENOTFOUND ${name}`), { code: 'ENOTFOUND' }));
      return Promise.resolve(found.map((host, index) => ({ name: host, port: 5061, priority: index + 1, weight: 0 })));
    };

    beforeEach(async () => {
      srf = await connected(server.port, publicTrunks(systemClock, new DnsNames(Object.assign(new Resolver(), { resolveSrv }))));
    });

    const headers = { [PUBLIC_ONLY_HEADER]: '1', Reason: 'x' };
    const outcomeOf = (host: string): Promise<string> =>
      new Promise((resolve) => {
        const listener = { onResponse: () => undefined, onUpdate: () => undefined };
        srf.place(
          { uri: `sip:+4930123456@${host};transport=tls`, headers, body: SDP },
          { ...listener, onSent: () => resolve('sent'), onFailed: (error) => resolve(String(error)) },
        );
      });

    it.each(['mixed.test', 'sip.private.test:5061', '10.0.0.1', '[::1]:5061', 'unknown.test'])(
      'is sent to no server at %s',
      async (host) => {
        expect(await outcomeOf(host)).toMatch(host === 'unknown.test' ? /ENOTFOUND|ENODATA/ : /has an address that is not public/);
        expect(server.frames).toEqual([]);
        const refused = new Promise((resolve) => srf.register({ uri: `sip:${host};transport=tls`, headers }, resolve));
        expect(await refused).toBeInstanceOf(Error);
        expect(server.frames).toEqual([]);
      },
    );

    it('is sent to public servers, without the header, as are requests in its dialog', async () => {
      expect(await outcomeOf('public.test')).toBe('sent');
      srf.request(DIALOG, { method: 'BYE', headers }, () => undefined);
      await frame(2);
      for (const { text } of server.frames) {
        expect(text).toMatch(/^Reason: x\r$/im);
        expect(text).not.toMatch(/X-Trunkline/i);
      }
    });
  });

  it('[3261 §9.1] gets its CANCEL by transaction; the server delays the CANCEL as long as it must', async () => {
    const placed = invite();
    await frame(1);
    respond('180 Ringing', 't1');
    await time.settle();
    expect(seen).toEqual(['proceeding 180']);
    placed.cancel('NO_ANSWER');
    const cancel = await frame(2);
    expect([cancel.text.split(' ')[0], cancel.transaction]).toEqual(['CANCEL', 't1']);
    respond('487 Request Terminated', 't1');
    await time.until(() => seen.includes('refused 487 by the trunk'));
  });

  it('is ambiguous after the server’s own 503, which a broken connection causes too, but not after NOK without a transport', async () => {
    invite();
    await frame(1);
    const text = [
      'SIP/2.0 503 Service Unavailable',
      'From: <sip:a@b>;tag=server1',
      'To: <sip:c@d>;tag=x',
      `Call-ID: ${CALL_ID}`,
      'CSeq: 100 INVITE',
      '',
      '',
    ];
    const made = shown(text.join('\r\n'), 't1', DIALOG);
    // A response that the stack made up has neither size nor address.
    server.write(made.replace(/\|network\|\d+\|tls\|[^|]*\|\d+\|/, '|network|0|tls||0|'));
    await time.settle();
    expect(seen).toEqual(['refused 408 by the server']);
    server.onFrame = ({ id }) => server.write(refused(id, 'requested protocol/transport not available'));
    invite();
    await time.settle();
    expect(seen).toEqual(['refused 408 by the server', 'refused 503 by the server']);
  });

  it('is ambiguous when the connection to the server breaks', async () => {
    invite();
    await frame(1);
    respond('180 Ringing', 't1');
    await time.settle();
    expect(seen).toEqual(['proceeding 180']);
    const back = new Promise<void>((resolve) => srf.onConnect(() => resolve()));
    server.drop();
    await time.settle();
    expect(seen).toEqual(['proceeding 180', 'refused 408 by the server']);
    await back;
  });

  it('is ambiguous when the connection to the server breaks before its echo, but not when there was no connection', async () => {
    server.onFrame = () => undefined;
    invite();
    await frame(1);
    const back = new Promise<void>((resolve) => srf.onConnect(() => resolve()));
    const lost = new Promise<void>((resolve) => srf.onLost(() => resolve()));
    server.drop();
    await lost;
    invite();
    await time.settle();
    expect(seen).toEqual(['refused 408 by the server', 'refused 503 by the server']);
    expect(server.frames).toHaveLength(1);
    await back;
  });

  it('gets no ACK when its 200 comes as the connection to the server breaks, and nothing throws', async () => {
    const placed = invite();
    await frame(1);
    respond('200 OK', 't1', ['Content-Type: application/sdp'], SDP);
    await time.until(() => dialog !== undefined);
    const back = new Promise<void>((resolve) => srf.onConnect(() => resolve()));
    server.drop();
    await back;
    expect(() => placed.acknowledge()).not.toThrow();
  });

  it('makes a dialog that another process restores and a BYE of the callee reaches', async () => {
    const placed = invite();
    await frame(1);
    respond('200 OK', 't1', ['Content-Type: application/sdp'], SDP);
    await time.until(() => dialog !== undefined);
    const kept = srf.snapshot(dialog!, placed.text);
    const other = createSrfApp();
    const restored = other.restore(JSON.parse(JSON.stringify(kept)) as typeof kept);
    expect([restored.id, restored.sip, restored.local.contact]).toEqual([dialog!.id, dialog!.sip, dialog!.local.contact]);
  });
});

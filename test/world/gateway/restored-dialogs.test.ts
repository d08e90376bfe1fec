import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createSrfApp } from '../../../src/gateway/drachtio/srf-facade.js';
import { ConnectionLostError, type DialogSnapshot, type SrfApp, type SrfDialog } from '../../../src/gateway/ports/signalling.js';
import { HandMadeServer, refused, sentResponse, shown } from '../../support/hand-made-server.js';
import { offerSdp } from '../../support/sdp.js';
import type { WorldTime } from '../driver/time.js';
import { withWorldTime } from '../with-world-time.js';

let time: WorldTime;
withWorldTime((started) => (time = started));

const ANSWER = offerSdp({ port: 30_000 });
const DIALOG = 'c1;from-tag=f1';
const BODY = offerSdp();
const TYPE = ['Content-Type: application/sdp', `Content-Length: ${String(BODY.length)}`];
const VIA = 'Via: SIP/2.0/TLS carrier;branch=z9hG4bK1';
const START = 'INVITE sip:+15550100100@gw SIP/2.0';

const INVITES: readonly (readonly [string, readonly string[], string])[] = [
  [
    'as usual',
    [VIA, 'From: <sip:a@carrier>;tag=f1', 'To: <sip:b@gw>', 'Call-ID: c1', 'CSeq: 1 INVITE', 'Contact: <sip:a@carrier>', ...TYPE],
    BODY,
  ],
  [
    'with compact header names',
    [
      'v: SIP/2.0/TLS carrier;branch=z9hG4bK1',
      ...['f: <sip:a@carrier>;tag=f1', 't: <sip:b@gw>', 'i: c1', 'CSeq: 1 INVITE', 'm: <sip:a@carrier>', 'c: application/sdp'],
      `l: ${String(BODY.length)}`,
    ],
    BODY,
  ],
  [
    'with folded headers',
    [
      VIA,
      ...['From: "A"', '  <sip:a@carrier>', '\t;tag=f1', 'To:', ' <sip:b@gw>', 'Call-ID:', ' c1', 'CSeq: 1', ' INVITE'],
      ...['Contact: <sip:a@carrier>', ' ;expires=60', ...TYPE],
    ],
    BODY,
  ],
  [
    'with several Contacts, quotes, commas and parameters',
    [
      VIA,
      'From: "Last, First <x> \\"y\\"" <sip:a;phone-context=+1@carrier;user=phone>;tag=f1;other="z"',
      'To: "B" <sip:b@gw;tag=not-this>;isub=1',
      ...['Call-ID: c1', 'CSeq: 1 INVITE'],
      'Contact: "A, B" <sip:a@one.example;transport=tls;x=y>;q=0.7;+sip.instance="<urn:uuid:1>", <sip:a@two.example:5061>',
      'Contact: <sip:a@three.example>',
      ...TYPE,
    ],
    BODY,
  ],
  [
    'over IPv6',
    [
      ...[VIA, 'From: <sip:a@[2001:db8::7]>;tag=f1', 'To: <sip:b@[2001:db8::1]:5061>', 'Call-ID: c1@[2001:db8::7]', 'CSeq: 1 INVITE'],
      ...['Contact: <sip:a@[2001:db8::7]:5061;transport=tls>', ...TYPE],
    ],
    BODY,
  ],
  [
    'without an offer',
    [VIA, 'From: sip:a@carrier;tag=f1', 'To: sip:b@gw', 'Call-ID: c1', 'CSeq: 1 INVITE', 'Contact: sip:a@carrier', 'Content-Length: 0'],
    '',
  ],
];

let server: HandMadeServer;
let first: SrfApp;
let second: SrfApp;

beforeEach(async () => {
  server = await HandMadeServer.listen();
  first = createSrfApp();
  second = createSrfApp();
});

afterEach(async () => {
  second.disconnect();
  await server.close();
});

function connect(app: SrfApp): Promise<void> {
  return new Promise((resolve) => {
    app.onConnect(() => resolve());
    app.onLost(() => undefined);
    app.connect({ host: '127.0.0.1', port: server.port, secret: 'x', tags: [] });
  });
}

/** The dialog as drachtio-srf makes it, and what is kept of it. */
async function answered(lines: readonly string[], body: string): Promise<{ dialog: SrfDialog; kept: DialogSnapshot }> {
  server.onFrame = ({ id, text }) => {
    const tagged = text.replace(/^(to:.*)$/im, '$1;tag=ours');
    server.write(
      sentResponse(id, /tag=ours/.test(tagged) ? tagged : text.replace('\r\n', '\r\nTo: <sip:b@gw>;tag=ours\r\n'), 't1', DIALOG),
    );
  };
  const done = new Promise<{ dialog: SrfDialog; kept: DialogSnapshot }>((resolve, reject) => {
    first.invite((request, response) => {
      first.createUAS(request, response, { localSdp: ANSWER, headers: { Contact: '<sip:[::1]:5061;transport=tls>' } }, (error, dialog) => {
        if (dialog === undefined) reject(error instanceof Error ? error : new Error(String(error)));
        else resolve({ dialog, kept: first.snapshot(dialog, request.msg.raw ?? '') });
      });
    });
  });
  await connect(first);
  server.write(shown([START, ...lines, '', body].join('\r\n'), 't1', ''));
  return done;
}

function inDialog(method: string, body = ''): string {
  const head = [`${method} sip:b@gw SIP/2.0`, VIA, 'From: <sip:a@carrier>;tag=f1', 'To: <sip:b@gw>;tag=ours', 'Call-ID: c1'];
  return [...head, `CSeq: 2 ${method}`, `Content-Length: ${String(body.length)}`, '', body].join('\r\n');
}

describe('a dialog that another process restores', () => {
  it.each(INVITES)('equals the one that drachtio-srf made, from an INVITE %s, and gets the requests in it', async (_what, lines, body) => {
    const { dialog, kept } = await answered(lines, body);
    // drachtio-srf would keep both messages, with all their headers, as long as the call.
    expect(dialog).toMatchObject({ req: { method: 'INVITE', socket: expect.anything() as object }, res: { stackDialogId: dialog.id } });
    expect(dialog).not.toHaveProperty('req.msg');
    expect(dialog).not.toHaveProperty('res.msg');
    const before = JSON.parse(JSON.stringify(dialog)) as { readonly local: object };
    first.disconnect();

    const restored = second.restore(JSON.parse(JSON.stringify(kept)) as DialogSnapshot);
    expect(JSON.parse(JSON.stringify(restored))).toEqual({ ...before, local: { ...before.local, sdp: '' } });
    const heard: string[] = [];
    const handle = restored.handle.bind(restored);
    restored.handle = (request, response) => {
      if (request.method === 'BYE') handle(request, response);
      else heard.push(`${request.method} ${String(request.body.length)}`);
    };
    restored.on('destroy', () => heard.push('destroy'));
    // In the same read as the answer to its authentication: no route has been asked for yet.
    server.greeting = [
      shown(inDialog('ACK'), 't2', DIALOG),
      // Behind the INVITE drachtio-srf would answer it by itself: 500 (RFC 3311 §5.2).
      shown(inDialog('UPDATE', BODY), 't3', DIALOG),
      shown(inDialog('INVITE', BODY), 't4', DIALOG),
    ];
    await connect(second);
    await time.settle();
    expect(heard.toSorted()).toEqual(['ACK 0', `INVITE ${String(BODY.length)}`, `UPDATE ${String(BODY.length)}`]);
    server.write(shown(inDialog('BYE'), 't5', DIALOG));
    await time.until(() => heard.includes('destroy'));
  });

  it('throws at once when its source is no INVITE', async () => {
    await connect(second);
    expect(() => second.restore({ id: DIALOG, invite: 'garbage', localTag: 'ours', contact: '<sip:gw>' })).toThrow();
  });
});

describe('a request in a restored dialog', () => {
  it('fails without any connection, but a BYE is sent once there is one', async () => {
    const errors: unknown[] = [];
    for (const method of ['INVITE', 'OPTIONS', 'BYE'] as const) second.request(DIALOG, { method }, (error) => errors.push(error));
    expect(errors.map((error) => error instanceof ConnectionLostError)).toEqual([true, true, true]);
    await connect(second);
    await time.settle();
    expect(server.frames.map(({ text, dialog }) => [text.split(' ', 1)[0], dialog])).toEqual([['BYE', DIALOG]]);
  });

  it('fails as without a connection when the SIP server does not send it since another host may have the dialog', async () => {
    await connect(second);
    server.onFrame = ({ id }) => server.write(refused(id, 'another cell may have the dialog'));
    const outcome = (method: 'INVITE' | 'OPTIONS'): Promise<unknown> => new Promise((done) => second.request(DIALOG, { method }, done));
    for (const method of ['INVITE', 'OPTIONS'] as const) expect(await outcome(method)).toBeInstanceOf(ConnectionLostError);
  });
});

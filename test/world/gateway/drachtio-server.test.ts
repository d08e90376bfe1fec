import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { CallRecord } from '../../../src/gateway/model/call-record.js';
import type { CallSnapshot } from '../../../src/gateway/model/call-snapshot.js';
import type { Inbound } from '../../../src/gateway/drachtio/inbound.js';
import { NO_USAGE } from '../../../src/gateway/admission/admission.js';
import { createSrfApp } from '../../../src/gateway/drachtio/srf-facade.js';
import type { SrfApp } from '../../../src/gateway/ports/signalling.js';
import { INSIDE, OTHER_INSIDE, OTHER_OUTSIDE, OUTSIDE } from '../../support/call-machine.js';
import { HandMadeServer, refused, sentRequest, sentResponse, shown, type AppFrame } from '../../support/hand-made-server.js';
import { ROUTE } from '../../support/route.js';
import { playedInbound, type Played } from '../../support/played-services.js';
import { offerSdp } from '../../support/sdp.js';
import type { WorldTime } from '../driver/time.js';
import { withWorldTime } from '../with-world-time.js';

let time: WorldTime;
withWorldTime((started) => (time = started));

const DIALOG = 'c1;from-tag=f1';
const TAGGED = '<sip:b@gw>;tag=ours';

let server: HandMadeServer;
let srf: SrfApp;
let inbound: Inbound;
let records: CallRecord[];
let sessions: Set<string>;
let places: Set<string>;
let kept: Map<string, CallSnapshot>;

beforeEach(async () => {
  server = await HandMadeServer.listen();
  [records, sessions, places] = [[], new Set(), new Set()];
  kept = new Map();
  startGateway();
});

afterEach(async () => {
  srf.disconnect();
  await server.close();
});

/** A gateway process; what its calls left in stores and relay stays. */
function startGateway(): void {
  srf = createSrfApp();
  inbound = playedInbound(srf, playedPorts());
}

function playedPorts(): Played {
  const placed = new Set<string>();
  let isMoved = false;
  const sdp = (text: string): Promise<{ sdp: string }> => Promise.resolve({ sdp: text });
  return {
    routes: {
      lookup: (_number, call) => {
        if (call !== null) places.add(call.call_id);
        return Promise.resolve({ route: ROUTE, load: NO_USAGE, staleMs: null });
      },
      release: (callId) => void places.delete(callId),
    },
    calls: { write: ({ record }) => Promise.resolve(void records.push(record)) },
    snapshots: {
      persist: (snapshot) => void kept.set(snapshot.call_id, JSON.parse(JSON.stringify(snapshot)) as CallSnapshot),
      delete: (callId) => void kept.delete(callId),
      orphaned: () => Promise.resolve([]),
    },
    relay: {
      offer: ({ relayId }) => {
        placed.add(relayId);
        sessions.add(relayId);
        return sdp(INSIDE);
      },
      offerToCarrier: () => sdp(isMoved ? OTHER_OUTSIDE : OUTSIDE),
      answerFromCarrier: () => sdp(isMoved ? OTHER_INSIDE : INSIDE),
      // A call that was neither placed nor adopted is on no node that the pool knows.
      delete: (relayId) => {
        if (placed.has(relayId)) sessions.delete(relayId);
        return Promise.resolve(null);
      },
      nodeOf: (relayId) => (placed.has(relayId) ? 'node' : null),
      adopt: (relayId) => (placed.add(relayId), true),
      leave: () => (isMoved = true),
    },
  };
}

async function connect(): Promise<void> {
  srf.connect({ host: '127.0.0.1', port: server.port, secret: 'x', tags: ['gw:a'] });
  await inbound.whenConnected(5_000, 'the test');
}

function message(start: string, cseq: string, to: string, body = ''): string {
  return [
    start,
    `Via: SIP/2.0/TLS carrier;branch=z9hG4bK${cseq.replace(' ', '')}`,
    'From: <sip:a@carrier>;tag=f1',
    `To: ${to}`,
    'Call-ID: c1',
    `CSeq: ${cseq}`,
    'Contact: <sip:a@[2001:db8::7]:5061;transport=tls>',
    ...(body === '' ? [] : ['Content-Type: application/sdp']),
    `Content-Length: ${String(body.length)}`,
    '',
    body,
  ].join('\r\n');
}

const startLine = (text: string): string => text.split('\r\n', 1)[0] ?? '';
const bodyOf = (text: string): string => text.slice(text.indexOf('\r\n\r\n') + 4);

/** The next message that the application wants sent. */
async function next(what: string): Promise<AppFrame & { connection: number }> {
  await time.until(() => server.frames.some(({ text }) => text.startsWith(what)));
  const index = server.frames.findIndex(({ text }) => text.startsWith(what));
  const [frame] = server.frames.splice(index, 1);
  if (frame === undefined) throw new Error(what);
  return frame;
}

/** A call that is answered and acknowledged. */
async function answered(): Promise<void> {
  server.write(shown(message('INVITE sip:+15550100100@gw SIP/2.0', '1 INVITE', '<sip:b@gw>', offerSdp()), 't1', ''));
  const { id, text } = await next('SIP/2.0 200');
  server.write(
    sentResponse(id, message(startLine(text), '1 INVITE', TAGGED, bodyOf(text)), 't1', DIALOG),
    shown(message('ACK sip:b@gw SIP/2.0', '1 ACK', TAGGED), 't1', DIALOG),
  );
  await time.until(() => JSON.stringify([...kept.values()]).includes('"name":"Talking"'));
}

/** The server sends a request of the application's, and its answer comes. */
function answer(frame: AppFrame, status: string, body = ''): void {
  const [method = ''] = frame.text.split(' ', 1);
  const transaction = `out-${frame.id}`;
  server.write(
    sentRequest(frame.id, message(startLine(frame.text), `9 ${method}`, TAGGED), transaction),
    shown(message(`SIP/2.0 ${status}`, `9 ${method}`, TAGGED, body), transaction, DIALOG),
  );
}

async function ended(reason: string): Promise<void> {
  await inbound.whenIdle();
  expect(records.map((record) => record.reason)).toEqual([reason]);
  expect([sessions.size, places.size, kept.size]).toEqual([0, 0, 0]);
}

describe('a gateway that was killed, with a drachtio-server, which does not keep the owners of dialogs,', () => {
  beforeEach(async () => {
    await connect();
    await answered();
    // Only its snapshots are left of the killed process.
    const left = [...kept.values()];
    srf.disconnect();
    startGateway();
    inbound.adopt(left, Date.now());
  });

  it('sends BYE by the dialog’s id, writes the record and frees everything', async () => {
    await connect();
    const bye = await next('BYE ');
    expect([bye.dialog, bye.text]).toEqual([DIALOG, expect.stringContaining('text="GATEWAY_RESTARTED"')]);
    answer(bye, '200 OK');
    await ended('GATEWAY_RESTARTED');
  });

  it('answers a caller’s BYE that comes before anything else', async () => {
    server.greeting = [shown(message('BYE sip:b@gw SIP/2.0', '2 BYE', TAGGED), 't2', DIALOG)];
    await connect();
    expect((await next('SIP/2.0 200')).transaction).toBe('t2');
    await ended('CALLER_HANGUP');
    expect(server.frames.filter(({ text }) => text.startsWith('BYE '))).toEqual([]);
  });

  it('answers a caller’s re-INVITE', async () => {
    server.greeting = [shown(message('INVITE sip:b@gw SIP/2.0', '2 INVITE', TAGGED, offerSdp({ direction: 'sendonly' })), 't2', DIALOG)];
    await connect();
    expect((await next('SIP/2.0 ')).transaction).toBe('t2');
    answer(await next('BYE '), '481 Call/Transaction Does Not Exist');
    await ended('GATEWAY_RESTARTED');
  });
});

describe('a request in a dialog that does not exist any more', () => {
  it.each(['OPTIONS', 'BYE', 'INFO', 'UPDATE', 'NOTIFY', 'INVITE'])(
    '[3261 §12.2.2] gets 481 when it is %s, while OPTIONS outside a dialog does not',
    async (method) => {
      await connect();
      server.write(shown(message(`${method} sip:b@gw SIP/2.0`, `2 ${method}`, TAGGED), 't2', ''));
      expect(startLine((await next('SIP/2.0 ')).text)).toMatch(/^SIP\/2\.0 481 /);
      server.write(shown(message('OPTIONS sip:b@gw SIP/2.0', '3 OPTIONS', '<sip:b@gw>'), 't3', ''));
      expect(startLine((await next('SIP/2.0 ')).text)).not.toContain('481');
    },
  );
});

describe('a call over drachtio-srf', () => {
  beforeEach(async () => {
    await connect();
    await answered();
  });

  async function reinviting(): Promise<AppFrame> {
    inbound.relayLost([...places]);
    return next('INVITE ');
  }

  it('[3311 §5.2] answers an UPDATE that crosses our re-INVITE with 491', async () => {
    const invite = await reinviting();
    const update = message('UPDATE sip:b@gw SIP/2.0', '2 UPDATE', TAGGED, offerSdp({ direction: 'sendonly' }));
    server.write(sentRequest(invite.id, message(startLine(invite.text), '9 INVITE', TAGGED), 'out'), shown(update, 't2', DIALOG));
    expect((await next('SIP/2.0 491')).transaction).toBe('t2');
    server.write(shown(message('SIP/2.0 200 OK', '9 INVITE', TAGGED, offerSdp({ payloads: '0 101' })), 'out', DIALOG));
    expect((await next('ACK ')).dialog).toBe(DIALOG);
  });

  it('ends when the server does not take its re-INVITE', async () => {
    const invite = await reinviting();
    server.write(refused(invite.id, 'Server error: unable to find dialog for dialog id provided'));
    const bye = await next('BYE ');
    expect(bye.text).toContain('text="MEDIA_LOST"');
    server.write(refused(bye.id, 'Server error: unable to find dialog for dialog id provided'));
    await ended('MEDIA_LOST');
  });

  it('ends with its reason when the server has another dialog in place of its own, as after the 200s of two forks', async () => {
    const idle = inbound.drain(0, 60_000);
    const bye = await next('BYE ');
    server.write(refused(bye.id, 'Server error: unable to find dialog for dialog id provided'));
    await idle;
    await ended('SHUTDOWN');
    expect(records[0]?.signalling_error).toBeNull();
  });

  it('ends without another BYE when its BYE gets 407', async () => {
    const idle = inbound.drain(0, 60_000);
    answer(await next('BYE '), '407 Proxy Authentication Required');
    await idle;
    await ended('SHUTDOWN');
    expect(server.frames).toEqual([]);
  });

  it('ends after a lost connection with a BYE over the new one', async () => {
    server.drop();
    const bye = await next('BYE ');
    expect([bye.connection, bye.dialog]).toEqual([2, DIALOG]);
    answer(bye, '200 OK');
    await ended('INTERNAL_ERROR');
  });

  it('sends its BYE again over the new connection when the lost one took the answer', async () => {
    void inbound.drain(0, 60_000);
    expect((await next('BYE ')).connection).toBe(1);
    server.drop();
    await ended('SHUTDOWN');
    const again = await next('BYE ');
    expect([again.connection, again.text]).toEqual([2, expect.stringContaining('text="SHUTDOWN"')]);
  });
});

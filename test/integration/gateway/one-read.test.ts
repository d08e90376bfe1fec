import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { CallRecord } from '../../../src/contracts/call-record.js';
import { Inbound } from '../../../src/gateway/inbound.js';
import { NO_LOAD } from '../../../src/gateway/policy/admission.js';
import { createSrfApp, type SrfApp } from '../../../src/gateway/srf-facade.js';
import { newUuid } from '../../../src/lib/ids.js';
import { silentLog } from '../../../src/lib/log.js';
import { systemClock } from '../../../src/ops/system-clock.js';
import { INSIDE, LOCAL, OUTSIDE } from '../../support/call-machine.js';
import { HandMadeServer, sentResponse, shown } from '../../support/hand-made-server.js';
import { ROUTE } from '../../support/route.js';
import { offerSdp } from '../../support/sdp.js';

// No server can be made to put the echo of a 200, its ACK and a BYE into one read at will: this one, written by hand, does nothing else.

let server: HandMadeServer;
let srf: SrfApp;
let inbound: Inbound;
let records: CallRecord[];
let openLegs: Set<string>;
let relaySessions: Set<string>;

beforeEach(async () => {
  records = [];
  openLegs = new Set();
  relaySessions = new Set();
  server = await HandMadeServer.listen();
  srf = createSrfApp();
  inbound = new Inbound(
    {
      routes: { lookup: () => Promise.resolve({ route: ROUTE, load: NO_LOAD, staleMs: null }), release: () => undefined },
      calls: { write: (record) => Promise.resolve(void records.push(record)) },
      snapshots: { keep: () => undefined, forget: () => undefined, left: () => Promise.resolve([]) },
      relay: {
        offer: (call) => {
          relaySessions.add(call.relayId);
          return Promise.resolve({ sdp: INSIDE });
        },
        answer: () => Promise.resolve({ sdp: OUTSIDE }),
        offerOutward: () => Promise.resolve({ sdp: OUTSIDE }),
        answerOutward: () => Promise.resolve({ sdp: INSIDE }),
        delete: (relayId) => {
          relaySessions.delete(relayId);
          return Promise.resolve(null);
        },
        nodeOf: () => null,
        adopt: () => false,
        leave: () => undefined,
      },
      endpoint: {
        connectAgent: () => Promise.resolve(),
        tellAgent: () => undefined,
        reserve: () => Promise.resolve(LOCAL),
        open: (leg) => {
          openLegs.add(leg.callId);
          return Promise.resolve(LOCAL);
        },
        start: () => undefined,
        setHeld: () => undefined,
        takeDigit: () => undefined,
        setRemote: () => Promise.resolve(),
        close: (callId) => {
          openLegs.delete(callId);
          return Promise.resolve(null);
        },
      },
      srf,
      clock: systemClock,
      log: silentLog,
      newKey: () => new Uint8Array(30),
      insideSrtp: false,
      referReason: 'DECLINED',
      tools: { find: () => Promise.resolve([]) },
      toolRunner: { run: () => Promise.reject(new Error('there are no tools')) },
      operatorAgent: { url: null, format: 'twilio', bearerToken: null },
    },
    {
      sipHost: null,
      ringingAfterMs: 500,
      mayFallBack: false,
      maxDurationMs: 60_000,
      calledNumberFrom: 'request-uri',
      edge: { allowedSources: [], allowedIdentities: [], maxCalls: null, maxCallsPerSecond: null },
    },
    () => ({ isOverloaded: false, isRelayUp: true, mediaRoom: null }),
    silentLog,
  );
  srf.connect({ host: '127.0.0.1', port: server.port, secret: 'x', tags: [] });
  await inbound.whenConnected(5_000);
});

afterEach(async () => {
  srf.disconnect();
  await server.close();
});

const message = (callId: string, start: string, cseq: string, to: string, body = ''): string =>
  [
    start,
    `Via: SIP/2.0/TLS carrier;branch=z9hG4bK${callId}${cseq.replace(' ', '')}`,
    'From: <sip:a@carrier>;tag=f1',
    `To: ${to}`,
    `Call-ID: ${callId}`,
    `CSeq: ${cseq}`,
    'Contact: <sip:a@carrier;transport=tls>',
    ...(body === '' ? [] : ['Content-Type: application/sdp']),
    `Content-Length: ${String(body.length)}`,
    '',
    body,
  ].join('\r\n');

/** One call whose 200, ACK and BYE all come in one read; resolves with the status of the answer to the BYE. */
function zeroLengthCall(callId: string): Promise<string> {
  const dialogId = `${callId};from-tag=f1`;
  const tagged = '<sip:b@gw>;tag=ours';
  const [invite, bye] = [newUuid(), newUuid()];
  return new Promise((resolve) => {
    server.onFrame = ({ id, transaction, text }) => {
      const start = text.split('\r\n', 1)[0] ?? '';
      if (transaction === bye) return resolve(start);
      const body = text.slice(text.indexOf('\r\n\r\n') + 4);
      server.write(
        sentResponse(id, message(callId, start, '1 INVITE', tagged, body), invite, dialogId),
        shown(message(callId, 'ACK sip:b@gw SIP/2.0', '1 ACK', tagged), invite, dialogId),
        shown(message(callId, 'BYE sip:b@gw SIP/2.0', '2 BYE', tagged), bye, dialogId),
      );
    };
    server.write(shown(message(callId, 'INVITE sip:+15550100100@gw SIP/2.0', '1 INVITE', '<sip:b@gw>', offerSdp()), invite, ''));
  });
}

describe('drachtio-srf and very short calls', () => {
  it('sees the BYE of each of 200 calls whose echo, ACK and BYE came in one read, and leaves nothing open', async () => {
    for (let index = 0; index < 200; index += 1) expect(await zeroLengthCall(`short${String(index)}`)).toBe('SIP/2.0 200 OK');
    await inbound.whenIdle();
    expect(records).toHaveLength(200);
    expect(new Set(records.map(({ reason }) => reason))).toEqual(new Set(['CALLER_HANGUP']));
    expect([openLegs.size, relaySessions.size, inbound.callCount]).toEqual([0, 0, 0]);
  });
});

import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { CallRecord } from '../../../src/gateway/model/call-record.js';
import type { Inbound } from '../../../src/gateway/drachtio/inbound.js';
import { createSrfApp } from '../../../src/gateway/drachtio/srf-facade.js';
import { type SrfApp } from '../../../src/gateway/ports/signalling.js';
import { newUuid } from '../../../src/lib/ids.js';
import { INSIDE } from '../../support/call-machine.js';
import { HandMadeServer, sentResponse, shown } from '../../support/hand-made-server.js';
import { playedInbound } from '../../support/played-services.js';
import { offerSdp } from '../../support/sdp.js';
import { withWorldTime } from '../with-world-time.js';

withWorldTime();

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
  inbound = playedInbound(srf, {
    calls: { write: ({ record }) => Promise.resolve(void records.push(record)) },
    relay: {
      offer: (call) => {
        relaySessions.add(call.relayId);
        return Promise.resolve({ sdp: INSIDE });
      },
      delete: (relayId) => {
        relaySessions.delete(relayId);
        return Promise.resolve(null);
      },
      nodeOf: () => null,
      adopt: () => false,
    },
    endpoint: {
      open: (leg) => {
        openLegs.add(leg.callId);
        return Promise.resolve();
      },
      close: (callId) => {
        openLegs.delete(callId);
        return Promise.resolve(null);
      },
    },
  });
  srf.connect({ host: '127.0.0.1', port: server.port, secret: 'x', tags: [] });
  await inbound.whenConnected(5_000, 'the test');
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

describe('drachtio-srf', () => {
  it('gets the BYE of each of 200 calls whose echo, ACK and BYE came in one read, and leaves nothing open', async () => {
    for (let index = 0; index < 200; index += 1) expect(await zeroLengthCall(`short${String(index)}`)).toBe('SIP/2.0 200 OK');
    await inbound.whenIdle();
    expect(records).toHaveLength(200);
    expect(new Set(records.map(({ reason }) => reason))).toEqual(new Set(['CALLER_HANGUP']));
    expect([openLegs.size, relaySessions.size, inbound.callCount]).toEqual([0, 0, 0]);
  });
});

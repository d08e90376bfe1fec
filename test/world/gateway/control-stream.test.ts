import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Inbound } from '../../../src/gateway/drachtio/inbound.js';
import { createSrfApp } from '../../../src/gateway/drachtio/srf-facade.js';
import type { SrfApp } from '../../../src/gateway/ports/signalling.js';
import { encodeFrame } from '../../../src/sip-server/control-protocol.js';
import { HandMadeServer, shown } from '../../support/hand-made-server.js';
import { playedInbound } from '../../support/played-services.js';
import { EventLog } from '../../support/event-log.js';
import { offerSdp } from '../../support/sdp.js';
import type { WorldTime } from '../driver/time.js';
import { withWorldTime } from '../with-world-time.js';

let time: WorldTime;
withWorldTime((started) => (time = started));

// What a drachtio-server 0.9.10 does to its control connection when it is under pressure, and what no stranger's message may do to it.

let server: HandMadeServer;
let srf: SrfApp;
let inbound: Inbound;
let log: EventLog;

beforeEach(async () => {
  server = await HandMadeServer.listen();
  log = new EventLog();
  srf = createSrfApp();
  inbound = playedInbound(srf, {}, {}, undefined, log);
  srf.connect({ host: '127.0.0.1', port: server.port, secret: 'x', tags: ['gw:a'] });
  await inbound.whenConnected(100_000, 'the test');
});

afterEach(async () => {
  srf.disconnect();
  await server.close();
});

let serial = 0;
function invite({ headers = [], sdp = offerSdp() }: { readonly headers?: readonly string[]; readonly sdp?: string } = {}): string {
  serial += 1;
  const call = `c${String(serial)}`;
  const text = [
    'INVITE sip:+15550100100@gw SIP/2.0',
    `Via: SIP/2.0/TLS carrier;branch=z9hG4bK${call}`,
    `From: <sip:a@carrier>;tag=${call}`,
    'To: <sip:b@gw>',
    `Call-ID: ${call}`,
    'CSeq: 1 INVITE',
    'Contact: <sip:a@192.0.2.7:5061;transport=tls>',
    ...headers,
    'Content-Type: application/sdp',
    `Content-Length: ${String(sdp.length)}`,
    '',
    sdp,
  ];
  return shown(text.join('\r\n'), `t-${call}`, '');
}

const isAnswered = (): Promise<void> => time.until(() => server.frames.length > 0);

describe('a control connection', () => {
  it.each([
    ['a frame within another one', () => `900#${invite().slice(0, 400)}${encodeFrame(invite())}`.padEnd(1_400, 'x')],
    ['a frame without a length', () => '\r\nVia: SIP/2.0/TLS carrier#x'],
    ['a megabyte without a frame', () => 'x'.repeat(1_100_000)],
    ['a frame whose length is a gigabyte', () => `1000000000#${'x'.repeat(1_100_000)}`],
  ])('that carries %s is closed, logged once and opened again, and the gateway takes calls', async (_what, bytes) => {
    server.writeBytes(bytes());
    await time.until(() => server.connections === 2);
    await time.until(() => inbound.isConnected);
    expect(log.named('gateway.sip_server.lost')).toMatchObject([
      { fields: { error: expect.stringMatching(/^the control connection cannot be read any more; it went on with "/) as unknown } },
    ]);
    server.write(invite());
    await isAnswered();
  });

  it('carries a frame that comes in pieces', async () => {
    const frame = encodeFrame(invite());
    for (const piece of [frame.slice(0, 2), frame.slice(2, 700), frame.slice(700)]) {
      server.writeBytes(piece);
      await new Promise((resolve) => setImmediate(resolve));
    }
    await isAnswered();
    expect(server.connections).toBe(1);
  });
});

it('the gateway leaves a SIP server that answers no pings, and is not connected until another connection is open', async () => {
  for (let ping = 1; ping <= 4; ping += 1) {
    await time.pass(5_000);
    expect(server.pings).toBe(ping);
    // Behind the answer to the ping.
    server.write(invite());
    await time.until(() => server.frames.length === ping);
  }
  expect(server.connections).toBe(1);
  server.answersPings = false;
  await time.pass(15_000);
  expect(log.named('gateway.sip_server.lost')).toMatchObject([{ fields: { error: 'the SIP server has answered no ping for 10 s' } }]);
  await time.until(() => server.connections === 2);
});

describe('an answer to a hostile INVITE', () => {
  const long = (length: number): string => 'x'.repeat(length);

  it.each<[string, Parameters<typeof invite>[0]]>([
    ['16 lines of Require of 800 bytes', { headers: Array.from({ length: 16 }, () => `Require: ${long(800)}`) }],
    ['a thousand option tags', { headers: [`Require: ${Array.from({ length: 1_000 }, (_none, at) => `tag${String(at)}`).join(',')}`] }],
    ['a Proxy-Require of 8 kB', { headers: [`Proxy-Require: ${long(8_000)}`] }],
    [
      'ten lines of video of 500 formats each',
      { sdp: offerSdp() + `m=video 4000 RTP/AVP ${Array.from({ length: 500 }, (_none, at) => String(at)).join(' ')}\r\n`.repeat(10) },
    ],
    ['lines of media of long words', { sdp: offerSdp() + `m=${long(900)} 4000 ${long(900)} ${long(900)}\r\n`.repeat(10) }],
    [
      'a Session-Expires, Accept and Supported of 4 kB each',
      {
        headers: [`Session-Expires: 90;${long(4_000)}`, `Accept: application/sdp, ${long(4_000)}`, `Supported: timer, ${long(4_000)}`],
      },
    ],
    ['a digest of 4 kB', { headers: [`Authorization: Digest ${long(4_000)}`] }],
  ])('stays below 4 kB: %s', async (_what, given) => {
    server.write(invite(given));
    await isAnswered();
    for (const { text } of server.frames) expect(text.length).toBeLessThan(4_096 - 200);
  });
});

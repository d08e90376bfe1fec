import { connect } from 'node:tls';
import { describe, expect, it } from 'vitest';
import { placeTestCall } from '../../../src/loadtest/test-caller/test-call.js';
import { systemClock } from '../../../src/lib/system-clock.js';
import type { RunningGateway } from '../../support/gateway.js';
import { HandMadeCall } from '../../support/hand-made-call.js';
import { offerSdp } from '../../support/sdp.js';
import { SipPeer } from '../../support/sip-peer.js';
import { withGateway } from '../../support/with-gateway.js';
import { respond } from '../../support/sip-message.js';

// What a call needs of the real processes; test/world/gateway/calls.test.ts has the rest.

const NUMBER = '+15550100100';

let gateway: RunningGateway;
let peer: SipPeer;
withGateway((site) => ({ gateway, peer } = site));

const testCall = (called: string, more: { digits?: string; codecs?: ('PCMU' | 'PCMA')[]; isBot?: null } = {}) =>
  placeTestCall(
    {
      target: { host: '127.0.0.1', port: gateway.sipPort, ca: gateway.ca },
      called,
      caller: '+15550100999',
      digits: more.digits ?? '1',
      seconds: 25,
      language: 'ENG',
      isBot: more.isBot === null ? null : false,
      codecs: more.codecs ?? ['PCMU', 'PCMA'],
    },
    systemClock,
  );

describe('a whole call', () => {
  it.each([
    [
      'PCMU, the digits 1 2 3 and #, the gateway hangs up',
      NUMBER,
      { digits: '123#', codecs: ['PCMU' as const, 'PCMA' as const], isBot: null },
    ],
    ['PCMA, a number without the plus, the carrier hangs up', '15550100100', { digits: '4*', codecs: ['PCMA' as const] }],
  ])('carries SRTP audio both ways, reads digits back and echoes: %s', async (_what, called, more) => {
    const report = await testCall(called, more);
    expect(report.outcome).toBe('answered, heard, and ended as expected');
    expect(report).toMatchObject({
      ok: true,
      answered_by: 'test line',
      codec: more.codecs[0],
      crypto: { suite: 'AES_CM_128_HMAC_SHA1_80' },
    });
    expect(report.digits.every(({ score }) => score > 0.95)).toBe(true);
  });
});

describe('the TLS port', () => {
  const handshake = (version: 'TLSv1.1' | 'TLSv1.2' | 'TLSv1.3'): Promise<string | null> =>
    new Promise((resolve, reject) => {
      const socket = connect({
        host: '127.0.0.1',
        port: gateway.sipPort,
        ca: gateway.ca,
        servername: 'localhost',
        minVersion: version,
        maxVersion: version,
        ciphers: 'DEFAULT:@SECLEVEL=0',
      });
      socket.once('secureConnect', () => {
        resolve(socket.getProtocol());
        socket.destroy();
      });
      socket.once('error', reject);
    });

  it('accepts 1.2 and 1.3, and refuses 1.1', async () => {
    expect(await handshake('TLSv1.2')).toBe('TLSv1.2');
    expect(await handshake('TLSv1.3')).toBe('TLSv1.3');
    await expect(handshake('TLSv1.1')).rejects.toThrow(/protocol version/i);
  });
});

describe('a SIP server that dies', () => {
  it('leaves its calls to the next one, which takes new ones too', async () => {
    const call = new HandMadeCall(peer, NUMBER);
    const ok = await call.answered(offerSdp());
    process.kill(await gateway.pidOf('sip-server'), 'SIGKILL');
    await peer.whenClosed();
    // Nobody refuses the connection meanwhile.
    peer = await SipPeer.connect(gateway.sipPort, gateway.ca);
    call.over(peer);
    expect((await call.request('OPTIONS', ok)).status).toBe(200);
    await call.hangUp(ok);
  });
});

// The last one: it ends the gateway's calls.
describe('a gateway that is stopped', () => {
  it('refuses new calls with 503 and Retry-After, ends calls in progress with BYE, and exits with 0', async () => {
    const call = new HandMadeCall(peer, NUMBER);
    call.invite(offerSdp());
    const ok = await call.final();
    call.ack(ok);
    const stopped = gateway.stop();
    await gateway.logged('gateway', 'process.stopping');
    const late = new HandMadeCall(peer, NUMBER);
    late.invite(offerSdp());
    const refusal = await late.final();
    expect([refusal.status, Number(refusal.header('Retry-After')) > 0]).toEqual([503, true]);
    const bye = await peer.next('BYE', (message) => message.startLine.startsWith('BYE ') && message.header('Call-ID') === call.callId);
    expect(bye.header('Reason')).toContain('SHUTDOWN');
    respond(peer, bye, '200 OK');
    expect(await stopped).toBe(0);
    expect(
      peer.received.filter((message) => message.startLine.startsWith('BYE ') && message.header('Call-ID') === call.callId),
    ).toHaveLength(1);
  });
});

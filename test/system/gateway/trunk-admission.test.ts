import { readFile } from 'node:fs/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { RunningGateway } from '../../support/gateway.js';
import { HandMadeCall } from '../../support/invite.js';
import { TestCa } from '../../support/openssl.js';
import { RunningRtpengine } from '../../support/rtpengine.js';
import { parseExposition } from '../../support/prometheus-text.js';
import { offerSdp } from '../../support/sdp.js';
import { SipPeer, type WireMessage } from '../../support/sip-peer.js';
import { addressed } from '../../support/wire-peer.js';

const NUMBER = '+15550100100';

let rtpengine: RunningRtpengine;
let ca: TestCa;
let gateway: RunningGateway;
/** From an allowed address, with a certificate of an allowed name. */
let trusted: SipPeer;

async function peerOf(sans: string | null, localAddress: string): Promise<SipPeer> {
  if (sans === null) return SipPeer.connect(gateway.sipPort, gateway.ca, { localAddress });
  const { certFile, keyFile } = await ca.issue('carrier', sans);
  const [cert, key] = await Promise.all([readFile(certFile, 'utf8'), readFile(keyFile, 'utf8')]);
  return SipPeer.connect(gateway.sipPort, gateway.ca, { localAddress, cert, key });
}

beforeAll(async () => {
  [rtpengine, ca] = await Promise.all([RunningRtpengine.start(100), TestCa.create()]);
  gateway = await RunningGateway.start({
    TRUNKLINE_RTPENGINE: rtpengine.name,
    TRUNKLINE_SIP_CLIENT_CERTIFICATES: 'request',
    TRUNKLINE_SIP_CLIENT_CA_FILE: ca.caFile,
    TRUNKLINE_SIP_PASS_CLIENT_IDENTITY: 'true',
    TRUNKLINE_ADMISSION_ALLOWED_SOURCES: '[127.0.0.2, 127.0.0.3/32]',
    TRUNKLINE_ADMISSION_ALLOWED_IDENTITIES: '[sip.carrier.test]',
    TRUNKLINE_ADMISSION_MAX_CALLS: '2',
    TRUNKLINE_CALLS_DRAIN_MS: '20000',
  });
  trusted = await peerOf('DNS:sip.carrier.test', '127.0.0.2');
});

afterAll(async () => {
  trusted.close();
  await gateway.destroy();
  await Promise.all([rtpengine.stop(), ca.remove()]);
});

const codeOf = (answer: WireMessage): string => /"(\w+):/.exec(answer.header('Warning') ?? '')?.[1] ?? '';

async function invited(peer: SipPeer, extra: readonly string[] = []): Promise<WireMessage> {
  const call = new HandMadeCall(peer, NUMBER);
  call.invite(offerSdp(), extra);
  const answer = await call.final();
  if (answer.status === 200) {
    call.ack(answer);
    await call.hangUp(answer);
    await gateway.record(call.callId);
  }
  return answer;
}

/** A record is read over another connection than the one that writes it: the call may be freed a moment later. */
const noCallsLeft = (): Promise<void> =>
  expect
    .poll(async () => parseExposition(await (await fetch(`${gateway.ready.http}/metrics`)).text()).sum('trunkline_calls_in_progress'))
    .toBe(0);

const options = (): Promise<WireMessage> => new HandMadeCall(trusted, 'sip:127.0.0.1').request('OPTIONS', addressed('<sip:127.0.0.1>'));

describe('who may use the trunk', () => {
  it.each([
    ['an allowed address and name', 'DNS:sip.carrier.test', '127.0.0.2', 200],
    ['the name as a URI', 'URI:sip:sip.carrier.test,DNS:sip.carrier.test', '127.0.0.3', 200],
    ['another address', 'DNS:sip.carrier.test', '127.0.0.1', 403],
    ['another name', 'DNS:sip.other.test', '127.0.0.2', 403],
    ['no certificate', null, '127.0.0.2', 403],
  ])('[5922 §7.3] %s: %s from %s gets %i', async (_what, sans, address, status) => {
    const peer = await peerOf(sans, address);
    const answer = await invited(peer);
    peer.close();
    expect([answer.status, codeOf(answer)]).toEqual([status, status === 403 ? 'SOURCE_NOT_ALLOWED' : '']);
  });

  it('a name in a header of the caller is not one', async () => {
    const peer = await peerOf(null, '127.0.0.2');
    const answer = await invited(peer, ['X-Trunkline-Tls-Identity: DNS:sip.carrier.test']);
    peer.close();
    expect([answer.status, codeOf(answer)]).toEqual([403, 'SOURCE_NOT_ALLOWED']);
  });
});

describe('when the trunk takes no calls', () => {
  it('[3261 §21.5.4] max_calls in progress: INVITE and OPTIONS get 503 OVERLOADED with Retry-After', async () => {
    await noCallsLeft();
    const calls = await Promise.all(
      [1, 2].map(async () => {
        const call = new HandMadeCall(trusted, NUMBER);
        return { call, ok: await call.answered(offerSdp()) };
      }),
    );
    for (const answer of [await invited(trusted), await options()]) {
      expect([answer.status, codeOf(answer)]).toEqual([503, 'OVERLOADED']);
      expect(answer.header('Warning')).toContain('Calls in progress: 2, limit 2.');
      expect(answer.header('Reason')).toBe('Q.850;cause=42;text="OVERLOADED"');
      expect(answer.header('Retry-After')).toMatch(/^(?:[1-9]|10)$/);
    }
    for (const { call, ok } of calls) {
      await call.hangUp(ok);
      await gateway.record(call.callId);
    }
    await noCallsLeft();
    expect((await options()).status).toBe(200);
    expect((await invited(trusted)).status).toBe(200);
  });

  it('[3261 §21.5.4] no media relay: INVITE and OPTIONS get 503 MEDIA_UNAVAILABLE, and 200 when it is back', async () => {
    await rtpengine.kill();
    await expect.poll(async () => (await options()).status).toBe(503);
    for (const answer of [await invited(trusted), await options()]) {
      expect([answer.status, codeOf(answer)]).toEqual([503, 'MEDIA_UNAVAILABLE']);
      expect(answer.header('Retry-After')).toMatch(/^(?:[1-9]|10)$/);
    }
    await rtpengine.startAgain();
    await expect.poll(async () => (await options()).status).toBe(200);
    expect((await invited(trusted)).status).toBe(200);
  });

  // The last one: the gateway ends with it.
  it('[3261 §21.5.4] draining: INVITE and OPTIONS get 503 with Retry-After, a call in progress goes on to its end', async () => {
    const call = new HandMadeCall(trusted, NUMBER);
    const ok = await call.answered(offerSdp());
    const stopped = gateway.stop();
    await gateway.logged('gateway', 'process.stopping');
    for (const answer of [await invited(trusted), await options()]) {
      // By the SIP server itself: no gateway that it has asks for them any more.
      expect(answer.status).toBe(503);
      expect(answer.header('Retry-After')).toMatch(/^(?:[1-9]|10)$/);
    }
    expect((await call.request('INVITE', ok, offerSdp({ direction: 'sendonly' }))).status).toBe(200);
    await call.hangUp(ok);
    expect(await stopped).toBe(0);
    // Nothing was left for the gateway to hang up.
    expect(trusted.received.filter(({ startLine }) => startLine.startsWith('BYE '))).toEqual([]);
  });
});

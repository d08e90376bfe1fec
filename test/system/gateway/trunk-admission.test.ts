import { readFile } from 'node:fs/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { RunningGateway } from '../../support/gateway.js';
import { HandMadeCall } from '../../support/hand-made-call.js';
import { TestCa } from '../../support/openssl.js';
import { offerSdp } from '../../support/sdp.js';
import { SipPeer, type WireMessage } from '../../support/sip-peer.js';

// The certificates of carriers; test/world/gateway/trunk-admission.test.ts has the rest.

const NUMBER = '+15550100100';

let ca: TestCa;
let gateway: RunningGateway;

async function peerOf(sans: string | null, localAddress: string): Promise<SipPeer> {
  if (sans === null) return SipPeer.connect(gateway.sipPort, gateway.ca, { localAddress });
  const { certFile, keyFile } = await ca.issue('carrier', sans);
  const [cert, key] = await Promise.all([readFile(certFile, 'utf8'), readFile(keyFile, 'utf8')]);
  return SipPeer.connect(gateway.sipPort, gateway.ca, { localAddress, cert, key });
}

beforeAll(async () => {
  ca = await TestCa.create();
  gateway = await RunningGateway.start({
    TRUNKLINE_SIP_CLIENT_CERTIFICATES: 'request',
    TRUNKLINE_SIP_CLIENT_CA_FILE: ca.caFile,
    TRUNKLINE_SIP_PASS_CLIENT_IDENTITY: 'true',
    TRUNKLINE_ADMISSION_ALLOWED_SOURCES: '[127.0.0.2, 127.0.0.3/32]',
    TRUNKLINE_ADMISSION_ALLOWED_IDENTITIES: '[sip.carrier.test]',
  });
});

afterAll(async () => {
  await gateway.destroy();
  await ca.remove();
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

describe('the trunk, with a list of addresses and certificate names,', () => {
  it.each([
    ['an allowed address and name', 'DNS:sip.carrier.test', '127.0.0.2', 200],
    ['the name as a URI', 'URI:sip:sip.carrier.test,DNS:sip.carrier.test', '127.0.0.3', 200],
    ['another address', 'DNS:sip.carrier.test', '127.0.0.1', 403],
    ['another name', 'DNS:sip.other.test', '127.0.0.2', 403],
    ['no certificate', null, '127.0.0.2', 403],
  ])('[5922 §7.3] checks %s: %s from %s gets %i', async (_what, sans, address, status) => {
    const peer = await peerOf(sans, address);
    const answer = await invited(peer);
    peer.close();
    expect([answer.status, codeOf(answer)]).toEqual([status, status === 403 ? 'SOURCE_NOT_ALLOWED' : '']);
  });

  it('ignores a name that the caller puts into a header', async () => {
    const peer = await peerOf(null, '127.0.0.2');
    const answer = await invited(peer, ['X-Trunkline-Tls-Identity: DNS:sip.carrier.test']);
    peer.close();
    expect([answer.status, codeOf(answer)]).toEqual([403, 'SOURCE_NOT_ALLOWED']);
  });
});

import { readFile } from 'node:fs/promises';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { systemClock } from '../../../src/lib/system-clock.js';
import type { SipServer } from '../../../src/sip-server/server.js';
import { TRUNK_TLS_HEADER, writeTrunkTls } from '../../../src/lib/own-headers.js';
import { DnsNames } from '../../../src/sip/transport/dns-names.js';
import { offerAlias } from '../../support/alias.js';
import { ControlClient } from '../../support/control-client.js';
import { DnsServer } from '../../support/dns-server.js';
import { TestCa, type CertificatePair } from '../../support/openssl.js';
import { OutboundTrunk, TakenCall } from '../../support/outbound-trunk.js';
import { PEER_SDP } from '../../support/peer-dialog.js';
import { SipPeer } from '../../support/sip-peer.js';
import { freePorts } from '../../support/ports.js';
import { startSipServer } from '../../support/sip-server.js';
import { contactOf, respond } from '../../support/sip-message.js';

let ca: TestCa;
let pair: CertificatePair;

async function pemOf({ certFile, keyFile }: CertificatePair): Promise<{ readonly cert: string; readonly key: string }> {
  return { cert: await readFile(certFile, 'utf8'), key: await readFile(keyFile, 'utf8') };
}

beforeAll(async () => {
  ca = await TestCa.create();
  pair = await ca.issue('domain', 'DNS:carrier.test');
});
afterAll(() => ca.remove());

let server: SipServer;
let application: ControlClient;
let dns: DnsServer;
/** The servers of carrier.test, in the order to try. */
let first: OutboundTrunk;
let second: OutboundTrunk;
/** How much later it is. */
let laterMs = 0;

const zoneOf = (...ports: readonly number[]): Record<string, readonly string[]> => ({
  'SRV _sips._tcp.carrier.test': ports.map((port, index) => `${String(10 + index)} 0 ${String(port)} sip.carrier.test`),
  'A sip.carrier.test': ['127.0.0.1'],
});

async function start(...ports: readonly number[]): Promise<void> {
  dns = await DnsServer.start(zoneOf(...ports));
  const clock = { ...systemClock, nowMs: () => systemClock.nowMs() + laterMs };
  const clients = { mode: 'request', ca: ca.ca } as const;
  server = await startSipServer({
    resolver: new DnsNames(dns.resolver()),
    outgoingTls: { ca: ca.ca, verify: true, names: [] },
    tls: { certificates: [await pemOf(pair)], minVersion: 'TLSv1.2', ciphers: null, clients },
    clock,
  });
  application = await ControlClient.application(server.controlPort, 'options');
}

beforeEach(async () => {
  laterMs = 0;
  const pem = await pemOf(pair);
  [first, second] = [await OutboundTrunk.open(pem), await OutboundTrunk.open(pem)];
});
afterEach(async () => {
  application.close();
  dns.close();
  await server.close();
  await first.close();
  await second.close();
});

let serial = 0;

/** An INVITE of the application's. */
class Dialled {
  readonly callId = `next-${String((serial += 1))}`;
  readonly #answer: Promise<string>;

  constructor(more: readonly string[] = []) {
    const head = [
      `INVITE sips:+4930123456@carrier.test SIP/2.0`,
      `Call-ID: ${this.callId}`,
      ...more,
      'Content-Type: application/sdp',
      '',
      PEER_SDP,
    ];
    this.#answer = application.ask([`${this.callId}|sip|||`, ...head].join('\r\n'));
  }

  /** The frame with its next final response. */
  final(): Promise<string> {
    return application.next(
      (frame) => frame.includes('|sip|network|') && /\r\nSIP\/2\.0 [2-6]/.test(frame) && frame.includes(`\r\nCall-ID: ${this.callId}\r\n`),
    );
  }

  async cancel(): Promise<void> {
    const transactionId = (await this.#answer).split('\r\n', 1)[0]?.split('|').at(10) ?? '';
    application.send(`x|sip|${transactionId}|\r\nCANCEL sips:+4930123456@carrier.test SIP/2.0\r\n\r\n`);
  }
}

const statusOf = (frame: string): string => frame.split('\r\n')[1] ?? '';
/** Of a response that the SIP server made itself, 0. */
const sizeOf = (frame: string): number => Number(frame.split('|')[3]);

async function refused(trunk: OutboundTrunk, status: string, extra: readonly string[] = []): Promise<TakenCall> {
  const call = await trunk.call();
  call.respond(status, { extra });
  await call.request('ACK');
  return call;
}

describe('an INVITE that the first of two servers refuses with 503', () => {
  it('[3263 §4.3] goes to the second, unchanged but for its branch, and the dialog is there', async () => {
    await start(first.port, second.port);
    const dialled = new Dialled();
    const final = dialled.final();
    const refusal = await refused(first, '503 Service Unavailable');
    const call = await second.call();
    const without = (text: string): string => text.replace(/^Via: .*\r\n/m, '');
    expect(without(call.invite.text)).toBe(without(refusal.invite.text));
    expect(call.invite.header('Via')).not.toBe(refusal.invite.header('Via'));
    call.respond('200 OK', { body: PEER_SDP, extra: [`Contact: ${contactOf(call.peer)}`] });
    const frame = await final;
    expect(statusOf(frame)).toBe('SIP/2.0 200 OK');
    const dialogId = frame.split('\r\n', 1)[0]?.split('|').at(9) ?? '';
    application.send(`k|sip||${dialogId}\r\nACK sip:placeholder SIP/2.0\r\n\r\n`);
    await call.request('ACK');
    application.send(`b|sip||${dialogId}\r\nBYE sip:placeholder SIP/2.0\r\n\r\n`);
    respond(call.peer, await call.request('BYE'), '200 OK');
    expect(first.invited).toHaveLength(1);
  });

  it('[3263 §4.3] gives the application one 503, the second server’s, when that refuses it too', async () => {
    await start(first.port, second.port);
    const final = new Dialled().final();
    await refused(first, '503 Service Unavailable');
    await refused(second, '503 Overloaded');
    expect(statusOf(await final)).toBe('SIP/2.0 503 Overloaded');
    expect([first.invited.length, second.invited.length]).toEqual([1, 1]);
  });

  it('keeps the first server’s 503 when the other one cannot be connected', async () => {
    const [dead = 0] = await freePorts(1);
    await start(first.port, dead);
    const final = new Dialled().final();
    await refused(first, '503 Overloaded');
    const frame = await final;
    expect([statusOf(frame), sizeOf(frame) > 0]).toEqual(['SIP/2.0 503 Overloaded', true]);
  });

  it('after a 180 goes to no other, since it may have rung', async () => {
    await start(first.port, second.port);
    const final = new Dialled().final();
    const call = await first.call();
    call.respond('180 Ringing');
    call.respond('503 Service Unavailable');
    expect(statusOf(await final)).toBe('SIP/2.0 503 Service Unavailable');
    expect(second.peers).toHaveLength(0);
  });

  it('after its CANCEL goes to no other', async () => {
    await start(first.port, second.port);
    const dialled = new Dialled();
    const final = dialled.final();
    const call = await first.call();
    call.respond('100 Trying');
    await dialled.cancel();
    respond(call.peer, await call.request('CANCEL'), '200 OK');
    call.respond('503 Service Unavailable');
    expect(statusOf(await final)).toBe('SIP/2.0 503 Service Unavailable');
    expect(second.peers).toHaveLength(0);
  });
});

describe('[8446 §4.4.2.4] an INVITE that the first server refuses by TLS 1.3 after the handshake for lack of a certificate', () => {
  // With settings of its own, and without a certificate.
  const BARE = (): string[] => [`${TRUNK_TLS_HEADER}: ${writeTrunkTls({ ca: ca.ca })}`];

  beforeEach(async () => {
    await first.close();
    first = await OutboundTrunk.open({ ...(await pemOf(pair)), ca: ca.ca, requestCert: true, rejectUnauthorized: true });
  });

  it('[3263 §4.3] goes to the second', async () => {
    await start(first.port, second.port);
    const final = new Dialled(BARE()).final();
    await refused(second, '486 Busy Here');
    expect(statusOf(await final)).toBe('SIP/2.0 486 Busy Here');
    expect(first.invited).toEqual([]);
  });

  it.each([
    ['there is no second one', (): number[] => [first.port]],
    ['the second cannot be connected either', (dead: number): number[] => [first.port, dead]],
  ])('gets our own 503 when %s', async (_what, ports) => {
    const [dead = 0] = await freePorts(1);
    await start(...ports(dead));
    const frame = await new Dialled(BARE()).final();
    expect([statusOf(frame), sizeOf(frame)]).toEqual(['SIP/2.0 503 Service Unavailable', 0]);
  });
});

describe('an INVITE that a server may have taken', () => {
  it.each(['408 Request Timeout', '486 Busy Here', '500 Server Internal Error', '504 Server Time-out', '603 Decline'])(
    'goes to no other after %s',
    async (status) => {
      await start(first.port, second.port);
      const final = new Dialled().final();
      await refused(first, status);
      expect(statusOf(await final)).toBe(`SIP/2.0 ${status}`);
      expect(second.peers).toHaveLength(0);
    },
  );

  it('gets 408 and goes to no other when its connection is lost', async () => {
    await start(first.port, second.port);
    const final = new Dialled().final();
    const call = await first.call();
    call.peer.close();
    const frame = await final;
    expect([statusOf(frame), sizeOf(frame)]).toEqual(['SIP/2.0 408 Request Timeout', 0]);
    expect(second.peers).toHaveLength(0);
  });

  it('[5923 §6] gets 408, too, when the connection that the carrier opened is lost', async () => {
    await start(first.port);
    const carrier = await SipPeer.connect(server.portOf('TLS')!, ca.ca, { servername: 'carrier.test', ...(await pemOf(pair)) });
    await offerAlias(carrier, application, 'carrier.test;alias');
    const final = new Dialled().final();
    await carrier.request('INVITE');
    carrier.close();
    const frame = await final;
    expect([statusOf(frame), sizeOf(frame)]).toEqual(['SIP/2.0 408 Request Timeout', 0]);
    expect(first.peers).toHaveLength(0);
  });

  it('gets 408 when the connection to the second server is lost', async () => {
    await start(first.port, second.port);
    const final = new Dialled().final();
    await refused(first, '503 Service Unavailable');
    (await second.call()).peer.close();
    const frame = await final;
    expect([statusOf(frame), sizeOf(frame)]).toEqual(['SIP/2.0 408 Request Timeout', 0]);
  });
});

describe('[3261 §21.5.4] Retry-After in a 503', () => {
  /** Places a call that one of the two declines; which. */
  async function next(): Promise<'first' | 'second'> {
    const before = first.invited.length;
    const both = (): number => first.invited.length + second.invited.length;
    const beforeBoth = both();
    const final = new Dialled().final();
    await expect.poll(both).toBe(beforeBoth + 1);
    const name = first.invited.length > before ? 'first' : 'second';
    const [peer] = { first, second }[name].peers.filter(({ closed, received }) => !closed && received.length > 0).slice(-1);
    new TakenCall(
      peer!,
      peer!.received.findLast(({ startLine }) => startLine.startsWith('INVITE '))!,
    ).respond('603 Decline');
    await final;
    return name;
  }

  async function refusedOnce(extra: readonly string[]): Promise<void> {
    const final = new Dialled().final();
    await refused(first, '503 Service Unavailable', extra);
    await refused(second, '603 Decline');
    await final;
  }

  it('keeps later calls from that server for its duration, where there is another', async () => {
    await start(first.port, second.port);
    await refusedOnce(['Retry-After: 60 (maintenance)']);
    expect(await next()).toBe('second');
    // Both its connections.
    for (const peer of second.peers) peer.close();
    await expect.poll(() => server.counts['connections']).toBe(1);
    expect(await next()).toBe('second');
    for (const peer of second.peers) peer.close();
    await expect.poll(() => server.counts['connections']).toBe(1);
    laterMs = 60_001;
    expect(await next()).toBe('first');
  });

  it('has no effect when the server is the only one', async () => {
    await start(first.port);
    for (const _call of [1, 2]) {
      const final = new Dialled().final();
      await refused(first, '503 Service Unavailable', ['Retry-After: 60']);
      expect(statusOf(await final)).toBe('SIP/2.0 503 Service Unavailable');
    }
    expect(first.peers).toHaveLength(1);
  });

  it('limits the refusal to this call when it is missing', async () => {
    await start(first.port, second.port);
    await refusedOnce([]);
    expect(await next()).toBe('first');
  });
});

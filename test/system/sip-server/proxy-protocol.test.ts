import { connect as connectTcp, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { SipServer } from '../../../src/sip-server/server.js';
import { testCertificates } from '../../support/certificates.js';
import { ControlClient } from '../../support/control-client.js';
import { EventLog } from '../../support/event-log.js';
import { SipPeer } from '../../support/sip-peer.js';
import { SERVER_LIMITS, startSipServer } from '../../support/sip-server.js';

const BALANCER = '127.0.0.2';
const SIGNATURE = Buffer.from('\r\n\r\n\0\r\nQUIT\n', 'latin1');

let server: SipServer;
let application: ControlClient;
let log: EventLog;

beforeAll(async () => {
  log = new EventLog();
  server = await startSipServer({
    trust: { proxyProtocolFrom: [BALANCER] },
    limits: { ...SERVER_LIMITS, handshakeTimeoutMs: 300, maxConnectionsPerSource: 2 },
    log,
  });
  application = await ControlClient.application(server.controlPort, 'options');
});

afterAll(async () => {
  application.close();
  await server.close();
});

/** A version 2 header: command and version, family and protocol, what follows. */
function header(command: number, family: number, rest: Buffer): Buffer {
  const length = Buffer.alloc(2);
  length.writeUInt16BE(rest.length);
  return Buffer.concat([SIGNATURE, Buffer.from([command, family]), length, rest]);
}

function tcp4(address: string, port: number, more = Buffer.alloc(0)): Buffer {
  const ports = Buffer.alloc(4);
  ports.writeUInt16BE(port);
  return header(0x21, 0x11, Buffer.concat([Buffer.from(address.split('.').map(Number)), Buffer.from([127, 0, 0, 1]), ports, more]));
}

function tcp6(port: number): Buffer {
  const source = Buffer.from('20010db8000000000000000000000007', 'hex');
  const ports = Buffer.alloc(4);
  ports.writeUInt16BE(port);
  return header(0x21, 0x21, Buffer.concat([source, source, ports]));
}

const raw = (port: number, localAddress: string): Promise<Socket> =>
  new Promise((resolve, reject) => {
    const socket = connectTcp({ host: '127.0.0.1', port, localAddress });
    socket.once('connect', () => resolve(socket));
    socket.on('error', reject);
  });

/** TLS through a balancer that writes the header first, whole or in two pieces. */
async function tlsThrough(pieces: readonly Buffer[]): Promise<SipPeer> {
  const { ca } = await testCertificates();
  const socket = await raw(server.portOf('TLS')!, BALANCER);
  for (const piece of pieces) await new Promise((resolve) => socket.write(piece, resolve));
  return new Promise((resolve, reject) => {
    const secured = connectTls({ socket, ca, servername: 'localhost' }, () => resolve(SipPeer.accepted(secured)));
    secured.once('error', reject);
  });
}

let serial = 0;

/** What the application is told of an OPTIONS by this peer: transport, address, port. */
async function seenFrom(peer: SipPeer): Promise<string[]> {
  const seen = application.sip();
  serial += 1;
  peer.send([
    'OPTIONS sip:x@127.0.0.1 SIP/2.0',
    `Via: SIP/2.0/${peer.transport} 192.0.2.1;branch=z9hG4bK-p${String(serial)}`,
    'From: <sip:a@test>;tag=f1',
    'To: <sip:x@127.0.0.1>',
    `Call-ID: proxied-${String(serial)}`,
    'CSeq: 1 OPTIONS',
  ]);
  const line = (await seen).split('\r\n', 1)[0] ?? '';
  return line.split('|').slice(4, 7);
}

const closed = (socket: Socket): Promise<void> =>
  new Promise((resolve) => {
    socket.on('error', () => undefined);
    socket.once('close', () => resolve());
    socket.resume();
  });

describe('a balancer that speaks the PROXY protocol', () => {
  it.each([
    ['IPv4', [tcp4('203.0.113.7', 40_061)], ['tls', '203.0.113.7', '40061']],
    ['IPv4, with extensions that are skipped', [tcp4('203.0.113.8', 40_062, Buffer.alloc(64, 4))], ['tls', '203.0.113.8', '40062']],
    ['IPv6', [tcp6(40_063)], ['tls', '2001:db8::7', '40063']],
    [
      'in two pieces',
      [tcp4('203.0.113.9', 40_064).subarray(0, 9), tcp4('203.0.113.9', 40_064).subarray(9)],
      ['tls', '203.0.113.9', '40064'],
    ],
  ])('names the source of a TLS connection: %s', async (_what, pieces, from) => {
    const peer = await tlsThrough(pieces);
    expect(await seenFrom(peer)).toEqual(from);
    peer.close();
  });

  it('names the source of a TCP connection, and is itself the source of its health check', async () => {
    const socket = await raw(server.portOf('TCP')!, BALANCER);
    socket.write(tcp4('203.0.113.10', 40_065));
    const peer = SipPeer.accepted(socket);
    expect(await seenFrom(peer)).toEqual(['tcp', '203.0.113.10', '40065']);
    peer.close();
    const check = await raw(server.portOf('TCP')!, BALANCER);
    check.write(header(0x20, 0x00, Buffer.alloc(0)));
    const checker = SipPeer.accepted(check);
    expect(await seenFrom(checker)).toEqual(['tcp', BALANCER, String(check.localPort)]);
    checker.close();
  });

  it.each([
    ['SIP at once', Buffer.from('OPTIONS sip:x@127.0.0.1 SIP/2.0\r\n')],
    ['version 1', Buffer.from('PROXY TCP4 203.0.113.7 127.0.0.1 1 2\r\n')],
    ['an unknown command', header(0x22, 0x11, Buffer.alloc(12))],
    ['no addresses', header(0x21, 0x00, Buffer.alloc(0))],
    ['addresses that are cut off', header(0x21, 0x11, Buffer.alloc(5))],
    ['65,535 bytes more', header(0x21, 0x11, Buffer.alloc(65_535))],
  ])('loses its connection when it sends %s in place of a header', async (_what, bytes) => {
    const socket = await raw(server.portOf('TCP')!, BALANCER);
    const gone = closed(socket);
    const logged = log.next('sip.proxy_protocol.no_header');
    socket.write(bytes);
    await gone;
    expect((await logged).fields).toEqual({ peer: BALANCER });
  });

  it('loses its connection when the header does not come in time', async () => {
    const socket = await raw(server.portOf('TCP')!, BALANCER);
    const gone = closed(socket);
    socket.write(SIGNATURE);
    await gone;
  });

  it('loses its connection when its address is not on the list', async () => {
    const socket = await raw(server.portOf('TLS')!, '127.0.0.1');
    const gone = closed(socket);
    socket.write(tcp4('203.0.113.7', 40_061));
    await gone;
    const { ca } = await testCertificates();
    const direct = await SipPeer.connect(server.portOf('TLS')!, ca);
    expect(await seenFrom(direct)).toEqual(['tls', '127.0.0.1', String(direct.localPort)]);
    direct.close();
  });

  it('has the connections of each of its clients counted for the client', async () => {
    const peers = [await tlsThrough([tcp4('203.0.113.20', 1)]), await tlsThrough([tcp4('203.0.113.20', 2)])];
    await expect(tlsThrough([tcp4('203.0.113.20', 3)])).rejects.toThrow();
    const other = await tlsThrough([tcp4('203.0.113.21', 1)]);
    for (const peer of [...peers, other]) peer.close();
  });
});

import { createSocket } from 'node:dgram';
import { readFile } from 'node:fs/promises';
import { createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import { createServer as createTlsServer, TLSSocket, type PeerCertificate, type TlsOptions } from 'node:tls';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { SipServer, SipServerOptions } from '../../../src/sip-server/server.js';
import { PUBLIC_ONLY_HEADER } from '../../../src/lib/own-headers.js';
import { DnsNames } from '../../../src/sip/transport/dns-names.js';
import type { TlsMaterial } from '../../../src/sip/transport/tls-server-contexts.js';
import { offerAlias } from '../../support/alias.js';
import { ControlClient } from '../../support/control-client.js';
import { DnsServer, type Zone } from '../../support/dns-server.js';
import { EventLog } from '../../support/event-log.js';
import { TestCa, type CertificatePair } from '../../support/openssl.js';
import { freePorts } from '../../support/ports.js';
import { SipPeer } from '../../support/sip-peer.js';
import { SERVER_LIMITS, startSipServer } from '../../support/sip-server.js';

let ca: TestCa;
let forDomain: CertificatePair;
let forHost: CertificatePair;
let forUri: CertificatePair;

beforeAll(async () => {
  ca = await TestCa.create();
  [forDomain, forHost, forUri] = await Promise.all([
    ca.issue('domain', 'DNS:carrier.test'),
    ca.issue('host', 'DNS:sip1.carrier.test'),
    ca.issue('uri', 'DNS:sip1.carrier.test,URI:sip:carrier.test'),
  ]);
});

afterAll(() => ca.remove());

let server: SipServer;
let application: ControlClient;
let dns: DnsServer;
let log: EventLog;
const peers: Peer[] = [];

afterEach(async () => {
  application.close();
  dns.close();
  for (const peer of peers.splice(0)) peer.close();
  await server.close();
});

async function start(zone: Zone, more: Partial<SipServerOptions> = {}): Promise<void> {
  dns = await DnsServer.start(zone);
  log = new EventLog();
  server = await startSipServer({
    resolver: new DnsNames(dns.resolver()),
    outgoingTls: { ca: ca.ca, verify: true, names: [] },
    log,
    ...more,
  });
  application = await ControlClient.application(server.controlPort, 'invite', 'options');
}

/** A SIP server of the test's, which answers every request with 200. */
class Peer {
  readonly connections: SipPeer[] = [];
  readonly serverNames: unknown[] = [];
  /** Common names of the certificates that it was shown. */
  readonly shown: unknown[] = [];
  readonly #sockets = new Set<Socket>();
  onConnection: ((peer: SipPeer) => void) | undefined;

  private constructor(
    private readonly listener: Server,
    event: 'connection' | 'secureConnection',
  ) {
    listener.on(event, (socket: Socket) => {
      const peer = SipPeer.accepted(socket);
      this.#sockets.add(socket);
      this.connections.push(peer);
      this.serverNames.push('servername' in socket ? socket.servername : undefined);
      if (socket instanceof TLSSocket) this.shown.push((socket.getPeerCertificate() as Partial<PeerCertificate>).subject?.CN);
      this.onConnection?.(peer);
    });
  }

  static async listen(pair: CertificatePair | null, port = 0, host = '127.0.0.1', options: TlsOptions = {}): Promise<Peer> {
    const listener = pair === null ? createServer() : createTlsServer({ ...(await pemOf(pair)), ...options });
    const peer = new Peer(listener, pair === null ? 'connection' : 'secureConnection');
    await new Promise<void>((resolve) => listener.listen(port, host, resolve));
    peers.push(peer);
    return peer;
  }

  get port(): number {
    return (this.listener.address() as AddressInfo).port;
  }

  /** The next connection that comes. */
  connection(): Promise<SipPeer> {
    return new Promise((resolve) => (this.onConnection = resolve));
  }

  close(): void {
    this.listener.close();
    for (const socket of this.#sockets) socket.destroy();
  }
}

async function pemOf({ certFile, keyFile }: CertificatePair): Promise<{ readonly cert: string; readonly key: string }> {
  return { cert: await readFile(certFile, 'utf8'), key: await readFile(keyFile, 'utf8') };
}

let serial = 0;

/** The application's request; resolves with the frame of the response. */
function request(uri: string, more: readonly string[] = []): Promise<string> {
  serial += 1;
  const response = application.next(
    (frame) => frame.includes('|sip|network|') && frame.includes(`\r\nCall-ID: locate-${String(serial)}\r\n`),
  );
  application.send(
    [`q${String(serial)}|sip|||`, `OPTIONS ${uri} SIP/2.0`, `Call-ID: locate-${String(serial)}`, ...more, '', ''].join('\r\n'),
  );
  return response;
}

const statusOf = (frame: string): string => frame.split('\r\n')[1] ?? '';

async function answerNext(peer: SipPeer): Promise<string> {
  const wire = await peer.request('OPTIONS');
  peer.send(['SIP/2.0 200 OK', ...['Via', 'From', 'To', 'Call-ID', 'CSeq'].map((name) => `${name}: ${wire.header(name) ?? ''}`)]);
  return wire.startLine;
}

describe('a domain', () => {
  it('[3263 §4.2] is resolved by SRV; the next server follows one that cannot be connected', async () => {
    const [dead] = await freePorts(1);
    const alive = await Peer.listen(forDomain);
    await start({
      'SRV _sips._tcp.carrier.test': [`10 0 ${String(dead)} sip1.carrier.test`, `20 0 ${String(alive.port)} sip2.carrier.test`],
      'A sip1.carrier.test': ['127.0.0.1'],
      'A sip2.carrier.test': ['127.0.0.1'],
    });
    const connected = alive.connection();
    const response = request('sips:x@carrier.test');
    expect(await answerNext(await connected)).toBe('OPTIONS sips:x@carrier.test SIP/2.0');
    expect(statusOf(await response)).toBe('SIP/2.0 200 OK');
    expect(alive.serverNames).toEqual(['carrier.test']);
    expect(log.named('sip.connect.failed').map(({ fields }) => fields)).toMatchObject([
      { host: 'carrier.test', port: dead, error: expect.stringContaining('ECONNREFUSED') as string },
    ]);
  });

  it('[3263 §4.2] without SRV is resolved by its address', async () => {
    await start({ 'A carrier.test': ['127.0.0.1'] }, { limits: { ...SERVER_LIMITS, connectTimeoutMs: 500 } });
    await request('sip:x@carrier.test;transport=tcp');
    expect(dns.asked).toContain('SRV _sip._tcp.carrier.test');
    expect(log.named('sip.connect.failed').map(({ fields }) => [fields['address'], fields['port']])).toEqual([['127.0.0.1', 5_060]]);
  });

  it('[3263 §4.2] with a port is resolved without SRV, and the result is cached', async () => {
    const peer = await Peer.listen(forDomain);
    await start({ 'A carrier.test': ['127.0.0.1'] });
    const connected = peer.connection();
    const first = request(`sips:x@carrier.test:${String(peer.port)}`);
    const connection = await connected;
    await answerNext(connection);
    await first;
    connection.close();
    await expect.poll(() => server.counts['connections']).toBe(0);
    const again = peer.connection();
    const second = request(`sips:x@carrier.test:${String(peer.port)}`);
    await answerNext(await again);
    await second;
    expect(dns.asked.filter((question) => question !== 'AAAA carrier.test')).toEqual(['A carrier.test']);
  });

  it('[3263 §4.2] is resolved by SRV over UDP', async () => {
    const socket = createSocket('udp4');
    await new Promise<void>((resolve) => socket.bind(0, '127.0.0.1', resolve));
    await start({
      'SRV _sip._udp.carrier.test': [`10 0 ${String(socket.address().port)} sip1.carrier.test`],
      'A sip1.carrier.test': ['127.0.0.1'],
    });
    const arrived = new Promise<string>((resolve) => socket.once('message', (data) => resolve(data.toString())));
    application.send('u|sip|||\r\nOPTIONS sip:x@carrier.test SIP/2.0\r\n\r\n');
    expect(await arrived).toMatch(/^OPTIONS sip:x@carrier\.test SIP\/2\.0\r\nVia: SIP\/2\.0\/UDP /);
    socket.close();
  });

  it('[3263 §4.3] without a reachable server makes a 503 for the application', async () => {
    const [dead] = await freePorts(1);
    await start({ 'SRV _sips._tcp.carrier.test': [`10 0 ${String(dead)} sip1.carrier.test`], 'A sip1.carrier.test': ['127.0.0.1'] });
    expect(statusOf(await request('sips:x@carrier.test'))).toBe('SIP/2.0 503 Service Unavailable');
    expect(server.counts).toMatchObject({ connections: 0, outgoing: 0, transactions: 0, timers: 0 });
  });

  it('[2782] whose SRV record is "." gets no connection', async () => {
    await start({ 'SRV _sips._tcp.carrier.test': ['0 0 0 .'], 'A carrier.test': ['127.0.0.1'] });
    expect(statusOf(await request('sips:x@carrier.test'))).toBe('SIP/2.0 503 Service Unavailable');
    expect(log.named('sip.locate.failed')).toHaveLength(1);
  });
});

describe('the certificate of a server', () => {
  const zone = (port: number): Zone => ({
    'SRV _sips._tcp.carrier.test': [`10 0 ${String(port)} sip1.carrier.test`],
    'A sip1.carrier.test': ['127.0.0.1'],
  });

  it('[5922 §4] must be for the domain of the URI, not for the host that SRV names', async () => {
    const peer = await Peer.listen(forHost);
    await start(zone(peer.port));
    expect(statusOf(await request('sips:x@carrier.test'))).toBe('SIP/2.0 503 Service Unavailable');
    expect(log.named('sip.connect.failed')[0]?.fields['error']).toContain("does not match certificate's altnames");
  });

  it.each([
    ['[5922 §7.1] may name the SIP domain as a URI', () => forUri, true],
    ['is ignored when the setting says so', () => forHost, false],
  ])('%s', async (_what, pair, verify) => {
    const peer = await Peer.listen(pair());
    await start(zone(peer.port), { outgoingTls: { ca: ca.ca, verify, names: [] } });
    const connected = peer.connection();
    const response = request('sips:x@carrier.test');
    await answerNext(await connected);
    expect(statusOf(await response)).toBe('SIP/2.0 200 OK');
  });
});

describe('the certificate of an address', () => {
  it.each([
    ['may have a name of the setting', ['other.test', 'carrier.test'], '200 OK'],
    ['is refused without a name of the setting', ['other.test'], '503 Service Unavailable'],
    ['may have a name for its block', ['10.0.0.0/8=other.test', '127.0.0.0/8=carrier.test'], '200 OK'],
    ['is refused with the name of another address', ['127.0.0.2=carrier.test', '127.0.0.1=other.test'], '503 Service Unavailable'],
  ])('%s', async (_what, names, status) => {
    const peer = await Peer.listen(forDomain);
    peer.onConnection = (connection) => void answerNext(connection);
    await start({}, { outgoingTls: { ca: ca.ca, verify: true, names } });
    expect(statusOf(await request(`sips:x@127.0.0.1:${String(peer.port)}`))).toBe(`SIP/2.0 ${status}`);
  });
});

describe('our own certificate', () => {
  it('is shown to a server that requests one; after a change the next server gets the new one', async () => {
    const peer = await Peer.listen(forDomain, 0, '127.0.0.1', { requestCert: true, ca: ca.ca });
    peer.onConnection = (connection) => void answerNext(connection).then(() => connection.close());
    await start({ 'A carrier.test': ['127.0.0.1'] }, { tls: await withClients(forHost) });
    const uri = `sips:x@carrier.test:${String(peer.port)}`;
    expect(statusOf(await request(uri))).toBe('SIP/2.0 200 OK');
    await expect.poll(() => server.counts['connections']).toBe(0);
    server.setTls(await withClients(forUri));
    expect(statusOf(await request(uri))).toBe('SIP/2.0 200 OK');
    expect(peer.shown).toEqual(['host', 'uri']);
  });

  describe.each([
    ['[5923 §6] a connection with alias carries our requests to the name in its certificate', 'sip1.carrier.test:5999;alias', true],
    ['a connection with alias carries our requests to its address', '127.0.0.1:5999;alias', true],
    ['a connection with alias carries no request to a name that its certificate lacks', 'sip2.carrier.test:5999;alias', false],
    ['a connection without alias carries no request of ours', 'sip1.carrier.test:5999', false],
    [
      '[3261 §18.1.1] a connection with alias and without a port carries requests to the default port',
      'sip1.carrier.test;alias',
      true,
      'sip1.carrier.test:5061',
    ],
    [
      '[3261 §18.1.1] a connection with alias and the default port carries requests without a port',
      'sip1.carrier.test:5061;alias',
      true,
      'sip1.carrier.test',
    ],
  ] as const)('%s', (_what, sentBy, isUsed, target: string = sentBy.replace(';alias', '')) => {
    it.each([
      ['when its certificate is verified', () => forHost, isUsed],
      ['and no request at all when it shows none', () => null, false],
    ])('%s', async (_when, pair, isTaken) => {
      await start({}, { tls: await withClients(forDomain) });
      const shown = pair();
      const carrier = await SipPeer.connect(server.portOf('TLS')!, ca.ca, {
        servername: 'carrier.test',
        ...(shown === null ? {} : await pemOf(shown)),
      });
      await offerAlias(carrier, application, sentBy);
      const response = request(`sips:x@${target}`);
      if (isTaken) await answerNext(carrier);
      expect(statusOf(await response)).toBe(isTaken ? 'SIP/2.0 200 OK' : 'SIP/2.0 503 Service Unavailable');
      carrier.close();
    });
  });
});

async function withClients(pair: CertificatePair): Promise<TlsMaterial> {
  return { certificates: [await pemOf(pair)], minVersion: 'TLSv1.2', ciphers: null, clients: { mode: 'request', ca: ca.ca } };
}

describe('a request that requires a public address of its peer', () => {
  const PUBLIC = [`${PUBLIC_ONLY_HEADER}: 1`];
  const UNAVAILABLE = 'SIP/2.0 503 Service Unavailable';

  it.each([
    ['a name that resolves to a private address', 'sips:x@carrier.test:PORT', true],
    ['a name whose SRV target has one', 'sips:x@carrier.test', true],
    ['a private address', 'sip:x@127.0.0.1:PORT;transport=tcp', false],
  ])('is not sent to %s, not even over a connection of others', async (_what, template, isTls) => {
    const peer = await Peer.listen(isTls ? forDomain : null);
    peer.onConnection = (connection) => void answerNext(connection);
    await start({
      'A carrier.test': ['127.0.0.1', '10.0.0.1'],
      'SRV _sips._tcp.carrier.test': [`1 0 ${String(peer.port)} sip.carrier.test`, '2 0 5061 metadata.carrier.test'],
      'A sip.carrier.test': ['127.0.0.1'],
      'A metadata.carrier.test': ['169.254.169.254'],
    });
    const uri = template.replace('PORT', String(peer.port));
    expect(statusOf(await request(uri))).toBe('SIP/2.0 200 OK');
    expect(statusOf(await request(uri, PUBLIC))).toBe(UNAVAILABLE);
    expect(peer.connections.map(({ received }) => received.length)).toEqual([1]);
  });

  it('is not sent to a private address over UDP', async () => {
    await start({});
    const answer = await application.ask(`u|sip|||\r\nOPTIONS sip:x@10.0.0.1 SIP/2.0\r\n${PUBLIC.join('')}\r\n\r\n`);
    expect(answer).toContain('NOK|requested protocol/transport not available');
  });

  it('may be sent over a connection that the peer opened; later requests in its dialog are not sent to a private Contact', async () => {
    const inside = await Peer.listen(forDomain);
    await start({ 'A carrier.test': ['127.0.0.1'] }, { tls: await withClients(forDomain) });
    const carrier = await SipPeer.connect(server.portOf('TLS')!, ca.ca, { servername: 'carrier.test', ...(await pemOf(forDomain)) });
    await offerAlias(carrier, application, 'carrier.test;alias');
    const sent = ['INVITE sips:x@carrier.test SIP/2.0', 'Call-ID: guarded', ...PUBLIC, '', ''];
    await application.ask(['i|sip|||', ...sent].join('\r\n'));
    const invite = await carrier.request('INVITE');
    expect(invite.text).not.toContain(PUBLIC_ONLY_HEADER);
    const answered = application.next((frame) => frame.includes('\r\nSIP/2.0 200 '));
    const same = ['Via', 'From', 'Call-ID', 'CSeq'].map((name) => `${name}: ${invite.header(name) ?? ''}`);
    const contact = `Contact: <sips:y@carrier.test:${String(inside.port)}>`;
    carrier.send(['SIP/2.0 200 OK', ...same, `To: ${invite.header('To') ?? ''};tag=t1`, contact]);
    const dialogId = (await answered).split('\r\n', 1)[0]?.split('|').at(9) ?? '';
    await application.ask(`k|sip||${dialogId}\r\nACK sip:placeholder SIP/2.0\r\n\r\n`);
    await carrier.request('ACK');
    carrier.close();
    await expect.poll(() => server.counts['connections']).toBe(0);
    const refused = application.next((frame) => frame.includes('\r\nSIP/2.0 503 ') && frame.includes('BYE'));
    application.send(`b|sip||${dialogId}\r\nBYE sip:placeholder SIP/2.0\r\n\r\n`);
    await refused;
    expect(inside.connections).toEqual([]);
  });
});

describe('a connection that the SIP server opened', () => {
  it('[5923 §5] carries later requests to the same peer, and is closed when idle', async () => {
    const peer = await Peer.listen(null);
    await start({}, { limits: { ...SERVER_LIMITS, idleTimeoutMs: 300 } });
    const uri = `sip:x@127.0.0.1:${String(peer.port)};transport=tcp`;
    const connected = peer.connection();
    const both = [request(uri), request(uri)];
    const connection = await connected;
    await answerNext(connection);
    await answerNext(connection);
    await Promise.all(both);
    expect(peer.connections).toHaveLength(1);
    expect(server.counts['connections']).toBe(1);
    await connection.whenClosed();
    expect(server.counts['connections']).toBe(0);
    expect(dns.asked).toEqual([]);
  });

  it('is refused when there are too many', async () => {
    const [one, two] = [await Peer.listen(null), await Peer.listen(null)];
    await start({}, { limits: { ...SERVER_LIMITS, maxConnections: 1 } });
    const connected = one.connection();
    const response = request(`sip:x@127.0.0.1:${String(one.port)};transport=tcp`);
    await answerNext(await connected);
    await response;
    const refused = await application.ask(`n|sip|||\r\nOPTIONS sip:x@127.0.0.1:${String(two.port)};transport=tcp SIP/2.0\r\n\r\n`);
    expect(refused).toContain('|NOK|requested protocol/transport not available');
    expect(log.named('sip.connection.not_opened')).toHaveLength(1);
  });

  it('goes to an IPv6 address in brackets', async () => {
    const peer = await Peer.listen(null, 0, '::1');
    await start({}, { bindAddress: '::1', ports: { tls: null, tcp: 0, udp: null } });
    const connected = peer.connection();
    const response = request(`sip:x@[::1]:${String(peer.port)};transport=tcp`);
    const connection = await connected;
    const wire = await connection.request('OPTIONS');
    expect(wire.header('Via')).toMatch(/^SIP\/2\.0\/TCP \[::1\]:\d+;rport;branch=/);
    connection.send(['SIP/2.0 200 OK', ...['Via', 'From', 'To', 'Call-ID', 'CSeq'].map((name) => `${name}: ${wire.header(name) ?? ''}`)]);
    expect(statusOf(await response)).toBe('SIP/2.0 200 OK');
    const caller = await SipPeer.connectTcp(server.portOf('TCP')!, '::1');
    caller.send(callerRequest('MESSAGE', '[::1]:9'));
    expect((await caller.final()).header('Via')).toBe('SIP/2.0/TCP [::1]:9;branch=z9hG4bK-MESSAGE');
    caller.close();
  });
});

function callerRequest(method: string, sentBy: string): string[] {
  return [
    `${method} sip:x@carrier.test SIP/2.0`,
    `Via: SIP/2.0/TCP ${sentBy};branch=z9hG4bK-${method}`,
    'From: <sip:a@test>;tag=f1',
    'To: <sip:x@carrier.test>',
    `Call-ID: reroute-${method}`,
    `CSeq: 1 ${method}`,
    'Contact: <sip:a@127.0.0.1>',
  ];
}

describe('a response whose connection is closed', () => {
  it.each(['OPTIONS', 'INVITE'])('[3261 §18.2.2] is sent over a new one to the port of sent-by: %s', async (method) => {
    const peer = await Peer.listen(null);
    await start({});
    const caller = await SipPeer.connectTcp(server.portOf('TCP')!);
    const offered = application.sip();
    caller.send(callerRequest(method, `127.0.0.1:${String(peer.port)}`));
    const frame = await offered;
    const connected = peer.connection();
    caller.close();
    const connection = await connected;
    const copied = frame.split('\r\n').filter((line) => /^(From|To|Call-ID|CSeq):/i.test(line));
    application.send([`x|sip|${frame.split('|')[8] ?? ''}|`, 'SIP/2.0 486 Busy Here', ...copied, '', ''].join('\r\n'));
    expect((await connection.final()).header('CSeq')).toBe(`1 ${method}`);
  });

  it('[3261 §18.2.2] is dropped when the caller is unreachable, and the application gets a CANCEL', async () => {
    const [dead] = await freePorts(1);
    await start({});
    const caller = await SipPeer.connectTcp(server.portOf('TCP')!);
    const offered = application.sip();
    caller.send(callerRequest('INVITE', `127.0.0.1:${String(dead)}`));
    await offered;
    const cancelled = application.next((frame) => frame.includes('\r\nCANCEL '));
    caller.close();
    await cancelled;
    expect(server.counts).toMatchObject({ pending: 0, transactions: 0, timers: 0, connections: 0 });
  });
});

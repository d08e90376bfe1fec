import { createSocket } from 'node:dgram';
import { connect, type Socket } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import type { SipServer, SipServerOptions } from '../../../src/sip-server/server.js';
import { testCertificates } from '../../support/certificates.js';
import { ControlClient } from '../../support/control-client.js';
import { EventLog } from '../../support/event-log.js';
import { SipPeer, type WireMessage } from '../../support/sip-peer.js';
import { SERVER_LIMITS, startSipServer } from '../../support/sip-server.js';

let server: SipServer;
let log: EventLog;
const open: { close(): void }[] = [];

afterEach(async () => {
  for (const one of open.splice(0)) one.close();
  await server.close();
});

async function start(limits: Partial<SipServerOptions['limits']> = {}, more: Partial<SipServerOptions> = {}): Promise<void> {
  log = new EventLog();
  server = await startSipServer({ limits: { ...SERVER_LIMITS, ...limits }, log, ...more });
}

const tlsPeer = async (): Promise<SipPeer> => kept(await SipPeer.connect(server.portOf('TLS')!, (await testCertificates()).ca));
const tcpPeer = async (): Promise<SipPeer> => kept(await SipPeer.connectTcp(server.portOf('TCP')!));

function kept<T extends { close(): void }>(one: T): T {
  open.push(one);
  return one;
}

let serial = 0;
interface Parts {
  readonly to?: string;
  readonly callId?: string;
  readonly branch?: string;
  readonly cseq?: number;
  readonly extra?: readonly string[];
}

function lines(method: string, parts: Parts = {}): string[] {
  serial += 1;
  const {
    to = '<sip:x@127.0.0.1>',
    callId = `limit-${String(serial)}`,
    branch = `z9hG4bK-l${String(serial)}`,
    cseq = 1,
    extra = [],
  } = parts;
  return [
    `${method} sip:x@127.0.0.1 SIP/2.0`,
    `Via: SIP/2.0/TCP 127.0.0.1;branch=${branch}`,
    'From: <sip:a@test>;tag=f1',
    `To: ${to}`,
    `Call-ID: ${callId}`,
    `CSeq: ${String(cseq)} ${method}`,
    'Contact: <sip:a@127.0.0.1>',
    ...extra,
  ];
}

/** Answers a frame's request as an application does. */
function respond(application: ControlClient, frame: string, status: number): void {
  const transaction = frame.split('|')[8] ?? '';
  const copied = frame.split('\r\n').filter((line) => /^(From|To|Call-ID|CSeq):/i.test(line));
  application.send([`x|sip|${transaction}|`, `SIP/2.0 ${String(status)} Answer`, ...copied, 'Content-Length: 0', '', ''].join('\r\n'));
}

describe('the SIP server, by its limits of time,', () => {
  it('closes a connection that does not complete the handshake', async () => {
    await start({ handshakeTimeoutMs: 100 });
    const failed = log.next('sip.tls.handshake_failed');
    const socket = connect(server.portOf('TLS')!, '127.0.0.1');
    open.push({ close: () => socket.destroy() });
    await new Promise((resolve) => socket.once('close', resolve));
    expect((await failed).fields['error']).toContain('timeout');
  });

  it('closes a connection whose message is not complete in time, however often a byte comes', async () => {
    await start({ messageTimeoutMs: 200 });
    const peer = await tcpPeer();
    const text = `${lines('OPTIONS').join('\r\n')}\r\n`;
    let sent = 0;
    const drip = setInterval(() => peer.raw(text[sent++] ?? 'x'), 10);
    await peer.whenClosed();
    clearInterval(drip);
    expect(sent).toBeLessThan(text.length);
    expect(peer.received).toEqual([]);
  });

  it('closes an idle connection, and keeps one with keepalives', async () => {
    await start({ idleTimeoutMs: 300 });
    const [idle, busy] = [await tcpPeer(), await tcpPeer()];
    const alive = setInterval(() => busy.raw('\r\n\r\n'), 50);
    await idle.whenClosed();
    clearInterval(alive);
    expect(busy.closed).toBe(false);
    busy.send(lines('OPTIONS'));
    expect((await busy.final()).status).toBe(503);
  });

  it('closes the connection of an application that does not authenticate, and keeps that of one that has', async () => {
    await start({ authenticateTimeoutMs: 150 });
    const application = kept(await ControlClient.application(server.controlPort));
    const silent = kept(await ControlClient.open(server.controlPort));
    await silent.closed;
    expect(log.named('sip_server.application.not_authenticated')).toHaveLength(1);
    expect(await application.ask('p|ping')).toContain('|OK|pong');
  });
});

describe('the SIP server, short of file handles,', () => {
  it('closes the stranger that has been silent for longest for a new connection', async () => {
    await start({ maxHandles: 3, strangerTimeoutMs: 0 });
    const speaker = await tcpPeer();
    speaker.send(lines('OPTIONS'));
    expect((await speaker.final()).status).toBe(503);
    const [first, second] = [await tlsPeer(), await tcpPeer()];
    // A TLS connection makes room on its own listener.
    const third = await tlsPeer();
    await first.whenClosed();
    third.send(lines('OPTIONS'));
    expect((await third.final()).status).toBe(503);
    expect([speaker.closed, second.closed]).toEqual([false, false]);
    expect(log.named('sip.handles.short').at(-1)?.fields).toMatchObject({ limit: 3, is_refused: false });
    expect(server.totals.closedStrangers).toBe(1);
  });

  it('closes the new connection when there is no stranger, and logs why', async () => {
    await start({ maxHandles: 2 });
    const [one, two] = [await tcpPeer(), await tcpPeer()];
    const refused = await tcpPeer();
    await refused.whenClosed();
    expect([one.closed, two.closed]).toEqual([false, false]);
    expect(log.named('sip.handles.short').at(-1)?.fields).toMatchObject({ connections: 2, limit: 2, is_refused: true });
    expect(server.totals.refusedByHandles).toBe(1);
  });
});

describe('the SIP server, by its limits of size,', () => {
  it('closes the control connection at a frame over the limit', async () => {
    await start({ maxFrameBytes: 2_000 });
    const application = kept(await ControlClient.application(server.controlPort));
    application.send(`x|ping|${'y'.repeat(2_000)}`);
    await application.closed;
    expect(log.named('sip_server.frame.bad')).toHaveLength(1);
  });

  it.each([
    ['too many headers', { extra: Array.from({ length: 20 }, (_, index) => `X-${String(index)}: y`) }, '', 513],
    ['a header that is too long', { extra: [`X-Long: ${'y'.repeat(600)}`] }, '', 513],
    ['a body that is too long', {}, 'y'.repeat(2_000), 413],
  ])('refuses %s', async (_what, parts, body, status) => {
    await start({ maxHeaders: 20, maxHeaderBytes: 500, maxBodyBytes: 1_000 });
    const peer = await tcpPeer();
    peer.send(lines('OPTIONS', parts), body);
    expect((await peer.final()).status).toBe(status);
  });

  it('closes the connection of a peer that never reads, and serves the others', async () => {
    await start({ maxUnsentBytes: 65_536 });
    const other = await tcpPeer();
    const socket: Socket = connect(server.portOf('TCP')!, '127.0.0.1');
    open.push({ close: () => socket.destroy() });
    await new Promise((resolve) => socket.once('connect', resolve));
    socket.on('error', () => undefined);
    const gone = new Promise((resolve) => socket.once('close', resolve));
    // Each request brings an answer of about the same size, which the kernel's buffers take for a while.
    const via = 'v'.repeat(4_000);
    const flood = setInterval(() => {
      for (let count = 0; count < 100; count += 1) {
        socket.write(`${lines('OPTIONS', { branch: `z9hG4bK${via}${String(count)}` }).join('\r\n')}\r\nContent-Length: 0\r\n\r\n`);
      }
    }, 5);
    await gone;
    clearInterval(flood);
    other.send(lines('OPTIONS'));
    expect((await other.final()).status).toBe(503);
  });
});

describe('the SIP server, by its limits of number,', () => {
  it('refuses further connections of one address', async () => {
    await start({ maxConnectionsPerSource: 2 });
    const [one, , three] = [await tcpPeer(), await tcpPeer(), await tcpPeer()];
    await three.whenClosed();
    one.send(lines('OPTIONS'));
    expect((await one.final()).status).toBe(503);
    one.close();
    await expect.poll(() => server.counts['connections']).toBe(1);
    const again = await tcpPeer();
    again.send(lines('OPTIONS'));
    expect((await again.final()).status).toBe(503);
  });

  it('refuses further connections in all', async () => {
    await start({ maxConnections: 1 });
    const one = await tcpPeer();
    await (await tcpPeer()).whenClosed();
    one.send(lines('OPTIONS'));
    expect((await one.final()).status).toBe(503);
  });

  it('answers requests above the rate with 503 and Retry-After, except those within a call', async () => {
    await start({ maxRequestsPerSecondPerSource: 3 });
    const application = kept(await ControlClient.application(server.controlPort, 'invite', 'bye', 'options'));
    const peer = await tcpPeer();
    const callId = 'rate-call';
    const offered = application.sip();
    peer.send(lines('INVITE', { callId, branch: 'z9hG4bK-rate' }));
    respond(application, await offered, 200);
    const answer = await peer.status(200);
    const to = answer.header('To')!;
    for (let count = 0; count < 4; count += 1) peer.send(lines('OPTIONS'));
    const refusal = await peer.status(503);
    expect([refusal.header('CSeq'), refusal.header('Retry-After')]).toEqual(['1 OPTIONS', '1']);
    const acknowledged = application.next((frame) => frame.includes('\r\nACK '));
    peer.send(lines('ACK', { callId, to }));
    await acknowledged;
    const ended = application.next((frame) => frame.includes('\r\nBYE '));
    peer.send(lines('BYE', { callId, to, cseq: 2 }));
    respond(application, await ended, 200);
    await peer.next('200 to BYE', (message) => message.status === 200 && message.header('CSeq') === '2 BYE');
    expect(server.totals.refusedByRate).toBeGreaterThanOrEqual(1);
  });

  it('drops messages far above the rate, and serves the next second', async () => {
    await start({ maxRequestsPerSecondPerSource: 2, dropAboveFactor: 2 });
    const peer = await tcpPeer();
    for (let count = 0; count < 10; count += 1) peer.send(lines('OPTIONS'));
    for (let count = 0; count < 4; count += 1) await peer.final();
    expect(server.totals.droppedByRate).toBe(6);
    expect(peer.received).toHaveLength(4);
  });

  it('refuses further dialogs', async () => {
    await start({ maxDialogs: 1 });
    const application = kept(await ControlClient.application(server.controlPort, 'invite'));
    const peer = await tcpPeer();
    const offered = application.sip();
    peer.send(lines('INVITE'));
    respond(application, await offered, 200);
    await peer.status(200);
    peer.send(lines('INVITE'));
    expect((await peer.status(503)).header('Retry-After')).toBe('5');
  });

  it('refuses further transactions, except those within a dialog', async () => {
    await start({ maxTransactions: 10 });
    const application = kept(await ControlClient.application(server.controlPort, 'invite'));
    const peer = await tcpPeer();
    let offers = 0;
    const all = application.next((frame) => frame.includes('|sip|') && ++offers === 10);
    for (let count = 0; count < 10; count += 1) peer.send(lines('INVITE'));
    await all;
    peer.send(lines('INVITE'));
    expect((await peer.status(503)).header('Retry-After')).toBe('5');
    peer.send(lines('BYE', { to: '<sip:x@127.0.0.1>;tag=none', cseq: 2 }));
    expect((await peer.final()).status).toBe(481);
  });

  it('refuses new calls above its memory limit, and serves the rest', async () => {
    await start({ maxMemoryMb: 50 });
    const application = kept(await ControlClient.application(server.controlPort, 'invite', 'options'));
    const peer = await tcpPeer();
    peer.send(lines('INVITE'));
    expect((await peer.status(503)).header('Retry-After')).toBe('5');
    const offered = application.sip();
    peer.send(lines('OPTIONS'));
    respond(application, await offered, 200);
    await peer.status(200);
    expect(log.named('sip.memory.high')).toHaveLength(1);
  });
});

describe('an application that is behind', () => {
  const isPing = (frame: string): boolean => frame.includes('\r\nX-Trunkline-Ping: ');
  const answered = (peer: SipPeer): Promise<WireMessage> => peer.next('100 or 503', ({ status }) => status === 100 || status === 503);

  /** Calls one after the other until one is refused; resolves with the number of those before it. */
  async function callsUntilRefused(peer: SipPeer): Promise<number> {
    for (let count = 0; ; count += 1) {
      peer.send(lines('INVITE'));
      if ((await answered(peer)).status === 503) return count;
    }
  }

  it('gets no new call while it leaves a ping unanswered, but other requests, and gets calls again once it has answered', async () => {
    await start({ maxApplicationDelayMs: 1 });
    const application = kept(await ControlClient.application(server.controlPort, 'invite', 'options'));
    const ping = application.next(isPing);
    const peer = await tcpPeer();
    expect(await callsUntilRefused(peer)).toBeGreaterThanOrEqual(19);
    expect(server.totals.refusedByDelay).toBe(1);
    const offered = application.next((frame) => frame.includes('OPTIONS') && !isPing(frame));
    peer.send(lines('OPTIONS'));
    respond(application, await offered, 200);
    await peer.status(200);
    respond(application, await ping, 200);
    await application.ask('p|ping');
    const call = application.next((frame) => frame.includes('\r\nINVITE '));
    peer.send(lines('INVITE'));
    await call;
    expect((await log.next('sip_server.calls.refused')).fields['refused']).toBe(1);
  });

  it('gets no new call after its own answer says so, until the next answer', async () => {
    await start({ maxApplicationDelayMs: 60_000 });
    const application = kept(await ControlClient.application(server.controlPort, 'invite', 'options'));
    const peer = await tcpPeer();
    const first = application.next(isPing);
    for (let count = 0; count < 10; count += 1) {
      peer.send(lines('INVITE'));
      await answered(peer);
    }
    respond(application, await first, 503);
    await application.ask('p|ping');
    expect(await callsUntilRefused(peer)).toBe(0);
    const second = application.next(isPing);
    const pings: string[] = [];
    void second.then((frame) => pings.push(frame));
    while (pings.length === 0) expect(await callsUntilRefused(peer)).toBe(0);
    respond(application, await second, 200);
    await application.ask('q|ping');
    peer.send(lines('INVITE'));
    expect((await answered(peer)).status).toBe(100);
  });

  it('is passed over for another one, and one without a route for OPTIONS gets no ping', async () => {
    await start({ maxApplicationDelayMs: 1 });
    const slow = kept(await ControlClient.application(server.controlPort, 'invite', 'options'));
    const other = kept(await ControlClient.application(server.controlPort, 'invite'));
    const peer = await tcpPeer();
    const isCall = (frame: string): boolean => frame.includes('\r\nINVITE ');
    const calls = (application: ControlClient): number => application.frames.filter(isCall).length;
    const place = async (count: number): Promise<void> => {
      for (; count > 0; count -= 1) {
        peer.send(lines('INVITE'));
        await answered(peer);
      }
      await Promise.all([slow.ask('p|ping'), other.ask('p|ping')]);
    };
    await place(24);
    const [before, passed] = [calls(slow), calls(other)];
    expect(slow.frames.filter(isPing)).toHaveLength(1);
    await place(10);
    expect([calls(slow) - before, calls(other) - passed]).toEqual([0, 10]);
    expect(other.frames.some(isPing)).toBe(false);
    expect(server.totals.refusedByDelay).toBe(0);
  });

  it('is not affected by a ping header that a peer sends', async () => {
    await start();
    const application = kept(await ControlClient.application(server.controlPort, 'invite', 'options'));
    const offered = application.next((frame) => frame.includes('OPTIONS'));
    (await tcpPeer()).send(lines('OPTIONS', { extra: ['X-Trunkline-Ping: overload'] }));
    expect(await offered).not.toContain('X-Trunkline-Ping');
  });
});

describe('a scanner', () => {
  const scan = { extra: ['User-Agent: Friendly-Scanner'] };

  it('gets no answer, and its connection is closed', async () => {
    await start();
    const peer = await tlsPeer();
    peer.send(lines('OPTIONS', scan));
    await peer.whenClosed();
    expect(peer.received).toEqual([]);
    expect(server.totals.scanners).toBe(1);
  });

  it('gets 603 where scanner_action is decline, and keeps its connection; its ACK gets nothing', async () => {
    await start({ scannerAction: 'decline' });
    const peer = await tcpPeer();
    peer.send(lines('ACK', scan));
    peer.send(lines('INVITE', scan));
    expect((await peer.final()).status).toBe(603);
    expect(peer.received).toHaveLength(1);
    expect(peer.closed).toBe(false);
    expect(server.totals.scanners).toBe(2);
  });

  it('gets no answer over UDP, while others do', async () => {
    await start();
    const socket = createSocket('udp4');
    open.push(socket);
    await new Promise<void>((resolve) => socket.bind(0, '127.0.0.1', resolve));
    const answered = new Promise<string>((resolve) => socket.once('message', (data) => resolve(data.toString())));
    const { port } = socket.address();
    for (const parts of [scan, {}]) {
      const text = lines('OPTIONS', parts)
        .join('\r\n')
        .replace('TCP 127.0.0.1;', `UDP 127.0.0.1:${String(port)};`);
      socket.send(`${text}\r\nContent-Length: 0\r\n\r\n`, server.portOf('UDP'), '127.0.0.1');
    }
    expect(await answered).toContain(`Call-ID: limit-${String(serial)}\r\n`);
    expect(server.totals.scanners).toBe(1);
  });
});

describe('the SIP server', () => {
  it.each([
    ['TLS', tlsPeer],
    ['TCP', tcpPeer],
  ])('[5626 §4.4.1] answers CRLF CRLF with CRLF over %s', async (_transport, connectPeer) => {
    await start();
    const peer = await connectPeer();
    peer.raw('\r\n\r\n');
    await peer.next('pong', ({ startLine }) => startLine === 'PONG');
    peer.send(lines('OPTIONS'));
    expect((await peer.final()).status).toBe(503);
  });
});

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { PEER_SDP, PeerDialog, sdpOf } from '../../support/peer-dialog.js';
import { SipPeer, type WireMessage } from '../../support/sip-peer.js';
import { SipSite } from '../../support/sip-site.js';
import type { SrfApplication, SrfDialog, SrfRequest } from '../../support/srf.js';
import type { UdpPeer } from '../../support/udp-peer.js';
import type { WirePeer } from '../../support/wire-peer.js';
import { respond } from '../../support/sip-message.js';

let site: SipSite;
let srf: SrfApplication;
let udp: UdpPeer;
const onEnd: (() => void)[] = [];

beforeAll(async () => {
  site = await SipSite.start();
  srf = await site.application();
});
afterEach(async () => {
  for (const end of onEnd.splice(0)) end();
  await site.settled();
});
afterAll(() => site.close());

const LONG = { 'X-Long': 'x'.repeat(1_300) };
const SDP = sdpOf(40_000);

/** A peer that listens on TCP, at the port of the one that has UDP; resolves to its first connection. */
async function listening(): Promise<{ readonly connected: Promise<SipPeer>; connections: number }> {
  let take: (peer: SipPeer) => void;
  const listener = { connected: new Promise<SipPeer>((resolve) => (take = resolve)), connections: 0 };
  const server = createServer((socket) => {
    listener.connections += 1;
    const peer = SipPeer.accepted(socket);
    onEnd.push(() => peer.close());
    take(peer);
  });
  server.listen(udp.localPort, '127.0.0.1');
  await once(server, 'listening');
  onEnd.push(() => server.close());
  return listener;
}

/** A TCP port that answers no SYN: a stopped process whose queue of connections is full. */
async function silent(port: number): Promise<void> {
  const program = `require('net').createServer().listen({ port: ${String(port)}, host: '127.0.0.1', backlog: 1 }, () => console.log('up'))`;
  const child = spawn(process.execPath, ['-e', program], { stdio: ['ignore', 'pipe', 'inherit'] });
  await once(child.stdout, 'data');
  child.kill('SIGSTOP');
  const queued: Socket[] = [1, 2].map(() => connect({ port, host: '127.0.0.1' }).on('error', () => undefined));
  await Promise.all(queued.map((socket) => once(socket, 'connect')));
  onEnd.push(() => {
    for (const socket of queued) socket.destroy();
    child.kill('SIGKILL');
  });
}

function calling(
  headers: Readonly<Record<string, string>> = LONG,
  parameters = '',
  cbRequest: (error: unknown, request: SrfRequest) => void = () => undefined,
): Promise<SrfDialog> {
  const uri = `sip:bob@127.0.0.1:${String(udp.localPort)}${parameters}`;
  const call = srf.createUAC(uri, { localSdp: SDP, headers }, { cbRequest });
  call.catch(() => undefined);
  return call;
}

/** 200 whose Contact names no transport. */
function accept(peer: WirePeer, invite: WireMessage): PeerDialog {
  const copied = ['Via', 'From', 'Call-ID', 'CSeq'].map((name) => `${name}: ${invite.header(name) ?? ''}`);
  const contact = `Contact: <sip:bob@127.0.0.1:${String(udp.localPort)}>`;
  peer.send(['SIP/2.0 200 OK', ...copied, `To: ${invite.header('To') ?? ''};tag=b`, contact, 'Content-Type: application/sdp'], PEER_SDP);
  return PeerDialog.callee(udp, invite, 'b');
}

const transportOf = (message: WireMessage): string | undefined => /^SIP\/2\.0\/(\w+)/.exec(message.header('Via') ?? '')?.[1];
const branchOf = (message: WireMessage): string | undefined => /;branch=([^;]+)/.exec(message.header('Via') ?? '')?.[1];
const refused = async (call: Promise<SrfDialog>): Promise<object> => call.catch((error: unknown) => error as object);

describe('a request above 1300 bytes to a UDP peer', () => {
  it('[3261 §18.1.1] goes over TCP with a matching Via and is answered there; a short one goes by UDP', async () => {
    udp = await site.udp();
    const { connected } = await listening();
    const call = calling();
    const tcp = await connected;
    const invite = await tcp.request('INVITE');
    expect([transportOf(invite), invite.header('Contact')]).toEqual(['TCP', expect.not.stringContaining('transport')]);
    const theirs = accept(tcp, invite);
    const dialog = await call;
    expect(transportOf(await theirs.request('ACK'))).toBe('UDP');
    const info = dialog.request({ method: 'INFO', headers: LONG });
    const long = await tcp.request('INFO');
    expect(transportOf(long)).toBe('TCP');
    respond(tcp, long, '200 OK');
    expect((await info).status).toBe(200);
    const ended = dialog.destroy();
    respond(udp, await theirs.request('BYE'), '200 OK');
    await ended;
    expect(udp.received.map(({ startLine }) => startLine.split(' ')[0])).toEqual(['ACK', 'BYE']);
  });

  it('[3261 §18.1.1] goes by UDP at once when TCP is refused, with a branch of its own, and the next one without a TCP attempt', async () => {
    udp = await site.udp();
    const call = calling();
    const invite = await udp.request('INVITE');
    expect(transportOf(invite)).toBe('UDP');
    respond(udp, invite, '486 Busy Here', { tag: 'b' });
    expect(await refused(call)).toMatchObject({ status: 486 });
    await udp.request('ACK');
    const listener = await listening();
    const next = calling();
    const again = await udp.request('INVITE');
    respond(udp, again, '486 Busy Here', { tag: 'b' });
    expect(await refused(next)).toMatchObject({ status: 486 });
    await udp.request('ACK');
    expect([listener.connections, branchOf(again) === branchOf(invite)]).toEqual([0, false]);
  });

  it('[3261 §18.1.1] goes by UDP after a second when nothing answers', async () => {
    udp = await site.udp();
    await silent(udp.localPort);
    let call!: Promise<SrfDialog>;
    // Its connection is under way then.
    await new Promise<unknown>((resolve) => {
      call = calling(LONG, '', resolve);
    });
    await site.pass(999);
    expect(udp.received).toEqual([]);
    await site.pass(1);
    const invite = await udp.request('INVITE');
    expect(transportOf(invite)).toBe('UDP');
    respond(udp, invite, '486 Busy Here', { tag: 'b' });
    expect(await refused(call)).toMatchObject({ status: 486 });
    await udp.request('ACK');
  });

  it('[3261 §17.1.4] that a peer took over TCP fails with 408 when the connection breaks, and is not repeated by UDP', async () => {
    udp = await site.udp();
    const { connected } = await listening();
    const call = calling();
    const tcp = await connected;
    await tcp.request('INVITE');
    tcp.close();
    expect(await refused(call)).toMatchObject({ status: 408 });
    expect(udp.received).toEqual([]);
  });

  it('[3261 §9.1] is cancelled where it was sent, and nowhere before it was sent', async () => {
    udp = await site.udp();
    await silent(udp.localPort);
    let cancel = (): void => undefined;
    let waiting!: Promise<SrfDialog>;
    await new Promise<unknown>((resolve) => {
      waiting = calling(LONG, '', (_error, request) => request.cancel({}, resolve));
    });
    await site.pass(1_000);
    expect(await refused(waiting)).toMatchObject({ status: 503 });
    expect(udp.received).toEqual([]);

    udp = await site.udp();
    const { connected } = await listening();
    const call = calling(LONG, '', (_error, request) => (cancel = () => request.cancel()));
    const tcp = await connected;
    const invite = await tcp.request('INVITE');
    respond(tcp, invite, '180 Ringing', { tag: 'b' });
    cancel();
    const cancelled = await tcp.request('CANCEL');
    expect(cancelled.header('Via')).toBe(invite.header('Via'));
    respond(tcp, cancelled, '200 OK');
    respond(tcp, invite, '487 Request Terminated', { tag: 'b' });
    expect(await refused(call)).toMatchObject({ status: 487 });
    expect((await tcp.request('ACK')).header('Via')).toBe(invite.header('Via'));
  });

  it('stays on UDP when its URI requires it, and at 1300 bytes or less', async () => {
    udp = await site.udp();
    const listener = await listening();
    for (const call of [calling(LONG, ';transport=udp'), calling({})]) {
      const invite = await udp.request('INVITE');
      respond(udp, invite, '486 Busy Here', { tag: 'b' });
      expect(await refused(call)).toMatchObject({ status: 486 });
      await udp.request('ACK');
    }
    expect(listener.connections).toBe(0);
  });
});

import { utimes } from 'node:fs/promises';
import { join } from 'node:path';
import { connect as connectTls } from 'node:tls';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { CarrierCall, until } from '../../support/carrier-call.js';
import { CarrierListener } from '../../support/carrier-listener.js';
import { RunningGateway } from '../../support/gateway.js';
import { CHILDREN, isAlive, processesOf, signalAll } from '../../support/processes.js';
import { SipPeer } from '../../support/sip-peer.js';
import { isKept, nothingLeft, recordOf, timesLogged } from '../../support/trunk.js';

// What a deploy does: calls go on whatever is restarted, and only `trunkline stop` ends them. Figures of silence are in docs/failures.md.

let gateway: RunningGateway;
let ngPort: number;
let calls: CarrierCall[] = [];

beforeEach(async () => {
  gateway = await RunningGateway.start();
  ngPort = Number(gateway.environment['TRUNKLINE_RTPENGINE_NG_PORT']);
});

afterEach(async () => {
  for (const call of calls) call.close();
  calls = [];
  await gateway.destroy();
});

async function talking(): Promise<CarrierCall> {
  const call = await CarrierCall.open(gateway, gateway.ready.phone_number);
  calls.push(call);
  await call.connect();
  await isKept(gateway, call.signalling.callId);
  return call;
}

async function endsWell(call: CarrierCall, resumed: number): Promise<void> {
  expect((await call.request('BYE')).status).toBe(200);
  expect(await recordOf(gateway, call)).toMatchObject({ reason: 'CALLER_HANGUP', resumed });
  expect(call.has('BYE')).toBe(false);
  await nothingLeft(ngPort);
}

/** The SIP server that it was connected to is gone. */
async function reconnect(call: CarrierCall): Promise<void> {
  call.over(await SipPeer.connect(gateway.sipPort, gateway.ca));
}

const silence = (what: string, call: CarrierCall, sinceMs: number): void =>
  console.log(`  figure: ${what}: ${String(Math.round(call.audio.longestGapSince(sinceMs)))} ms of silence`);

describe('a gateway', () => {
  it('parks its calls at SIGTERM: the next one resumes them, and the carrier gets no BYE', async () => {
    const call = await talking();
    const atMs = performance.now();
    process.kill(await gateway.pidOf('gateway'), 'SIGTERM');
    await gateway.logged('gateway', '"calls":1,"msg":"gateway.calls.parked"');
    await gateway.logged('gateway', 'call.resumed');
    await call.heardAfter(performance.now());
    silence('gateway, SIGTERM', call, atMs);
    await endsWell(call, 1);
  });

  it('that hangs is killed and replaced within 10 s, and its calls continue', async () => {
    const call = await talking();
    const pid = await gateway.pidOf('gateway');
    const atMs = performance.now();
    process.kill(pid, 'SIGSTOP');
    await until(() => gateway.output.includes('supervisor.child.hung'), 'the gateway is not killed');
    await gateway.logged('gateway', 'call.resumed');
    const tookMs = performance.now() - atMs;
    console.log(`  figure: a hung gateway is replaced after ${String(Math.round(tookMs))} ms`);
    expect(isAlive(pid)).toBe(false);
    await call.heardAfter(performance.now());
    await endsWell(call, 1);
  });
});

describe('a SIP server that dies', () => {
  const options = () => ({ host: '127.0.0.1', port: gateway.sipPort, ca: gateway.ca, servername: 'localhost' });
  const ticketOf = (): Promise<Buffer> =>
    new Promise((resolve, reject) => {
      const socket = connectTls(options());
      socket.once('error', reject);
      socket.once('session', (ticket) => {
        resolve(ticket);
        socket.destroy();
      });
    });
  const isResumed = (session: Buffer): Promise<boolean> =>
    new Promise((resolve, reject) => {
      const socket = connectTls({ ...options(), session });
      socket.once('error', reject);
      socket.once('secureConnect', () => {
        resolve(socket.isSessionReused());
        socket.destroy();
      });
    });

  it('refuses no connection, and its successor resumes TLS sessions', async () => {
    const ticket = await ticketOf();
    const before = await gateway.pidOf('sip-server');
    const atMs = performance.now();
    process.kill(before, 'SIGKILL');
    // At once, and all the time: none is refused, each waits for the next SIP server.
    const all = Array.from({ length: 20 }, (_, index) =>
      new Promise((resolve) => void setTimeout(resolve, 20 * index)).then(() => isResumed(ticket)),
    );
    await Promise.race(all);
    console.log(`  figure: SIP server killed: first handshake after ${String(Math.round(performance.now() - atMs))} ms`);
    expect(await Promise.all(all)).toEqual(all.map(() => true));
    expect(await gateway.pidOf('sip-server')).not.toBe(before);
  });

  it('after more than a day has new ticket keys, and the next one resumes sessions by them', async () => {
    const keys = join(gateway.dataDir, 'ticket-keys');
    const old = await ticketOf();
    const dayAgo = new Date(Date.now() - 25 * 3_600_000);
    await utimes(keys, dayAgo, dayAgo);
    const before = await gateway.pidOf('sip-server');
    process.kill(before, 'SIGHUP');
    await gateway.logged('sip-server', 'sip.tls.certificate_loaded');
    expect(await isResumed(old)).toBe(false);
    const ticket = await ticketOf();
    process.kill(before, 'SIGKILL');
    expect(await isResumed(ticket)).toBe(true);
  });
});

describe('a call that no process has', () => {
  /** The carrier has a certificate of the test's own. */
  const UNVERIFIED = { TRUNKLINE_SIP_VERIFY_PEERS: 'false' };
  let carrier: CarrierListener;

  beforeEach(async () => {
    carrier = await CarrierListener.open();
  });
  afterEach(() => carrier.close());

  /** Redis alone lives on: what it has not written yet would be another loss. */
  async function orphaned(): Promise<CarrierCall> {
    const call = await CarrierCall.open(gateway, gateway.ready.phone_number);
    calls.push(call);
    carrier.add(call);
    await call.connect(carrier.port);
    await isKept(gateway, call.signalling.callId);
    await gateway.stop('SIGKILL');
    const isKilled = (command: string): boolean => !command.startsWith('redis-server');
    signalAll(gateway.dataDir, 'SIGKILL', isKilled);
    await until(() => !processesOf(gateway.dataDir).some(({ command }) => isKilled(command)), 'not all are gone');
    return call;
  }

  it('continues with the next start', async () => {
    const call = await orphaned();
    await gateway.up(UNVERIFIED);
    await gateway.logged('gateway', 'call.resumed');
    await call.heardAfter(performance.now());
    await endsWell(call, 1);
  });

  it('after calls.park_ms ends with BYE and GATEWAY_RESTARTED at the next start', async () => {
    const call = await orphaned();
    await gateway.up({ ...UNVERIFIED, TRUNKLINE_CALLS_PARK_MS: '0' });
    await until(() => call.has('BYE'), 'no BYE');
    expect(await recordOf(gateway, call)).toMatchObject({ reason: 'GATEWAY_RESTARTED' });
    await nothingLeft(ngPort);
  });
});

describe('a supervisor that is killed', () => {
  it('leaves its processes and their calls; the next one takes them over and watches them', async () => {
    const call = await talking();
    const gatewayPid = await gateway.pidOf('gateway');
    await gateway.stop('SIGKILL');
    await expect.poll(() => processesOf(gateway.dataDir)).toHaveLength(CHILDREN.length);
    // A new call works meanwhile.
    const other = await talking();
    expect((await other.request('BYE')).status).toBe(200);
    await gateway.up();
    // Log lines leave apart from the text "Trunkline is ready."
    await expect.poll(() => gateway.output.split('supervisor.child.taken_over')).toHaveLength(CHILDREN.length + 1);
    expect(isAlive(gatewayPid)).toBe(true);
    // It has the audio that it had.
    expect([call.audio.ssrcs.length, call.audio.lost]).toEqual([1, 0]);
    // Not a child of this one: it is started again all the same.
    process.kill(gatewayPid, 'SIGKILL');
    await until(() => gateway.output.includes('supervisor.child.restarted'), 'the gateway is not started again');
    await call.heardAfter(performance.now());
    await endsWell(call, 1);
  });

  it('leaves processes that trunkline stop ends, with a BYE to each call', async () => {
    const call = await talking();
    await gateway.stop('SIGKILL');
    const stopping = gateway.cli('stop');
    await call.theirs('BYE');
    const { code, stdout } = await stopping;
    expect([code, stdout]).toEqual([0, `Trunkline is stopped: ${String(CHILDREN.length)} processes ran without their supervisor.\n`]);
    expect(processesOf(gateway.dataDir)).toEqual([]);
    expect((await gateway.cli('stop')).stderr).toContain(`no Trunkline runs with data_dir ${gateway.dataDir}`);
  });

  it('has a successor with other settings that replaces its processes, and the call continues', async () => {
    const call = await talking();
    await gateway.stop('SIGKILL');
    await gateway.up({ TRUNKLINE_CALLS_DRAIN_MS: '1000' });
    expect(gateway.output).toContain('it was started with other settings');
    await until(async () => (await timesLogged(gateway, 'gateway', 'gateway.ready')) === 2, 'no new gateway');
    await call.heardAfter(performance.now());
    await reconnect(call);
    await endsWell(call, 1);
  });
});

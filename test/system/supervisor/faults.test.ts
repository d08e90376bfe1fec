import { execFileSync } from 'node:child_process';
import { copyFile, mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { PreloadedFaults } from '../../faults/preload.js';
import { CarrierCall, until } from '../../support/carrier-call.js';
import { RunningGateway } from '../../support/gateway.js';
import { TestCa, type CertificatePair } from '../../support/openssl.js';
import { childPid, openFiles, type ChildName } from '../../support/processes.js';
import { SipPeer } from '../../support/sip-peer.js';
import { nothingLeft, recordOf, timesLogged } from '../../support/trunk.js';

// One running gateway, and one fault of the machine after the other. `npm run faults` makes them all, under load.

let faults: PreloadedFaults;
let ca: TestCa;
let directory: string;
let good: CertificatePair;
let gateway: RunningGateway;
let calls: CarrierCall[] = [];

beforeAll(async () => {
  faults = PreloadedFaults.build();
  ca = await TestCa.create();
  directory = await mkdtemp(join(tmpdir(), 'trunkline-faults-tls-'));
  good = await ca.issue('sip', 'DNS:localhost');
  await install(good);
  gateway = await RunningGateway.start({
    ...faults.environment,
    TRUNKLINE_SIP_CERT_FILE: join(directory, 'cert.pem'),
    TRUNKLINE_SIP_KEY_FILE: join(directory, 'key.pem'),
  });
  gateway.ca = ca.ca;
});

afterEach(() => {
  for (const call of calls) call.close();
  calls = [];
});

afterAll(async () => {
  await gateway.destroy();
  faults.remove();
  await ca.remove();
  await rm(directory, { recursive: true, force: true });
});

async function install({ certFile, keyFile }: CertificatePair): Promise<void> {
  await copyFile(keyFile, join(directory, 'key.pem'));
  await copyFile(certFile, join(directory, 'cert.pem'));
}

async function invited(): Promise<CarrierCall> {
  const call = await CarrierCall.open(gateway, gateway.ready.phone_number);
  calls.push(call);
  call.signalling.invite(call.audio.sdp());
  return call;
}

async function talking(): Promise<CarrierCall> {
  const call = await CarrierCall.talking(gateway, gateway.ready.phone_number);
  calls.push(call);
  return call;
}

async function endsWell(call: CarrierCall): Promise<void> {
  await call.heardAfter(performance.now());
  expect((await call.request('BYE')).status).toBe(200);
}

const ngPort = (): number => Number(gateway.environment['TRUNKLINE_RTPENGINE_NG_PORT']);
const pidOf = (name: ChildName): number => childPid(gateway.ready.pid, name);
const isReady = async (): Promise<boolean> => (await fetch(`${gateway.ready.http}/readyz`)).status === 200;
const attached = async (number: string): Promise<number> =>
  (await gateway.api('POST', '/sip/attach', { phone_number: number, directions: ['inbound'], service: 'sip' })).status;

/** The process stands still until the end of the work. */
async function stopped(name: ChildName, work: () => Promise<void>): Promise<void> {
  const pid = pidOf(name);
  process.kill(pid, 'SIGSTOP');
  try {
    await work();
  } finally {
    process.kill(pid, 'SIGCONT');
  }
}

describe('a process that is suspended', () => {
  it('leaves its calls up when it is the gateway, which answers new callers once it runs again', async () => {
    const call = await talking();
    const meanwhile = await invited();
    await stopped('gateway', async () => {
      await meanwhile.peer.status(100);
    });
    const answer = await meanwhile.signalling.final();
    expect(answer.status).toBe(200);
    meanwhile.signalling.ack(answer);
    await meanwhile.signalling.hangUp(answer);
    await endsWell(call);
  });

  it('ends its calls with MEDIA_LOST when it is rtpengine, whose new calls are refused until it is back', async () => {
    const call = await talking();
    await stopped('rtpengine', async () => {
      expect((await call.theirs('BYE')).header('Reason')).toContain('MEDIA_LOST');
      const refused = await invited();
      expect((await refused.signalling.final()).header('Warning')).toContain('MEDIA_UNAVAILABLE');
    });
    await until(isReady, 'not ready');
    await endsWell(await talking());
    await nothingLeft(ngPort());
  });
});

describe('a full disk', () => {
  it('of Redis leaves calls answered and refuses changes; the records are written when there is space', async () => {
    expect(await attached('+15550100701')).toBe(200);
    const staleBefore = await timesLogged(gateway, 'gateway', 'call.route.stale');
    faults.set('redis-server', { isDiskFull: true });
    // Redis finds out when it next writes its append-only file.
    await until(async () => (await attached('+15550100702')) === 503, 'not refused');
    // Until half a second after the last heartbeat a known route needs no Redis.
    let call = await talking();
    await until(async () => {
      await endsWell(call);
      if ((await timesLogged(gateway, 'gateway', 'call.route.stale')) > staleBefore) return true;
      call = await talking();
      return false;
    }, 'no call without Redis');
    faults.set('redis-server', {});
    await until(async () => (await attached('+15550100702')) === 200, 'still refused');
    expect(await recordOf(gateway, call)).toMatchObject({ reason: 'CALLER_HANGUP', stale_route: true });
  });

  it('of the logs leaves the gateway alive, which logs again when there is space', async () => {
    const pid = pidOf('gateway');
    faults.set('gateway', { isDiskFull: true });
    const call = await talking();
    await endsWell(call);
    expect(await recordOf(gateway, call)).toMatchObject({ reason: 'CALLER_HANGUP' });
    faults.set('gateway', {});
    const next = await talking();
    await endsWell(next);
    await gateway.logged('gateway', next.signalling.callId);
    // What could not be written was kept.
    await gateway.logged('gateway', call.signalling.callId);
    expect(pidOf('gateway')).toBe(pid);
  });
});

describe('a full disk of the SIP server, which stores its dialogs there,', () => {
  const kept = (): Promise<string> => readFile(join(gateway.dataDir, 'dialogs.journal'), 'latin1');

  it('leaves calls answered and up, and they survive it again when there is space', async () => {
    const before = await talking();
    faults.set('sip-server', { isDiskFull: true });
    const during = await talking();
    expect(await kept()).not.toContain(during.signalling.callId);
    await endsWell(before);
    faults.set('sip-server', {});
    await until(async () => (await kept()).includes(during.signalling.callId), 'not written');
    // A scrape goes without a process that takes too long.
    const scraped = async (): Promise<string> => (await fetch(`${gateway.ready.http}/metrics`)).text();
    await expect.poll(scraped).toMatch(/^trunkline_sip_journal_failures_total(\{.*\})? [1-9]/m);
    process.kill(pidOf('sip-server'), 'SIGKILL');
    await during.peer.whenClosed();
    await until(async () => (await connectError()) === null, 'the SIP server is not back');
    during.over(await SipPeer.connect(gateway.sipPort, gateway.ca));
    await endsWell(during);
    expect(await recordOf(gateway, during)).toMatchObject({ reason: 'CALLER_HANGUP' });
  });
});

describe('a clock that jumps', () => {
  it.each([
    ['forwards', 3_600],
    ['back', -3_600],
  ])('%s by an hour leaves the call up, and its record has its true length', async (_how, clockSeconds) => {
    const startedMs = performance.now();
    const call = await talking();
    for (const name of ['gateway', 'sip-server'] as const) faults.set(name, { clockSeconds });
    await endsWell(await talking());
    await endsWell(call);
    const { timings } = await recordOf(gateway, call);
    for (const name of ['gateway', 'sip-server'] as const) faults.set(name, {});
    expect(timings.talk_ms).toBeGreaterThan(0);
    expect(timings.talk_ms).toBeLessThanOrEqual(performance.now() - startedMs);
  });
});

describe('a process that may open no more files', () => {
  /** The soft limit: it can be raised again without rights. */
  const limit = (name: ChildName, files: number): void =>
    void execFileSync('prlimit', ['--pid', String(pidOf(name)), `--nofile=${String(files)}:`]);

  it('serves connected carriers when it is the SIP server, and others when it may again', async () => {
    const call = await talking();
    limit('sip-server', openFiles(pidOf('sip-server')));
    const refused = SipPeer.connect(gateway.sipPort, gateway.ca).catch(() => null);
    expect((await call.request('INVITE', call.audio.sdp())).status).toBe(200);
    limit('sip-server', 4_096);
    ((await refused) ?? (await SipPeer.connect(gateway.sipPort, gateway.ca))).close();
    await endsWell(call);
    await endsWell(await talking());
  });

  it('answers calls when it is the gateway, since they need no file of its own', async () => {
    limit('gateway', openFiles(pidOf('gateway')));
    await endsWell(await talking());
    limit('gateway', 4_096);
    await until(isReady, 'not ready');
  });
});

describe('an expired certificate of the SIP server', () => {
  it('keeps new carriers out and calls up, until there is another one', async () => {
    const call = await talking();
    await install(await ca.issue('sip', 'DNS:localhost', 'yesterday'));
    process.kill(gateway.ready.pid, 'SIGHUP');
    await until(async () => (await connectError()) === 'CERT_HAS_EXPIRED', 'the old one is shown');
    await call.heardAfter(performance.now());
    await install(good);
    process.kill(gateway.ready.pid, 'SIGHUP');
    await until(async () => (await connectError()) === null, 'the expired one is shown');
    await endsWell(call);
  });
});

/** `null`: a carrier can connect. */
async function connectError(): Promise<string | null> {
  try {
    (await SipPeer.connect(gateway.sipPort, gateway.ca)).close();
    return null;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code ?? '';
  }
}

import { copyFileSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { until } from '../../support/carrier-call.js';
import { RunningGateway } from '../../support/gateway.js';
import { HandMadeCall } from '../../support/hand-made-call.js';
import { TestCa, type CertificatePair } from '../../support/openssl.js';
import { freePorts } from '../../support/ports.js';
import { childPid, childrenOf, isAlive, type ChildName } from '../../support/processes.js';
import { RunningPrometheus } from '../../support/prometheus.js';
import { RunningRtpengine } from '../../support/rtpengine.js';
import { send } from '../../support/redis.js';
import { offerSdp } from '../../support/sdp.js';
import { SipPeer } from '../../support/sip-peer.js';

// A real Prometheus watches the real product, with the rules that we ship, while each thing happens that somebody is woken up for.

const CALLS = 15;
let prometheus: RunningPrometheus;
let gateway: RunningGateway;
let rtpengine: RunningRtpengine;
let ca: TestCa;
let tls: string;
const provoked = new Set<string>();

function install({ certFile, keyFile }: CertificatePair): void {
  copyFileSync(keyFile, join(tls, 'key.pem'));
  copyFileSync(certFile, join(tls, 'cert.pem'));
}

beforeAll(async () => {
  ca = await TestCa.create();
  tls = mkdtempSync(join(tmpdir(), 'trunkline-prometheus-tls-'));
  install(await ca.issue('sip', 'DNS:localhost'));
  const [nobody = 0] = await freePorts(1);
  rtpengine = await RunningRtpengine.start(100);
  gateway = await RunningGateway.start({
    TRUNKLINE_RTPENGINE: rtpengine.name,
    TRUNKLINE_SIP_CERT_FILE: join(tls, 'cert.pem'),
    TRUNKLINE_SIP_KEY_FILE: join(tls, 'key.pem'),
    TRUNKLINE_AGENTS_URL: `ws://127.0.0.1:${String(nobody)}`,
    TRUNKLINE_AGENTS_ALLOW_PRIVATE: 'true',
  });
  prometheus = await RunningPrometheus.start(new URL(gateway.ready.http).host);
});
afterAll(async () => {
  await gateway.destroy();
  await prometheus.stop();
  await rtpengine.stop();
  await ca.remove();
  rmSync(tls, { recursive: true, force: true });
});

const pidOf = (name: ChildName): number => childPid(gateway.ready.pid, name);

async function fires(...alerts: readonly string[]): Promise<void> {
  const areFired = async (): Promise<boolean> => {
    const fired = await prometheus.fired();
    return alerts.every((alert) => fired.includes(alert));
  };
  await until(areFired, `not fired: ${alerts.join(', ')}`);
  for (const alert of alerts) provoked.add(alert);
}

/** Stands still until the alert has fired, and goes on; one that the supervisor starts in its place meanwhile stands still, too. */
async function whileStopped(name: ChildName, alert: string): Promise<void> {
  const stopped = new Set<number>();
  const isFired = async (): Promise<boolean> => {
    const pid = childrenOf(gateway.ready.pid).find((child) => child.name === name)?.pid;
    if (pid !== undefined && !stopped.has(pid)) process.kill(pid, 'SIGSTOP');
    if (pid !== undefined) stopped.add(pid);
    return (await prometheus.fired()).includes(alert);
  };
  await until(isFired, `not fired: ${alert}`);
  for (const pid of stopped) if (isAlive(pid)) process.kill(pid, 'SIGCONT');
  provoked.add(alert);
}

/** Calls of a carrier, each of which is refused. */
async function callInVain(): Promise<void> {
  const peer = await SipPeer.connect(gateway.sipPort, ca.ca);
  for (let call = 0; call < CALLS; call += 1) {
    const attempt = new HandMadeCall(peer, gateway.ready.phone_number);
    attempt.invite(offerSdp());
    expect((await attempt.final()).status).toBeGreaterThanOrEqual(400);
  }
  peer.close();
}

const readyAgain = (): Promise<void> =>
  until(
    () =>
      fetch(`${gateway.ready.http}/readyz`).then(
        ({ status }) => status === 200,
        () => false,
      ),
    'the gateway is not ready again',
  );

describe('Prometheus', () => {
  it('evaluates every rule without an error, and wakes nobody up about a product at rest', async () => {
    const areEvaluated = async (): Promise<boolean> => (await prometheus.rules()).every(({ health }) => health !== 'unknown');
    await until(areEvaluated, 'rules are not evaluated');
    expect((await prometheus.rules()).filter(({ health }) => health !== 'ok')).toEqual([]);
    const fired = await prometheus.fired();
    expect(fired.filter((alert) => prometheus.critical.includes(alert))).toEqual([]);
  });

  it('tells of agents that cannot be reached, and of calls that nobody answers', async () => {
    await callInVain();
    await fires('TrunklineAgentsDown', 'TrunklineNoCallAnswered');
  });

  it('tells of an rtpengine that is gone, and of calls that are refused by our fault', async () => {
    await rtpengine.kill();
    await fires('TrunklineRelayDown', 'TrunklineTakesNoCalls');
    await callInVain();
    await fires('TrunklineRefusalsByOurFault');
    await rtpengine.startAgain();
    await readyAgain();
  });

  it('tells of a Redis that takes no writes, and of one that is away', async () => {
    const redis = Number(gateway.environment['TRUNKLINE_REDIS_PORT']);
    await send(redis, 'CONFIG SET maxmemory 1');
    await fires('TrunklineRedisTakesNoWrites');
    await send(redis, 'CONFIG SET maxmemory 0');
    await whileStopped('redis-server', 'TrunklineRedisAway');
    await readyAgain();
  });

  it('tells of a SIP server that does not answer, and of one that dies again and again', async () => {
    await whileStopped('sip-server', 'TrunklineProcessDown');
    for (let death = 0; death < 5; death += 1) {
      await readyAgain();
      process.kill(pidOf('sip-server'), 'SIGKILL');
      await until(() => Promise.resolve(deaths() > death), 'the death is not seen');
    }
    await fires('TrunklineProcessDiesAgain', 'TrunklineSipServerGone');
    await readyAgain();
  });

  it('tells of a certificate that has ended', async () => {
    install(await ca.issue('sip', 'DNS:localhost', 'yesterday'));
    process.kill(gateway.ready.pid, 'SIGHUP');
    await fires('TrunklineCertificateEnded');
  });

  it('tells of a product that is gone; and with that has told of everything that is critical', async () => {
    await gateway.stop();
    await fires('TrunklineDown');
    expect([...provoked].sort()).toEqual([...prometheus.critical].sort());
  });
});

const deaths = (): number => gateway.output.split('"child":"sip-server"').filter((line) => line.includes('supervisor.child.died')).length;

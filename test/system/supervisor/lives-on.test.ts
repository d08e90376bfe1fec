import { X509Certificate } from 'node:crypto';
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect } from 'node:tls';
import { mulaw } from 'alawmulaw';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { digitPhrase } from '../../../src/gateway/agents/languages.js';
import { EspeakSpeech } from '../../../src/gateway/agents/speech.js';
import { RunningGateway } from '../../support/gateway.js';
import { HandMadeCall } from '../../support/hand-made-call.js';
import { CallEnd } from '../../support/media/call-end.js';
import { CHILDREN, childPid, processesOf, type ChildName } from '../../support/processes.js';
import { parseExposition } from '../../support/prometheus-text.js';
import { send } from '../../support/redis.js';
import { offerSdp } from '../../support/sdp.js';
import { SipPeer } from '../../support/sip-peer.js';
import { respond } from '../../support/sip-message.js';

let directory: string;
let configFile: string;
let gateway: RunningGateway;

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'trunkline-lives-on-'));
  configFile = join(directory, 'trunkline.yaml');
  await writeFile(configFile, 'sip: { host: null }\n');
  gateway = await RunningGateway.start({ TRUNKLINE_CONFIG: configFile });
});

afterAll(async () => {
  await gateway.destroy();
  await rm(directory, { recursive: true, force: true });
});

/** The status of an INVITE over a connection of its own; an answered call is ended. */
async function call(number: string, at = gateway): Promise<number> {
  const peer = await SipPeer.connect(at.sipPort, at.ca);
  const made = new HandMadeCall(peer, number);
  made.invite(offerSdp());
  const answer = await made.final();
  if (answer.status === 200) {
    made.ack(answer);
    expect((await made.request('BYE', answer)).status).toBe(200);
  }
  peer.close();
  return answer.status;
}

/** A call that has all of the test line: the key is read back, what is said comes back, `#` ends it. */
async function talk(at: RunningGateway): Promise<void> {
  const [peer, end] = await Promise.all([SipPeer.connect(at.sipPort, at.ca), CallEnd.open()]);
  const made = new HandMadeCall(peer, at.ready.phone_number);
  end.connect((await made.answered(end.sdp())).body);
  await end.hearsAgent();
  await end.peer.press(5);
  await end.heard(Buffer.from(mulaw.encode(await new EspeakSpeech().synthesize(digitPhrase(5, 'ENG'), []))));
  await end.hearsEcho(4_000);
  await end.peer.press(11);
  respond(peer, await made.incoming('BYE'), '200 OK');
  expect(await at.record(made.callId)).toMatchObject({ reason: 'AGENT_HANGUP' });
  await end.close();
  peer.close();
}

const isReady = async (): Promise<boolean> => (await fetch(`${gateway.ready.http}/readyz`).catch(() => undefined))?.status === 200;

describe('the data directory', () => {
  const mode = (path: string): string => (statSync(path).mode & 0o777).toString(8);

  it('is readable by its owner only', () => {
    expect(mode(gateway.dataDir)).toBe('700');
    for (const name of ['tls', 'logs', 'redis']) expect([name, mode(join(gateway.dataDir, name))]).toEqual([name, '700']);
    const names = ['ready.json', 'demo.json', 'control-secret', 'supervisor.pid', 'tls/ca-key.pem', 'tls/server-key.pem'];
    const logs = readdirSync(join(gateway.dataDir, 'logs')).map((name) => `logs/${name}`);
    expect(logs).toHaveLength(CHILDREN.length);
    for (const name of [...names, ...logs]) expect([name, mode(join(gateway.dataDir, name))]).toEqual([name, '600']);
  });

  it('has no key or secret in a log', () => {
    const secrets = [gateway.ready.api_key, readFileSync(join(gateway.dataDir, 'control-secret'), 'utf8')];
    for (const name of CHILDREN) {
      const log = readFileSync(join(gateway.dataDir, 'logs', `${name}.log`), 'utf8');
      expect(secrets.filter((secret) => log.includes(secret))).toEqual([]);
    }
  });
});

describe('a second start', () => {
  it('keeps numbers, keys and certificates', async () => {
    const number = '+15550100444';
    expect(await call(number)).toBe(404);
    expect((await gateway.api('POST', '/sip/attach', { phone_number: number, directions: ['inbound'], service: 'sip' })).status).toBe(200);
    expect(await call(number)).toBe(200);
    const before = { ...gateway.ready, ca: gateway.ca, certificate: await readFile(join(gateway.dataDir, 'tls/server.pem'), 'utf8') };
    expect(await gateway.stop('SIGINT')).toBe(0);
    expect(processesOf(gateway.dataDir)).toEqual([]);

    await gateway.up();
    expect({ ...gateway.ready, ca: gateway.ca, certificate: await readFile(join(gateway.dataDir, 'tls/server.pem'), 'utf8') }).toEqual({
      ...before,
      pid: gateway.ready.pid,
    });
    expect(gateway.ready.pid).not.toBe(before.pid);
    expect(await call(number)).toBe(200);
    expect((await gateway.api('GET', '/sip')).status).toBe(200);
  });

  it('with another sip.host issues another certificate of the same CA', async () => {
    const serial = () => new X509Certificate(readFileSync(join(gateway.dataDir, 'tls/server.pem'))).serialNumber;
    const [ca, before] = [gateway.ca, serial()];
    expect(await gateway.stop()).toBe(0);
    await writeFile(configFile, 'sip: { host: sip.example.org }\n');
    await gateway.up();
    expect(gateway.ca).toBe(ca);
    expect(serial()).not.toBe(before);
    const names = await new Promise<string>((resolve, reject) => {
      const socket = connect({ host: '127.0.0.1', port: gateway.sipPort, ca, servername: 'sip.example.org' }, () => {
        resolve(socket.getPeerCertificate().subjectaltname ?? '');
        socket.destroy();
      });
      socket.once('error', reject);
    });
    expect(names).toContain('DNS:sip.example.org');
    expect(names).toContain('IP Address:127.0.0.1');
    // Whoever trusts the CA can still call the address.
    expect(await call(gateway.ready.phone_number)).toBe(200);
  });
});

describe('the supervisor, when a part dies,', () => {
  async function killed(name: ChildName, signal: NodeJS.Signals = 'SIGKILL'): Promise<{ logged: string; pid: number }> {
    const [pid, said] = [childPid(gateway.ready.pid, name), gateway.output.length];
    process.kill(pid, signal);
    const since = (): string => gateway.output.slice(said);
    await expect.poll(since).toMatch(new RegExp(`"child":"${name}".*"msg":"supervisor.child.restarted"`));
    await expect.poll(isReady).toBe(true);
    return { logged: since(), pid };
  }

  it.each(CHILDREN)('starts %s again at once, logs it, and a call works', async (name) => {
    const { logged, pid } = await killed(name);
    expect(logged).toMatch(
      new RegExp(`"level":"error".*"child":"${name}","code":null,"signal":"SIGKILL","restart_in_ms":0.*"supervisor.child.died"`),
    );
    expect(childPid(gateway.ready.pid, name)).not.toBe(pid);
    // Nothing else was touched.
    expect(logged.match(/supervisor\.child\.died/g)).toHaveLength(1);
    // A gateway may notice that rtpengine was gone when the next one runs: until it knows that one, it refuses calls.
    await expect.poll(() => call(gateway.ready.phone_number)).toBe(200);
  });

  it('waits before it starts the same part again soon after', async () => {
    expect((await killed('redis-server')).logged).toContain('"restart_in_ms":200');
  });

  it('starts a gateway that parks its calls again at once each time', async () => {
    for (let time = 0; time < 2; time += 1)
      expect((await killed('gateway', 'SIGTERM')).logged).toContain('"code":0,"signal":null,"restart_in_ms":0');
  });

  it('has a gateway that carries audio, reads digits back and hangs up', async () => {
    await talk(gateway);
  });
});

describe('trunkline doctor', () => {
  it('finds everything fine at run time', async () => {
    const { code, stdout, stderr } = await gateway.cli('doctor', '--json');
    const findings = JSON.parse(stdout) as { name: string; is_fine: boolean }[];
    expect([findings.filter(({ is_fine: isFine }) => !isFine), stderr, code]).toEqual([[], '', 0]);
    expect(findings.map(({ name }) => name)).toContain('gateway');
  });

  it('names the part that is not ready', async () => {
    const pid = childPid(gateway.ready.pid, 'rtpengine');
    process.kill(pid, 'SIGSTOP');
    try {
      await expect.poll(isReady).toBe(false);
      const { code, stdout } = await gateway.cli('doctor');
      expect(code).toBe(1);
      expect(stdout).toMatch(/FAIL {2}gateway +runs, but is not ready: .*rtpengine/);
    } finally {
      process.kill(pid, 'SIGCONT');
    }
    await expect.poll(isReady).toBe(true);
  });
});

describe('trunkline doctor, with a Redis that refuses writes,', () => {
  it('gives the error of Redis, and the remedy', async () => {
    const port = Number(gateway.environment['TRUNKLINE_REDIS_PORT']);
    await send(port, 'CONFIG SET maxmemory 100kb');
    try {
      const { code, stdout } = await gateway.cli('doctor');
      expect(code).toBe(1);
      expect(stdout).toMatch(/FAIL {2}Redis +takes no writes: .*OOM command not allowed.*\n +→ full: raise maxmemory/);
      const text = await (await fetch(`${gateway.ready.http}/metrics`)).text();
      expect(parseExposition(text).sum('trunkline_redis_writable')).toBe(0);
    } finally {
      await send(port, 'CONFIG SET maxmemory 0');
    }
    await expect.poll(isReady).toBe(true);
  });
});

describe('two instances side by side', () => {
  it('run independently: both carry calls at once, and one stops while the other continues', async () => {
    const second = await RunningGateway.start();
    try {
      await Promise.all([talk(gateway), talk(second)]);
      expect(second.ready.api_key).not.toBe(gateway.ready.api_key);
      const number = '+15550100555';
      await second.api('POST', '/sip/attach', { phone_number: number, directions: ['inbound'], service: 'sip' });
      expect([await call(number, second), await call(number)]).toEqual([200, 404]);
    } finally {
      await second.destroy();
    }
    expect(await call(gateway.ready.phone_number)).toBe(200);
  });
});

// The last one: it stops the instance.
describe('the command line, when the gateway is stopped,', () => {
  it('says in trunkline doctor what to do', async () => {
    expect(await gateway.stop('SIGTERM')).toBe(0);
    const { code, stdout } = await gateway.cli('doctor');
    expect(code).toBe(1);
    expect(stdout).toMatch(/FAIL {2}gateway +is not running\n +→ start it: trunkline up/);
    expect(stdout.match(/FAIL/g)).toHaveLength(1);
  });

  it('says in trunkline call that nothing is running', async () => {
    const { code, stderr } = await gateway.cli('call');
    expect([code, stderr]).toEqual([1, expect.stringContaining('no running gateway')]);
  });
});

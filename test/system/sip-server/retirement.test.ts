import { spawn, type ChildProcessByStdio } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import type { Readable } from 'node:stream';
import { createInterface } from 'node:readline';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { ControlClient } from '../../support/control-client.js';
import { freePorts } from '../../support/ports.js';
import { headerOf } from '../../support/scenario.js';
import { SipPeer } from '../../support/sip-peer.js';

// What a SIP server does at SIGTERM with what is open (docs/closing.md).

let directory: string;
let child: ChildProcessByStdio<null, Readable, null>;
let lines: string[];
let application: ControlClient;
let peer: SipPeer;
let port: number;
let ca: string;

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'trunkline-retire-'));
  const [tls, control] = await freePorts(2);
  port = tls!;
  const settings = [
    `data_dir=${directory}`,
    `sip.tls_port=${String(port)}`,
    `drachtio.port=${String(control)}`,
    'drachtio.secret=test-secret',
  ];
  child = spawn(process.execPath, [resolve('dist/cli/main.js'), 'sip-server', ...settings.flatMap((value) => ['--set', value])], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  lines = [];
  createInterface({ input: child.stdout }).on('line', (line) => lines.push(line));
  await logged('sip_server.ready');
  ca = await readFile(join(directory, 'tls', 'ca.pem'), 'utf8');
  application = await ControlClient.instance('gw:a', control!, 'invite', 'info');
  peer = await SipPeer.connect(port, ca);
});

afterEach(async () => {
  peer.close();
  application.close();
  child.kill('SIGKILL');
  await rm(directory, { recursive: true, force: true });
});

const logged = (event: string): Promise<void> =>
  expect.poll(() => lines.find((line) => line.includes(`"msg":"${event}"`)), { interval: 5 }).toBeDefined();

let serial = 0;
const request = (method: string, to = '<sip:b@server>', cseq = 1): string[] => [
  `${method} sip:b@server SIP/2.0`,
  `Via: SIP/2.0/TLS 127.0.0.1:5999;branch=z9hG4bKr${String((serial += 1))}`,
  ...['Max-Forwards: 70', 'From: <sip:a@peer>;tag=f1', `To: ${to}`, 'Call-ID: c1', `CSeq: ${String(cseq)} ${method}`],
  'Contact: <sip:a@127.0.0.1:5999;transport=tls>',
];

const answer = (text: string, status: string): string[] => [
  `SIP/2.0 ${status}`,
  ...['Via', 'From', 'To', 'Call-ID', 'CSeq'].map((name) => `${name}: ${headerOf(text, name)}`),
];

const transactionOf = (frame: string): string => frame.split('|')[8] ?? '';

/** An answered call. Resolves to the To value with the server's tag. */
async function talking(): Promise<string> {
  const offered = application.sip();
  peer.send(request('INVITE'));
  application.send(`ok|sip|${transactionOf(await offered)}|\r\nSIP/2.0 200 OK\r\n\r\n`);
  const to = headerOf((await peer.status(200)).text, 'To');
  const acknowledged = application.sip();
  peer.send(request('ACK', to));
  await acknowledged;
  return to;
}

async function stop(): Promise<void> {
  child.kill('SIGTERM');
  await logged('process.stopping');
}

async function ended(expected: Readonly<Record<string, number>>): Promise<void> {
  await peer.whenClosed();
  expect(peer.error).toBeUndefined();
  if (child.exitCode === null) await once(child, 'exit');
  expect(child.exitCode).toBe(0);
  const line = lines.find((one) => one.includes('sip_server.retired')) ?? '{}';
  expect(JSON.parse(line)).toMatchObject(expected);
}

describe('a SIP server that gets SIGTERM', () => {
  it('ends a connection with close_notify once the answer to our open request came by it', async () => {
    await talking();
    const idle = await SipPeer.connect(port, ca);
    application.send('info|sip||c1;from-tag=f1\r\nINFO sip:placeholder SIP/2.0\r\n\r\n');
    const info = await peer.request('INFO');
    await stop();
    await idle.whenClosed();
    expect([idle.error, peer.closed]).toEqual([undefined, false]);
    const answered = application.sip();
    peer.send(answer(info.text, '200 OK'));
    expect(await answered).toContain('SIP/2.0 200 OK');
    await ended({ connections: 2, transactions: 1, cut: 0 });
  });

  it('keeps reading while a request of the peer is open, and answers it', async () => {
    const to = await talking();
    const seen = application.sip();
    peer.send(request('INFO', to, 2));
    const first = transactionOf(await seen);
    await stop();
    const next = application.sip();
    peer.send(request('INFO', to, 3));
    application.send(`one|sip|${first}|\r\nSIP/2.0 200 OK\r\n\r\n`);
    application.send(`two|sip|${transactionOf(await next)}|\r\nSIP/2.0 200 OK\r\n\r\n`);
    for (let count = 0; count < 2; count += 1) await peer.status(200);
    await ended({ connections: 1, cut: 0 });
  });

  it('logs what it cut after 2 s', async () => {
    await talking();
    application.send('info|sip||c1;from-tag=f1\r\nINFO sip:placeholder SIP/2.0\r\n\r\n');
    await peer.request('INFO');
    await stop();
    await ended({ connections: 0, transactions: 1, cut: 1 });
  });

  it('refuses later requests of the application, which the next server sends', async () => {
    await talking();
    const held = await SipPeer.connect(port, ca);
    held.send(request('INFO').map((line) => line.replace('Call-ID: c1', 'Call-ID: c2')));
    await application.sip();
    await stop();
    await peer.whenClosed();
    expect(await application.ask('bye|sip||c1;from-tag=f1\r\nBYE sip:placeholder SIP/2.0\r\n\r\n')).toContain(
      'NOK|another cell may have the dialog',
    );
    held.close();
  });
});

it('sends close_notify to a TLS peer', async () => {
  const client = spawn('openssl', ['s_client', '-connect', `127.0.0.1:${String(port)}`, '-quiet', '-no_ign_eof'], {
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  let said = '';
  client.stderr.on('data', (chunk: Buffer) => (said += chunk.toString()));
  await expect.poll(() => said).toContain('verify');
  const closed = once(client, 'exit');
  await stop();
  expect(await closed).toEqual([0, null]);
  expect(said).not.toMatch(/eof|errno/);
});

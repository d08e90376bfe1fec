import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { copyFile, mkdir, mkdtemp, readFile, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { createInterface } from 'node:readline';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { loadConfig } from '../../../src/config/load.js';
import type { SipServer } from '../../../src/sip-server/server.js';
import { systemClock } from '../../../src/lib/system-clock.js';
import { serverTls } from '../../../src/tls/tls-material.js';
import { TlsReloader } from '../../../src/tls/tls-reloader.js';
import { ControlClient } from '../../support/control-client.js';
import { EventLog } from '../../support/event-log.js';
import { sClient, shownSerial, TestCa, type CertificatePair } from '../../support/openssl.js';
import { freePorts } from '../../support/ports.js';
import { SipPeer } from '../../support/sip-peer.js';
import { startSipServer } from '../../support/sip-server.js';

let ca: TestCa;
let main: CertificatePair;
let other: CertificatePair;
let wildcard: CertificatePair;

beforeAll(async () => {
  ca = await TestCa.create();
  [main, other, wildcard] = await Promise.all([
    ca.issue('main', 'DNS:main.test,DNS:localhost'),
    ca.issue('other', 'DNS:other.test'),
    ca.issue('wildcard', 'DNS:*.wild.test'),
  ]);
});

afterAll(() => ca.remove());

const certificateSettings = (pairs: readonly CertificatePair[]): string[] => [
  `sip.cert_file=${pairs[0]!.certFile}`,
  `sip.key_file=${pairs[0]!.keyFile}`,
  `sip.certificates=${JSON.stringify(pairs.slice(1).map(({ certFile, keyFile }) => ({ cert_file: certFile, key_file: keyFile })))}`,
];

let server: SipServer;
afterEach(() => server.close());

async function start(...set: string[]): Promise<number> {
  const config = loadConfig({ set: [...certificateSettings([main, other, wildcard]), ...set], environment: {} });
  const { material } = await serverTls(config);
  server = await startSipServer({ tls: material, passClientIdentity: config.sip.pass_client_identity });
  return server.portOf('TLS')!;
}

let serial = 0;
function options(extra: readonly string[] = []): string[] {
  serial += 1;
  return [
    'OPTIONS sip:x@127.0.0.1 SIP/2.0',
    `Via: SIP/2.0/TLS 127.0.0.1;branch=z9hG4bK-tls${String(serial)}`,
    'From: <sip:a@test>;tag=f1',
    'To: <sip:x@127.0.0.1>',
    `Call-ID: tls-${String(serial)}`,
    'CSeq: 1 OPTIONS',
    ...extra,
  ];
}

describe('the TLS handshake of the SIP server', () => {
  it('refuses TLS 1.1, and accepts 1.2 and 1.3', async () => {
    const port = await start();
    // At security level 0 OpenSSL itself would still speak 1.1: it is the server that refuses.
    const old = await sClient(port, '-tls1_1', '-cipher', 'ALL:@SECLEVEL=0');
    expect(old).toContain('alert protocol version');
    expect(await sClient(port, '-tls1_2')).toMatch(/New, TLSv1\.2, Cipher is ECDHE/);
    expect(await sClient(port, '-tls1_3')).toMatch(/New, TLSv1\.3, Cipher is TLS_/);
  });

  it('refuses 1.2 when the setting says 1.3', async () => {
    const port = await start('sip.tls_min_version=TLSv1.3');
    expect(await sClient(port, '-tls1_2')).toContain('alert protocol version');
    expect(await sClient(port, '-tls1_3')).toContain('New, TLSv1.3');
  });

  it('shows the whole certificate chain', async () => {
    const shown = await sClient(await start(), '-CAfile', ca.caFile, '-servername', 'main.test');
    expect(shown.match(/BEGIN CERTIFICATE/g)).toHaveLength(2);
    expect(shown).toContain('Verify return code: 0 (ok)');
  });

  it('accepts the ciphers of the setting and no other', async () => {
    const port = await start('sip.tls_ciphers=ECDHE-ECDSA-AES256-GCM-SHA384:TLS_AES_256_GCM_SHA384');
    expect(await sClient(port, '-tls1_2')).toContain('Cipher is ECDHE-ECDSA-AES256-GCM-SHA384');
    expect(await sClient(port, '-tls1_3')).toContain('Cipher is TLS_AES_256_GCM_SHA384');
    expect(await sClient(port, '-tls1_2', '-cipher', 'ECDHE-ECDSA-AES128-GCM-SHA256')).toContain('alert handshake failure');
  });

  it.each([
    ['main.test', () => main],
    ['other.test', () => other],
    ['OTHER.test', () => other],
    ['a.wild.test', () => wildcard],
    ['a.b.wild.test', () => main],
    ['unknown.test', () => main],
  ])('[6066 §3] shows the certificate for the requested name: %s', async (name, expected) => {
    expect(await shownSerial(await start(), name)).toBe(expected().serial);
  });

  it('shows the first certificate to a client that names no host', async () => {
    const shown = await sClient(await start(), '-noservername');
    expect(shown).toContain('subject=CN = main');
  });
});

describe('the SIP server, with sip.client_certificates', () => {
  let peer: CertificatePair;
  let stranger: TestCa;
  let strange: CertificatePair;
  const asked = (mode: string): string[] => [
    `sip.client_certificates=${mode}`,
    `sip.client_ca_file=${ca.caFile}`,
    'sip.pass_client_identity=true',
  ];

  beforeAll(async () => {
    stranger = await TestCa.create();
    [peer, strange] = await Promise.all([
      ca.issue('carrier', 'DNS:sip.carrier.test,URI:sip:carrier.test'),
      stranger.issue('strange', 'DNS:sip.carrier.test'),
    ]);
  });

  afterAll(() => stranger.remove());

  const certificateOf = async ({ certFile, keyFile }: CertificatePair) => ({
    cert: await readFile(certFile),
    key: await readFile(keyFile),
  });

  /** The identity header as an application sees it, of a request that brings two of its own. */
  async function seenIdentity(port: number, pair: CertificatePair | null): Promise<string[]> {
    const application = await ControlClient.application(server.controlPort, 'options');
    const seen = application.sip();
    const client = await SipPeer.connect(port, ca.ca, pair === null ? {} : await certificateOf(pair));
    client.send(options(['X-Trunkline-TLS-Identity: DNS:forged.test', 'x-trunkline-tls-identity : again']));
    const lines = (await seen).split('\r\n').filter((line) => /^x-trunkline-tls-identity/i.test(line));
    client.close();
    application.close();
    return lines;
  }

  it('off, requests no certificate and removes what a peer claims in a header', async () => {
    const port = await start();
    expect(await sClient(port)).toContain('No client certificate CA names sent');
    expect(await seenIdentity(port, null)).toEqual([]);
  });

  it('request, passes the names of a verified certificate alone to the application, and also serves a peer without one', async () => {
    const port = await start(...asked('request'));
    expect(await sClient(port)).toContain('CN = Test CA');
    expect(await seenIdentity(port, peer)).toEqual(['X-Trunkline-Tls-Identity: DNS:sip.carrier.test, URI:sip:carrier.test']);
    expect(await seenIdentity(port, strange)).toEqual([]);
    expect(await seenIdentity(port, null)).toEqual([]);
  });

  it('request, requests one in a handshake whose certificate is chosen by name', async () => {
    const port = await start(...asked('request'));
    const shown = await sClient(port, '-servername', 'other.test', '-cert', peer.certFile, '-key', peer.keyFile, '-tls1_2');
    expect(shown).toContain('subject=CN = other');
    expect(shown).toContain('CN = Test CA');
  });

  it('require, refuses a peer with none and with an unknown one, and serves one with a good one', async () => {
    const port = await start(...asked('require'));
    expect(await seenIdentity(port, peer)).toEqual(['X-Trunkline-Tls-Identity: DNS:sip.carrier.test, URI:sip:carrier.test']);
    for (const own of [null, strange]) {
      const client = await SipPeer.connect(port, ca.ca, own === null ? {} : await certificateOf(own));
      client.send(options());
      await client.whenClosed();
      expect(client.received).toEqual([]);
    }
  });
});

describe('a reload of the certificates', () => {
  let directory: string;
  let log: EventLog;
  let reloader: TlsReloader | undefined;
  const at = (name: string): string => join(directory, name);

  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), 'trunkline-reload-'));
    log = new EventLog();
  });

  afterEach(async () => {
    reloader?.close();
    await rm(directory, { recursive: true, force: true });
  });

  async function install(pair: CertificatePair, to: string): Promise<void> {
    await mkdir(to, { recursive: true });
    await copyFile(pair.certFile, join(to, 'tls.crt'));
    await copyFile(pair.keyFile, join(to, 'tls.key'));
  }

  async function watched(): Promise<number> {
    const config = loadConfig({ set: [`sip.cert_file=${at('tls.crt')}`, `sip.key_file=${at('tls.key')}`], environment: {} });
    const initial = await serverTls(config);
    server = await startSipServer({ tls: initial.material });
    const apply = server.setTls.bind(server);
    reloader = new TlsReloader({ read: () => serverTls(config), apply, clock: systemClock, log }, initial);
    return server.portOf('TLS')!;
  }

  it('shows the new certificate to new connections while an older one is still served', async () => {
    await install(main, directory);
    const port = await watched();
    const before = await SipPeer.connect(port, ca.ca);
    expect(await shownSerial(port, 'localhost')).toBe(main.serial);
    const loaded = log.next('sip.tls.certificate_loaded');
    const renewed = await ca.issue('main', 'DNS:localhost,DNS:renewed.test');
    // As most tools do it: written beside, then renamed.
    await install(renewed, at('new'));
    for (const name of ['tls.key', 'tls.crt']) await rename(at(`new/${name}`), at(name));
    expect((await loaded).fields).toMatchObject({
      file: at('tls.crt'),
      subject: 'CN=main',
      names: 'DNS:localhost, DNS:renewed.test',
      serial: renewed.serial,
      expires: expect.stringMatching(/^20\d\d-.*Z$/) as string,
    });
    expect(await shownSerial(port, 'localhost')).toBe(renewed.serial);
    before.send(options());
    expect((await before.final()).status).toBe(503);
    before.close();
  });

  it('notices a symbolic link that changes as cert-manager changes it', async () => {
    await install(main, at('..v1'));
    await install(other, at('..v2'));
    await symlink('..v1', at('..data'));
    await symlink('..data/tls.crt', at('tls.crt'));
    await symlink('..data/tls.key', at('tls.key'));
    const port = await watched();
    const loaded = log.next('sip.tls.certificate_loaded');
    await symlink('..v2', at('..tmp'));
    await rename(at('..tmp'), at('..data'));
    await loaded;
    expect(await shownSerial(port, 'localhost')).toBe(other.serial);
  });

  it.each([
    ['a certificate that is cut off', 'tls.crt', (text: string) => text.slice(0, 200), /cert_file = .*certificate 1 of 1 cannot be read/],
    ['an empty file', 'tls.crt', () => '', /cert_file = .* has no certificate/],
    ['a key that cannot be read', 'tls.key', () => 'nonsense', /key_file = .* has no usable private key/],
    ['the key of another certificate', 'tls.key', () => readFile(other.keyFile, 'utf8'), /key_file = .* is not the key of sip\.cert_file/],
  ] as const)('keeps the old one at %s, and logs an error', async (_what, name, spoil, message) => {
    await install(main, directory);
    const port = await watched();
    const failed = log.next('sip.tls.reload_failed');
    await writeFile(at(name), await spoil(await readFile(at(name), 'utf8')));
    const { level, fields } = await failed;
    expect([level, fields['error']]).toEqual(['error', expect.stringMatching(message)]);
    expect(JSON.stringify(fields)).not.toContain('PRIVATE KEY');
    expect(await shownSerial(port, 'localhost')).toBe(main.serial);
  });

  it('logs once that a file is missing, and again on request', async () => {
    await install(main, directory);
    const port = await watched();
    const failed = log.next('sip.tls.reload_failed');
    await rm(at('tls.key'));
    expect((await failed).fields['error']).toMatch(/key_file = .* cannot be read: ENOENT/);
    await reloader?.reload();
    expect(log.named('sip.tls.reload_failed')).toHaveLength(2);
    expect(await shownSerial(port, 'localhost')).toBe(main.serial);
  });
});

describe('the SIP server process', () => {
  it('reads its certificates again at SIGHUP and continues', async () => {
    const directory = await mkdtemp(join(tmpdir(), 'trunkline-hup-'));
    server = await startSipServer();
    const [port, control] = await freePorts(2);
    const own = [join(directory, 'c.pem'), join(directory, 'k.pem')] as const;
    await Promise.all([copyFile(main.certFile, own[0]), copyFile(main.keyFile, own[1])]);
    const set = [
      ...[`data_dir=${join(directory, 'data')}`, `sip.tls_port=${String(port)}`, `drachtio.port=${String(control)}`],
      ...[`sip.cert_file=${own[0]}`, `sip.key_file=${own[1]}`],
    ];
    const child = spawn(process.execPath, [resolve('dist/cli/main.js'), 'sip-server', ...set.flatMap((value) => ['--set', value])], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const lines = createInterface({ input: child.stdout });
    const logged = (event: string): Promise<void> =>
      new Promise((done, fail) => {
        lines.on('line', (line) => (line.includes(`"msg":"${event}"`) ? done() : undefined));
        child.once('exit', (code) => fail(new Error(`it ended (${String(code)}) without ${event}`)));
      });
    await logged('sip_server.ready');
    const before = await SipPeer.connect(port!, ca.ca);
    const unchanged = logged('sip.tls.certificate_unchanged');
    child.kill('SIGHUP');
    await unchanged;
    before.send(options());
    expect((await before.final()).status).toBe(503);
    const loaded = logged('sip.tls.certificate_loaded');
    await Promise.all([copyFile(other.certFile, own[0]), copyFile(other.keyFile, own[1])]);
    child.kill('SIGHUP');
    await loaded;
    expect(await shownSerial(port!, 'localhost')).toBe(other.serial);
    before.close();
    const ended = once(child, 'exit');
    child.kill('SIGTERM');
    expect(await ended).toEqual([0, null]);
    await rm(directory, { recursive: true, force: true });
  });
});

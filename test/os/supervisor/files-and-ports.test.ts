import { createSocket } from 'node:dgram';
import { mkdtempSync, readFileSync, readdirSync, rmSync, statSync, chmodSync, writeFileSync } from 'node:fs';
import { createServer, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { ConfigError } from '../../../src/config/layers.js';
import { loadConfig } from '../../../src/config/load.js';
import { controlSecret, ensureDataDir, writePrivateFile } from '../../../src/config/data-dir.js';
import { takenPorts, takenRange, type WantedPort } from '../../../src/supervisor/ports-free.js';
import { resolveHostPort } from '../../../src/lib/resolve.js';
import { mediaCapacity } from '../../../src/supervisor/supervisor.js';
import { serverTls, sipHost } from '../../../src/tls/tls-material.js';

let directory: string;

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'trunkline-ops-'));
});

afterEach(() => rmSync(directory, { recursive: true, force: true }));

const config = (...set: string[]) => loadConfig({ set: [`data_dir=${join(directory, 'data')}`, ...set], environment: {} });
const mode = (path: string): string => (statSync(path).mode & 0o777).toString(8);

describe('the data directory', () => {
  it('has no access for others, even when it had before', () => {
    const dataDir = ensureDataDir(config());
    expect(mode(dataDir)).toBe('700');
    chmodSync(dataDir, 0o755);
    ensureDataDir(config());
    expect(mode(dataDir)).toBe('700');
  });

  it('is refused, with the remedy, where it cannot be created', () => {
    const file = join(directory, 'data');
    writeFileSync(file, '');
    expect(() => ensureDataDir(config())).toThrow(
      new ConfigError(
        `data_dir ${file} cannot be used: EEXIST: file already exists, mkdir '${file}'. ` +
          'Mend that, or set data_dir (TRUNKLINE_DATA_DIR) to a directory that its user may write to.',
      ),
    );
  });

  it('keeps the control secret of the first start; a configured one takes precedence and is not written', () => {
    const made = controlSecret(config());
    expect(made.length).toBeGreaterThanOrEqual(32);
    expect(controlSecret(config())).toBe(made);
    expect(mode(join(directory, 'data/control-secret'))).toBe('600');
    expect(controlSecret(config('drachtio.secret=my-own-secret'))).toBe('my-own-secret');
    expect(readFileSync(join(directory, 'data/control-secret'), 'utf8')).toBe(made);
    expect(readdirSync(join(directory, 'data'))).toEqual(['control-secret']);
    // What a process left that was killed while it wrote.
    writeFileSync(join(directory, 'data/control-secret'), '');
    expect(controlSecret(config()).length).toBeGreaterThanOrEqual(32);
    expect(controlSecret(config())).toBe(readFileSync(join(directory, 'data/control-secret'), 'utf8'));
  });

  it('gets whole files, readable by the owner only, and no temporary ones', () => {
    const file = join(directory, 'ready.json');
    writePrivateFile(file, 'one');
    chmodSync(file, 0o644);
    writePrivateFile(file, 'two');
    expect([readFileSync(file, 'utf8'), mode(file), readdirSync(directory)]).toEqual(['two', '600', ['ready.json']]);
  });
});

describe('the check of ports', () => {
  const wanted = (protocol: WantedPort['protocol'], port: number, address = '127.0.0.1'): WantedPort => ({
    setting: 'sip.tls_port',
    protocol,
    address,
    port,
  });

  it('tells TCP ports in use from UDP ones', async () => {
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', () => resolve()));
    const { port } = server.address() as AddressInfo;
    const sentence = `TCP port ${String(port)} on 127.0.0.1 is in use by another program: set sip.tls_port (TRUNKLINE_SIP_TLS_PORT) to a free one`;
    expect(await takenPorts([wanted('tcp', port), wanted('udp', port)])).toEqual([sentence]);
    server.close();

    const socket = createSocket('udp4');
    await new Promise<void>((resolve) => socket.bind(0, '127.0.0.1', () => resolve()));
    expect((await takenPorts([wanted('udp', socket.address().port)]))[0]).toMatch(/^UDP port \d+ on 127\.0\.0\.1 is in use/);
    socket.close();
  });

  it('counts the ports in use of a range, and names its settings', async () => {
    const socket = createSocket('udp4');
    await new Promise<void>((resolve) => socket.bind(0, '127.0.0.1', () => resolve()));
    const { port } = socket.address();
    const range = { setting: 'media', address: '127.0.0.1', min: port, max: port };
    expect(takenRange(range)).toBe(
      `1 of the UDP ports ${String(port)} to ${String(port)} on 127.0.0.1 are in use by other programs, among them ${String(port)}: set media.port_min and media.port_max to a free range`,
    );
    // Another address of this machine has ports of its own.
    expect(takenRange({ ...range, address: '127.0.0.77' })).toBeNull();
    await new Promise<void>((resolve) => socket.close(() => resolve()));
    expect(takenRange(range)).toBeNull();
  });

  it('refuses the same ports for rtpengine and the media endpoint', () => {
    expect(() => config('media.port_min=30100', 'media.port_max=30200')).toThrow(/media\.port_min.*must not overlap rtpengine/);
    expect(() => config('media.port_min=30100', 'media.port_max=30200', 'rtpengine.address=192.0.2.1:2223')).not.toThrow();
  });

  it('names the cause at an address that this machine does not have', async () => {
    expect(await takenPorts([wanted('tcp', 5061, '192.0.2.77')])).toEqual([
      'TCP port 5061 on 192.0.2.77 cannot be opened: 192.0.2.77 is no address of this machine; correct bind_address (TRUNKLINE_BIND_ADDRESS)',
    ]);
  });

  it('leaves the ports free', async () => {
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', () => resolve()));
    const { port } = server.address() as AddressInfo;
    await new Promise((resolve) => server.close(resolve));
    expect(await takenPorts([wanted('tcp', port)])).toEqual([]);
    expect(await takenPorts([wanted('tcp', port)])).toEqual([]);
  });

  it('counts one call for four ports of rtpengine, and no more than its open files allow', () => {
    const settings = config('rtpengine.port_min=30000', 'rtpengine.port_max=30399');
    expect(mediaCapacity(settings, 20_000)).toBe('100 calls: UDP 30000 to 30399 (rtpengine.port_min, port_max), 4 ports a call');
    expect(mediaCapacity(settings, 300)).toMatch(/^50 calls: 300 open files \(ulimit -n\), 4 a call\. .* would carry 100$/);
  });
});

describe('the resolution of names', () => {
  it('reads host:port, with or without a scheme', async () => {
    expect(await resolveHostPort('127.0.0.1:2223')).toEqual({ address: '127.0.0.1', port: 2223 });
    expect(await resolveHostPort('udp://localhost:2223')).toEqual({ address: '127.0.0.1', port: 2223 });
    await expect(resolveHostPort('no-such-host.invalid:1')).rejects.toThrow('the host "no-such-host.invalid" cannot be resolved');
  });

  it('prefers sip.host to public_address and that to bind_address for Contact', () => {
    expect(sipHost(config())).toBe('127.0.0.1');
    expect(sipHost(config('public_address=203.0.113.5'))).toBe('203.0.113.5');
    expect(sipHost(config('public_address=203.0.113.5', 'sip.host=sip.example.org'))).toBe('sip.example.org');
  });

  it('names the setting of a certificate that cannot be read', async () => {
    const own = config('sip.cert_file=/nowhere/cert.pem', 'sip.key_file=/nowhere/key.pem');
    await expect(serverTls(own)).rejects.toThrow('sip.cert_file = "/nowhere/cert.pem" cannot be read');
    await expect(serverTls(config('sip.key_file=/nowhere/key.pem'))).rejects.toThrow('go together');
  });
});

import { createSocket } from 'node:dgram';
import { existsSync } from 'node:fs';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { processesOf } from '../../support/processes.js';
import { Instance, UpProcess } from '../../support/up.js';

let instance: Instance;
let started: UpProcess[] = [];

beforeEach(async () => {
  instance = await Instance.settings();
});

afterEach(async () => {
  for (const up of started) await up.destroy();
  started = [];
  await instance.remove();
});

function up(overrides: Readonly<Record<string, string>> = {}): UpProcess {
  const process_ = UpProcess.spawn({ ...instance.environment, ...overrides });
  started.push(process_);
  return process_;
}

/** Takes the port until the function is called. */
async function occupy(protocol: 'tcp' | 'udp', port: number): Promise<() => void> {
  if (protocol === 'tcp') {
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', () => resolve()));
    return () => server.close();
  }
  const socket = createSocket('udp4');
  await new Promise<void>((resolve) => socket.bind(port, '127.0.0.1', () => resolve()));
  return () => socket.close();
}

describe('a start that names the cause, exits with 1 and leaves nothing running', () => {
  it('fails when the addon cannot be loaded', async () => {
    await mkdir(instance.dataDir, { recursive: true });
    const addon = join(instance.dataDir, 'srtp.node');
    await writeFile(addon, 'of another machine');
    const refused = up({ TRUNKLINE_SRTP_ADDON: addon });
    expect(await refused.ended).toBe(1);
    expect(refused.output).toContain(`trunkline: the SRTP addon cannot be loaded: ${addon}: `);
    expect(processesOf(instance.dataDir)).toEqual([]);
  });

  it.each([
    ['sip.tls_port', 'tcp'],
    ['http.port', 'tcp'],
    ['redis.port', 'tcp'],
    ['drachtio.port', 'tcp'],
    ['rtpengine.ng_port', 'udp'],
  ] as const)('fails when %s is taken', async (setting, protocol) => {
    const variable = `TRUNKLINE_${setting.replace('.', '_').toUpperCase()}`;
    const port = Number(instance.environment[variable]);
    const release = await occupy(protocol, port);
    const refused = up();
    expect(await refused.ended).toBe(1);
    expect(refused.output.trim()).toBe(
      `trunkline: ${protocol.toUpperCase()} port ${String(port)} on 127.0.0.1 is in use by another program: set ${setting} (${variable}) to a free one`,
    );
    expect(processesOf(instance.dataDir)).toEqual([]);
    release();
    // The refusal left nothing that stops the next start.
    expect(existsSync(join(instance.dataDir, 'supervisor.pid'))).toBe(false);
  });

  it.each([
    ['TRUNKLINE_SIP_TLS_PORT', '99999', 'sip.tls_port = 99999', 'the environment'],
    ['TRUNKLINE_MEDIA_AGENT_LEG', 'dtls', 'media.agent_leg = "dtls"', 'the environment'],
    ['TRUNKLINE_SIP_TSL_PORT', '5061', 'Unknown environment variable TRUNKLINE_SIP_TSL_PORT.', 'Did you mean TRUNKLINE_SIP_TLS_PORT?'],
    ['TRUNKLINE_SIP_CERT_FILE', '/nowhere/cert.pem', 'sip.cert_file and sip.key_file go together', 'trunkline:'],
    ['TRUNKLINE_CA_FILE', '/nowhere/ca.pem', 'ca_file = "/nowhere/ca.pem" cannot be read', 'ENOENT'],
    ['TRUNKLINE_CA_FILE', 'package.json', 'ca_file = "package.json" has no certificate (PEM)', 'trunkline:'],
    ['TRUNKLINE_CONFIG', '/nowhere/trunkline.yaml', 'Cannot read the configuration file /nowhere/trunkline.yaml', 'ENOENT'],
  ])('fails with %s=%s', async (name, value, ...texts) => {
    const refused = up({ [name]: value });
    expect(await refused.ended).toBe(1);
    for (const text of texts) expect(refused.output).toContain(text);
    // A sentence for a person, not a stack.
    expect(refused.output).not.toMatch(/^\s+at /m);
    expect(processesOf(instance.dataDir)).toEqual([]);
  });

  it('fails with an unknown setting in a file, and names the file', async () => {
    const file = join(instance.directory, 'wrong.yaml');
    await writeFile(file, 'sip:\n  tls_prot: 5071\n');
    const refused = up({ TRUNKLINE_CONFIG: file });
    expect(await refused.ended).toBe(1);
    expect(refused.output).toContain(`sip.tls_prot (from ${file}): unknown setting. Did you mean sip.tls_port?`);
  });

  it('fails when a part does not come up, and prints the end of its log', async () => {
    // A file where redis-server wants a directory.
    await mkdir(join(instance.dataDir, 'redis'), { recursive: true });
    await writeFile(join(instance.dataDir, 'redis/appendonlydir'), '');
    const refused = up();
    expect(await refused.ended).toBe(1);
    expect(refused.output).toContain('redis-server did not start: it ended with exit code 1');
    expect(refused.output).toContain('appendonlydir');
    expect(processesOf(instance.dataDir)).toEqual([]);
  });
});

describe('trunkline up', () => {
  it('refuses a second instance on the same data directory before it changes anything, and the first continues', async () => {
    const first = up();
    await first.printed('Trunkline is ready.');
    const certificate = await readFile(join(instance.dataDir, 'tls/server.pem'), 'utf8');
    const other = await Instance.settings();
    const refused = up({ ...other.environment, TRUNKLINE_DATA_DIR: instance.dataDir, TRUNKLINE_SIP_HOST: 'other.example.org' });
    expect(await refused.ended).toBe(1);
    await other.remove();
    expect(refused.output.trim()).toBe(
      `trunkline: Trunkline is running already with data_dir ${instance.dataDir} (process ${String(first.pid)}). ` +
        'Stop it, or set data_dir (TRUNKLINE_DATA_DIR) to another directory.',
    );
    expect(await readFile(join(instance.dataDir, 'tls/server.pem'), 'utf8')).toBe(certificate);
    expect((await fetch(`http://127.0.0.1:${instance.environment['TRUNKLINE_HTTP_PORT']!}/readyz`)).status).toBe(200);
    // Ctrl-C in a terminal reaches every process of the group: the parts are stopped in order all the same.
    first.interruptGroup();
    expect(await first.ended).toBe(0);
    expect(first.output).not.toContain('supervisor.child.died');
    expect(processesOf(instance.dataDir)).toEqual([]);
    expect(existsSync(join(instance.dataDir, 'ready.json'))).toBe(false);
    expect(existsSync(join(instance.dataDir, 'supervisor.pid'))).toBe(false);
  });

  it('ends in the middle of its start at SIGTERM, and leaves nothing', async () => {
    const cut = up();
    await cut.printed('redis-server started');
    cut.kill('SIGTERM');
    expect(await cut.ended).toBe(0);
    await expect.poll(() => processesOf(instance.dataDir)).toEqual([]);
    expect(cut.output).not.toContain('Trunkline is ready.');
  });

  it('stops a part that an earlier supervisor left when it stops itself', async () => {
    const first = up();
    await first.printed('Trunkline is ready.');
    expect(processesOf(instance.dataDir).length).toBe(6);
    first.kill('SIGKILL');
    expect(await first.ended).toBe('SIGKILL');
    const second = up();
    await second.printed('Trunkline is ready.');
    expect(processesOf(instance.dataDir).length).toBe(6);
    second.kill('SIGINT');
    expect(await second.ended).toBe(0);
    expect(processesOf(instance.dataDir)).toEqual([]);
  });
});

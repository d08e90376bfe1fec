import { execFile, spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import type { Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { callExampleSipServer } from '../../support/example-sip-server.js';
import { testEnvironment } from '../../support/gateway.js';

// The package as somebody installs it, in a folder with nothing else: npm pack, npm install, npx trunkline.

const run = promisify(execFile);
const INSTALL_TIMEOUT_MS = 120_000;

let directory: string;
let lock: Server;
let environment: NodeJS.ProcessEnv;
let packed: readonly string[] = [];

beforeAll(async () => {
  directory = mkdtempSync(join(tmpdir(), 'trunkline-package-'));
  const { stdout } = await run('npm', ['pack', '--json', '--ignore-scripts', '--pack-destination', directory]);
  const [tarball] = JSON.parse(stdout) as [{ readonly filename: string; readonly files: { readonly path: string }[] }];
  packed = tarball.files.map(({ path }) => path);
  writeFileSync(join(directory, 'package.json'), '{ "private": true, "type": "module" }');
  const flags = ['--prefer-offline', '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error'];
  await run('npm', ['install', ...flags, `./${tarball.filename}`], { cwd: directory, timeout: INSTALL_TIMEOUT_MS });
  const made = await testEnvironment(directory);
  ({ lock } = made);
  environment = { ...process.env, ...made.environment };
}, 2 * INSTALL_TIMEOUT_MS);

afterAll(() => {
  lock.close();
  rmSync(directory, { recursive: true, force: true });
});

/** In the folder, as a person there types it. */
async function npx(...args: readonly string[]): Promise<{ readonly code: number; readonly stdout: string }> {
  return run('npx', ['--no-install', ...args], { cwd: directory, env: environment }).then(
    ({ stdout }) => ({ code: 0, stdout }),
    (error: unknown) => {
      const { code, stdout } = error as { readonly code: number; readonly stdout: string };
      return { code, stdout };
    },
  );
}

async function up(): Promise<{ readonly child: ChildProcess; readonly output: string }> {
  const child = spawn(join(directory, 'node_modules/.bin/trunkline'), ['up'], {
    cwd: directory,
    env: environment,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  await new Promise<void>((resolve_, reject) => {
    const read = (chunk: Buffer): void => {
      output += chunk.toString();
      if (output.includes('Trunkline is ready.')) resolve_();
    };
    child.stdout.on('data', read);
    child.stderr.on('data', read);
    child.once('exit', (code) => reject(new Error(`trunkline up ended with ${String(code)}:\n${output}`)));
  });
  return { child, output };
}

async function stop(child: ChildProcess): Promise<number | null> {
  child.kill('SIGTERM');
  const [code] = (await once(child, 'exit')) as [number | null];
  return code;
}

describe('the installed package', () => {
  it('has no source maps, tests or benchmarks', () => {
    expect(packed.filter((path) => /\.map$|^(?:test|bench|src|web)\//.test(path))).toEqual([]);
    expect(packed).toEqual(expect.arrayContaining(['dist/console/index.html', 'config/default.yaml', 'native/binding.gyp', 'LICENSE']));
    expect(packed.filter((path) => path.endsWith('.lua'))).not.toEqual([]);
  });

  it('has types for moduleResolution NodeNext', async () => {
    writeFileSync(
      join(directory, 'types.ts'),
      `import { startSipServer, type SipServer } from 'trunkline/sip-server';
import { parseMessage, serialize, UserAgent } from 'trunkline/sip';
import { createClient } from 'trunkline/client';
import { fromAgentMessage, type ToAgentMessage } from 'trunkline/agent-protocol';
export const server: Promise<SipServer> = startSipServer({ ports: { udp: 0 }, control: { port: 0, secret: 'x' } });
export const start = (message: ToAgentMessage): string => message.event;
export const all = [parseMessage, serialize, UserAgent, createClient, fromAgentMessage];
`,
    );
    const tsc = resolve('node_modules/typescript/bin/tsc');
    const flags = [
      '--strict',
      '--noEmit',
      '--target',
      'ES2023',
      '--module',
      'NodeNext',
      '--moduleResolution',
      'NodeNext',
      '--types',
      'node',
    ];
    await run(process.execPath, [tsc, ...flags, '--typeRoots', resolve('node_modules/@types'), 'types.ts'], { cwd: directory });
  });

  it('starts a SIP server for a drachtio-srf application', async () => {
    cpSync('docs/examples/sip-server.mjs', join(directory, 'sip-server.mjs'));
    expect(await callExampleSipServer(join(directory, 'sip-server.mjs'))).toContain('The caller hung up');
  });

  it('names before the first start what is not built, and the command that builds it', async () => {
    const { code, stdout } = await npx('trunkline', 'doctor');
    expect(code).toBe(1);
    expect(stdout).toMatch(/FAIL {2}native SRTP addon +not built\n +→ run: trunkline up/);
  });

  it('builds the addon in the data directory once at trunkline up, and answers a call', async () => {
    const first = await up();
    try {
      expect(first.output).toContain('SRTP addon built');
      expect(readdirSync(join(directory, 'data/native')).sort()).toEqual([
        'media-generator',
        'socket-holder',
        'sources.sha256',
        'srtp.node',
      ]);
      expect(existsSync(join(directory, 'node_modules/trunkline/native/build'))).toBe(false);
      const { code, stdout } = await npx('trunkline', 'call');
      expect(stdout).toContain('ok: answered, heard, and ended as expected');
      expect(code).toBe(0);
      const ready = JSON.parse(readFileSync(join(directory, 'data/ready.json'), 'utf8')) as { readonly http: string };
      expect((await fetch(`${ready.http}/console`)).status).toBe(200);
    } finally {
      expect(await stop(first.child)).toBe(0);
    }
    const second = await up();
    expect(second.output).not.toContain('SRTP addon built');
    expect(await stop(second.child)).toBe(0);
  }, 180_000);
});

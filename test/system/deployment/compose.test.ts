import { execFile } from 'node:child_process';
import { resolve } from 'node:path';
import { promisify } from 'node:util';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { readCompose } from '../../support/compose-site.js';
import { Instance, UpProcess } from '../../support/up.js';

const run = promisify(execFile);

// docker/compose.yaml without Docker: what the service runs, with its environment, but for the ports and the data directory, which other
// tests of this machine have too. Compose itself does not run here.

let instance: Instance;
let up: UpProcess;
let environment: Record<string, string>;

beforeEach(async () => {
  instance = await Instance.settings();
  const { services } = await readCompose(resolve('docker/compose.yaml'), { PUBLIC_ADDRESS: '127.0.0.1', SIP_HOST: 'sip.example.com' });
  // What has no value is passed on by Compose where the shell has it.
  const given = Object.entries(services['trunkline']?.environment ?? {}).flatMap(([name, value]) =>
    value === null ? [] : [[name, String(value)]],
  );
  // This machine may lead nowhere.
  environment = { ...(Object.fromEntries(given) as Record<string, string>), ...instance.environment, TRUNKLINE_BIND_ADDRESS: '127.0.0.1' };
  up = UpProcess.spawn(environment);
});

afterEach(async () => {
  await up.destroy();
  await instance.remove();
});

describe('docker/compose.yaml', () => {
  it('passes the health check of the image, and creates an organization and a key by the documented commands', async () => {
    await up.printed('Trunkline is ready.');
    await run('docker/healthcheck', ['127.0.0.1', instance.environment['TRUNKLINE_HTTP_PORT'] ?? '']);
    const env = { ...process.env, ...environment };
    const trunkline = (...args: string[]) => run(process.execPath, [resolve('dist/cli/main.js'), ...args], { env });
    await trunkline('org', 'create', 'My company', '--sip');
    expect((await trunkline('key', 'create', 'My company')).stdout).toContain('tl_');
    // A container's log is read by others.
    expect(up.output).not.toContain('tl_');
  });

  it('fails the health check where nothing listens', async () => {
    await expect(run('docker/healthcheck', ['127.0.0.1', '1'])).rejects.toMatchObject({ code: 1 });
  });
});

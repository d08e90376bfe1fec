import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { RunningGateway } from '../../support/gateway.js';

let gateway: RunningGateway;

beforeAll(async () => {
  gateway = await RunningGateway.start();
});
afterAll(() => gateway.destroy());

/** The file that operators get, with the paths of this instance. */
function rotate(): void {
  const shipped = readFileSync('config/logrotate/trunkline', 'utf8');
  const own = shipped.replace('/var/lib/trunkline/logs', join(gateway.dataDir, 'logs')).replace(/^ *su .*\n/m, '');
  const file = join(gateway.dataDir, 'logrotate.conf');
  writeFileSync(file, own, { mode: 0o644 });
  execFileSync('logrotate', ['--force', '--state', join(gateway.dataDir, 'logrotate.state'), file], {
    env: { PATH: `${process.env['PATH'] ?? ''}:/usr/sbin` },
    stdio: 'pipe',
  });
}

it('logrotate with the file that we ship moves the lines to a file of the day, and processes go on writing to the log', async () => {
  const log = join(gateway.dataDir, 'logs', 'gateway.log');
  await expect.poll(() => statSync(log).size).toBeGreaterThan(0);
  rotate();
  expect(readdirSync(join(gateway.dataDir, 'logs')).filter((name) => /^gateway\.log-\d{8}/.test(name))).toHaveLength(1);
  const before = await gateway.log('gateway');
  expect(before).not.toContain('"gateway.ready"');
  expect((await gateway.api('GET', '/v1/calls')).status).toBe(200);
  await expect.poll(() => gateway.log('gateway')).toContain('"api.request"');
  // At its beginning: a hole of zeros would stand before a line of a process that does not append.
  expect((await gateway.log('gateway')).startsWith('{')).toBe(true);
});

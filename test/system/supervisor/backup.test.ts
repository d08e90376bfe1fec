import { execFile } from 'node:child_process';
import { mkdir, readFile } from 'node:fs/promises';
import { promisify } from 'node:util';
import { afterEach, expect, it } from 'vitest';
import { RunningGateway } from '../../support/gateway.js';
import { attach } from '../../support/trunk.js';

const run = promisify(execFile);

let gateways: RunningGateway[] = [];

afterEach(async () => {
  await Promise.all(gateways.map((gateway) => gateway.destroy()));
  gateways = [];
});

it('a copy made at run time by docs/operations.md restores elsewhere everything that customers set', async () => {
  const first = await RunningGateway.start();
  gateways.push(first);
  await attach(first, '+15550100777', { max_concurrent_calls: 3 });
  // The block of commands of the document, at this instance's places.
  const [, block = ''] = /A copy while it runs, every day:\n\n```sh\n([^`]*)```/.exec(await readFile('docs/operations.md', 'utf8')) ?? [];
  expect(block).toContain('BGREWRITEAOF');
  const script = block
    .replaceAll('-p 6380', `-p ${String(first.environment['TRUNKLINE_REDIS_PORT'])}`)
    .replaceAll('/var/lib/trunkline', first.dataDir)
    .replaceAll('sleep 1', 'sleep 0.1');
  await run('bash', ['-euc', script], { cwd: first.directory });

  const second = await RunningGateway.start();
  gateways.push(second);
  await second.stop();
  await mkdir(second.dataDir, { recursive: true });
  await run('bash', ['-euc', `rm -r redis tls gateway-instance control-secret demo.json; tar -xzf ${first.directory}/trunkline-*.tar.gz`], {
    cwd: second.dataDir,
  });
  await second.up();
  const answer = await fetch(`${second.ready.http}/sip/check`, {
    method: 'POST',
    headers: { authorization: first.ready.api_key, 'content-type': 'application/json' },
    body: JSON.stringify({ phone_number: '+15550100777' }),
  });
  expect(await answer.json()).toMatchObject({ data: { outcome: 'accept' } });
  // Whoever trusted the CA of before goes on.
  expect(second.ca).toBe(first.ca);
});

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { CHILDREN, childrenOf } from '../../support/processes.js';
import { Instance, UpProcess } from '../../support/up.js';

it('SIGHUP to `trunkline up` makes the SIP server read its certificates again, and nothing ends', async () => {
  const instance = await Instance.settings();
  const up = UpProcess.spawn(instance.environment);
  try {
    await up.printed('Trunkline is ready.');
    const before = childrenOf(up.pid);
    up.kill('SIGHUP');
    await expect
      .poll(() => readFileSync(join(instance.dataDir, 'logs/sip-server.log'), 'utf8'), { timeout: 10_000 })
      .toContain('"msg":"sip.tls.certificate_unchanged"');
    expect(childrenOf(up.pid)).toEqual(before);
    expect(before.length).toBe(CHILDREN.length);
    up.kill('SIGTERM');
    expect(await up.ended).toBe(0);
  } finally {
    await up.destroy();
    await instance.remove();
  }
});

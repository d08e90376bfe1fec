import { mkdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { silentLog } from '../../src/lib/log.js';
import { systemClock } from '../../src/lib/system-clock.js';
import { openRedisStores } from '../../src/gateway/store/redis/redis-stores.js';
import { openBrowser, visit } from '../../test/support/browser.js';
import { CarrierCall } from '../../test/support/carrier-call.js';
import { RunningGateway } from '../../test/support/gateway.js';
import { callOf, endedCall } from '../../test/unit/gateway/store/store-contract.js';
import { ROOT } from './generate.js';

// `npm run screenshots`: the pictures of the console in docs/images, of a gateway that is started for them.

const IMAGES = join(ROOT, 'docs/images');
const MAX_BYTES = 150_000;
const NUMBERS = ['+15550100201', '+15550100202', '+15550100203'];
const ENDS = [
  'CALLER_HANGUP',
  'AGENT_HANGUP',
  'CALLER_HANGUP',
  'SOURCE_NOT_ALLOWED',
  'CALLER_HANGUP',
  'AGENT_LOST',
  'CALLER_CANCELLED',
] as const;

async function fill(gateway: RunningGateway): Promise<void> {
  const stores = openRedisStores({
    url: `redis://127.0.0.1:${gateway.environment['TRUNKLINE_REDIS_PORT'] ?? ''}`,
    clock: systemClock,
    log: silentLog,
  });
  await stores.ready();
  for (const [index, phone_number] of NUMBERS.entries()) {
    const options = { allowed_sources: ['203.0.113.0/24', '198.51.100.7'], max_concurrent_calls: 50 * (index + 1) };
    await gateway.api('POST', '/sip/attach', { phone_number, directions: ['inbound'], service: 'sip', options });
  }
  for (let index = 0; index < 60; index += 1) {
    const reason = ENDS[index % ENDS.length] ?? 'CALLER_HANGUP';
    const beganMs = Date.now() - 60_000 - index * 47_000;
    const isAnswered = !['SOURCE_NOT_ALLOWED', 'CALLER_CANCELLED'].includes(reason);
    const from = `+1555010${String(4000 + ((index * 37) % 900))}`;
    const record = callOf(gateway.ready.org_id, beganMs, { from, to: NUMBERS[index % 3] ?? '', reason });
    const lengthMs = 20_000 + ((index * 7_919) % 180_000);
    await stores.calls.write(
      endedCall({
        ...record,
        answered_at: isAnswered ? record.started_at : null,
        ended_at: new Date(beganMs + lengthMs).toISOString(),
        timings: { ...record.timings, answer_ms: isAnswered ? 90 + ((index * 13) % 120) : null },
      }),
    );
  }
  await stores.close();
}

async function shoot(page: Page, name: string): Promise<void> {
  const path = join(IMAGES, `console-${name}.png`);
  await page.screenshot({ path });
  const { size } = statSync(path);
  process.stdout.write(`  ${name.padEnd(12)} ${String(Math.round(size / 1_000))} kB\n`);
  if (size > MAX_BYTES) throw new Error(`${path} has more than ${String(MAX_BYTES)} bytes`);
}

mkdirSync(IMAGES, { recursive: true });
const [gateway, browser] = await Promise.all([RunningGateway.start(), openBrowser()]);
try {
  await fill(gateway);
  const call = await CarrierCall.talking(gateway, gateway.ready.phone_number);
  for (const [name, options] of [
    ['light', { width: 1200, height: 680 }],
    ['dark', { width: 1200, height: 680, colorScheme: 'dark' }],
    ['phone', { width: 375, height: 720 }],
  ] as const) {
    const { page, context } = await visit(browser, gateway.ready.http, options);
    await page.goto('/console/');
    await page.getByLabel('API key').fill(gateway.ready.api_key);
    await page.keyboard.press('Enter');
    await page.getByRole('grid').getByText('In progress').waitFor();
    await page.getByRole('grid').getByText('AGENT_LOST').first().waitFor();
    if (name !== 'dark') await shoot(page, name === 'phone' ? 'phone' : 'calls');
    if (name === 'dark') {
      await page.getByRole('grid').getByText('In progress').click();
      await page.getByRole('option', { name: /: ACK sip:/ }).waitFor();
      // Below the bar that stays on top.
      await page.evaluate("scrollBy(0, document.querySelector('.ladder').getBoundingClientRect().top - 112)");
      await shoot(page, 'call');
    }
    await context.close();
  }
  call.close();
} finally {
  await browser.close();
  await gateway.destroy();
}

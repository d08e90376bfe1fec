import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { silentLog } from '../../../src/lib/log.js';
import { systemClock } from '../../../src/lib/system-clock.js';
import { openRedisStores, type RedisStores } from '../../../src/gateway/store/redis/redis-stores.js';
import { hasFocus, openBrowser, sidewaysScroll, tabTo, visit, type Visit } from '../../support/browser.js';
import type { E164 } from '../../../src/gateway/model/e164.js';
import { CarrierCall, until } from '../../support/carrier-call.js';
import { RunningGateway } from '../../support/gateway.js';
import { callOf, endedCall } from '../../unit/gateway/store/store-contract.js';
import { HANG_GUARD_MS } from '../../support/hang-guard.js';

// The console in a browser, against the whole product.

const NUMBER = '+15550100300';
const CALLS = 10_000;
const PAGES = ['calls', 'live', 'numbers', 'agents', 'tools', 'batches'] as const;

let gateway: RunningGateway;
let stores: RedisStores;
let browser: Browser;
let desk: Visit;
const address = (): string => gateway.ready.http;

beforeAll(async () => {
  [gateway, browser] = await Promise.all([RunningGateway.start(), openBrowser()]);
  stores = openRedisStores({
    commandTimeoutMs: HANG_GUARD_MS,
    url: `redis://127.0.0.1:${gateway.environment['TRUNKLINE_REDIS_PORT'] ?? ''}`,
    clock: systemClock,
    log: silentLog,
  });
  await stores.ready(HANG_GUARD_MS);
  desk = await visit(browser, address());
});
afterAll(async () => {
  await browser.close();
  await stores.close();
  await gateway.destroy();
});

async function signIn(page: Page, key: string, path = '/console/'): Promise<void> {
  await page.goto(path);
  await page.getByLabel('API key').fill(key);
  await page.keyboard.press('Enter');
  await page.getByRole('navigation').waitFor();
}

describe('the console', () => {
  it('shows why a key is refused, and accepts a valid one', async () => {
    const { page } = desk;
    await page.goto('/console/calls');
    await page.getByLabel('API key').fill('tl_wrong');
    await page.keyboard.press('Enter');
    await page.getByRole('alert').getByText('must hold a valid API key').waitFor();
    await page.getByLabel('API key').fill(gateway.ready.api_key);
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: 'Calls' }).waitFor();
    await page.getByText('No calls yet.').waitFor();
  });

  it('lets the keyboard alone attach a number, watch a call arrive, open its ladder and stop it', async () => {
    const { page } = desk;
    await tabTo(page, page.getByRole('link', { name: 'Numbers' }));
    await page.keyboard.press('Enter');
    await tabTo(page, page.getByRole('button', { name: 'Attach a number' }));
    await page.keyboard.press('Enter');
    const dialog = page.getByRole('dialog');
    await tabTo(page, dialog.getByLabel('Phone number'));
    await page.keyboard.type('12');
    await page.keyboard.press('Enter');
    await dialog.getByText('must be a phone number').first().waitFor();
    await tabTo(page, dialog.getByLabel('Phone number'));
    await page.keyboard.press('Control+A');
    await page.keyboard.type(NUMBER);
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: NUMBER }).waitFor();
    expect(await dialog.count()).toBe(0);

    await page.goto('/console/calls');
    const grid = page.getByRole('grid', { name: 'Calls' });
    await page.getByText('No calls yet.').waitFor();
    const call = await CarrierCall.talking(gateway, NUMBER);
    const row = grid.getByRole('row').filter({ hasText: NUMBER });
    await row.getByText('In progress').waitFor();
    await tabTo(page, grid);
    await page.keyboard.press('Home');
    await page.keyboard.press('Enter');

    const ladder = page.getByRole('listbox');
    await ladder.getByRole('option', { name: /INVITE sip:/ }).waitFor();
    expect(new URL(page.url()).pathname).toMatch(/^\/console\/calls\/[0-9a-f-]{36}$/);
    expect(await ladder.getByRole('option', { name: /from sip: ACK/ }).count()).toBe(1);
    expect(await ladder.getByRole('option', { name: /to rtpengine: offer/ }).count()).toBe(1);
    await tabTo(page, ladder);
    await page.keyboard.press('Home');
    await page.getByRole('region', { name: 'The chosen message' }).getByText('Max-Forwards').waitFor();

    // What is said appears while it is said.
    const pressed = page.locator('.transcript li.caller').getByText('1', { exact: true });
    expect(await pressed.count()).toBe(0);
    call.audio.press();
    await pressed.waitFor();

    const stop = page.getByRole('button', { name: 'Stop the call' });
    await page.keyboard.press('Shift+Tab');
    expect(await hasFocus(page, stop)).toBe(true);
    await page.keyboard.press('Enter');
    await dialog.waitFor();
    await page.keyboard.press('Escape');
    await dialog.waitFor({ state: 'detached' });
    expect(await hasFocus(page, stop)).toBe(true);
    await page.keyboard.press('Enter');
    await dialog.waitFor();
    await tabTo(page, dialog.getByRole('button', { name: 'Stop the call' }));
    await page.keyboard.press('Enter');
    await until(() => call.peer.received.some(({ startLine }) => startLine.startsWith('BYE ')), 'no BYE came');
    await page.getByText('The call was stopped through the API.').waitFor();
    // It was heard: what the gateway sampled is drawn.
    await page.getByRole('img', { name: /^MOS, 1 to 4.5: From the caller: least 4\.\d/ }).waitFor();
    await ladder.getByRole('option', { name: /to sip: BYE/ }).waitFor();
    call.close();
  });

  it('draws the quality of a call over time, and shows whether its caller was verified, and why its agent failed', async () => {
    const { page } = desk;
    const figures = { lost_percent: 2, jitter_ms: 3.5, mos: 3.9 };
    const sample = (at_ms: number) => ({ at_ms, from_caller: figures, to_caller: at_ms === 5_000 ? null : figures, round_trip_ms: 12 });
    const identity = { verdict: 'valid', detail: null, attestation: 'A', origid: null, signer: 'CN=Carrier' } as const;
    const record = callOf(await orgOf(), Date.now(), {
      samples: [sample(5_000), sample(10_000)],
      identity,
      reason: 'AGENT_LOST',
      agent_error: 'deepgram (agent.deepgram.com): the provider sent an error: INVALID_AUTH (the key is wrong)',
    });
    await stores.calls.write(endedCall(record));
    await page.goto(`/console/calls/${record.call_id}`);
    await page.getByRole('img', { name: /^MOS, 1 to 4.5: From the caller: least 3.90/ }).waitFor();
    await page.getByRole('img', { name: /^Loss, % of packets: From the caller: least 2, most 2/ }).waitFor();
    await page.getByText('valid, attestation A').waitFor();
    const why = page.getByRole('region', { name: 'Why it ended' });
    await why.getByText('The connection to the agent: deepgram (agent.deepgram.com): the provider sent an error: INVALID_AUTH').waitFor();
  });

  it('shows agents, tools, checks, batches and the throughput; a refusal names the remedy', async () => {
    const { page } = desk;
    await page.goto('/console/agents');
    await page.getByRole('button', { name: 'Create an agent' }).click();
    await page.getByLabel('Name').fill('Desk');
    await page.getByLabel('Prompt').fill('You are the front desk.');
    await page.getByRole('button', { name: 'Create', exact: true }).click();
    await page.getByRole('heading', { name: 'Desk' }).waitFor();

    await page.goto('/console/numbers');
    await page.getByRole('button', { name: `Update ${NUMBER}` }).click();
    await page.getByLabel('Agent').selectOption('Desk');
    await page.getByLabel('Allowed sources').fill('203.0.113.0/24');
    await page.getByRole('button', { name: 'Update', exact: true }).click();
    await page.getByText('Inbound to Desk. From 203.0.113.0/24').waitFor();
    await page.getByLabel('Find a number').fill('15550100399');
    await page.keyboard.press('Enter');
    await page.getByText('This number is not attached.').waitFor();
    await page.getByLabel('Find a number').fill(NUMBER);
    await page.keyboard.press('Enter');
    await page.getByRole('button', { name: `Check ${NUMBER}` }).click();
    await page.getByLabel('From address').fill('198.51.100.1');
    await page.getByRole('button', { name: 'Check', exact: true }).click();
    await page.getByText('Would be refused (403 SOURCE_NOT_ALLOWED)').waitFor();
    await page.getByText('to allowed_sources of the number').waitFor();
    await page.keyboard.press('Escape');

    await page.goto('/console/agents');
    await page.getByRole('button', { name: 'Edit Desk' }).click();
    await page.getByLabel('First sentence').fill('Good morning.');
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    await page.getByRole('button', { name: 'Delete Desk' }).click();
    await page.getByRole('button', { name: 'Delete', exact: true }).click();
    await page.getByText('Give the number another agent under Numbers').waitFor();

    await page.goto('/console/tools');
    await page.getByRole('button', { name: 'Create a tool' }).click();
    await page.getByLabel('Name', { exact: true }).fill('Booking');
    await page.getByLabel('Description').fill('Books a table.');
    await page.getByLabel('URL').fill('http://127.0.0.1:1/');
    await page.getByLabel('Input').fill('{');
    await page.getByRole('button', { name: 'Create', exact: true }).click();
    await page.locator('.bad-text').getByText('is not JSON').waitFor();
    await page.getByLabel('Input').fill('{}');
    await page.getByRole('button', { name: 'Create', exact: true }).click();
    await page.getByRole('button', { name: 'Try Booking' }).click();
    await page.getByRole('button', { name: 'Call', exact: true }).click();
    await page.getByRole('dialog').getByRole('alert').waitFor();
    await page.keyboard.press('Escape');

    const orgId = await orgOf();
    const { batch_id: batchId } = await stores.batches.create({ orgId, name: 'Load test' });
    const append = (type: string, payload: Record<string, number>) => stores.batches.append(orgId, batchId, { event_type: type, payload });
    for (const second of [1, 2, 3]) await append('figures', { in_progress: second });
    await append('complete', { calls_total: 9, calls_failed: 1, calls_successful: 8 });
    await page.goto('/console/batches');
    await page.getByRole('link', { name: 'Load test' }).click();
    await page.getByRole('img', { name: /^Calls in progress: in progress: least 1, most 3/ }).waitFor();
    await page.getByText('"calls_total":9').waitFor();

    await page.goto('/console/live');
    await page.getByText('1 started in 15 minutes').waitFor();
    await page.getByRole('img', { name: /^Calls a second/ }).waitFor();
  });

  it('creates a batch that dials, shows its progress, pauses and stops it', async () => {
    const { page } = desk;
    const orgId = await orgOf();
    const from = '+15550100301' as E164;
    await stores.numbers.attach(orgId, from, { outbound: { sip_endpoint: 'trunk.invalid' } });
    // It waits for ever.
    const limits = { max_calls_per_second: 10, max_concurrent_calls: 10, max_calls_per_day: 0, max_cost_per_day: 100 };
    await page.goto('/console/batches');
    await page.getByRole('button', { name: 'Call many numbers' }).click();
    await page.getByLabel('Name').fill('March');
    await page.getByLabel('From').fill(from);
    await page.getByRole('textbox', { name: 'Numbers' }).fill('name\nAda');
    await page.getByRole('button', { name: 'Check', exact: true }).click();
    await page.getByRole('alert').getByText('Not dialled').waitFor();
    await stores.orgs.change(orgId, { dialling: { prices: { '+49': 0.01 }, callers: [from], ...limits } });
    await page.getByRole('button', { name: 'Check', exact: true }).click();
    await page.getByText('has no column phone_number').first().waitFor();
    const rows = ['phone_number,time_zone', '+4930123456,Europe/Berlin', '+4930123457,Europe/Berlin', 'x,'];
    await page.getByRole('textbox', { name: 'Numbers' }).fill(rows.join('\n'));
    await page.getByRole('button', { name: 'Check', exact: true }).click();
    const status = page.locator('main').getByRole('status');
    await status.getByText('ready').waitFor();
    await page.getByText('Nothing is dialled yet: 2 of 3 rows').waitFor();
    await page.getByText('is not a phone number in E.164 form').waitFor();
    await page.getByRole('button', { name: 'Start calling' }).click();
    await status.getByText('in progress').waitFor();
    await page.getByRole('button', { name: 'Pause' }).click();
    await status.getByText('paused').waitFor();
    await page.getByRole('button', { name: 'Go on' }).click();
    await status.getByText('in progress').waitFor();
    await page.getByRole('button', { name: 'Stop', exact: true }).click();
    await page.getByRole('button', { name: 'Stop for good' }).click();
    await status.getByText('stopped').waitFor();
    await page.getByText('"calls_total":2').waitFor();
  });

  async function orgOf(): Promise<string> {
    return String(((await gateway.api('GET', '/v1/agents')).json['agents'] as { org_id: string }[])[0]?.org_id);
  }

  it('lists 10,000 calls: it loads quickly, keeps the document small, and scrolls to the end', async () => {
    const { org_id: orgId } = await stores.orgs.create({ name: 'Ten thousand', sip_enabled: true });
    const { key } = await stores.keys.create(orgId, 'console');
    const beganMs = Date.now() - 3_600_000;
    for (let first = 0; first < CALLS; first += 1_000) {
      await Promise.all(
        Array.from({ length: 1_000 }, (_, index) =>
          stores.calls.write(
            endedCall(callOf(orgId, beganMs - (first + index) * 1_000, { from: `+1555${String(1_000_000 + first + index)}` })),
          ),
        ),
      );
    }
    const { page, context, complaints } = await visit(browser, address());
    await signIn(page, key);
    await page.goto('/console/live');
    const startedMs = performance.now();
    await page.goto('/console/calls');
    const grid = page.getByRole('grid');
    await grid.getByText('+15551000000').waitFor();
    const firstRowsMs = performance.now() - startedMs;

    const scrolledMs = performance.now();
    const foot = grid.getByText('End of the list.');
    while ((await foot.count()) === 0) {
      const rows = await grid.getAttribute('aria-rowcount');
      await grid.press('End');
      await until(async () => (await foot.count()) > 0 || (await grid.getAttribute('aria-rowcount')) !== rows, 'no further page came');
    }
    expect(await grid.getAttribute('aria-rowcount')).toBe(String(CALLS + 1));
    await grid.press('End');
    await grid.getByText('+15551009999').waitFor();
    expect(await grid.getByRole('row').count()).toBeLessThan(60);
    expect(await page.evaluate("document.querySelectorAll('*').length")).toBeLessThan(800);
    console.log(
      `10,000 calls: first rows after ${firstRowsMs.toFixed(0)} ms, at the end after ${(performance.now() - scrolledMs).toFixed(0)} ms`,
    );

    await grid.focus();
    await page.keyboard.press('Home');
    await grid.getByText('+15551000000').waitFor();
    await page.keyboard.press('/');
    await page.keyboard.type('15550002222');
    await page.getByLabel('From').fill('+15551000777');
    await page.keyboard.press('Enter');
    await page.getByText('0 in progress, 1 past calls loaded').waitFor();
    expect(complaints).toEqual([]);
    await context.close();
  });

  it('scrolls no page sideways on a phone, in either theme', async () => {
    const { page, context, complaints } = await visit(browser, address(), { width: 375, height: 740, colorScheme: 'dark' });
    await page.goto('/console/');
    expect(await sidewaysScroll(page)).toBe(0);
    await signIn(page, gateway.ready.api_key);
    for (const name of PAGES) {
      await page.goto(`/console/${name}`);
      await page.getByRole('heading', { level: 1 }).waitFor();
      expect([name, await sidewaysScroll(page)]).toEqual([name, 0]);
    }
    await page.goto('/console/calls');
    await page.getByRole('grid').getByText('API_STOPPED').click();
    await page.getByRole('option', { name: /INVITE sip:/ }).click();
    await page.getByRole('region', { name: 'The chosen message' }).getByText('Max-Forwards').waitFor();
    expect(await sidewaysScroll(page)).toBe(0);
    const background = (): Promise<string> => page.evaluate('getComputedStyle(document.documentElement).backgroundColor');
    const dark = await background();
    await page.getByRole('switch', { name: 'Dark colours' }).click();
    expect(await background()).not.toBe(dark);
    expect(complaints).toEqual([]);
    await context.close();
  });

  it('shows when the server is unreachable and recovers; a revoked key leads back to the sign-in', async () => {
    const orgId = await orgOf();
    const { key, record } = await stores.keys.create(orgId, 'short');
    const { page, context } = await visit(browser, address());
    await signIn(page, key);
    await page.getByRole('grid').getByText('API_STOPPED').waitFor();
    await context.setOffline(true);
    await page.getByText('The server cannot be reached. Trying again').waitFor();
    await context.setOffline(false);
    await page.getByText('The server cannot be reached').waitFor({ state: 'detached' });
    await page.route('**/v1/calls?*', (route) =>
      route.fulfill({
        status: 429,
        headers: { 'retry-after': '1' },
        json: { status: 'error', message: 'More than 1 requests a minute', data: null, errors: [{ error: 'RATE_LIMITED', message: '' }] },
      }),
    );
    await page.getByText('Too many requests').waitFor();
    await page.unroute('**/v1/calls?*');
    await page.getByText('Too many requests').waitFor({ state: 'detached' });
    await stores.keys.revoke(record.key_id);
    await page.getByText('The key is no longer valid.').waitFor();
    expect(await page.getByLabel('API key').isVisible()).toBe(true);
    await context.close();
  });

  it('with an operator key shows all organizations and calls of none, and offers no change', async () => {
    const { key } = await stores.keys.create(null, 'ops');
    const stray = callOf(null, Date.now() + 60_000, {
      to: '+15550199999',
      reason: 'NUMBER_NOT_ATTACHED',
      sip_status: 404,
      answered_at: null,
    });
    await stores.calls.write(endedCall({ ...stray, sip_call_id: 'stray@carrier' }));
    const { page, context, complaints } = await visit(browser, address());
    await signIn(page, key);
    const grid = page.getByRole('grid', { name: 'Calls' });
    await grid.getByRole('columnheader', { name: 'Organization' }).waitFor();
    await grid.getByRole('row').filter({ hasText: '+15550199999' }).getByText('NUMBER_NOT_ATTACHED').waitFor();
    await page.getByLabel('Organization').selectOption('Without an organization');
    await page.getByText('0 in progress, 1 past calls loaded').waitFor();
    await page.goto('/console/calls?sip_call_id=stray%40carrier');
    await grid.getByText('+15550199999').click();
    await page.getByText('stray@carrier').waitFor();
    await page.goto('/console/agents');
    await page.getByRole('heading', { name: 'Test line' }).waitFor();
    await page.getByLabel('Organization').waitFor();
    expect(await page.getByRole('button', { name: 'Create an agent' }).count()).toBe(0);
    expect(complaints).toEqual([]);
    await context.close();
  });

  it('shows the operations at /docs under a content security policy of its own', async () => {
    const { page, context, complaints } = await visit(browser, address());
    await page.goto('/docs');
    await page.getByText('Attach a phone number').waitFor();
    expect(await page.getByRole('img').first().getAttribute('src')).toContain('data:image/svg+xml');
    expect(complaints).toEqual([]);
    await context.close();
  });

  it('leaves no page with an error of a script or a violation of the content security policy', () => {
    expect(desk.complaints).toEqual([]);
  });
});

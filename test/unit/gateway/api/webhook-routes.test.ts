import { beforeEach, describe, expect, it } from 'vitest';
import { webhookCommand } from '../../../../src/cli/webhook.js';
import { newUuid } from '../../../../src/lib/ids.js';
import { outboxLane } from '../../../../src/gateway/ports/stores.js';
import { runCommand } from '../../../support/run-command.js';
import { deliveryOf } from '../store/outbox-contract.js';
import { openApi, type ApiFixture } from './api-fixture.js';

const PATH = '/v1/webhooks/dead-letters';
let api: ApiFixture;
let ids: string[];

beforeEach(async () => {
  api = await openApi();
  ids = [];
  for (let count = 0; count < 3; count += 1) {
    api.clock.advance(10);
    const delivery = deliveryOf(api.orgId, { attempts: 4, last_error: 'it answered 500' });
    await api.stores.outbox.add(delivery);
    await api.stores.outbox.bury(delivery);
    ids.unshift(delivery.delivery_id);
  }
});

const isDue = async (): Promise<boolean> => (await api.stores.outbox.claim(outboxLane(api.orgId), 10, 0)).length > 0;

describe(PATH, () => {
  it('lists what was given up in pages, newest first, without bodies', async () => {
    const first = (await api.get(`${PATH}?limit=2`)).body as unknown as { dead_letters: object[]; next: string };
    expect(first.dead_letters).toEqual([
      {
        delivery_id: ids[0],
        org_id: api.orgId,
        call_id: ids[0],
        url: 'https://example.com/hook',
        attempts: 4,
        error: 'it answered 500',
        created_at: '2026-01-01T00:00:00.000Z',
        died_at: new Date(api.clock.wallMs()).toISOString(),
      },
      expect.objectContaining({ delivery_id: ids[1] }),
    ]);
    const second = (await api.get(`${PATH}?before=${first.next}`)).body;
    expect(second).toMatchObject({ status: 'success', dead_letters: [{ delivery_id: ids[2] }], next: null });
  });

  it.each(['limit=0', 'limit=501', 'limit=x', 'before=x', 'after=x'])('refuses ?%s', async (query) => {
    expect((await api.get(`${PATH}?${query}`)).failure.errors[0]).toMatchObject({ error: 'VALIDATION', path: query.split('=')[0] });
  });

  it('sends one again, once', async () => {
    expect(await isDue()).toBe(false);
    expect((await api.post(`${PATH}/${ids[0]!.toUpperCase()}/resend`, {})).status).toBe(200);
    expect(await isDue()).toBe(true);
    expect(await api.stores.audit.list(api.orgId, { take: 1 })).toMatchObject([{ action: 'webhook.resend', record: ids[0] }]);
    expect((await api.post(`${PATH}/${ids[0]!}/resend`, {})).failure.errors[0]!.error).toBe('NOT_FOUND');
  });

  it('shows and sends nothing of another organization', async () => {
    const { org_id: otherId } = await api.stores.orgs.create({ name: 'other', sip_enabled: true });
    const { key } = await api.stores.keys.create(otherId, 'other');
    expect((await api.get(PATH, key)).body).toMatchObject({ dead_letters: [] });
    expect((await api.post(`${PATH}/${ids[0]!}/resend`, {}, key)).status).toBe(404);
    expect(await isDue()).toBe(false);
  });
});

describe('trunkline webhook', () => {
  let printed: string[];
  const run = async (...args: string[]): Promise<string> => {
    printed = [];
    let errors = '';
    const connect = () => Promise.resolve({ ...api.stores, close: () => Promise.resolve() });
    const command = webhookCommand({ connect, print: (line) => void printed.push(line) });
    await runCommand(command, args, { print: () => undefined, error: (text) => (errors += text) });
    return errors;
  };

  it('lists what was given up', async () => {
    expect(await run('dead', 'acme', '--limit', '2')).toBe('');
    expect(printed.slice(1).map((line) => line.split(' ')[0])).toEqual(ids.slice(0, 2));
    await run('dead', 'acme', '--json');
    expect(JSON.parse(printed[0]!)).toMatchObject(ids.map((delivery_id) => ({ delivery_id, body: '{"call_id":"1"}' })));
    expect(await run('dead', 'acme', '--limit', '0')).toContain('--limit must be 1 to 500');
  });

  it('sends some again, and reports which do not exist', async () => {
    const unknown = newUuid();
    expect(await run('resend', 'acme', ids[0]!, unknown, ids[1]!)).toContain(`no such dead letter: ${unknown}`);
    expect(printed).toEqual([`Delivery ${ids[0]!} is sent again.`, `Delivery ${ids[1]!} is sent again.`]);
    await run('resend', 'acme', ids[2]!);
    await run('dead', 'acme');
    expect(printed).toEqual(['"acme" has no dead letters: every webhook was delivered, or is being retried.']);
  });
});

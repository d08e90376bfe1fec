import { beforeEach, describe, expect, it } from 'vitest';
import { createClient, type Client, type Schemas } from '../../../src/client/index.js';
import { parseE164 } from '../../../src/gateway/model/e164.js';
import type { NumberRecord } from '../../../src/gateway/model/records.js';
import { EVERY_OPTION, everySetting, OPTION_NAMES, TRUNK_NAMES } from '../../support/whole-number.js';
import { formOf, save, type NumberForm } from '../../../web/src/numbers/number-form.js';
import { openApi, type ApiFixture } from '../gateway/api/api-fixture.js';

const NUMBER = parseE164('+15551234567')!;
let api: ApiFixture;
let client: Client;
let before: NumberRecord;

beforeEach(async () => {
  api = await openApi({ allowPlain: true });
  client = createClient({ baseUrl: 'http://127.0.0.1:8080', apiKey: api.key, fetch: api.fetch });
  const inbound = { agent_id: null, options: EVERY_OPTION };
  await api.stores.numbers.attach(api.orgId, NUMBER, { inbound, outbound: await everySetting() });
  before = (await stored())!;
});

const stored = () => api.stores.numbers.get(api.orgId, NUMBER);

async function shown(): Promise<Schemas['SipConfiguration']> {
  const { data } = await client.GET('/sip', { params: { query: { inbound_id: NUMBER } } });
  return data as Schemas['SipConfiguration'];
}

/** What the record is after this change in the form. */
async function after(change: (form: NumberForm) => Partial<NumberForm>): Promise<Pick<NumberRecord, 'inbound' | 'outbound'>> {
  const number = await shown();
  const form = formOf(number);
  await save(client, number, { ...form, ...change(form) });
  const { inbound, outbound } = (await stored())!;
  return { inbound, outbound };
}

const json = (text: string, change: object): string => JSON.stringify({ ...(JSON.parse(text) as object), ...change });

it('the test covers every option of a number, and every setting of its trunk', async () => {
  expect(Object.keys(EVERY_OPTION).sort()).toEqual(OPTION_NAMES.sort());
  expect(Object.keys(await everySetting()).sort()).toEqual(TRUNK_NAMES.sort());
});

describe('an update of a number in the console', () => {
  it('changes nothing, and sends nothing, where nothing was edited', async () => {
    expect(await after(() => ({}))).toEqual({ inbound: before.inbound, outbound: before.outbound });
    expect((await stored())?.updated_at).toBe(before.updated_at);
  });

  it.each([
    ['sources', '198.51.100.7', { allowed_sources: ['198.51.100.7'] }],
    ['calls', '6', { max_concurrent_calls: 6 }],
    ['rate', '', { max_calls_per_second: null }],
    ['encryption', 'required', { media_encryption: 'required' }],
  ] as const)('of the field %s keeps every other option', async (field, text, options) => {
    expect(await after(() => ({ [field]: text }))).toEqual({
      inbound: { agent_id: null, options: { ...EVERY_OPTION, ...options } },
      outbound: before.outbound,
    });
  });

  const EDITED = {
    refer: true,
    no_reinvite: false,
    headers_to_agent: ['Call-Info'],
    headers_from_agent: ['X-*'],
    challenge: { username: 'other', password: 'n3w' },
    voice_url: 'https://other.example/voice',
    voice_fallback_url: 'https://other.example/fallback',
    status_callback: 'https://other.example/status',
    status_callback_events: ['answered'],
  };
  it.each(Object.entries(EDITED))('of the option %s keeps every other one', async (name, value) => {
    const { inbound, outbound } = await after((form) => ({ options: json(form.options, { [name]: value }) }));
    expect(inbound).toEqual({ agent_id: null, options: { ...EVERY_OPTION, [name]: value } });
    expect(outbound).toEqual(before.outbound);
  });

  it('shows in the form every option without a field of its own', async () => {
    const fields = ['allowed_sources', 'max_concurrent_calls', 'max_calls_per_second', 'media_encryption'];
    expect(Object.keys(JSON.parse(formOf(await shown()).options) as object).sort()).toEqual(
      OPTION_NAMES.filter((name) => !fields.includes(name)).sort(),
    );
    expect(Object.keys(EDITED).sort()).toEqual(OPTION_NAMES.filter((name) => !fields.includes(name)).sort());
  });

  it('removes an option that is deleted, and keeps the others', async () => {
    const { refer: _refer, ...others } = EVERY_OPTION;
    const { inbound } = await after((form) => ({ options: json(form.options, { refer: undefined }) }));
    expect(inbound?.options).toEqual(others);
  });

  it.each([
    ['username', 'other'],
    ['realm', 'other.example'],
    ['tls_names', ['other.example', 'sip.other.example']],
    ['caller_id_header', 'From'],
    ['registrar', 'other.example:5061'],
    ['options_interval_s', 30],
    ['no_reinvite', false],
    ['headers_from_agent', ['X-*']],
    ['password', 'n3w'],
    ['ca', undefined],
    ['client_certificate', undefined],
  ])('of the trunk’s %s keeps every other setting, including hidden ones', async (name, value) => {
    const { inbound, outbound } = await after((form) => ({ trunk: json(form.trunk, { [name]: value }) }));
    const { [name as keyof typeof before.outbound]: _old, ...others } = before.outbound!;
    expect(outbound).toEqual(value === undefined ? others : { ...others, [name]: value });
    expect(inbound).toEqual(before.inbound);
  });

  it('of the endpoint keeps every setting of the trunk', async () => {
    const { outbound } = await after(() => ({ endpoint: 'other.example' }));
    expect(outbound).toEqual({ ...before.outbound, sip_endpoint: 'other.example' });
  });

  it('of both directions makes two steps, the second on the version of the first', async () => {
    const saved: Schemas['SipConfiguration'][] = [];
    const number = await shown();
    await save(client, number, { ...formOf(number), calls: '6', endpoint: 'other.example' }, (record) => void saved.push(record));
    expect(saved).toHaveLength(2);
    expect(await stored()).toMatchObject({
      inbound: { options: { max_concurrent_calls: 6 } },
      outbound: { sip_endpoint: 'other.example' },
    });
  });

  it('refuses what somebody else has changed in between, and names fields as the form does', async () => {
    const number = await shown();
    await save(client, number, { ...formOf(number), calls: '6' });
    await expect(save(client, number, { ...formOf(number), calls: '5' })).rejects.toMatchObject({ code: 'PRECONDITION_FAILED' });
    const now = await shown();
    await expect(save(client, now, { ...formOf(now), sources: 'nowhere' })).rejects.toMatchObject({
      errors: [{ path: 'options.allowed_sources[0]' }],
    });
    await expect(save(client, now, { ...formOf(now), options: '[' })).rejects.toMatchObject({ errors: [{ path: 'options' }] });
  });
});

it('attaches a new number as the form says, and adds another direction later', async () => {
  await api.stores.numbers.detach(api.orgId, NUMBER, ['inbound', 'outbound']);
  const empty = formOf(null);
  await save(client, null, { ...empty, phone: NUMBER, calls: '2', options: '{"refer":false}' });
  expect(await stored()).toMatchObject({ inbound: { options: { max_concurrent_calls: 2, refer: false } }, outbound: null });
  const number = await shown();
  await save(client, number, { ...formOf(number), isOutbound: true, endpoint: 'trunk.example', trunk: '{"username":"u","password":"p"}' });
  expect(await stored()).toMatchObject({
    inbound: { options: { refer: false } },
    outbound: { sip_endpoint: 'trunk.example', username: 'u', password: 'p' },
  });
  await expect(save(client, number, { ...formOf(number), isInbound: false })).rejects.toMatchObject({ errors: [{ path: 'directions' }] });
});

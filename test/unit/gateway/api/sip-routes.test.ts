import { beforeEach, describe, expect, it } from 'vitest';
import { DEFAULT_INBOUND_OPTIONS } from '../../../../src/gateway/model/records.js';
import { newUuid } from '../../../../src/lib/ids.js';
import { agentOf } from '../store/store-contract.js';
import { openApi, type ApiFixture } from './api-fixture.js';

const NUMBER = '+15551234567';
const inbound = { phone_number: NUMBER, directions: ['inbound'], service: 'sip' };

describe('the /sip routes', () => {
  let api: ApiFixture;
  beforeEach(async () => {
    api = await openApi();
  });

  async function otherKey(): Promise<string> {
    const org = await api.stores.orgs.create({ name: 'other', sip_enabled: true });
    return (await api.stores.keys.create(org.org_id, 'k')).key;
  }

  it('answer attach with the record and its defaults', async () => {
    const answer = await api.post('/sip/attach', inbound);
    expect(answer.status).toBe(200);
    expect(answer.body).toEqual({
      status: 'success',
      data: {
        inbound_id: answer.record.inbound_id,
        phone_number: NUMBER,
        org_id: api.orgId,
        inbound: { agent_id: null, options: DEFAULT_INBOUND_OPTIONS },
        outbound: null,
        created_at: '2026-01-01T00:00:00.000Z',
        updated_at: '2026-01-01T00:00:00.000Z',
      },
      errors: null,
    });
  });

  it('change by attach, update and detach only the version that if-match names', async () => {
    const send = (path: string, body: object, tag: string) =>
      api.send({
        method: 'POST',
        url: path,
        headers: { authorization: api.key, 'content-type': 'application/json', 'if-match': tag },
        payload: JSON.stringify(body),
      });
    const update = { phone_number: NUMBER, updates: { type: 'outbound', sip_endpoint: 'a.example' } };
    const detach = { phone_number: NUMBER, directions: 'inbound', service: 'sip' };
    // There is nothing that could be meant.
    expect((await send('/sip/attach', inbound, '*')).failure.errors[0]?.error).toBe('PRECONDITION_FAILED');
    expect((await send('/sip/update', update, '*')).status).toBe(404);
    const attached = await api.post('/sip/attach', inbound);
    expect(attached.headers.etag).toBe(`"${attached.record.updated_at}"`);
    const updated = await send('/sip/update', update, String(attached.headers.etag));
    // Within the same millisecond.
    expect(updated.record.updated_at > attached.record.updated_at).toBe(true);
    for (const [path, body] of [
      ['/sip/attach', inbound],
      ['/sip/update', update],
      ['/sip/detach', detach],
    ] as const) {
      const late = await send(path, body, String(attached.headers.etag));
      expect([late.status, late.failure.errors[0]?.error]).toEqual([412, 'PRECONDITION_FAILED']);
    }
    const read = await api.get(`/sip?inbound_id=${updated.record.inbound_id}`);
    expect([read.record, read.headers.etag]).toEqual([updated.record, updated.headers.etag]);
    const detached = await send('/sip/detach', detach, String(updated.headers.etag));
    expect([detached.status, detached.record.inbound]).toEqual([200, null]);
    expect(detached.record.updated_at > updated.record.updated_at).toBe(true);
  });

  it.each([
    ['without plus', '15551234567'],
    ['with separators', '+1(555)123-4567'],
    ['with dots', '+1.555.123.4567'],
  ])('accept a number %s and store it with the plus', async (_how, phone_number) => {
    expect((await api.post('/sip/attach', { ...inbound, phone_number })).record.phone_number).toBe(NUMBER);
  });

  it('accept the endpoint of an outbound direction at the top or in its object, and prefer the object', async () => {
    const attach = async (body: object) =>
      (await api.post('/sip/attach', { phone_number: NUMBER, service: 'sip', ...body })).record.outbound;
    expect(await attach({ directions: ['outbound'], sip_endpoint: 'sip:a.example' })).toEqual({ sip_endpoint: 'sip:a.example' });
    expect(await attach({ directions: [{ type: 'outbound', sip_endpoint: 'b.example' }] })).toEqual({ sip_endpoint: 'b.example' });
    expect(
      await attach({ directions: ['inbound', { type: 'outbound', sip_endpoint: 'c.example' }], sip_endpoint: 'sip:a.example' }),
    ).toEqual({ sip_endpoint: 'c.example' });
  });

  it('accept an endpoint with an inbound direction and ignore it', async () => {
    const answer = await api.post('/sip/attach', { ...inbound, sip_endpoint: 'sips:pbx.example.com:5061' });
    expect(answer.status).toBe(200);
    expect(answer.record.outbound).toBeNull();
  });

  it('attach a number with an agent of the organization, in either case of its id', async () => {
    const agent = agentOf(api.orgId);
    await api.stores.agents.put(agent);
    const answer = await api.post('/sip/attach', { ...inbound, agent_id: agent.agent_id.toUpperCase() });
    expect(answer.record.inbound?.agent_id).toBe(agent.agent_id);
  });

  it('answer 400 at agent_id to an unknown or foreign agent, beside the other bad fields', async () => {
    const foreign = agentOf(newUuid());
    await api.stores.agents.put(foreign);
    for (const agent_id of [newUuid(), foreign.agent_id]) {
      const answer = await api.post('/sip/attach', { ...inbound, agent_id, service: 'fax' });
      expect(answer.status).toBe(400);
      expect(answer.failure.errors.map((entry) => entry.path)).toEqual(['service', 'agent_id']);
    }
    const update = { phone_number: NUMBER, updates: { type: 'inbound', agent_id: foreign.agent_id } };
    await api.post('/sip/attach', inbound);
    expect((await api.post('/sip/update', update)).failure.errors.map((entry) => entry.path)).toEqual(['updates.agent_id']);
    expect((await api.stores.numbers.get(api.orgId, '+15551234567' as never))?.inbound?.agent_id).toBeNull();
  });

  it('replace the options whole by attach', async () => {
    await api.post('/sip/attach', {
      ...inbound,
      options: { allowed_sources: ['203.0.113.0/24', '2001:db8::/32'], max_concurrent_calls: 0 },
    });
    const answer = await api.post('/sip/attach', { ...inbound, options: { max_calls_per_second: 5 } });
    expect(answer.record.inbound?.options).toEqual({ ...DEFAULT_INBOUND_OPTIONS, max_calls_per_second: 5 });
  });

  it('refuse media_encryption "optional", unless the operator allows it', async () => {
    const body = { ...inbound, options: { media_encryption: 'optional' } };
    const refused = await api.post('/sip/attach', body);
    expect([refused.status, refused.failure.errors[0]?.path]).toEqual([400, 'options.media_encryption']);
    const plain = await openApi({ allowPlain: true });
    expect((await plain.post('/sip/attach', body)).record.inbound?.options.media_encryption).toBe('optional');
  });

  it('answer 409 to attach a number of another organization, without its owner, and hide it everywhere else', async () => {
    const attached = await api.post('/sip/attach', inbound);
    const key = await otherKey();
    const taken = await api.post('/sip/attach', inbound, key);
    expect([taken.status, taken.failure.errors[0]?.error]).toEqual([409, 'NUMBER_TAKEN']);
    expect(taken.text).not.toContain(api.orgId);
    expect(taken.text).not.toContain('acme');
    expect((await api.post('/sip/update', { phone_number: NUMBER, updates: { type: 'inbound' } }, key)).status).toBe(404);
    expect((await api.post('/sip/detach', { phone_number: NUMBER, directions: 'inbound', service: 'sip' }, key)).status).toBe(404);
    for (const id of [attached.record.inbound_id, encodeURIComponent(NUMBER)]) {
      expect((await api.get(`/sip?inbound_id=${id}`, key)).body).toEqual({ status: 'success', data: null, errors: null });
    }
    expect((await api.get(`/sip?inbound_id=${attached.record.inbound_id}`)).record).toEqual(attached.record);
  });

  it('update one direction and leave the other; without a configuration they answer 404', async () => {
    const outbound = { phone_number: NUMBER, updates: { type: 'outbound', sip_endpoint: 'pbx.example.com:5061' } };
    const missing = await api.post('/sip/update', outbound);
    expect([missing.status, missing.failure.errors]).toEqual([
      404,
      [{ error: 'NOT_FOUND', message: 'The number has no SIP configuration' }],
    ]);
    await api.post('/sip/attach', { ...inbound, options: { max_concurrent_calls: 3 } });
    const updated = await api.post('/sip/update', outbound);
    expect(updated.record).toMatchObject({
      inbound: { options: { max_concurrent_calls: 3 } },
      outbound: { sip_endpoint: 'pbx.example.com:5061' },
    });
  });

  it.each([['inbound'], [['inbound']], [[{ type: 'inbound' }]]])('detach directions given as %j', async (directions) => {
    await api.post('/sip/attach', inbound);
    const answer = await api.post('/sip/detach', { phone_number: NUMBER, directions, service: 'sip' });
    expect([answer.status, answer.body]).toEqual([200, { status: 'success', data: null, errors: null }]);
    expect((await api.get(`/sip?inbound_id=${NUMBER}`)).body.data).toBeNull();
  });

  it('answer 404 to detach two directions when only one is attached, and change nothing', async () => {
    const attached = await api.post('/sip/attach', inbound);
    const answer = await api.post('/sip/detach', { phone_number: NUMBER, directions: ['inbound', 'outbound'], service: 'sip' });
    expect([answer.status, answer.failure.errors[0]?.error]).toEqual([404, 'NOT_FOUND']);
    expect((await api.get('/sip?inbound_id=15551234567')).record).toEqual(attached.record);
  });

  it('answer detach of one of two with what is left', async () => {
    await api.post('/sip/attach', { ...inbound, directions: ['inbound', 'outbound'], sip_endpoint: 'h.example' });
    const answer = await api.post('/sip/detach', { phone_number: NUMBER, directions: ['inbound'], service: 'sip' });
    expect(answer.record).toMatchObject({ inbound: null, outbound: { sip_endpoint: 'h.example' } });
  });

  it.each(['+15551234567', '%2B15551234567', '%2015551234567', '15551234567'])('find the number written as %s', async (written) => {
    const attached = await api.post('/sip/attach', inbound);
    expect((await api.get(`/sip?inbound_id=${written}`)).record).toEqual(attached.record);
  });

  it.each(['IN-00000000-0000-4000-8000-000000000000', 'IN-nobody', 'nobody', '15550000000'])('answer 200 with null for %s', async (id) => {
    const answer = await api.get(`/sip?inbound_id=${id}`);
    expect([answer.status, answer.body]).toEqual([200, { status: 'success', data: null, errors: null }]);
  });

  it('list with take and skip without inbound_id', async () => {
    for (const last of [3, 1, 2]) await api.post('/sip/attach', { ...inbound, phone_number: `+1555123456${last}` });
    const numbers = async (query: string) =>
      ((await api.get(`/sip${query}`)).body.data as { phone_number: string }[]).map((r) => r.phone_number);
    expect(await numbers('')).toEqual(['+15551234561', '+15551234562', '+15551234563']);
    expect(await numbers('?take=1&skip=1')).toEqual(['+15551234562']);
  });

  it.each([
    ['?take=0', 'take'],
    ['?take=1001', 'take'],
    ['?take=1e2', 'take'],
    ['?take=-1', 'take'],
    ['?skip=-1', 'skip'],
    ['?skip=x', 'skip'],
    ['?take=1&take=2', 'take'],
    ['?limit=1', 'limit'],
    ['?inbound_id=', 'inbound_id'],
    [`?inbound_id=${'1'.repeat(65)}`, 'inbound_id'],
  ])('answer /sip%s with 400 at %s', async (query, path) => {
    const answer = await api.get(`/sip${query}`);
    expect([answer.status, answer.failure.errors.map((entry) => entry.path)]).toEqual([400, [path]]);
  });
});

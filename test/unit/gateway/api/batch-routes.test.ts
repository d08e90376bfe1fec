import { beforeEach, describe, expect, it } from 'vitest';
import type { BatchRecord } from '../../../../src/gateway/model/batch-log.js';
import { newUuid } from '../../../../src/lib/ids.js';
import { openApi, type ApiFixture } from './api-fixture.js';

describe('/v2/batches', () => {
  let api: ApiFixture;
  let batch: BatchRecord;
  beforeEach(async () => {
    api = await openApi();
    batch = await api.stores.batches.create({ orgId: api.orgId, name: 'Reminders' });
    for (let step = 0; step < 120; step += 1)
      await api.stores.batches.append(api.orgId, batch.batch_id, { event_type: 'step', payload: { step } });
  });
  const stepsOf = async (query: string) => {
    const { status, body } = await api.get(`/v2/batches/${batch.batch_id.toUpperCase()}/logs${query}`);
    expect([status, body.status, body.errors]).toEqual([200, 'success', null]);
    return (body.data as { payload: { step: number } }[]).map(({ payload }) => payload.step);
  };

  it('GET …/logs: the newest hundred first, unless the query says otherwise (§4.6)', async () => {
    expect(await stepsOf('')).toEqual(Array.from({ length: 100 }, (_, index) => 119 - index));
    expect(await stepsOf('?direction=asc&take=3')).toEqual([0, 1, 2]);
    expect(await stepsOf('?direction=desc&take=2&skip=118')).toEqual([1, 0]);
    expect(await stepsOf('?take=1000&skip=120')).toEqual([]);
  });

  it('GET …/logs: an entry has exactly the fields of §2.2', async () => {
    const payload = { calls_total: 2, calls_failed: 1, calls_successful: 1 };
    await api.stores.batches.append(api.orgId, batch.batch_id, { event_type: 'complete', payload });
    const { body } = await api.get(`/v2/batches/${batch.batch_id}/logs?take=1`);
    const written = { batch_id: batch.batch_id, org_id: api.orgId, event_type: 'complete', timestamp: '2026-01-01T00:00:00.000Z', payload };
    expect(body).toEqual({ status: 'success', data: [{ id: expect.any(String) as string, ...written }], errors: null });
  });

  it.each(['take=0', 'take=1001', 'take=x', 'skip=-1', 'skip=1.5', 'direction=up', 'direction=DESC', 'limit=1'])(
    'refuses ?%s',
    async (query) => {
      const { status, failure } = await api.get(`/v2/batches/${batch.batch_id}/logs?${query}`);
      expect([status, failure.errors.map(({ path }) => path)]).toEqual([400, [query.split('=')[0]]]);
    },
  );

  it('an unknown batch, or one of another organization, is 404', async () => {
    const foreign = await api.stores.batches.create({ orgId: newUuid(), name: 'x' });
    for (const id of [foreign.batch_id, newUuid(), 'nothing']) expect((await api.get(`/v2/batches/${id}/logs`)).status).toBe(404);
  });

  it('GET /v2/batches lists those of the organization', async () => {
    await api.stores.batches.create({ orgId: newUuid(), name: 'x' });
    expect((await api.get('/v2/batches')).body).toEqual({
      status: 'success',
      data: [{ ...batch, state: null, plan: null, counts: null, preview: null }],
      errors: null,
    });
  });

  it('POST makes a batch and writes its log, and the making is noted in the audit log', async () => {
    const made = await api.post('/v2/batches', { name: ' March ' });
    const { batch_id: id } = made.body.data as BatchRecord;
    expect(made.body).toMatchObject({ status: 'success', data: { org_id: api.orgId, name: 'March' }, errors: null });
    const payload = { message: '100 requested, 98 validated', state_change: 'in_progress' };
    const timestamp = '2026-01-02T04:04:05+01:00';
    const written = await api.post(`/v2/batches/${id.toUpperCase()}/logs`, { event_type: 'lifecycle', payload, timestamp });
    expect(written.body.data).toMatchObject({ batch_id: id, event_type: 'lifecycle', timestamp: '2026-01-02T03:04:05.000Z', payload });
    expect((await api.get(`/v2/batches/${id}/logs`)).body.data).toEqual([written.body.data]);
    const [noted] = await api.stores.audit.list(api.orgId, { take: 10 });
    expect(noted).toMatchObject({ action: 'batch.create', record: id, fields: ['name'], by: { name: 'test' } });
  });

  it.each([
    ['lifecycle without its message', 'lifecycle', { state_change: 'in_progress' }, ['payload.message']],
    ['lifecycle without anything', 'lifecycle', {}, ['payload.message', 'payload.state_change']],
    ['complete with a text for a number', 'complete', { calls_total: '3', calls_failed: 0, calls_successful: 3 }, ['payload.calls_total']],
    ['complete with more than there is', 'complete', { calls_total: 3, calls_failed: 0, calls_successful: 3, calls: 1 }, ['payload.calls']],
    ['a large payload', 'step', { text: 'x'.repeat(20_000) }, ['payload']],
    ['a list for a payload', 'step', [], ['payload']],
    ['a type that is none', 'Two words', {}, ['event_type']],
  ])('POST …/logs refuses %s', async (_what, event_type, payload, paths) => {
    const path = `/v2/batches/${batch.batch_id}/logs`;
    const { status, failure } = await api.post(path, { event_type, payload });
    expect([status, failure.errors.map((one) => one.path)]).toEqual([400, paths]);
    const atNoon = await api.post(path, { event_type: 'step', payload: {}, timestamp: 'noon' });
    expect([atNoon.status, atNoon.failure.errors]).toMatchObject([400, [{ path: 'timestamp', message: 'must be ISO 8601 with a zone' }]]);
    expect(await stepsOf('?take=1')).toEqual([119]);
  });

  it('POST …/logs: an unknown batch, or one of another organization, is 404', async () => {
    const foreign = await api.stores.batches.create({ orgId: newUuid(), name: 'x' });
    for (const id of [foreign.batch_id, newUuid(), 'nothing'])
      expect((await api.post(`/v2/batches/${id}/logs`, { event_type: 'step', payload: {} })).status).toBe(404);
  });
});

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
    for (let step = 0; step < 120; step += 1) await api.stores.batches.append(batch.batch_id, { event_type: 'step', payload: { step } });
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
    await api.stores.batches.append(batch.batch_id, { event_type: 'complete', payload });
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
    expect((await api.get('/v2/batches')).body).toEqual({ status: 'success', data: [batch], errors: null });
  });
});

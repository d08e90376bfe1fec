import { gzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { StoreUnavailableError } from '../../../../src/gateway/ports/ports.js';
import { openApi, type Answer } from './api-fixture.js';

const body = { phone_number: '+15551234567', directions: ['inbound'], service: 'sip' };

function expectFailure(answer: Answer, status: number, code: string): void {
  expect(answer.status).toBe(status);
  expect(Object.keys(answer.failure).sort()).toEqual(['data', 'errors', 'message', 'status']);
  expect(answer.failure).toMatchObject({ status: 'error', data: null });
  expect(answer.failure.message).not.toBe('');
  expect(answer.failure.errors[0]?.error).toBe(code);
  expect(answer.headers['content-type']).toContain('application/json');
  expect(answer.headers['x-request-id']).toMatch(/^[\w.-]+$/);
}

describe('every route', () => {
  it.each([
    ['none', undefined],
    ['empty', ''],
    ['of another shape', 'secret'],
    ['too short', 'tl_short'],
    ['unknown', `tl_${'x'.repeat(32)}`],
    ['unknown after Bearer', `Bearer tl_${'x'.repeat(32)}`],
    ['a kilobyte long', `tl_${'x'.repeat(1024)}`],
  ])('answers 401 to a key that is %s, before anything else is checked', async (_how, authorization) => {
    const api = await openApi();
    const headers = authorization === undefined ? {} : { authorization };
    for (const url of ['/sip/attach', '/sip/update', '/sip/detach']) {
      expectFailure(await api.send({ method: 'POST', url, headers, payload: 'not json' }), 401, 'UNAUTHENTICATED');
    }
    expectFailure(await api.send({ method: 'GET', url: '/sip?bad=1', headers }), 401, 'UNAUTHENTICATED');
  });

  it('accepts the key raw and after Bearer', async () => {
    const api = await openApi();
    for (const key of [api.key, `Bearer ${api.key}`, `bearer ${api.key}`]) expect((await api.get('/sip', key)).status).toBe(200);
  });

  it('answers 401 to a revoked key at once', async () => {
    const api = await openApi();
    expect((await api.get('/sip')).status).toBe(200);
    await api.stores.keys.revoke((await api.stores.keys.list(api.orgId))[0]!.key_id);
    expectFailure(await api.get('/sip'), 401, 'UNAUTHENTICATED');
  });

  it('notes the last_used_at of a key in use', async () => {
    const api = await openApi();
    await api.get('/sip');
    expect((await api.stores.keys.list(api.orgId))[0]?.last_used_at).toBe('2026-01-01T00:00:00.000Z');
  });

  it('answers 403 to a disabled organization and without the entitlement, before the body is checked', async () => {
    const api = await openApi();
    await api.stores.orgs.change(api.orgId, { sip_enabled: false });
    const bad = { method: 'POST', headers: { authorization: api.key }, payload: 'not json' };
    for (const url of ['/sip/attach', '/sip/update', '/sip/detach']) expectFailure(await api.send({ ...bad, url }), 403, 'SIP_NOT_ENABLED');
    expectFailure(await api.get('/sip?bad=1'), 403, 'SIP_NOT_ENABLED');
    await api.stores.orgs.change(api.orgId, { disabled: true });
    expectFailure(await api.get('/sip'), 403, 'ORG_DISABLED');
  });

  it('answers 404 for an unknown path, and 405 with allow for a known one', async () => {
    const api = await openApi();
    expectFailure(await api.get('/nothing'), 404, 'NOT_FOUND');
    expectFailure(await api.get('/sip/'), 404, 'NOT_FOUND');
    expectFailure(await api.get('/docs/static/nothing'), 404, 'NOT_FOUND');
    const wrong = await api.get('/sip/attach');
    expectFailure(wrong, 405, 'METHOD_NOT_ALLOWED');
    expect(wrong.headers.allow).toBe('POST');
    const alsoWrong = await api.send({ method: 'DELETE', url: '/sip?inbound_id=1' });
    expectFailure(alsoWrong, 405, 'METHOD_NOT_ALLOWED');
    expect(alsoWrong.headers.allow).toBe('GET, HEAD');
    expectFailure(await api.send({ method: 'OPTIONS', url: '/sip/attach' }), 405, 'METHOD_NOT_ALLOWED');
  });

  it('answers 404 and 405 before it reads the body, whatever the method', async () => {
    const api = await openApi();
    for (const method of ['PUT', 'PATCH', 'QUERY', 'PROPFIND'])
      for (const type of ['application/json', 'text/plain']) {
        const request = { method, headers: { 'content-type': type }, payload: 'not json' };
        expectFailure(await api.send({ ...request, url: '/nothing' }), 404, 'NOT_FOUND');
        const wrong = await api.send({ ...request, url: '/sip/attach' });
        expectFailure(wrong, 405, 'METHOD_NOT_ALLOWED');
        expect(wrong.headers.allow).toBe('POST');
      }
  });

  it('answers 400 to a malformed URL', async () => {
    const api = await openApi();
    expectFailure(await api.get('/sip/%E0%A4%A'), 400, 'VALIDATION');
  });

  it('names a field in the body that no object may have', async () => {
    const api = await openApi();
    for (const payload of ['{"__proto__":{"a":1}}', '{"constructor":{"prototype":{}}}']) {
      const headers = { authorization: api.key, 'content-type': 'application/json' };
      const answer = await api.send({ method: 'POST', url: '/sip/attach', headers, payload });
      expect([answer.status, answer.failure.message]).toEqual([400, expect.stringContaining('__proto__')]);
    }
  });

  it.each([
    ['no JSON', 'not json', 'application/json', 400, 'VALIDATION'],
    ['empty', '', 'application/json', 400, 'VALIDATION'],
    ['cut short', '{"phone_number":', 'application/json', 400, 'VALIDATION'],
    ['null', 'null', 'application/json', 400, 'VALIDATION'],
    ['an array', '[]', 'application/json', 400, 'VALIDATION'],
    ['a prototype', '{"__proto__":{"a":1}}', 'application/json', 400, 'VALIDATION'],
    ['arrays nested a hundred thousand deep', '['.repeat(100_000) + ']'.repeat(100_000), 'application/json', 400, 'VALIDATION'],
    ['text', JSON.stringify(body), 'text/plain', 415, 'UNSUPPORTED_MEDIA_TYPE'],
    ['a form', 'a=1', 'application/x-www-form-urlencoded', 415, 'UNSUPPORTED_MEDIA_TYPE'],
    ['of an unknown type', '{}', 'nonsense', 415, 'UNSUPPORTED_MEDIA_TYPE'],
    ['over 256 KiB', JSON.stringify({ ...body, extra: 'x'.repeat(262_144) }), 'application/json', 413, 'TOO_LARGE'],
  ])('refuses a body that is %s', async (_what, payload, type, status, code) => {
    const api = await openApi();
    for (const url of ['/sip/attach', '/sip/update', '/sip/detach']) {
      const headers = { authorization: api.key, 'content-type': type };
      expectFailure(await api.send({ method: 'POST', url, headers, payload }), status, code);
    }
  });

  it.each([
    ['in ISO-8859-1', '{"a":"b"}', { 'content-type': 'application/json; charset=ISO-8859-1' }, 415, 'The body must be in UTF-8'],
    ['in UTF-16', Buffer.from('{}', 'utf16le'), { 'content-type': 'application/json;charset="utf-16"' }, 415, 'The body must be in UTF-8'],
    ['compressed', gzipSync('{}'), { 'content-encoding': 'gzip' }, 415, 'The body must have no Content-Encoding'],
    ['of invalid UTF-8', Buffer.from('{"a":"\u00fc"}', 'latin1'), {}, 400, 'The body is not valid UTF-8'],
  ])('refuses a body that is %s for that reason', async (_what, payload, given: Readonly<Record<string, string>>, status, message) => {
    const api = await openApi();
    for (const url of ['/sip/attach', '/v1/tools', '/v2/batches']) {
      const headers = { authorization: api.key, 'content-type': 'application/json', ...given };
      const answer = await api.send({ method: 'POST', url, headers, payload });
      expect([answer.status, answer.failure.message]).toEqual([status, message]);
    }
    const csv = {
      authorization: api.key,
      ...given,
      'content-type': (given['content-type'] ?? 'text/csv').replace('application/json', 'text/csv'),
    };
    const answer = await api.send({ method: 'POST', url: '/v2/batches?from=%2B15550100555', headers: csv, payload });
    expect([answer.status, answer.failure.message]).toEqual([status, message]);
  });

  it('accepts UTF-8 in the content type', async () => {
    const api = await openApi();
    for (const charset of ['utf-8', 'UTF8', '"utf-8"']) {
      const headers = { authorization: api.key, 'content-type': `application/json; charset=${charset}` };
      const answer = await api.send({ method: 'POST', url: '/sip/attach', headers, payload: JSON.stringify(body) });
      expect(answer.status).toBe(200);
    }
  });

  it('accepts the type of JSON without a body where none is needed, and reports a missing body elsewhere', async () => {
    const api = await openApi();
    const headers = { authorization: api.key, 'content-type': 'application/json' };
    const id = '0f8fad5b-d9cb-469f-a165-70867728950e';
    for (const [method, url] of [
      ['DELETE', `/v1/agents/${id}`],
      ['DELETE', `/v1/tools/TL-${id}`],
      ['POST', `/v1/calls/${id}/stop`],
    ] as const)
      expect([url, (await api.send({ method, url, headers })).status]).toEqual([url, 404]);
    const answer = await api.send({ method: 'POST', url: '/sip/attach', headers });
    expectFailure(answer, 400, 'VALIDATION');
    expect(answer.failure.message).toContain('The body is missing');
  });

  it('answers 400 to a POST without any body', async () => {
    const api = await openApi();
    expectFailure(await api.send({ method: 'POST', url: '/sip/attach', headers: { authorization: api.key } }), 400, 'VALIDATION');
  });

  it('answers 500 with the request id and without a stack, and logs the cause', async () => {
    const api = await openApi({
      replace: (stores) => ({ numbers: { ...stores.numbers, list: () => Promise.reject(new Error('secret detail')) } }),
    });
    const answer = await api.get('/sip');
    expectFailure(answer, 500, 'INTERNAL');
    expect(answer.failure.message).toContain(String(answer.headers['x-request-id']));
    expect(answer.text).not.toContain('secret detail');
    expect(api.lines.find((line) => line.level === 'error')?.fields).toMatchObject({
      request_id: answer.headers['x-request-id'],
      error: 'secret detail',
    });
  });

  it('answers 503 with retry-after when the store is away', async () => {
    const api = await openApi({
      replace: (stores) => ({ orgs: { ...stores.orgs, get: () => Promise.reject(new StoreUnavailableError('away')) } }),
    });
    const answer = await api.get('/sip');
    expectFailure(answer, 503, 'STORE_UNAVAILABLE');
    expect(Number(answer.headers['retry-after'])).toBeGreaterThan(0);
  });

  it('answers 429 with retry-after, counted for each key', async () => {
    const api = await openApi({ rateLimits: { perKey: 2 } });
    const second = await api.stores.keys.create(api.orgId, 'second');
    expect((await api.get('/sip')).status).toBe(200);
    expect((await api.get('/sip')).status).toBe(200);
    const limited = await api.get('/sip');
    expectFailure(limited, 429, 'RATE_LIMITED');
    expect(Number(limited.headers['retry-after'])).toBeGreaterThan(0);
    expect((await api.get('/sip', second.key)).status).toBe(200);
  });

  it('has in every answer behind a limit how near the nearest one is', async () => {
    const api = await openApi({ rateLimits: { perKey: 3, perAddress: 5, total: 100 } });
    const limit = ({ headers }: Answer) => [headers['ratelimit-limit'], headers['ratelimit-remaining']];
    const first = await api.get('/sip');
    expect(limit(first)).toEqual(['3', '2']);
    expect(Number(first.headers['ratelimit-reset'])).toBeGreaterThan(0);
    expect(Number(first.headers['ratelimit-reset'])).toBeLessThanOrEqual(60);
    expect(limit(await api.get('/sip?bad=1'))).toEqual(['3', '1']);
    // Without a key the address is what counts.
    expect(limit(await api.get('/sip', 'wrong'))).toEqual(['5', '2']);
    expect(limit(await api.get('/sip'))).toEqual(['3', '0']);
    const limited = await api.get('/sip');
    expect([limited.status, ...limit(limited)]).toEqual([429, '3', '0']);
    expect(limit(await api.get('/healthz'))).toEqual([undefined, undefined]);
  });

  it('answers 429 for an address and in total, before authentication, but never to probes', async () => {
    for (const rateLimits of [{ perAddress: 2 }, { total: 2 }]) {
      const api = await openApi({ rateLimits });
      expect((await api.get('/sip', 'wrong')).status).toBe(401);
      expect((await api.get('/nothing')).status).toBe(404);
      expectFailure(await api.get('/sip'), 429, 'RATE_LIMITED');
      for (let probe = 0; probe < 5; probe += 1) expect((await api.get('/healthz')).status).toBe(200);
    }
  });
});

describe('the request id and the log of requests', () => {
  it("keep a caller's valid id and replace any other", async () => {
    const api = await openApi();
    const withId = (id: string) => api.send({ method: 'GET', url: '/healthz', headers: { 'x-request-id': id } });
    expect((await withId('abc-123')).headers['x-request-id']).toBe('abc-123');
    for (const id of ['two words', 'x'.repeat(65), 'a"b', '']) {
      expect((await withId(id)).headers['x-request-id']).toMatch(/^[0-9a-f-]{36}$/);
    }
  });

  it('have one line a request, with its id and without key, number or URL', async () => {
    const api = await openApi();
    const answer = await api.get('/sip?inbound_id=15551234567');
    await api.post('/sip/attach', body);
    expect(api.lines.filter((line) => line.event === 'api.request')).toHaveLength(2);
    expect(api.lines[0]?.fields).toMatchObject({
      request_id: answer.headers['x-request-id'],
      route: '/sip',
      status: 200,
      org_id: api.orgId,
    });
    const text = JSON.stringify(api.lines);
    expect(text).not.toContain('5551234567');
    expect(text).not.toContain(api.key);
  });

  it('name each request by its pattern', async () => {
    const api = await openApi();
    await api.get('/sip?inbound_id=1');
    await api.get('/nothing');
    expect(api.served.map(({ method, route, status }) => [method, route, status])).toEqual([
      ['GET', '/sip', 200],
      ['GET', null, 404],
    ]);
  });
});

describe('the health routes', () => {
  it('answer healthz without a key', async () => {
    const api = await openApi();
    const answer = await api.send({ method: 'GET', url: '/healthz' });
    expect([answer.status, answer.body.data]).toEqual([200, { version: '0.0.0-test' }]);
  });

  it('answer readyz with 200 and the parts, or 503 with the parts and what is missing', async () => {
    const ready = await openApi();
    const parts = { redis: true };
    expect((await ready.send({ method: 'GET', url: '/readyz' })).body).toEqual({
      status: 'success',
      data: { parts, warnings: [] },
      errors: null,
    });
    const broken = { ...parts, rtpengine: false };
    const api = await openApi({ readiness: () => Promise.resolve({ parts: broken, warnings: ['Redis is slow'] }) });
    const answer = await api.send({ method: 'GET', url: '/readyz' });
    expect(answer.status).toBe(503);
    expect(answer.failure).toEqual({
      status: 'error',
      message: 'Not ready: rtpengine',
      data: null,
      errors: [{ error: 'NOT_READY', message: 'rtpengine is not ready' }],
      parts: broken,
      warnings: ['Redis is slow'],
    });
  });

  it('answer readyz with 503 when a check fails', async () => {
    const api = await openApi({ readiness: () => Promise.reject(new Error('boom')) });
    expect((await api.send({ method: 'GET', url: '/readyz' })).status).toBe(503);
  });
});

it.each(['/v1/agents/', '/v1/calls/', '/v1/tools//invoke', '/v2/batches//logs'])(
  '%s names no record: there is no such route',
  async (path) => {
    const api = await openApi();
    const { status, failure } = await (path.endsWith('invoke') ? api.post(path, {}) : api.get(path));
    expect([status, failure.message]).toEqual([404, expect.stringMatching(/^No such route/)]);
  },
);

import { describe, expect, expectTypeOf, it } from 'vitest';
import { ApiError, createClient, type ClientOptions, type Schemas } from '../../../src/client/index.js';

const BASE = { baseUrl: 'http://api.example', apiKey: 'tl_test' };

function answering(
  status: number,
  body: unknown,
  headers: Readonly<Record<string, string>> = {},
): { options: ClientOptions; seen: Request[] } {
  const seen: Request[] = [];
  const text = typeof body === 'string' ? body : JSON.stringify(body);
  const options = {
    ...BASE,
    fetch: (request: unknown) => Promise.resolve(void seen.push(request as Request)).then(() => new Response(text, { status, headers })),
  };
  return { options: options, seen };
}

const failed = (options: ClientOptions): Promise<ApiError> =>
  createClient(options)
    .GET('/v1/voices')
    .then(
      () => expect.fail('it was answered'),
      (error: unknown) => error as ApiError,
    );

describe('the client', () => {
  it('sends key, path, query, headers and body, and resolves with the body of the answer', async () => {
    const { options, seen } = answering(200, { status: 'success', message: 'updated', updates: {}, warnings: [] });
    const answer = await createClient(options).POST('/v1/agents/{agent_id}', {
      params: { path: { agent_id: 'a/b' }, header: { 'if-match': '"1"' } },
      body: { prompt: 'Be brief.' },
    });
    expect(answer.message).toBe('updated');
    const [request] = seen;
    expect([request?.method, request?.url, request?.redirect]).toEqual(['POST', 'http://api.example/v1/agents/a%2Fb', 'error']);
    expect(Object.fromEntries(request?.headers ?? [])).toMatchObject({
      authorization: 'Bearer tl_test',
      'if-match': '"1"',
      'content-type': 'application/json',
    });
    expect(await request?.json()).toEqual({ prompt: 'Be brief.' });
    await createClient(options).GET('/sip', { params: { query: { inbound_id: '+15551234567' } } });
    expect(seen[1]?.url).toBe('http://api.example/sip?inbound_id=%2B15551234567');
  });

  it('has the types of the OpenAPI document', () => {
    const client = createClient(BASE);
    expectTypeOf(client.GET<'/v1/calls/{call_id}'>).returns.resolves.toEqualTypeOf<{ status: 'success'; call: Schemas['CallDetail'] }>();
    expectTypeOf(client.POST<'/sip/attach'>)
      .parameter(1)
      .toHaveProperty('body');
    expectTypeOf<'/v1/voices'>().not.toExtend<Parameters<typeof client.DELETE>[0]>();
  });

  it('throws a refusal as an ApiError with everything that the service sent', async () => {
    const errors = [{ error: 'RATE_LIMITED', message: 'More than 5 requests a minute; wait 7 s' }];
    const body = { status: 'error', message: 'More than 5 requests a minute; wait 7 s', data: null, errors };
    const { options } = answering(429, body, { 'retry-after': '7', 'x-request-id': 'r-1' });
    const error = await failed(options);
    expect(error).toBeInstanceOf(ApiError);
    expect(error).toMatchObject({ status: 429, code: 'RATE_LIMITED', errors, requestId: 'r-1', retryAfterSeconds: 7 });
    expect(error.message).toBe('More than 5 requests a minute; wait 7 s');
  });

  it.each([
    ['a page of a proxy', 502, '<html>Bad gateway</html>', 'The server answered 502 and is no Trunkline'],
    ['JSON of somebody else', 404, { error: 'not found' }, 'The server answered 404 and is no Trunkline'],
    ['a success that is not JSON', 200, '<html>', 'The answer is not JSON'],
  ])('throws BAD_ANSWER for %s', async (_what, status, body, message) => {
    const error = await failed(answering(status, body).options);
    expect([error.code, error.message, error.retryAfterSeconds]).toEqual(['BAD_ANSWER', message, null]);
  });

  it('throws UNREACHABLE without an answer, and TIMEOUT without one in time', async () => {
    const away = await failed({ ...BASE, fetch: () => Promise.reject(new TypeError('fetch failed')) });
    expect([away.status, away.code, away.message]).toEqual([0, 'UNREACHABLE', 'The server cannot be reached']);
    // As a real fetch does, this one keeps the request: one that nobody has is collected, and its time limit with it.
    const underway: Request[] = [];
    const never: typeof fetch = (request) =>
      new Promise((_resolve, reject) => {
        underway.push(request as Request);
        const { signal } = request as Request;
        signal.addEventListener('abort', () => reject(signal.reason as Error));
      });
    const late = await failed({ ...BASE, timeoutMs: 5, fetch: never });
    expect(underway).toHaveLength(1);
    expect([late.status, late.code, late.message]).toEqual([0, 'TIMEOUT', 'No answer within 0.005 s']);
  });
});

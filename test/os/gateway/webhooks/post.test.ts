import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { once } from 'node:events';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { Poster, type Attempt } from '../../../../src/gateway/webhooks/post.js';
import { VirtualClock } from '../../../support/virtual-clock.js';

const never = new AbortController().signal;
let server: Server;
let origin: string;
let requests: { readonly url: string; readonly method: string; readonly headers: IncomingMessage['headers']; readonly body: string }[];
let answer: (response: ServerResponse) => void;
let clock: VirtualClock;
let poster: Poster;

beforeEach(async () => {
  requests = [];
  answer = (response) => response.end();
  server = createServer((request, response) => {
    let body = '';
    request.on('data', (chunk: Buffer) => (body += chunk.toString()));
    request.on('end', () => {
      requests.push({ url: request.url ?? '', method: request.method ?? '', headers: request.headers, body });
      answer(response);
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  origin = `http://127.0.0.1:${String((server.address() as AddressInfo).port)}`;
  clock = new VirtualClock();
  poster = new Poster({ allowPrivate: true, caPem: null, timeoutMs: 300, clock });
});
afterEach(async () => {
  await poster.close();
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
});

const post = (url = `${origin}/hook?a=1`, aborted = never): Promise<Attempt> => poster.post(url, '{"ü":1}', { 'x-mine': 'yes' }, aborted);

describe('Poster', () => {
  it('posts the body unchanged', async () => {
    expect(await post()).toEqual({ kind: 'delivered', status: 200 });
    expect(requests).toMatchObject([
      {
        url: '/hook?a=1',
        method: 'POST',
        body: '{"ü":1}',
        headers: { 'x-mine': 'yes', 'content-type': 'application/json', 'user-agent': expect.stringMatching(/^Trunkline\/\d/) as string },
      },
    ]);
  });

  it.each([201, 204, 299])('takes %i as delivered', async (status) => {
    answer = (response) => response.writeHead(status).end();
    expect(await post()).toEqual({ kind: 'delivered', status });
  });

  it.each([301, 400, 410, 429, 500])('takes %i as a failure', async (status) => {
    answer = (response) => response.writeHead(status, { location: `${origin}/elsewhere` }).end();
    expect(await post()).toEqual({ kind: 'failed', error: `it answered ${String(status)}`, retryAfterMs: null, status });
    expect(requests).toHaveLength(1);
  });

  it.each([
    ['120', 120_000],
    ['9999999', 86_400_000],
    ['Wed, 21 Oct 2026 07:28:00 GMT', null],
    ['-5', null],
  ])('reads Retry-After: %s', async (header, retryAfterMs) => {
    answer = (response) => response.writeHead(503, { 'retry-after': header }).end();
    expect(await post()).toEqual({ kind: 'failed', error: 'it answered 503', retryAfterMs, status: 503 });
  });

  it('accepts the status alone: a long, broken or endless body still counts as delivered', async () => {
    answer = (response) => {
      response.writeHead(200, { 'content-length': '9000000' });
      response.write('x'.repeat(200_000));
    };
    expect(await post()).toEqual({ kind: 'delivered', status: 200 });
  });

  it('gives up after its time limit', async () => {
    answer = () => clock.advance(300);
    expect(await post()).toEqual({ kind: 'failed', error: 'it did not answer within 300 ms', retryAfterMs: null });
  });

  it('can be aborted', async () => {
    const aborted = new AbortController();
    answer = () => aborted.abort();
    expect(await post(undefined, aborted.signal)).toEqual({ kind: 'aborted' });
  });

  it('reports that nothing listens', async () => {
    expect(await post('http://127.0.0.1:9/')).toEqual({
      kind: 'failed',
      error: 'it could not be reached (ECONNREFUSED)',
      retryAfterMs: null,
    });
  });

  it.each(['http://127.0.0.1:9/', 'http://[::1]:9/', 'http://10.0.0.1/', 'http://169.254.169.254/latest', 'http://localhost:9/'])(
    'refuses %s for good unless it is allowed',
    async (url) => {
      const strict = new Poster({ allowPrivate: false, caPem: null, timeoutMs: 2_000, clock });
      expect(await strict.post(url, '{}', {}, never)).toEqual({ kind: 'refused', error: 'it is not at an address of the public internet' });
      await strict.close();
    },
  );
});

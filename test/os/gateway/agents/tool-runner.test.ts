import { getEventListeners } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { HttpToolRunner } from '../../../../src/gateway/agents/tool-runner.js';
import { fillBody, fillHeaders, fillUrl, inputProblem, TooLongError } from '../../../../src/gateway/agents/tool-template.js';
import type { ToolDefinition } from '../../../../src/gateway/model/tool-definition.js';
import { parseResultPath } from '../../../../src/gateway/model/result-path.js';
import { RESULT_PATHS } from '../../../support/result-paths.js';
import { toolOf } from '../../../support/tool.js';
import { VirtualClock } from '../../../support/virtual-clock.js';

interface Received {
  readonly method: string;
  readonly url: string;
  readonly headers: IncomingMessage['headers'];
  readonly body: string;
}

const INPUT = { day: '2026-01-01', seats: 4 };
const ongoing = new AbortController().signal;

let server: Server;
let received: Received[];
let answer: (response: ServerResponse) => void;
let clock: VirtualClock;
let runner: HttpToolRunner;

beforeEach(async () => {
  received = [];
  answer = (response) => response.end('{"id":7,"items":[{"n":1},{"n":2}]}');
  clock = new VirtualClock();
  runner = new HttpToolRunner({ allowPrivate: true, caPem: null, clock, resultPaths: RESULT_PATHS });
  server = createServer((request, response) => {
    let body = '';
    request.on('data', (chunk: Buffer) => (body += chunk.toString()));
    request.on('end', () => {
      received.push({ method: request.method ?? '', url: request.url ?? '', headers: request.headers, body });
      answer(response);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
});

afterEach(async () => {
  await runner.close();
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
});

function tool(fields: Partial<ToolDefinition> = {}, path = '/book'): ToolDefinition {
  const { port } = server.address() as AddressInfo;
  return { ...toolOf('o').tool, url: `http://127.0.0.1:${String(port)}${path}`, response: {}, ...fields };
}

const run = (one: ToolDefinition, input: unknown = INPUT, ended = ongoing) => runner.run('org', one, input, ended);
const codeOf = async (work: ReturnType<typeof run>): Promise<string> => {
  const outcome = await work;
  return outcome.ok ? 'ok' : outcome.error.code;
};

describe('a tool over HTTP', () => {
  it('gets method, headers and the filled template, and its answer is the result', async () => {
    const headers = { authorization: 'Bearer k' };
    const outcome = await run(tool({ method: 'PUT', headers, body: { when: '{{input.day}}', all: '{{input}}' } }));
    expect(outcome).toEqual({ ok: true, value: { result: { id: 7, items: [{ n: 1 }, { n: 2 }] }, httpStatus: 200 } });
    expect(received[0]).toMatchObject({ method: 'PUT', url: '/book', headers: { ...headers, 'content-type': 'application/json' } });
    expect(JSON.parse(received[0]?.body ?? '')).toEqual({ when: '2026-01-01', all: INPUT });
  });

  it('gets the headers of the call too, among which its own take precedence', async () => {
    const more = { traceparent: '00-a', authorization: 'of the call' };
    await runner.run('org', tool({ headers: { authorization: 'of the tool' } }), INPUT, ongoing, more);
    expect(received[0]?.headers).toMatchObject({ traceparent: '00-a', authorization: 'of the tool' });
  });

  it('gets the input itself without a template, and no body with GET', async () => {
    await run(tool({ body: null }));
    await run(tool({ body: {} }));
    await run(tool({ method: 'GET', body: null }, '/book/{{input.day}}?seats={{input.seats}}'));
    expect(received.map(({ method, url, body }) => [method, url, body])).toEqual([
      ['POST', '/book', JSON.stringify(INPUT)],
      ['POST', '/book', JSON.stringify(INPUT)],
      ['GET', '/book/2026-01-01?seats=4', ''],
    ]);
  });

  it('returns the parts of its answer that its owner selects: one value, several, none', async () => {
    const outcome = await run(tool({ response: { id: '$.id', numbers: '$.items[*].n', none: '$.nothing' } }));
    expect(outcome).toEqual({ ok: true, value: { result: { id: 7, numbers: [1, 2], none: null }, httpStatus: 200 } });
  });

  it('returns its status when it refuses', async () => {
    answer = (response) => response.writeHead(404).end('nothing here');
    expect(await run(tool({ response: { id: '$.id' } }))).toEqual({ ok: true, value: { result: 'nothing here', httpStatus: 404 } });
  });

  it.each(['/elsewhere', 'http://10.0.0.1/', 'http://127.0.0.1:1/', 'http://[::1]/'])(
    'is not followed when it redirects to %s',
    async (location) => {
      answer = (response) => response.writeHead(302, { location }).end('{"id":7}');
      const message = 'The tool redirects its callers (HTTP 302), which the gateway does not follow.';
      expect(await run(tool({ response: { id: '$.id' } }))).toEqual({ ok: false, error: { code: 'TOOL_FAILED', message } });
      expect(received).toHaveLength(1);
    },
  );

  it('gets the gateway’s User-Agent unless its owner sets another', async () => {
    await run(tool({}));
    await run(tool({ headers: { 'User-Agent': 'mine/1' } }));
    expect(received.map(({ headers }) => headers['user-agent'])).toEqual([expect.stringMatching(/^Trunkline\/\d+\.\d+\.\d+$/), 'mine/1']);
  });

  it('gets the input in its headers, also of nested fields', async () => {
    const headers = {
      'x-day': 'on {{input.day}}',
      'x-all': '{{ input }}',
      'x-name': '{{input.guest.name}}',
      'x-none': '{{input.guest.none.deep}}',
    };
    const input = { ...INPUT, guest: { name: 'Ann' } };
    expect(await codeOf(run(tool({ headers }), input))).toBe('ok');
    expect(received[0]?.headers).toMatchObject({ 'x-day': 'on 2026-01-01', 'x-all': JSON.stringify(input), 'x-name': 'Ann', 'x-none': '' });
  });

  it.each([
    ['a line break', 'a\r\nX-Admin: 1'],
    ['a line feed', 'a\nb'],
    ['a NUL', 'a\u0000'],
    ['a control character', 'a\u007f'],
    ['a character beyond ASCII', 'é'],
    ['too much', 'x'.repeat(4_097)],
  ])('is not called when a header would get %s', async (_what, day) => {
    const outcome = await run(tool({ headers: { 'x-day': '{{input.day}}' } }), { day });
    expect(outcome).toEqual({
      ok: false,
      error: { code: 'TOOL_BAD_INPUT', message: 'The input has characters that a header cannot contain.' },
    });
    expect(received).toEqual([]);
  });

  it.each([
    ['a text', 1],
    ['a list', []],
    ['too little', {}],
    ['too much', { day: 'x'.repeat(65_536) }],
  ])('is not called when its input is %s', async (_what, input) => {
    expect(await codeOf(run(tool(), input))).toBe('TOOL_BAD_INPUT');
    expect(received).toEqual([]);
  });

  it('is not called when the input would change its path', async () => {
    expect(await codeOf(run(tool({}, '/users/{{input.day}}/bookings'), { day: '..' }))).toBe('TOOL_BAD_INPUT');
    expect(await codeOf(run(tool({}, '/users/{{input.day}}'), { day: '../admin?x#y' }))).toBe('ok');
    expect(received.map(({ url }) => url)).toEqual(['/users/..%2Fadmin%3Fx%23y']);
  });

  it('leaves nothing on the abort signal of its call, however many run in it', async () => {
    const call = new AbortController();
    for (let count = 0; count < 12; count += 1) await runner.run('org', tool({ response: { id: '$.id' } }), INPUT, call.signal);
    expect(getEventListeners(call.signal, 'abort')).toEqual([]);
  });

  it('has the time limit that its owner set', async () => {
    answer = () => clock.advance(50);
    expect(await codeOf(run(tool({ timeout: 50 })))).toBe('TOOL_TIMEOUT');
    answer = (response) => void response.writeHead(200).write('{', () => setImmediate(() => clock.advance(50)));
    expect(await codeOf(run(tool({ timeout: 50 })))).toBe('TOOL_TIMEOUT');
  });

  it('fails when it answers more than 1 MiB, or no JSON where results are selected, or not at all', async () => {
    answer = (response) => response.end('x'.repeat(1_024 * 1_024 + 1));
    expect(await run(tool())).toMatchObject({
      ok: false,
      error: { code: 'TOOL_FAILED', message: expect.stringContaining('1048576') as unknown },
    });
    answer = (response) => response.end(JSON.stringify({ id: 7, more: 'x'.repeat(131_072) }));
    expect(await run(tool())).toMatchObject({
      error: { code: 'TOOL_FAILED', message: expect.stringContaining('has more than 131072 characters; result paths') as unknown },
    });
    expect(await run(tool({ response: { id: '$.id' } }))).toMatchObject({ value: { result: { id: 7 } } });
    answer = (response) => response.end('hello');
    expect(await codeOf(run(tool({ response: { id: '$.id' } })))).toBe('TOOL_FAILED');
    answer = (response) => void response.destroy();
    expect(await codeOf(run(tool()))).toBe('TOOL_FAILED');
    expect(await codeOf(run({ ...tool(), url: 'http://127.0.0.1:1/' }))).toBe('TOOL_FAILED');
  });

  it('is aborted when the call is over', async () => {
    const call = new AbortController();
    answer = () => call.abort();
    expect(await codeOf(run(tool(), INPUT, call.signal))).toBe('TOOL_FAILED');
  });

  it('is not called at a private address, by whatever name, unless the operator allows it', async () => {
    const guarded = new HttpToolRunner({ allowPrivate: false, caPem: null, clock, resultPaths: RESULT_PATHS });
    const { port } = server.address() as AddressInfo;
    for (const host of ['127.0.0.1', '0x7f.1', 'localhost', '[::1]', '[::ffff:127.0.0.1]', '10.0.0.1'])
      expect([host, await guarded.run('org', { ...tool(), url: `http://${host}:${String(port)}/` }, INPUT, ongoing)]).toMatchObject([
        host,
        { ok: false, error: { code: 'TOOL_FAILED', message: 'The tool is not at an address of the public internet.' } },
      ]);
    expect(received).toEqual([]);
    await guarded.close();
  });
});

describe('a template', () => {
  it.each([
    ['{{input}}', INPUT],
    ['{{ input.seats }}', 4],
    ['{{input.none}}', null],
    ['on {{input.day}} for {{input.seats}}', 'on 2026-01-01 for 4'],
    ['all: {{input}}', `all: ${JSON.stringify(INPUT)}`],
    ['{{input.none}}!', '!'],
    ['{{input.constructor}}', null],
    ['{{input.day.length}}', null],
    ['{{input.seats.more.of.it}}', null],
    ['{{other}}', '{{other}}'],
    [{ list: ['{{input.day}}', 1, null] }, { list: ['2026-01-01', 1, null] }],
  ])('turns %j into its value', (template, filled) => {
    expect(fillBody(template, INPUT)).toEqual(filled);
  });

  it('reads nested fields', () => {
    const input = { a: { b: { c: [1] } } };
    expect(fillBody({ whole: '{{input.a.b}}', within: 'c: {{input.a.b.c}}' }, input)).toEqual({ whole: { c: [1] }, within: 'c: [1]' });
    expect(fillUrl('https://a.example/{{input.a.b.c}}', input)?.pathname).toBe('/%5B1%5D');
  });

  it('writes the input into no other part of a URL', () => {
    expect(fillUrl('https://a.example/x?q={{input.day}}', { day: 'a&b=c' })?.href).toBe('https://a.example/x?q=a%26b%3Dc');
    expect(fillUrl('https://a.example/{{input.day}}', { day: '.' })).toBeDefined();
    expect(fillUrl('https://a.example/x/{{input.day}}', { day: '..' })).toBeUndefined();
  });

  it('rejects input beyond the size of a request, however often it names the input', () => {
    const input = { text: 'x'.repeat(50_000) };
    expect(fillBody({ five: '{{input.text}}'.repeat(5) }, input)).toMatchObject({ five: 'x'.repeat(250_000) });
    expect(() => fillBody({ six: '{{input.text}}'.repeat(6) }, input)).toThrow(TooLongError);
    expect(() => fillBody(Array(7_000).fill('{{input}}'), input)).toThrow('more than 262144 characters');
    expect(() => fillUrl(`https://a.example/?q=${'{{input.text}}'.repeat(6)}`, input)).toThrow(TooLongError);
    expect(() => fillHeaders({ a: '{{input.text}}'.repeat(6) }, input)).toThrow(TooLongError);
  });

  it('measures the input in bytes', () => {
    const { input_schema: schema } = toolOf('o').tool;
    expect(inputProblem(schema, { day: 'é'.repeat(32_000) })).toBeNull();
    expect(inputProblem(schema, { day: 'é'.repeat(33_000) })).toContain('65536');
  });
});

describe('the path of a result', () => {
  it.each(['$', '$.a', "$['a b']", '$.a[0].b[*]', '$.a[-1]', '$.a[1:3]', '$..id'])('may be %s', (text) => {
    expect(parseResultPath(text)).toBeDefined();
  });

  it.each(['', 'a', '$.', '$.a[', '$..a..b', '$[?@.a == 1]', "$[?search(@.a, '(a+)+$')]", '$[*, *]', "$['a', 'b']"])(
    'may not be %j',
    (text) => {
      expect(parseResultPath(text)).toBeUndefined();
    },
  );
});

import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { HttpToolRunner } from '../../../../src/gateway/agents/tool-runner.js';
import type { ToolRecord } from '../../../../src/gateway/model/agent-record.js';
import { newUuid } from '../../../../src/lib/ids.js';
import { systemClock } from '../../../../src/lib/system-clock.js';
import { RESULT_PATHS } from '../../../support/result-paths.js';
import { toolOf } from '../../../support/tool.js';
import { openApi, type Answer, type ApiFixture } from '../../../unit/gateway/api/api-fixture.js';

interface ToolBody {
  readonly message: string;
  readonly tool: ToolRecord;
  readonly tools: readonly object[];
  readonly result: unknown;
  readonly http_status: number;
  readonly took_ms: number;
}

const bodyOf = (answer: Answer): ToolBody => answer.body as unknown as ToolBody;
const MINIMAL = { tool: { name: 'book', description: 'Books a table.', url: 'https://customer.example/book' } };

describe('/v1/tools', () => {
  let api: ApiFixture;
  beforeEach(async () => {
    api = await openApi();
  });

  it('lists the tools with exactly the fields of §2.3 (§4.7)', async () => {
    const { tool_id, ...rest } = toolOf(api.orgId, { label: 'Booking', public: true });
    await api.stores.tools.put({ ...rest, tool_id });
    await api.stores.tools.put(toolOf(newUuid()));
    const answer = await api.get('/v1/tools');
    expect([answer.status, answer.body]).toEqual([
      200,
      {
        status: 'success',
        tools: [
          {
            tool_id,
            label: 'Booking',
            tool: {
              name: 'book',
              description: 'Books a table.',
              speech: '',
              method: 'POST',
              timeout: 10_000,
              url: 'https://customer.example/book',
              body: { day: '{{input.day}}' },
              input_schema: { type: 'object', example: {}, required: ['day'], properties: { day: 'YYYY-MM-DD' } },
              response: { id: '$.id' },
            },
            public: true,
          },
        ],
      },
    ]);
  });

  it('creates a tool, never returns its headers, and deletes it', async () => {
    const headers = { 'x-key': 'tool-secret' };
    const answer = await api.post('/v1/tools', { tool: { ...MINIMAL.tool, headers } });
    const { tool, message } = bodyOf(answer);
    expect([answer.status, tool.tool_id]).toEqual([200, expect.stringMatching(/^TL-[0-9a-f-]{36}$/)]);
    expect(message).toBe(`Tool "book" (${tool.tool_id}) made`);
    expect(tool).toMatchObject({ label: null, public: false, tool: { method: 'POST', timeout: 10_000, response: {} } });
    expect(answer.text).not.toContain('tool-secret');
    const stored = (await api.stores.tools.get(api.orgId, tool.tool_id))!;
    expect([stored.tool.headers, answer.headers.etag]).toEqual([headers, `"${stored.updated_at}"`]);
    expect((await api.delete(`/v1/tools/${tool.tool_id.toUpperCase()}`)).status).toBe(200);
    expect((await api.delete(`/v1/tools/${tool.tool_id}`)).status).toBe(404);
    expect(bodyOf(await api.get('/v1/tools')).tools).toEqual([]);
  });

  it('accepts the flat form too, and names the fault in a bad one', async () => {
    const flat = await api.post('/v1/tools', { ...MINIMAL.tool, label: 'Booking' });
    const nested = await api.post('/v1/tools', { ...MINIMAL, label: 'Booking' });
    expect(flat.status).toBe(200);
    expect({ ...bodyOf(flat).tool, tool_id: '' }).toEqual({ ...bodyOf(nested).tool, tool_id: '' });
    // §2.3 has an object.
    expect(bodyOf(flat).tool).toMatchObject({ tool: { body: {} } });
    const bad = await api.post('/v1/tools', { ...MINIMAL.tool, url: 'file:///etc/passwd', labl: 'x' });
    expect([bad.status, bad.failure.errors.map(({ path }) => path).sort()]).toEqual([400, ['labl', 'url']]);
    expect((await api.post('/v1/tools', {})).failure.errors.map(({ path }) => path)).toEqual(['tool']);
  });

  it('refuses to delete a tool that agents name, and returns their ids', async () => {
    const { tool } = bodyOf(await api.post('/v1/tools', MINIMAL));
    const agent = (await api.post('/v1/agents', { prompt: 'Be kind.', tools: [tool.tool_id] })).body as unknown as {
      readonly agent: { readonly agent_id: string };
    };
    const { agent_id: agentId } = agent.agent;
    const refused = await api.delete(`/v1/tools/${tool.tool_id}`);
    expect([refused.status, refused.failure.errors[0]?.error]).toEqual([409, 'TOOL_IN_USE']);
    expect(refused.failure.message).toContain(agentId);
    await api.post(`/v1/agents/${agentId}`, { tools: null });
    expect((await api.delete(`/v1/tools/${tool.tool_id}`)).status).toBe(200);
  });

  it('refuses a tool over 64 kB, and the 501st; limit sets the size of a page', async () => {
    const large = { description: 'x'.repeat(4_000), body: { text: 'x'.repeat(62_000) } };
    const tooLarge = await api.post('/v1/tools', { tool: { ...MINIMAL.tool, ...large } });
    expect([tooLarge.status, tooLarge.failure.errors.map(({ path }) => path)]).toEqual([400, ['tool']]);
    for (let made = 0; made < 499; made += 1) await api.stores.tools.put(toolOf(api.orgId));
    expect((await api.post('/v1/tools', MINIMAL)).status).toBe(200);
    expect((await api.post('/v1/tools', MINIMAL)).failure.errors[0]?.error).toBe('LIMIT_REACHED');
    expect(bodyOf(await api.get('/v1/tools')).tools).toHaveLength(500);
    const page = bodyOf(await api.get('/v1/tools?limit=300')) as ToolBody & { readonly next: string };
    const rest = bodyOf(await api.get(`/v1/tools?limit=300&before=${page.next}`));
    expect([page.tools.length, rest.tools.length]).toEqual([300, 200]);
  });

  it('deletes only the version that if-match names, and none of another organization', async () => {
    const [own, foreign] = [toolOf(api.orgId), toolOf(newUuid())];
    for (const tool of [own, foreign]) await api.stores.tools.put(tool);
    expect((await api.delete(`/v1/tools/${foreign.tool_id}`)).status).toBe(404);
    const remove = (tag: string) =>
      api.send({ method: 'DELETE', url: `/v1/tools/${own.tool_id}`, headers: { authorization: api.key, 'if-match': tag } });
    expect((await remove('"other"')).failure.errors[0]?.error).toBe('PRECONDITION_FAILED');
    expect((await remove(`"${own.updated_at}"`)).status).toBe(200);
  });

  it('names every bad field', async () => {
    const tool = { ...MINIMAL.tool, url: 'file:///etc/passwd', timeout: 60_001, method: 'TRACE', response: { a: '$..b..c' } };
    const answer = await api.post('/v1/tools', { tool, labl: 'x' });
    expect(answer.status).toBe(400);
    expect(answer.failure.errors.map(({ path }) => path).sort()).toEqual([
      'labl',
      'tool.method',
      'tool.response.a',
      'tool.timeout',
      'tool.url',
    ]);
  });
});

describe('POST /v1/tools/{tool_id}/invoke', () => {
  let api: ApiFixture;
  let runner: HttpToolRunner;
  let server: Server;
  let answer: (request: IncomingMessage, response: ServerResponse) => void;
  beforeEach(async () => {
    server = createServer((request, response) => answer(request, response));
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    runner = new HttpToolRunner({ allowPrivate: true, caPem: null, clock: systemClock, resultPaths: RESULT_PATHS });
    api = await openApi({ toolRunner: runner });
  });
  afterEach(async () => {
    await runner.close();
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });

  /** The id of a tool at the server. */
  async function tool(fields: Partial<ToolRecord['tool']> = {}): Promise<string> {
    const made = toolOf(api.orgId);
    const url = `http://127.0.0.1:${String((server.address() as AddressInfo).port)}/book`;
    await api.stores.tools.put({ ...made, tool: { ...made.tool, url, ...fields } });
    return made.tool_id;
  }
  const invoke = (id: string, input: unknown = { day: 'today' }) => api.post(`/v1/tools/${id}/invoke`, { input });

  it('calls the tool and answers with its result', async () => {
    answer = (request, response) => {
      request.resume();
      response.setHeader('content-type', 'application/json').end('{"id":"B-7","internal":1}');
    };
    const id = await tool();
    expect((await invoke(id)).body).toEqual({
      status: 'success',
      result: { id: 'B-7' },
      http_status: 200,
      took_ms: expect.any(Number) as number,
    });
    answer = (_request, response) => response.writeHead(422).end('{"why":"full"}');
    expect((await invoke(id)).body).toMatchObject({ status: 'success', result: { why: 'full' }, http_status: 422 });
  });

  it('answers 400 at the field of an input that lacks it', async () => {
    const id = await tool();
    const paths = async (input: unknown) => {
      const { status, failure } = await invoke(id, input);
      return [status, failure.errors.map(({ path }) => path)];
    };
    expect(await paths({})).toEqual([400, ['input.day']]);
    expect(await paths([])).toEqual([400, ['input']]);
    expect(await paths({ day: 'x'.repeat(65_536) })).toEqual([400, ['input']]);
    expect((await invoke(`TL-${newUuid()}`)).status).toBe(404);
    expect((await invoke('nothing')).status).toBe(404);
  });

  it('answers with the cause when a tool cannot be reached, answers too much, or is too slow', async () => {
    const failed = async (id: string) => {
      const { status, failure } = await invoke(id);
      return [status, failure.errors[0]?.error, failure.message];
    };
    answer = (_request, response) => response.end('x'.repeat(1_100_000));
    expect(await failed(await tool())).toEqual([502, 'TOOL_FAILED', "The tool's response has more than 1048576 bytes."]);
    answer = (_request, response) => response.destroy();
    expect(await failed(await tool())).toEqual([502, 'TOOL_FAILED', expect.stringContaining('could not be reached')]);
    answer = () => undefined;
    expect(await failed(await tool({ timeout: 20 }))).toEqual([504, 'TOOL_TIMEOUT', 'The tool did not answer within 20 ms.']);
  });

  it('runs eight at a time for one organization, and answers one more with 429', async () => {
    const waiting: ServerResponse[] = [];
    const eight = new Promise<void>((resolve) => {
      answer = (_request, response) => {
        if (waiting.push(response) === 8) resolve();
      };
    });
    const id = await tool();
    const running = Array.from({ length: 8 }, () => invoke(id));
    await eight;
    const refused = await invoke(id);
    expect([refused.status, refused.headers['retry-after']]).toEqual([429, '1']);
    for (const response of waiting) response.end('{"id":1}');
    expect((await Promise.all(running)).map(({ status }) => status)).toEqual(Array(8).fill(200));
    answer = (_request, response) => response.end('{"id":2}');
    expect((await invoke(id)).status).toBe(200);
  });
});

import { beforeEach, describe, expect, it } from 'vitest';
import { DEFAULT_AGENT_SETTINGS, type AgentRecord } from '../../../../src/gateway/model/agent-record.js';
import { DEFAULT_INBOUND_OPTIONS } from '../../../../src/gateway/model/records.js';
import { newUuid } from '../../../../src/lib/ids.js';
import { toolOf } from '../../../support/tool.js';
import { freshNumber } from '../store/store-contract.js';
import { openApi, type Answer, type ApiFixture } from './api-fixture.js';

type Agent = Omit<AgentRecord, 'stream'> & { readonly stream: unknown };
interface AgentBody {
  readonly status: string;
  readonly message: string;
  readonly agent: Agent;
  readonly agents: readonly Agent[];
  readonly updates: Readonly<Record<string, unknown>>;
  readonly warnings: readonly { readonly path: string; readonly message: string }[];
  readonly failed_updates: Readonly<Record<string, unknown>>;
}

const PROMPT = 'You are kind.';
const BOT = { url: 'wss://bot.example/', format: 'twilio' };
let api: ApiFixture;
beforeEach(async () => {
  api = await openApi();
});

const bodyOf = (answer: Answer): AgentBody => answer.body as unknown as AgentBody;
const pathsOf = (answer: Answer) => answer.failure.errors.map(({ path }) => path);

async function make(settings: object = { prompt: PROMPT }): Promise<Agent> {
  const answer = await api.post('/v1/agents', settings);
  expect(answer.text).toContain('"status":"success"');
  return bodyOf(answer).agent;
}

const update = (agent: { readonly agent_id: string }, body: unknown) => api.post(`/v1/agents/${agent.agent_id}`, body);
const stored = async ({ agent_id: id }: { readonly agent_id: string }) => (await api.stores.agents.get(api.orgId, id))!;

describe('POST /v1/agents', () => {
  it('creates an agent with the defaults of §4.8', async () => {
    const answer = await api.post('/v1/agents', { prompt: PROMPT });
    const { agent, message, warnings } = bodyOf(answer);
    expect([answer.status, bodyOf(answer).status, warnings]).toEqual([200, 'success', []]);
    expect(agent).toMatchObject({ ...DEFAULT_AGENT_SETTINGS, prompt: PROMPT, name: 'Agent', org_id: api.orgId });
    expect([agent.language, agent.model, agent.interruption_threshold, agent.max_duration]).toEqual(['ENG', 'base', 100, 30]);
    expect(message).toBe(`Agent "Agent" (${agent.agent_id}) made`);
    expect(answer.headers.etag).toBe(`"${agent.updated_at}"`);
    expect(await stored(agent)).toEqual(agent);
  });

  it('needs a prompt, a pathway, or a bot of its own', async () => {
    for (const settings of [{}, { prompt: null }, { prompt: '' }, { name: 'x', stream: 'test-line' }]) {
      const answer = await api.post('/v1/agents', settings);
      expect([answer.status, pathsOf(answer)]).toEqual([400, ['prompt']]);
    }
    for (const settings of [{ prompt: PROMPT }, { pathway_id: 'p-1' }, { stream: BOT }])
      expect((await api.post('/v1/agents', settings)).status).toBe(200);
    expect((await api.stores.agents.list(api.orgId)).records).toHaveLength(3);
  });

  it('names every bad field at once, including tools that do not exist, and creates nothing', async () => {
    const foreign = toolOf(newUuid());
    const own = toolOf(api.orgId);
    for (const tool of [foreign, own]) await api.stores.tools.put(tool);
    const answer = await api.post('/v1/agents', {
      name: ' ',
      prompt: PROMPT,
      promt: 'x',
      max_duration: 0,
      tools: [own.tool_id, foreign.tool_id, `TL-${newUuid()}`],
    });
    expect(answer.status).toBe(400);
    expect(pathsOf(answer).sort()).toEqual(['max_duration', 'name', 'promt', 'tools[1]', 'tools[2]']);
    expect((await api.stores.agents.list(api.orgId)).records).toEqual([]);
  });
});

describe('GET /v1/agents and GET /v1/agents/{agent_id}', () => {
  it('show the agents of the organization, by their ids in either case', async () => {
    const [first, second] = [await make(), await make({ stream: BOT, name: 'own' })];
    const list = bodyOf(await api.get('/v1/agents')).agents;
    expect(list).toHaveLength(2);
    expect(list).toEqual(expect.arrayContaining([first, second]));
    const read = await api.get(`/v1/agents/${first.agent_id.toUpperCase()}`);
    expect([read.status, bodyOf(read).agent, read.headers.etag]).toEqual([200, first, `"${first.updated_at}"`]);
  });

  it('show nothing of other organizations', async () => {
    const agent = await make();
    const other = await api.stores.orgs.create({ name: 'other', sip_enabled: true });
    const { key } = await api.stores.keys.create(other.org_id, 'k');
    expect(bodyOf(await api.get('/v1/agents', key)).agents).toEqual([]);
    expect((await api.get(`/v1/agents/${agent.agent_id}`, key)).status).toBe(404);
    expect((await api.post(`/v1/agents/${agent.agent_id}`, { prompt: 'x' }, key)).status).toBe(404);
    expect((await api.delete(`/v1/agents/${agent.agent_id}`, key)).status).toBe(404);
    for (const id of [newUuid(), 'nothing', '%00']) expect((await api.get(`/v1/agents/${id}`)).status).toBe(404);
  });
});

describe('POST /v1/agents/{agent_id}', () => {
  it('answers with the updated settings, and names the agent', async () => {
    const agent = await make();
    const answer = await update(agent, { prompt: 'Be brief.', language: 'ger', max_duration: 12 });
    expect(answer.status).toBe(200);
    expect(bodyOf(answer)).toEqual({
      status: 'success',
      message: `Agent "Agent" (${agent.agent_id}) updated`,
      updates: { prompt: 'Be brief.', language: 'GER', max_duration: 12 },
      warnings: [],
    });
    const now = await stored(agent);
    expect(now).toMatchObject({ prompt: 'Be brief.', language: 'GER', max_duration: 12, created_at: agent.created_at });
    expect(now.updated_at > agent.updated_at).toBe(true);
    expect(answer.headers.etag).toBe(`"${now.updated_at}"`);
  });

  it.each([
    ['prompt and voice', { prompt: 'x', voice: 'nova' }, { prompt: 'x', voice: 'nova' }],
    ['webhook', { webhook: 'https://customer.example/done' }, { webhook: 'https://customer.example/done' }],
    ['analysis_schema', { analysis_schema: { mail: 'email', at: 'YYYY-MM-DD' } }, { analysis_schema: { mail: 'email', at: 'YYYY-MM-DD' } }],
    ['metadata', { metadata: { campaign: ['a', { b: 1 }] } }, { metadata: { campaign: ['a', { b: 1 }] } }],
    ['model', { model: 'turbo' }, { model: 'turbo' }],
    ['first_sentence', { first_sentence: 'Hello. How are you?' }, { first_sentence: 'Hello. How are you?' }],
    ['dynamic_data', { dynamic_data: { url: 'https://x.example' } }, { dynamic_data: { url: 'https://x.example' } }],
    ['transfer_list', { transfer_list: { sales: '+15551234567' } }, { transfer_list: { sales: '+15551234567' } }],
    ['interruption_threshold, a number', { interruption_threshold: 99.5 }, { interruption_threshold: 99.5 }],
    ['name', { name: ' Front desk ' }, { name: 'Front desk' }],
    [
      'pronunciation_guide, with strings as booleans and with its defaults',
      {
        pronunciation_guide: [
          { word: 'high', pronunciation: 'h i', case_sensitive: 'true', spaced: 'false' },
          { word: 'ETA', pronunciation: 'E T A' },
        ],
      },
      {
        pronunciation_guide: [
          { word: 'high', pronunciation: 'h i', case_sensitive: true, spaced: false },
          { word: 'ETA', pronunciation: 'E T A', case_sensitive: false, spaced: true },
        ],
      },
    ],
  ])('sets %s', async (_what, body, updates) => {
    const agent = await make();
    expect(bodyOf(await update(agent, body)).updates).toEqual(updates);
    expect(await stored(agent)).toMatchObject(updates);
  });

  it.each(['webhook', 'pathway_id', 'first_sentence', 'dynamic_data'])('clears %s by null and by an empty string', async (name) => {
    const set = { webhook: 'https://a.example', pathway_id: 'p-1', first_sentence: 'Hi.', dynamic_data: { a: 1 } }[name];
    for (const nothing of [null, '']) {
      const agent = await make({ prompt: PROMPT, [name]: set });
      // A pathway took the prompt away.
      expect(bodyOf(await update(agent, { [name]: nothing, prompt: PROMPT })).updates).toMatchObject({ [name]: null });
      expect(await stored(agent)).toMatchObject({ [name]: null });
    }
  });

  it('resets the other settings to their defaults by null', async () => {
    const defaults = { language: 'ENG', model: 'base', interruption_threshold: 100, max_duration: 30, tools: [], pronunciation_guide: [] };
    const nulls = Object.fromEntries(Object.keys(defaults).map((name) => [name, null]));
    const agent = await make({ prompt: PROMPT, language: 'GER', model: 'turbo', interruption_threshold: 60, max_duration: 5 });
    expect(bodyOf(await update(agent, nulls)).updates).toEqual(defaults);
    expect(await stored(agent)).toMatchObject(defaults);
  });

  it('resets what a pathway replaces, and the answer lists those changes', async () => {
    const tool = toolOf(api.orgId);
    await api.stores.tools.put(tool);
    const agent = await make({
      prompt: PROMPT,
      first_sentence: 'Hi.',
      model: 'turbo',
      tools: [tool.tool_id],
      metadata: { kept: 1 },
      transfer_list: [],
    });
    const { updates } = bodyOf(await update(agent, { pathway_id: 'p-1', voice: 'de' }));
    expect(updates).toEqual({
      pathway_id: 'p-1',
      voice: 'de',
      prompt: null,
      first_sentence: null,
      model: 'base',
      tools: [],
      transfer_list: null,
    });
    expect(await stored(agent)).toMatchObject({ ...updates, dynamic_data: null, metadata: { kept: 1 } });
    expect((await update(agent, { pathway_id: null, prompt: PROMPT })).status).toBe(200);
  });

  it.each([null, ''])('clears a pathway by %j, even without a prompt, and warns who answers until there is one', async (nothing) => {
    const agent = await make({ pathway_id: 'p-1' });
    const cleared = await update(agent, { pathway_id: nothing });
    expect([cleared.status, bodyOf(cleared).updates]).toEqual([200, { pathway_id: null }]);
    const warning = { path: 'prompt', message: 'is not set: until it is, the default agent answers' };
    expect(bodyOf(cleared).warnings).toEqual([warning]);
    expect(await stored(agent)).toMatchObject({ prompt: null, pathway_id: null });
    // It stays as it is by another change, which does not say it again; nobody clears a prompt that there is.
    expect(bodyOf(await update(agent, { max_duration: 5 })).warnings).toEqual([]);
    expect(bodyOf(await api.get(`/v1/agents/${agent.agent_id}`)).warnings).toEqual([warning]);
    expect((await update(agent, { prompt: PROMPT })).status).toBe(200);
    expect((await update(agent, { prompt: null })).status).toBe(400);
  });

  it('warns of what it changed, and not again of what was so before', async () => {
    const tool = toolOf(api.orgId);
    await api.stores.tools.put(tool);
    const agent = await make({ prompt: PROMPT, interruption_threshold: 500, tools: [tool.tool_id] });
    const warned = async (body: object) => bodyOf(await update(agent, body)).warnings.map(({ path }) => path);
    expect(await warned({ language: 'GER' })).toEqual([]);
    expect(await warned({ interruption_threshold: 400 })).toEqual(['interruption_threshold']);
    expect(await warned({ model: 'turbo' })).toEqual(['tools']);
  });

  it('warns of a number in the transfer_list that no call can be transferred to', async () => {
    const agent = await make({ prompt: PROMPT });
    const { warnings } = bodyOf(await update(agent, { transfer_list: ['+4930123456', { name: 'Desk', number: '+49(0)3019988001' }] }));
    expect(warnings.map(({ path }) => path)).toEqual(['transfer_list']);
    expect(warnings[0]?.message).toMatch(/^has \+49\(0\)3019988001, .*E\.164/);
  });

  it('accepts a deleted tool that was already named, with a warning, but no tool that never existed', async () => {
    const tool = toolOf(api.orgId);
    await api.stores.tools.put(tool);
    const agent = await make({ prompt: PROMPT, tools: [tool.tool_id] });
    // As the command line does with --force, or a restored backup.
    await api.stores.tools.delete(api.orgId, tool.tool_id);
    const saved = await update(agent, { tools: [tool.tool_id], max_duration: 5 });
    expect([saved.status, bodyOf(saved).warnings]).toEqual([
      200,
      [{ path: 'tools[0]', message: 'is the id of a tool that was deleted: the agent continues without it' }],
    ]);
    expect(pathsOf(await update(agent, { tools: [tool.tool_id, `TL-${newUuid()}`] }))).toEqual(['tools[1]']);
  });

  it('keeps the sum of changes within the size of an agent that can be read', async () => {
    const agent = await make();
    const large = 'x'.repeat(65_000);
    for (const name of ['metadata', 'transfer_list', 'dynamic_data'])
      expect((await update(agent, { [name]: { large } })).status, name).toBe(200);
    const tooMuch = await update(agent, { prompt: '😀'.repeat(32_768) });
    expect([tooMuch.status, pathsOf(tooMuch), tooMuch.failure.message]).toEqual([400, ['prompt'], expect.stringContaining('262144')]);
    expect((await stored(agent)).prompt).toBe(PROMPT);
  });

  it('limits first_sentence to under 200 characters, counted as code points', async () => {
    const agent = await make();
    expect((await update(agent, { first_sentence: '😀'.repeat(199) })).status).toBe(200);
    const answer = await update(agent, { first_sentence: 'x'.repeat(200) });
    expect([answer.status, pathsOf(answer)]).toEqual([400, ['first_sentence']]);
  });

  it.each([
    ['in the documented form', { url: 'https://x.example', headers: { authorization: 'secret-of-a-test' }, response_data: { x: '$' } }],
    ['in an unknown form', { headers: { authorization: 'secret-of-a-test' }, timeout: 50_000 }],
    ['in a list', [{ url: 1, Headers: { authorization: 'secret-of-a-test' } }]],
  ])('never shows the headers of dynamic_data %s', async (_form, dynamicData) => {
    const agent = await make();
    const saved = await update(agent, { dynamic_data: dynamicData });
    const refused = await update({ agent_id: newUuid() }, { dynamic_data: dynamicData });
    expect([saved.status, refused.status, Object.keys(bodyOf(refused).failed_updates)]).toEqual([200, 404, ['dynamic_data']]);
    expect(JSON.stringify([saved.body, refused.body])).not.toContain('secret-of-a-test');
    expect(JSON.stringify(await stored(agent))).toContain('secret-of-a-test');
  });

  it('changes nothing when one setting is bad; failed_updates has the settings that failed, as they were given', async () => {
    const agent = await make();
    const answer = await update(agent, {
      prompt: 'new',
      unknown: [1],
      max_duration: 'long',
      analysis_schema: { a: 1, b: 'string' },
      language: 'KLINGON',
    });
    expect(answer.status).toBe(400);
    expect(answer.failure).toMatchObject({ status: 'error', data: null });
    expect(pathsOf(answer).sort()).toEqual(['analysis_schema.a', 'language', 'max_duration', 'unknown']);
    expect(bodyOf(answer).failed_updates).toEqual({
      unknown: [1],
      max_duration: 'long',
      analysis_schema: { a: 1, b: 'string' },
      language: 'KLINGON',
    });
    expect(answer.failure.errors.find(({ path }) => path === 'language')?.message).toBe('must be one of ENG, GER');
    expect(await stored(agent)).toEqual(agent);
  });

  it.each([
    ['a webhook that is not a URL', { webhook: 'customer.example' }],
    ['a webhook of another scheme', { webhook: 'ftp://customer.example' }],
    ['a webhook with a password', { webhook: 'https://a:b@customer.example' }],
    ['another model', { model: 'fast' }],
    ['a threshold below 0', { interruption_threshold: -1 }],
    ['minutes with a fraction', { max_duration: 1.5 }],
    ['a guide without pronunciation', { pronunciation_guide: [{ word: 'x' }] }],
    ['a flag that is not boolean', { pronunciation_guide: [{ word: 'x', pronunciation: 'y', spaced: 'yes' }] }],
    ['a tool id in a wrong form', { tools: ['book'] }],
    ['a name that is null', { name: null }],
  ])('refuses %s', async (_what, body) => {
    const agent = await make();
    const answer = await update(agent, body);
    expect([answer.status, Object.keys(bodyOf(answer).failed_updates)]).toEqual([400, Object.keys(body)]);
    expect(await stored(agent)).toEqual(agent);
  });

  it('answers a body that is nested over 32 deep, even a hundred thousand, with 400', async () => {
    const { agent_id: id } = await make();
    const headers = { authorization: api.key, 'content-type': 'application/json' };
    const nested = async (depth: number) => {
      const payload = `{"metadata":{"a":${'['.repeat(depth)}${']'.repeat(depth)}}}`;
      return (await api.send({ method: 'POST', url: `/v1/agents/${id}`, headers, payload })).status;
    };
    expect([await nested(30), await nested(31), await nested(100_000)]).toEqual([200, 400, 400]);
  });

  it('answers a body that is not an object with 400 and no failed settings', async () => {
    const answer = await update(await make(), []);
    expect([answer.status, bodyOf(answer).failed_updates]).toEqual([400, {}]);
  });

  it('refuses an unknown voice and lists the known ones; a bot of the customer may have any', async () => {
    const agent = await make();
    const answer = await update(agent, { voice: 'alice' });
    expect([answer.status, bodyOf(answer).failed_updates]).toEqual([400, { voice: 'alice' }]);
    expect(answer.failure.errors).toEqual([{ error: 'VALIDATION', message: 'must be one of de, nova', path: 'voice' }]);
    expect((await update(agent, { voice: 'alice', stream: BOT })).status).toBe(200);
    expect(pathsOf(await update(agent, { stream: null }))).toEqual(['voice']);
  });

  it('refuses a webhook at a private address', async () => {
    const agent = await make();
    const answer = await update(agent, { webhook: 'http://10.0.0.1:8080/hook' });
    expect([answer.status, bodyOf(answer).failed_updates]).toEqual([400, { webhook: 'http://10.0.0.1:8080/hook' }]);
    expect((await update(agent, { webhook: 'https://hooks.example.com/' })).status).toBe(200);
  });

  it('keeps how OpenAI listens and thinks, and refuses it for other providers', async () => {
    const tuning = { noise_reduction: 'near_field', semantic_vad: 'low', reasoning_effort: 'high' };
    const agent = await make({ prompt: PROMPT, provider: { name: 'openai-realtime', ...tuning } });
    expect(agent.provider).toEqual({ name: 'openai-realtime', model: null, url: null, audio: 'g711', ...tuning });
    expect((await update(agent, { provider: 'deepgram' })).status).toBe(200);
    expect((await stored(agent)).provider).toMatchObject({ name: 'deepgram', semantic_vad: null });
    for (const field of Object.entries(tuning)) {
      const answer = await update(agent, { provider: { name: 'deepgram', ...Object.fromEntries([field]) } });
      expect([answer.status, answer.text]).toEqual([400, expect.stringContaining('only openai-realtime has it')]);
    }
  });

  it('never shows a provider’s key, keeps it with its address and provider, and gives it to no other', async () => {
    const own = { name: 'openai-realtime', url: 'wss://models.example/v1' };
    const made = await api.post('/v1/agents', { prompt: PROMPT, provider: { ...own, api_key: 'secret-key' } });
    const { agent } = bodyOf(made);
    const keyAfter = async (provider: object): Promise<string | null | undefined> => {
      const answer = await update(agent, { provider });
      expect([answer.status, answer.text.includes('secret-key')]).toEqual([200, false]);
      return (await stored(agent)).provider?.api_key;
    };
    expect(made.text).not.toContain('secret-key');
    expect(await keyAfter({ ...own, model: 'm-2' })).toBe('secret-key');
    expect(await keyAfter({ ...own, url: 'wss://elsewhere.example/v1' })).toBeNull();
    expect(await keyAfter({ ...own, api_key: 'secret-key' })).toBe('secret-key');
    expect(await keyAfter({ ...own, name: 'deepgram' })).toBeNull();
  });

  it('never shows a bearer token, keeps it with its address, and gives it to no other', async () => {
    const made = await api.post('/v1/agents', { stream: { ...BOT, bearer_token: 'secret-token' } });
    const agent = bodyOf(made).agent;
    const answers = [made, await api.get('/v1/agents'), await api.get(`/v1/agents/${agent.agent_id}`)];
    answers.push(await update(agent, { stream: { url: BOT.url, format: 'pcmu' } }));
    expect((await stored(agent)).stream).toEqual({ url: BOT.url, format: 'pcmu', bearer_token: 'secret-token' });
    answers.push(await update(agent, { stream: { url: 'https://no', bearer_token: 'secret-token' } }));
    expect(bodyOf(answers[4]!).failed_updates).toEqual({ stream: { url: 'https://no' } });
    for (const answer of answers) expect(answer.text).not.toContain('secret-token');
    await update(agent, { stream: { url: 'wss://elsewhere.example/' } });
    expect((await stored(agent)).stream).toMatchObject({ url: 'wss://elsewhere.example/', bearer_token: null });
  });

  it('accepts inline tools, and shows them without their headers', async () => {
    const agent = await make();
    const tool = { name: 'book', description: 'Books.', url: 'https://customer.example', headers: { 'x-key': 'tool-secret' } };
    const answer = await update(agent, { tools: [tool] });
    expect(bodyOf(answer).updates.tools).toMatchObject([{ name: 'book', speech: '', timeout: 10_000 }]);
    expect(answer.text).not.toContain('tool-secret');
    expect((await stored(agent)).tools).toMatchObject([{ headers: { 'x-key': 'tool-secret' } }]);
  });

  it('finds a tool by its id in either case', async () => {
    const tool = toolOf(api.orgId);
    await api.stores.tools.put(tool);
    expect(bodyOf(await update(await make(), { tools: [tool.tool_id.toUpperCase()] })).updates).toEqual({ tools: [tool.tool_id] });
  });

  it('warns of settings with an unexpected effect', async () => {
    const agent = await make();
    const warned = async (body: object) => bodyOf(await update(agent, body)).warnings.map(({ path }) => path);
    expect(await warned({ prompt: 'x'.repeat(2_001) })).toEqual(['prompt']);
    expect(await warned({ prompt: 'x'.repeat(2_000), interruption_threshold: 49 })).toEqual(['interruption_threshold']);
    expect(await warned({ interruption_threshold: 201 })).toEqual(['interruption_threshold']);
    expect(await warned({ interruption_threshold: 200, max_duration: 121 })).toEqual(['max_duration']);
    const tool = { name: 'book', description: 'Books.', url: 'https://customer.example' };
    expect(await warned({ max_duration: 120, model: 'turbo', transfer_list: ['+15551234567'], tools: [tool] })).toEqual([
      'tools',
      'transfer_list',
    ]);
    expect(await warned({ transfer_list: [], tools: [] })).toEqual([]);
    expect(await warned({ stream: { url: 'wss://10.0.0.1/bot' } })).toEqual(['stream.url']);
    expect(await warned({ stream: { url: 'wss://bot.example.com/bot' } })).toEqual([]);
  });

  it('answers an unknown agent with 404 and all settings as failed', async () => {
    const answer = await update({ agent_id: newUuid() }, { prompt: 'x' });
    expect([answer.status, answer.failure.errors[0]?.error, bodyOf(answer).failed_updates]).toEqual([404, 'NOT_FOUND', { prompt: 'x' }]);
  });

  it('answers an if-match of another version with 412, and changes nothing', async () => {
    const agent = await make();
    const send = (tag: string, prompt: string) =>
      api.send({
        method: 'POST',
        url: `/v1/agents/${agent.agent_id}`,
        headers: { authorization: api.key, 'content-type': 'application/json', 'if-match': tag },
        payload: JSON.stringify({ prompt }),
      });
    const first = await send(`"${agent.updated_at}"`, 'first');
    expect(first.status).toBe(200);
    const late = await send(`"${agent.updated_at}"`, 'late');
    expect([late.status, late.failure.errors[0]?.error, bodyOf(late).failed_updates]).toEqual([
      412,
      'PRECONDITION_FAILED',
      { prompt: 'late' },
    ]);
    expect((await stored(agent)).prompt).toBe('first');
    expect((await send(String(first.headers.etag).replaceAll('"', ''), 'second')).status).toBe(200);
    expect((await send('*', 'third')).status).toBe(200);
    expect((await send(`W/"${(await stored(agent)).updated_at}"`, 'weak')).status).toBe(412);
    expect((await send(`"x", "${(await stored(agent)).updated_at}"`, 'one of two')).status).toBe(200);
  });
});

describe('GET /v1/agents', () => {
  it('returns pages of 50, the oldest first, by default', async () => {
    for (let made = 0; made < 53; made += 1) {
      await make({ prompt: PROMPT, name: `agent ${String(made)}` });
      api.clock.advance(1);
    }
    const page = async (query: string) => {
      const { agents, next } = bodyOf(await api.get(`/v1/agents${query}`)) as AgentBody & { readonly next: string | null };
      return { names: agents.map(({ name }) => name), next };
    };
    const first = await page('');
    expect([first.names.length, first.names[0]]).toEqual([50, 'agent 0']);
    expect(await page(`?before=${first.next ?? ''}`)).toEqual({ names: ['agent 50', 'agent 51', 'agent 52'], next: null });
    expect((await page(`?limit=2&before=${first.next ?? ''}`)).names).toEqual(['agent 50', 'agent 51']);
    for (const query of ['?limit=0', '?limit=501', '?before=x', '?skip=1'])
      expect((await api.get(`/v1/agents${query}`)).status, query).toBe(400);
  });
});

describe('DELETE /v1/agents/{agent_id}', () => {
  it('refuses either itself or a concurrent attach, and no number names an agent that does not exist', async () => {
    const number = freshNumber();
    const inbound = (agent_id: string) => ({ inbound: { agent_id, options: DEFAULT_INBOUND_OPTIONS } });
    // Each happens just before the other one writes.
    const attaching = await openApi({
      replace: ({ agents, numbers }) => ({
        numbers: Object.assign(Object.create(numbers) as typeof numbers, {
          attach: async (...given: Parameters<typeof numbers.attach>) => {
            await agents.delete(given[0], given[2].inbound?.agent_id ?? '');
            return numbers.attach(...given);
          },
          detach: numbers.detach.bind(numbers),
          get: numbers.get.bind(numbers),
        }),
      }),
    });
    const { agent } = bodyOf(await attaching.post('/v1/agents', { prompt: PROMPT }));
    const body = { phone_number: number, directions: ['inbound'], service: 'sip', agent_id: agent.agent_id };
    const refused = await attaching.post('/sip/attach', body);
    expect([refused.status, pathsOf(refused)]).toEqual([400, ['agent_id']]);
    expect((await attaching.get(`/sip?inbound_id=${number}`)).body.data).toBeNull();

    const deleting = await openApi({
      replace: ({ agents, numbers }) => ({
        agents: Object.assign(Object.create(agents) as typeof agents, {
          delete: async (...given: Parameters<typeof agents.delete>) => {
            await numbers.attach(given[0], number, inbound(given[1]));
            return agents.delete(...given);
          },
          get: agents.get.bind(agents),
          put: agents.put.bind(agents),
          count: agents.count.bind(agents),
        }),
      }),
    });
    const kept = bodyOf(await deleting.post('/v1/agents', { prompt: PROMPT })).agent;
    const late = await deleting.delete(`/v1/agents/${kept.agent_id}`);
    expect([late.status, late.failure.errors[0]?.error]).toEqual([409, 'AGENT_IN_USE']);
    expect((await deleting.get(`/v1/agents/${kept.agent_id}`)).status).toBe(200);
  });

  it('deletes an agent, but not while a number names it', async () => {
    const agent = await make();
    const number = freshNumber();
    await api.stores.numbers.attach(api.orgId, number, { inbound: { agent_id: agent.agent_id, options: DEFAULT_INBOUND_OPTIONS } });
    const refused = await api.delete(`/v1/agents/${agent.agent_id}`);
    expect([refused.status, refused.failure.errors[0]?.error]).toEqual([409, 'AGENT_IN_USE']);
    expect(refused.failure.message).toContain(number);
    await api.stores.numbers.detach(api.orgId, number, ['inbound']);
    const stale = await api.send({
      method: 'DELETE',
      url: `/v1/agents/${agent.agent_id}`,
      headers: { authorization: api.key, 'if-match': '"2000-01-01T00:00:00.000Z"' },
    });
    expect([stale.status, (await stored(agent)).agent_id]).toEqual([412, agent.agent_id]);
    expect((await api.delete(`/v1/agents/${agent.agent_id}`)).body).toEqual({
      status: 'success',
      message: `Agent "Agent" (${agent.agent_id}) deleted`,
    });
    expect((await api.delete(`/v1/agents/${agent.agent_id}`)).status).toBe(404);
  });
});

describe('GET /v1/voices', () => {
  it('lists names, with their languages where they are known', async () => {
    const { status, voices } = (await api.get('/v1/voices')).body as unknown as {
      status: string;
      voices: { provider: string | null }[];
    };
    expect(status).toBe('success');
    expect(voices.filter(({ provider }) => provider === null)).toEqual([
      { name: 'de', language: 'GER', provider: null },
      { name: 'nova', language: null, provider: null },
    ]);
    expect(voices).toContainEqual({ name: 'marin', language: null, provider: 'openai-realtime' });
    expect(voices).toContainEqual({ name: 'aura-2-viktoria-de', language: 'GER', provider: 'deepgram' });
    expect(voices).toContainEqual({ name: 'Kore', language: null, provider: 'gemini-live' });
  });
});

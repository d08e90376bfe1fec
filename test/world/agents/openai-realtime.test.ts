import { writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { AgentSite, type AgentCall } from '../../support/agent/agent-site.js';
import type { FakeOpenAiSession } from '../../support/provider/fake-openai.js';
import type { FakeServer } from '../../support/provider/fake-server.js';
import { startFakeOpenAi } from '../../support/provider/openai-server.js';
import { World } from '../world.js';

// The whole product with an agent at OpenAI Realtime, as far as a strict fake of it goes: no live service was reached.

const OPERATOR_KEY = 'sk-of-the-operator';
let fake: FakeServer<FakeOpenAiSession>;
let site: AgentSite<World>;
let url: string;

beforeAll(async () => {
  fake = await startFakeOpenAi({ refusal: ({ headers }) => (headers.authorization === 'Bearer sk-wrong' ? 401 : null) });
  url = `ws://127.0.0.1:${String(fake.port)}/v1/realtime`;
  site = await AgentSite.startOn((all) => World.start(all), {
    TRUNKLINE_OPENAI_URL: url,
    TRUNKLINE_OPENAI_API_KEY: OPERATOR_KEY,
    TRUNKLINE_TOOLS_ALLOW_PRIVATE: 'true',
  });
});
afterAll(async () => {
  await site.stop();
  await fake.stop();
});

const talking = async (number: string): Promise<{ readonly call: AgentCall; readonly session: FakeOpenAiSession }> => {
  const before = fake.sessions.all.length;
  const call = await site.invite({ number });
  await call.answered();
  call.ack();
  return { call, session: await fake.sessions.at(before) };
};
const agentWith = (more: object): Promise<string> =>
  site.numberOf({ prompt: 'You are the front desk.', provider: { name: 'openai-realtime', url, api_key: 'sk-own' }, ...more });
const recordOf = ({ signalling }: AgentCall): Promise<Readonly<Record<string, unknown>>> => site.gateway.record(signalling.callId);
const lastKey = (): string | undefined => fake.upgrades.at(-1)?.headers.authorization;

describe('a call to an agent at OpenAI Realtime', () => {
  it('greets the caller, is interrupted and leaves a record', async () => {
    const { call, session } = await talking(await agentWith({ first_sentence: 'Blue Harbor, good day.' }));
    const { id } = await session.responses.at(0);
    const greeting = Buffer.alloc(4_000, 0x22);
    session.utter(id, greeting, 'Blue Harbor, good day.');
    await call.end.heard(greeting);
    const response = session.begin();
    const item = session.item(response);
    session.say(response, item, Buffer.alloc(80_000, 0x33), 'One two three four. '.repeat(20));
    await call.end.heard(Buffer.alloc(4_000, 0x33));
    const spoken = session.callerSpeaks();
    session.cancel();
    const truncated = await session.message('conversation.item.truncate');
    expect(truncated.item_id).toBe(item);
    expect(truncated.audio_end_ms).toBeGreaterThanOrEqual(500);
    expect(truncated.audio_end_ms).toBeLessThan(9_000);
    session.callerStops(spoken, 'Stop, please.');
    const answer = Buffer.alloc(1_600, 0x44);
    session.utter(session.begin(), answer, 'Yes.');
    await call.end.heard(answer);
    await call.hangUp();
    const { call_id: callId } = await recordOf(call);
    const detail = await site.gateway.api('GET', `/v1/calls/${String(callId)}`);
    const record = (detail.json as { call: Readonly<Record<string, unknown>> }).call;
    expect(record).toMatchObject({ reason: 'CALLER_HANGUP', agent_error: null });
    const transcript = record['transcript'] as readonly { readonly speaker: string; readonly text: string; readonly interrupted?: true }[];
    expect(transcript.map(({ speaker }) => speaker).sort()).toEqual(['agent', 'agent', 'agent', 'caller']);
    expect(transcript.find(({ interrupted }) => interrupted === true)?.text).toMatch(/^One\b/);
    expect(session.errors).toEqual([]);
  });

  it('has in its transcript only what was heard of the sentence during which the caller hung up', async () => {
    const { call, session } = await talking(await agentWith({}));
    const { id } = await session.responses.at(0);
    session.say(id, session.item(id), Buffer.alloc(80_000, 0x33), 'One two three four. '.repeat(20));
    await call.end.heard(Buffer.alloc(4_000, 0x33));
    await call.hangUp();
    const detail = await site.gateway.api('GET', `/v1/calls/${String((await recordOf(call))['call_id'])}`);
    const heard = { speaker: 'agent', text: expect.stringMatching(/^One\b/) as string, interrupted: true };
    expect((detail.json as { call: object }).call).toMatchObject({ transcript: [heard] });
  });
});

describe('the keys of OpenAI Realtime', () => {
  it('leave the gateway for the provider when they are an agent’s own, and never come back over the API or the log', async () => {
    const number = await agentWith({});
    const { call, session } = await talking(number);
    expect(lastKey()).toBe('Bearer sk-own');
    await call.hangUp();
    const agents = JSON.stringify((await site.gateway.api('GET', '/v1/agents')).json);
    const trace = JSON.stringify((await site.gateway.api('GET', `/v1/calls/${String((await recordOf(call))['call_id'])}/trace`)).json);
    expect(`${agents}${trace}${await site.gateway.log('gateway')}`).not.toContain('sk-own');
    expect(session.errors).toEqual([]);
  });

  it('are the organization’s before the operator’s, which only enabled organizations use and only at the operator’s address', async () => {
    const number = await site.numberOf({ prompt: 'x', provider: 'openai-realtime' });
    const refused = await site.invite({ number });
    expect((await refused.signalling.final()).status).toBe(480);
    await refused.close();
    const checked = await site.gateway.api('POST', '/sip/check', { phone_number: number });
    expect(JSON.stringify(checked.json)).toContain('there is no key for openai-realtime');
    const org = (await site.gateway.api('GET', '/v1/organizations')).json as { organizations: { org_id: string }[] };
    const orgId = org.organizations[0]!.org_id;
    expect((await site.gateway.cli('org', 'enable-operator-keys', orgId)).code).toBe(0);
    const first = await talking(await site.numberOf({ prompt: 'y', provider: 'openai-realtime' }));
    expect(lastKey()).toBe(`Bearer ${OPERATOR_KEY}`);
    await first.call.hangUp();
    const file = join(site.gateway.directory, 'key.txt');
    await writeFile(file, 'sk-of-the-organization\n');
    const stored = await site.gateway.cli('org', 'provider-key', orgId, 'openai-realtime', '--key-file', file);
    expect(stored.code).toBe(0);
    expect(stored.stdout).not.toContain('sk-of');
    const second = await talking(await site.numberOf({ prompt: 'z', provider: 'openai-realtime' }));
    expect(lastKey()).toBe('Bearer sk-of-the-organization');
    await second.call.hangUp();
    const elsewhere = await site.numberOf({ prompt: 'x', provider: { name: 'openai-realtime', url: `${url}/elsewhere` } });
    const before = fake.upgrades.length;
    const third = await site.invite({ number: elsewhere });
    expect((await third.signalling.final()).status).toBe(480);
    await third.close();
    expect(fake.upgrades).toHaveLength(before);
  });

  it('refuse the call when they are wrong, and the record has the cause', async () => {
    const number = await site.numberOf({ prompt: 'x', provider: { name: 'openai-realtime', url, api_key: 'sk-wrong' } });
    const call = await site.invite({ number });
    expect((await call.signalling.final()).status).toBe(480);
    await call.close();
    const record = await recordOf(call);
    expect(record).toMatchObject({ reason: 'AGENT_UNAVAILABLE' });
    expect(record['agent_error']).toContain('HTTP 401');
  });
});

describe('an agent before the answer', () => {
  it('gets values and the text of a pathway into its prompt; a value that is missing is empty, and the trace names it', async () => {
    const asked: string[] = [];
    const server = createServer((request, response) => {
      asked.push(`${request.method ?? ''} ${request.url ?? ''} ${request.headers.authorization ?? ''}`);
      if (request.url?.startsWith('/flow') === true) return void response.end('You are {{role}}. The guest is {{guest}}{{nobody}}.');
      response.setHeader('content-type', 'application/json').end(JSON.stringify({ data: { name: 'Kim' }, role: 'a porter' }));
    });
    await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
    const base = `http://127.0.0.1:${String((server.address() as AddressInfo).port)}`;
    const orgId = site.gateway.ready.org_id;
    const pathways = await site.gateway.cli('org', 'pathway-url', orgId, `${base}/flow/{pathway_id}`);
    expect(pathways.code).toBe(0);
    const response_data = { guest: '$.data.name', nobody: '$.nobody', role: '$.role' };
    const dynamic_data = { url: `${base}/guest?from={{input.from}}`, headers: { authorization: 'secret' }, response_data };
    const provider = { name: 'openai-realtime', url, api_key: 'sk-own' };
    const number = await site.numberOf({ pathway_id: 'front desk', provider });
    const found = (await site.gateway.api('GET', `/sip?inbound_id=${encodeURIComponent(number)}`)).json as {
      data: { inbound: { agent_id: string } };
    };
    const agentPath = `/v1/agents/${found.data.inbound.agent_id}`;
    const updated = await site.gateway.api('POST', agentPath, { dynamic_data });
    expect(updated.json).toMatchObject({ status: 'success', warnings: [] });
    expect(JSON.stringify((await site.gateway.api('GET', agentPath)).json)).not.toContain('secret');
    const { call, session } = await talking(number);
    expect(session.config?.instructions).toContain('You are a porter. The guest is Kim.');
    expect(asked.toSorted()).toEqual(['GET /flow/front%20desk ', expect.stringMatching(/^GET \/guest\?from=\S+ secret$/)]);
    await call.hangUp();
    const { call_id: callId } = await recordOf(call);
    const trace = JSON.stringify((await site.gateway.api('GET', `/v1/calls/${String(callId)}/trace`)).json);
    expect(trace).toContain('dynamic_data without a value: nobody');
    expect(trace).not.toContain('porter');
    await new Promise((done) => server.close(done));
    const lost = await site.invite({ number });
    expect((await lost.signalling.final()).status).toBe(480);
    await lost.close();
    expect((await site.gateway.cli('org', 'pathway-url', orgId, 'none')).code).toBe(0);
    const checked = await site.gateway.api('POST', '/sip/check', { phone_number: number });
    expect(JSON.stringify(checked.json)).toContain('Without effect: pathway_id (the organization has no pathway-url)');
    const warned = await site.gateway.api('POST', agentPath, { pathway_id: 'other', dynamic_data: { a: 1 } });
    const paths = (warned.json as { warnings: { path: string }[] }).warnings.map(({ path }) => path);
    expect(paths).toContain('pathway_id');
  });
});

describe('the limit on sessions', () => {
  it('refuses a call with 486 and ORG_SESSION_LIMIT when it is reached, and a session that ended frees its slot', async () => {
    const number = await agentWith({});
    const limit = (sessions: string) =>
      site.gateway.cli('org', 'set-limits', site.gateway.ready.org_id, '--max-provider-sessions', sessions);
    expect((await limit('1')).code).toBe(0);
    const { call, session } = await talking(number);
    session.done((await session.responses.at(0)).id, 'completed', '', 77);
    const second = await site.invite({ number });
    const refusal = await second.signalling.final();
    expect([refusal.status, refusal.header('Warning')]).toEqual([486, expect.stringContaining('ORG_SESSION_LIMIT')]);
    await second.close();
    const checked = await site.gateway.api('POST', '/sip/check', { phone_number: number });
    expect(checked.json).toMatchObject({ data: { sip_status: 486, reason: 'ORG_SESSION_LIMIT' } });
    await call.hangUp();
    expect(await recordOf(call)).toMatchObject({ reason: 'CALLER_HANGUP' });
    const third = await talking(number);
    await third.call.hangUp();
    await recordOf(third.call);
    const usage = await site.gateway.cli('org', 'provider-usage', site.gateway.ready.org_id, '--json');
    expect(JSON.parse(usage.stdout)).toMatchObject({ sessions: 0, tokens: 77 });
    expect((await limit('none')).code).toBe(0);
  });
});

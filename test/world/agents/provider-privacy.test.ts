import { createServer, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Arrivals } from '../../support/arrivals.js';
import { AgentSite, type AgentCall } from '../../support/agent/agent-site.js';
import type { FakeOpenAiSession } from '../../support/provider/fake-openai.js';
import type { FakeServer } from '../../support/provider/fake-server.js';
import { startFakeOpenAi } from '../../support/provider/openai-server.js';
import { World } from '../world.js';

// What a call with an agent at a provider leaves behind, and what its end leaves open.

const SECRETS = [
  'secret-prompt',
  'secret-greeting',
  'secret-said',
  'secret-heard',
  'secret-input',
  'secret-result',
  'secret-value',
  'sk-own',
];
let fake: FakeServer<FakeOpenAiSession>;
let tools: Server;
let site: AgentSite<World>;
let url: string;
let base: string;
const asked = new Arrivals<ServerResponse>();

beforeAll(async () => {
  fake = await startFakeOpenAi();
  url = `ws://127.0.0.1:${String(fake.port)}/v1/realtime`;
  tools = createServer((request, response) => {
    if (request.url === '/value') return void response.end('{"value":"secret-value"}');
    asked.add(response);
  });
  await new Promise<void>((done) => tools.listen(0, '127.0.0.1', done));
  base = `http://127.0.0.1:${String((tools.address() as AddressInfo).port)}`;
  site = await AgentSite.startOn((all) => World.start(all), { TRUNKLINE_TOOLS_ALLOW_PRIVATE: 'true', TRUNKLINE_LOG_LEVEL: 'debug' });
});
afterAll(async () => {
  await site.stop();
  await fake.stop();
  tools.closeAllConnections();
  tools.close();
});

async function talking(): Promise<{ readonly call: AgentCall; readonly session: FakeOpenAiSession }> {
  const tool = { name: 'book', description: 'x', url: `${base}/book`, input_schema: { properties: { day: 'a day' } } };
  const number = await site.numberOf({
    prompt: 'secret-prompt {{value}}',
    first_sentence: 'secret-greeting',
    tools: [tool],
    dynamic_data: { url: `${base}/value`, response_data: { value: '$.value' } },
    provider: { name: 'openai-realtime', url, api_key: 'sk-own' },
  });
  const before = fake.sessions.all.length;
  const call = await site.invite({ number });
  await call.answered();
  call.ack();
  return { call, session: await fake.sessions.at(before) };
}

describe('a call with an agent at a provider', () => {
  it('leaves no prompt, speech, DTMF digit, tool input or API key in logs and trace', async () => {
    const { call, session } = await talking();
    expect(session.config?.instructions).toContain('secret-prompt secret-value');
    session.utter((await session.responses.at(0)).id, Buffer.alloc(1_600, 0x22), 'secret-said');
    await call.end.heard(Buffer.alloc(1_600, 0x22));
    session.callerStops(session.callerSpeaks(), 'secret-heard');
    const response = session.begin();
    session.call(response, 'book', { day: 'secret-input' });
    session.done(response);
    (await asked.at(0)).end('{"result":"secret-result"}');
    await session.messages.until(() => session.of('conversation.item.create').find(({ item }) => item.type === 'function_call_output'));
    await call.signalling.request('INFO', call.ok, 'Signal=7\r\nDuration=160\r\n', ['Content-Type: application/dtmf-relay']);
    await session.messages.until(() =>
      session
        .of('conversation.item.create')
        .find(({ item }) => item.type === 'message' && item.content[0].text === 'The caller pressed the keys 7.'),
    );
    await call.hangUp();
    const { call_id: id } = await site.gateway.record(call.signalling.callId);
    const trace = JSON.stringify((await site.gateway.api('GET', `/v1/calls/${String(id)}/trace`)).json);
    await site.gateway.logged('gateway', 'call.ended');
    const left = `${await site.gateway.log('gateway')}${trace}`;
    expect(left).toContain('call.ended');
    expect(SECRETS.filter((secret) => left.includes(secret))).toEqual([]);
    expect(left).not.toContain('pressed the keys');
    expect(session.errors).toEqual([]);
  });

  it('leaves neither the request of a tool nor the session open when the caller hangs up while the tool runs', async () => {
    const { call, session } = await talking();
    const first = (await session.responses.at(0)).id;
    session.call(first, 'book', { day: 'Monday' });
    session.done(first);
    const request = await asked.at(1);
    const closed = new Promise<void>((resolve) => request.on('close', resolve));
    await call.hangUp();
    await closed;
    expect(request.writableEnded).toBe(false);
    await session.closed.at(0);
    expect(await site.gateway.record(call.signalling.callId)).toMatchObject({ reason: 'CALLER_HANGUP' });
    expect(session.errors).toEqual([]);
  });
});

describe('the URL of a provider', () => {
  it.each([
    ['not-a-url', 400],
    ['https://api.example.com/', 400],
    ['wss://user:password@api.example.com/', 400],
    ['wss://api.example.com/?key=x', 400],
  ])('%s gets 400 when the agent is saved', async (bad, status) => {
    const provider = { name: 'openai-realtime', url: bad, api_key: 'sk-own' };
    const answer = await site.gateway.api('POST', '/v1/agents', { prompt: 'x', provider });
    expect(answer.status).toBe(status);
    expect(JSON.stringify(answer.json)).toContain('provider');
    expect(JSON.stringify(answer.json)).not.toContain('sk-own');
  });
});

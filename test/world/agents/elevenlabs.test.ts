import { writeFile } from 'node:fs/promises';
import { createServer, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { Arrivals } from '../../support/arrivals.js';
import { AgentSite } from '../../support/agent/agent-site.js';
import { FakeElevenLabsSession } from '../../support/provider/fake-elevenlabs.js';
import { type FakeServer, startSessions } from '../../support/provider/fake-server.js';
import { FakeSpeech } from '../../support/provider/fake-speech.js';
import { World } from '../world.js';

// The whole product with an agent at a strict fake of ElevenLabs Agents.

let fake: FakeServer<FakeElevenLabsSession>;
let site: AgentSite<World>;
let url: string;
let speech: FakeSpeech;
/** The customer's tool, which answers when it is let. */
let tool: Server;
const asked = new Arrivals<ServerResponse>();
const SPOKEN = Buffer.alloc(4_000, 0x33);

beforeAll(async () => {
  fake = await startSessions((end, upgrade) => new FakeElevenLabsSession(end, upgrade));
  url = `ws://127.0.0.1:${String(fake.port)}/v1/convai/conversation`;
  speech = await FakeSpeech.start(() => SPOKEN);
  tool = createServer((_request, response) => asked.add(response));
  await new Promise<void>((done) => tool.listen(0, '127.0.0.1', done));
  site = await AgentSite.startOn((all) => World.start(all), {
    TRUNKLINE_TOOLS_ALLOW_PRIVATE: 'true',
    TRUNKLINE_ELEVENLABS_URL: url,
    TRUNKLINE_ELEVENLABS_SPEECH_URL: `${speech.url}/v1/text-to-speech`,
  });
});
afterAll(async () => {
  await site.stop();
  await fake.stop();
  await speech.stop();
  tool.closeAllConnections();
  tool.close();
});

it('a caller hears an agent at ElevenLabs, which ends the call', async () => {
  const provider = { name: 'elevenlabs', model: 'agent_1', url, api_key: 'el-key' };
  const call = await site.invite({ number: await site.numberOf({ prompt: 'x', first_sentence: 'Good day.', provider }) });
  await call.answered();
  const session = await fake.sessions.at(0);
  expect(fake.upgrades.at(-1)?.url).toContain('agent_id=agent_1');
  expect(session.config?.conversation_config_override?.agent?.first_message).toBe('Good day.');
  const greeting = Buffer.alloc(4_000, 0x22);
  session.text('Good day.');
  session.say(greeting);
  call.ack();
  await call.end.heard(greeting);
  await call.end.peer.speak(new Int16Array(8_000).fill(2_000));
  await site.gateway.until(() => session.audio.length > 7_000);
  session.close(1_000);
  expect(await call.ended()).toContain('AGENT_HANGUP');
  expect(session.errors).toEqual([]);
  expect(await site.gateway.log('gateway')).not.toContain('el-key');
});

it('while a tool runs the caller hears the speech of the tool, which ElevenLabs synthesizes with the voice of the agent', async () => {
  const keyFile = join(site.gateway.directory, 'key');
  await writeFile(keyFile, 'org-key');
  expect((await site.gateway.cli('org', 'provider-key', site.gateway.ready.org_id, 'elevenlabs', '--key-file', keyFile)).code).toBe(0);
  const before = fake.sessions.all.length;
  const address = `http://127.0.0.1:${String((tool.address() as AddressInfo).port)}/book`;
  const book = { name: 'book', description: 'x', speech: 'One moment.', url: address, input_schema: { properties: { day: 'a day' } } };
  const provider = { name: 'elevenlabs', model: 'agent_1' };
  const call = await site.invite({ number: await site.numberOf({ prompt: 'x', voice: 'v1', tools: [book], provider }) });
  await call.answered();
  call.ack();
  const session = await fake.sessions.at(before);
  session.call('c1', 'book', { day: 'Monday' });
  const response = await asked.at(0);
  await call.end.heard(SPOKEN);
  expect(speech.asked.all.map(({ provider: by, text, voice }) => [by, text, voice])).toEqual([['elevenlabs', 'One moment.', 'v1']]);
  response.end('{"slot":1}');
  await session.messages.until(() => session.of('client_tool_result')[0]);
  await call.hangUp();
  const { call_id: id } = await site.gateway.record(call.signalling.callId);
  const { json } = await site.gateway.api('GET', `/v1/calls/${String(id)}`);
  expect(json).toMatchObject({ call: { transcript: [{ speaker: 'agent', text: 'One moment.' }], agent_error: null } });
  expect([session.errors, speech.errors]).toEqual([[], []]);
});

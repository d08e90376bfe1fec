import { DeepgramClient } from '@deepgram/sdk';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { Arrivals } from '../../support/arrivals.js';
import { AgentSite } from '../../support/agent/agent-site.js';
import { FakeDeepgramSession } from '../../support/provider/fake-deepgram.js';
import { type FakeServer, startSessions } from '../../support/provider/fake-server.js';

// The whole product with an agent at a strict fake of Deepgram's Voice Agent, which Deepgram's own library talks to.

let fake: FakeServer<FakeDeepgramSession>;
let site: AgentSite;

beforeAll(async () => {
  fake = await startSessions((end, upgrade) => new FakeDeepgramSession(end, upgrade));
  site = await AgentSite.start();
});
afterAll(async () => {
  await site.stop();
  await fake.stop();
});

it('a caller hears an agent at Deepgram', async () => {
  const url = `ws://127.0.0.1:${String(fake.port)}/v1/agent/converse`;
  const provider = { name: 'deepgram', url, api_key: 'dg-key' };
  const call = await site.invite({ number: await site.numberOf({ prompt: 'x', first_sentence: 'Good day.', provider }) });
  await call.answered();
  const session = await fake.sessions.at(0);
  expect(session.config?.agent.greeting).toBe('Good day.');
  const greeting = Buffer.alloc(4_000, 0x22);
  session.text('Good day.');
  session.say(greeting);
  session.done();
  call.ack();
  await call.end.heard(greeting);
  await call.end.peer.speak(new Int16Array(8_000).fill(2_000));
  await call.hangUp();
  await session.closed.at(0);
  expect(session.audio.length).toBeGreaterThan(7_000);
  expect(session.errors).toEqual([]);
});

it('the fake talks with Deepgram’s own library, unmodified', async () => {
  const base = `ws://127.0.0.1:${String(fake.port)}`;
  const client = new DeepgramClient({ apiKey: 'dg-key', environment: { base, production: base, agent: base, agentRest: base } });
  const before = fake.sessions.all.length;
  const socket = await client.agent.v1.connect({ Authorization: 'Token dg-key', reconnectAttempts: 0 });
  const arrived = new Arrivals<unknown>();
  socket.on('message', (message) => arrived.add(message));
  socket.connect();
  await socket.waitForOpen();
  const typed = (type: string): Promise<object> =>
    arrived.until((all) => all.find((one): one is object => typeof one === 'object' && one !== null && 'type' in one && one.type === type));
  await typed('Welcome');
  socket.sendSettings({
    type: 'Settings',
    audio: { input: { encoding: 'mulaw', sample_rate: 8_000 }, output: { encoding: 'mulaw', sample_rate: 8_000, container: 'none' } },
    agent: {
      listen: { provider: { type: 'deepgram', version: 'v1', model: 'nova-3', language: 'en' } },
      think: { provider: { type: 'open_ai', model: 'gpt-4.1-mini' }, prompt: 'x', functions: [] },
      speak: { provider: { type: 'deepgram', model: 'aura-2-thalia-en' } },
    },
  });
  await typed('SettingsApplied');
  const session = await fake.sessions.at(before);
  session.callerSaid('Hello?');
  expect(await typed('ConversationText')).toMatchObject({ role: 'user', content: 'Hello?' });
  socket.sendInjectUserMessage({ type: 'InjectUserMessage', content: 'Hi.' });
  await session.messages.at(1);
  expect(session.errors).toEqual([]);
  socket.close();
  await session.closed.at(0);
});

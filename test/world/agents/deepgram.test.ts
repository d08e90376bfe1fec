import { afterAll, beforeAll, expect, it } from 'vitest';
import { AgentSite } from '../../support/agent/agent-site.js';
import { FakeDeepgramSession } from '../../support/provider/fake-deepgram.js';
import { type FakeServer, startSessions } from '../../support/provider/fake-server.js';
import { World } from '../world.js';

// The whole product with an agent at a strict fake of Deepgram's Voice Agent.

let fake: FakeServer<FakeDeepgramSession>;
let site: AgentSite<World>;

beforeAll(async () => {
  fake = await startSessions((end, upgrade) => new FakeDeepgramSession(end, upgrade));
  site = await AgentSite.startOn((all) => World.start(all));
});
afterAll(async () => {
  await site.stop();
  await fake.stop();
});

it('a caller and an agent at Deepgram hear each other', async () => {
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

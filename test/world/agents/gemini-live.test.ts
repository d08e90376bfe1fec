import { afterAll, beforeAll, expect, it } from 'vitest';
import { AgentSite } from '../../support/agent/agent-site.js';
import { FakeGeminiSession } from '../../support/provider/fake-gemini.js';
import { type FakeServer, startSessions } from '../../support/provider/fake-server.js';
import { World } from '../world.js';

// The whole product with an agent at a strict fake of Gemini Live.

let fake: FakeServer<FakeGeminiSession>;
let site: AgentSite<World>;

beforeAll(async () => {
  fake = await startSessions((end, upgrade) => new FakeGeminiSession(end, upgrade));
  site = await AgentSite.startOn((all) => World.start(all));
});
afterAll(async () => {
  await site.stop();
  await fake.stop();
});

it('a caller and an agent at Gemini hear each other', async () => {
  const provider = { name: 'gemini-live', url: `ws://127.0.0.1:${String(fake.port)}/live`, api_key: 'g-key' };
  const call = await site.invite({ number: await site.numberOf({ prompt: 'x', provider }) });
  await call.answered();
  call.ack();
  const session = await fake.sessions.at(0);
  await session.messages.at(1);
  expect(session.texts).toEqual(['The call was answered. Greet the caller.']);
  session.say(
    Buffer.from(Int16Array.from({ length: 24_000 }, (_, n) => 8_000 * Math.sin((2 * Math.PI * 500 * n) / 24_000)).buffer),
    'Hello.',
  );
  session.turnComplete();
  await call.end.hearsAgent();
  await call.end.peer.speak(new Int16Array(8_000).fill(2_000));
  await call.hangUp();
  await session.closed.at(0);
  expect(session.audio.length).toBeGreaterThan(28_000);
  expect(session.errors).toEqual([]);
});

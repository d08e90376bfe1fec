import { FunctionResponse, GoogleGenAI, LiveSendToolResponseParameters, Modality, type LiveServerMessage } from '@google/genai';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { Arrivals } from '../../support/arrivals.js';
import { AgentSite } from '../../support/agent/agent-site.js';
import { FakeGeminiSession } from '../../support/provider/fake-gemini.js';
import { type FakeServer, startSessions } from '../../support/provider/fake-server.js';

// The whole product with an agent at a strict fake of Gemini Live, which Google's own library talks to.

let fake: FakeServer<FakeGeminiSession>;
let site: AgentSite;

beforeAll(async () => {
  fake = await startSessions((end, upgrade) => new FakeGeminiSession(end, upgrade));
  site = await AgentSite.start();
});
afterAll(async () => {
  await site.stop();
  await fake.stop();
});

it('a caller hears an agent at Gemini', async () => {
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

it('the fake talks with Google’s own library, unmodified', async () => {
  const client = new GoogleGenAI({ apiKey: 'g-key', httpOptions: { baseUrl: `http://127.0.0.1:${String(fake.port)}` } });
  const before = fake.sessions.all.length;
  const arrived = new Arrivals<LiveServerMessage>();
  const live = await client.live.connect({
    model: 'gemini-3.8-live',
    config: { responseModalities: [Modality.AUDIO], inputAudioTranscription: {}, sessionResumption: {} },
    callbacks: { onmessage: (message) => arrived.add(message) },
  });
  const session = await fake.sessions.at(before);
  live.sendRealtimeInput({ audio: { data: Buffer.alloc(640).toString('base64'), mimeType: 'audio/pcm;rate=16000' } });
  live.sendRealtimeInput({ text: 'Hi.' });
  await session.messages.at(1);
  expect([session.audio.length, session.texts]).toEqual([640, ['Hi.']]);
  session.say(Buffer.alloc(960), 'Hello.');
  const message = await arrived.until((all) => all.find(({ serverContent }) => serverContent?.modelTurn !== undefined));
  expect(message.serverContent?.modelTurn?.parts?.[0]?.inlineData?.mimeType).toBe('audio/pcm;rate=24000');
  session.call({ id: '1', name: 'weather', args: {} });
  await arrived.until((all) => all.find(({ toolCall }) => toolCall?.functionCalls?.[0]?.id === '1'));
  const response = Object.assign(new FunctionResponse(), { id: '1', name: 'weather', response: { result: 'rain' } });
  live.sendToolResponse(Object.assign(new LiveSendToolResponseParameters(), { functionResponses: [response] }));
  await session.messages.at(2);
  expect(session.errors).toEqual([]);
  live.close();
  await session.closed.at(0);
});

import { FunctionResponse, GoogleGenAI, LiveSendToolResponseParameters, Modality, type LiveServerMessage } from '@google/genai';
import { DeepgramClient } from '@deepgram/sdk';
import { ElevenLabsClient as SpeechClient } from '@elevenlabs/elevenlabs-js';
import { ElevenLabsClient } from '@elevenlabs/elevenlabs-js/Client.js';
import { AudioInterface, ClientTools, Conversation } from '@elevenlabs/elevenlabs-js/api/resources/conversationalAi/conversation/index.js';
import OpenAI from 'openai';
import { OpenAIRealtimeWS } from 'openai/realtime/ws';
import type { RealtimeServerEvent } from 'openai/resources/realtime/realtime';
import { expect, it, onTestFinished } from 'vitest';
import { WebSocket } from 'ws';
import { Arrivals } from '../../support/arrivals.js';
import { testCertificates } from '../../support/certificates.js';
import { FakeDeepgramSession } from '../../support/provider/fake-deepgram.js';
import { FakeElevenLabsSession } from '../../support/provider/fake-elevenlabs.js';
import { FakeFluxSession } from '../../support/provider/fake-flux.js';
import { FakeGeminiSession } from '../../support/provider/fake-gemini.js';
import { startSessions } from '../../support/provider/fake-server.js';
import { FakeSpeech } from '../../support/provider/fake-speech.js';
import { startFakeOpenAi } from '../../support/provider/openai-server.js';

// The strict fakes of providers that tests in the world use (test/world/agents) talk with the providers' own libraries, unmodified.

it('the fake of Deepgram’s Voice Agent talks with Deepgram’s own library', async () => {
  const fake = await startSessions((end, upgrade) => new FakeDeepgramSession(end, upgrade));
  onTestFinished(() => fake.stop());
  const base = `ws://127.0.0.1:${String(fake.port)}`;
  const client = new DeepgramClient({ apiKey: 'dg-key', environment: { base, production: base, agent: base, agentRest: base } });
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
  const session = await fake.sessions.at(0);
  session.callerSaid('Hello?');
  expect(await typed('ConversationText')).toMatchObject({ role: 'user', content: 'Hello?' });
  socket.sendInjectUserMessage({ type: 'InjectUserMessage', content: 'Hi.' });
  await session.messages.at(1);
  expect(session.errors).toEqual([]);
  socket.close();
  await session.closed.at(0);
});

it('the fake of Gemini Live talks with Google’s own library', async () => {
  const fake = await startSessions((end, upgrade) => new FakeGeminiSession(end, upgrade));
  onTestFinished(() => fake.stop());
  const client = new GoogleGenAI({ apiKey: 'g-key', httpOptions: { baseUrl: `http://127.0.0.1:${String(fake.port)}` } });
  const arrived = new Arrivals<LiveServerMessage>();
  const live = await client.live.connect({
    model: 'gemini-3.8-live',
    config: { responseModalities: [Modality.AUDIO], inputAudioTranscription: {}, sessionResumption: {} },
    callbacks: { onmessage: (message) => arrived.add(message) },
  });
  const session = await fake.sessions.at(0);
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

it('the fake of ElevenLabs Agents talks with ElevenLabs’ own library', async () => {
  // The library has its key in a URL that the service signs.
  const fake = await startSessions((end, upgrade) => new FakeElevenLabsSession(end, upgrade, {}, false));
  onTestFinished(() => fake.stop());
  const url = `ws://127.0.0.1:${String(fake.port)}/v1/convai/conversation`;
  const heard = new Arrivals<Buffer>();
  const texts = new Arrivals<string>();
  let sendAudio: (audio: Buffer) => void = () => undefined;
  class Line extends AudioInterface {
    override start(onInput: (audio: Buffer) => void): void {
      sendAudio = onInput;
    }
    override stop(): void {
      return;
    }
    override output(audio: Buffer): void {
      heard.add(audio);
    }
    override interrupt(): void {
      texts.add('interrupted');
    }
  }
  const tools = new ClientTools();
  tools.register('book', () => Promise.resolve('booked'), true);
  const conversation = new Conversation({
    client: new ElevenLabsClient({ apiKey: 'x' }),
    agentId: 'agent_1',
    requiresAuth: false,
    audioInterface: new Line(),
    clientTools: tools,
    webSocketFactory: { create: (library, options) => new WebSocket(url + new URL(library).search, options as object) as never },
    callbackAgentResponse: (text: string) => texts.add(text),
    callbackUserTranscript: (text: string) => texts.add(text),
    callbackAgentResponseCorrection: (_original: string, corrected: string) => texts.add(corrected),
  });
  await conversation.startSession();
  const session = await fake.sessions.at(0);
  await session.messages.at(0);
  sendAudio(Buffer.alloc(160));
  session.ping(1);
  session.text('Hello, there.');
  const id = session.say(Buffer.alloc(160, 1));
  expect(await heard.at(0)).toEqual(Buffer.alloc(160, 1));
  session.callerSaid('Stop.');
  session.interrupt(id);
  session.late(Buffer.alloc(160, 2), id);
  session.correct('Hello, there.', 'Hello');
  session.call('c1', 'book', { day: 'Monday' });
  await texts.until((all) => (all.includes('Hello') ? true : undefined));
  expect(texts.all).toEqual(['Hello, there.', 'Stop.', 'interrupted', 'Hello']);
  await session.messages.until(() => session.of('client_tool_result')[0]);
  expect(session.of('pong')).toEqual([{ type: 'pong', event_id: 1 }]);
  expect(heard.all).toHaveLength(1);
  expect(session.errors).toEqual([]);
  conversation.endSession();
  await session.closed.at(0);
});

it('the fake of OpenAI Realtime talks with OpenAI’s own library', async () => {
  const tls = await testCertificates();
  const server = await startFakeOpenAi({ tls });
  onTestFinished(() => server.stop());
  const client = new OpenAI({ apiKey: 'sk-x', baseURL: `https://localhost:${String(server.port)}/v1` });
  const realtime = new OpenAIRealtimeWS({ model: 'gpt-realtime-2.1', options: { ca: tls.ca } }, client);
  const events = new Arrivals<RealtimeServerEvent>();
  realtime.on('event', (event) => events.add(event));
  realtime.on('error', () => undefined);
  const arrived = <Type extends RealtimeServerEvent['type']>(type: Type): Promise<Extract<RealtimeServerEvent, { type: Type }>> =>
    events.until((all) => all.find((one): one is Extract<RealtimeServerEvent, { type: Type }> => one.type === type));
  await arrived('session.created');
  realtime.send({ type: 'session.update', session: { type: 'realtime', audio: { output: { format: { type: 'audio/pcmu' } } } } });
  expect((await arrived('session.updated')).session).toMatchObject({ type: 'realtime' });
  const session = await server.sessions.at(0);
  realtime.send({ type: 'response.create' });
  const { id } = await session.responses.at(0);
  session.utter(id, Buffer.alloc(160, 1), 'Hello.');
  expect(Buffer.from((await arrived('response.output_audio.delta')).delta, 'base64')).toEqual(Buffer.alloc(160, 1));
  await arrived('response.done');
  realtime.send({ type: 'session.update', session: { type: 'realtime', output_modalities: ['audio', 'text'] } });
  await arrived('error');
  realtime.close();
  await session.closed.at(0);
});

it('the fakes of Deepgram Flux and of text to speech talk with the providers’ own libraries', async () => {
  const flux = await startSessions((end, upgrade) => new FakeFluxSession(end, upgrade));
  onTestFinished(() => flux.stop());
  const speech = await FakeSpeech.start(({ text }) => Buffer.from(text));
  onTestFinished(() => speech.stop());
  const base = `ws://127.0.0.1:${String(flux.port)}`;
  const environment = { base: speech.url, production: base, agent: base, agentRest: base };
  const deepgram = new DeepgramClient({ apiKey: 'dg-key', environment });
  const socket = await deepgram.listen.v2.connect({
    Authorization: 'Token dg-key',
    model: 'flux-general-en',
    encoding: 'mulaw',
    sample_rate: 8_000,
    reconnectAttempts: 0,
  });
  const arrived = new Arrivals<unknown>();
  socket.on('message', (message) => arrived.add(message));
  socket.connect();
  await socket.waitForOpen();
  const listener = await flux.sessions.at(0);
  socket.sendMedia(Buffer.alloc(640));
  listener.turn('EndOfTurn', 'Good day');
  expect(await arrived.at(1)).toMatchObject({ type: 'TurnInfo', event: 'EndOfTurn', transcript: 'Good day', trigger: 'model' });
  socket.sendCloseStream({ type: 'CloseStream' });
  await listener.messages.at(0);
  socket.close();
  const said = await deepgram.speak.v1.audio.generate({
    text: 'One.',
    model: 'aura-2-thalia-en',
    encoding: 'mulaw',
    sample_rate: 8_000,
    container: 'none',
  });
  expect(Buffer.from(await said.arrayBuffer())).toEqual(Buffer.from('One.'));
  const elevenlabs = new SpeechClient({ apiKey: 'xi-key', baseUrl: speech.url });
  const stream = await elevenlabs.textToSpeech.stream('voice-1', { text: 'Two', modelId: 'eleven_flash_v2_5', outputFormat: 'ulaw_8000' });
  expect(Buffer.from(await new Response(stream).arrayBuffer())).toEqual(Buffer.from('Two'));
  const openai = new OpenAI({ apiKey: 'sk-key', baseURL: `${speech.url}/v1` });
  const audio = await openai.audio.speech.create({ model: 'gpt-4o-mini-tts', input: 'Three', voice: 'alloy', response_format: 'pcm' });
  expect(Buffer.from(await audio.arrayBuffer())).toEqual(Buffer.from('Three'));
  expect([listener.errors, speech.errors]).toEqual([[], []]);
});

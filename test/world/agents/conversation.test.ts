import { twilioTokenOf } from '../../support/twilio-token.js';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { mulaw } from 'alawmulaw';
import twilio, { validateRequest } from 'twilio';
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import type { WebSocket } from 'ws';
import { callIdOf } from '../../../src/gateway/model/twilio-ids.js';
import { AgentSite, type AgentCall } from '../../support/agent/agent-site.js';
import { VoiceWebhook } from '../../support/agent/voice-webhook.js';
import { Arrivals } from '../../support/arrivals.js';
import { voiceLikeNoise } from '../../support/media/audio.js';
import { FakeFluxSession } from '../../support/provider/fake-flux.js';
import { FakeServer, startSessions } from '../../support/provider/fake-server.js';
import { FakeSpeech } from '../../support/provider/fake-speech.js';
import { World } from '../world.js';

// The whole product with an application as it would be written for Twilio's ConversationRelay, and strict fakes of the providers.

const { VoiceResponse } = twilio.twiml;

interface Message {
  readonly type: string;
  readonly [name: string]: unknown;
}

/** One call at the application. */
class AppCall {
  readonly messages = new Arrivals<Message>();
  readonly closed = new Arrivals<number>();

  constructor(
    readonly socket: WebSocket,
    readonly signature: string,
  ) {
    socket.on('message', (data: Buffer) => this.messages.add(JSON.parse(data.toString()) as Message));
    socket.on('close', (code) => this.closed.add(code));
  }

  of(type: string): Message[] {
    return this.messages.all.filter((message) => message.type === type);
  }

  at(type: string, index = 0): Promise<Message> {
    return this.messages.until(() => this.of(type)[index]);
  }

  send(message: object): void {
    this.socket.send(JSON.stringify(message));
  }
}

let flux: FakeServer<FakeFluxSession>;
let speech: FakeSpeech;
let app: FakeServer<AppCall>;
let site: AgentSite<World>;
let webhook: VoiceWebhook;
let token: string;
let number: string;
let attached = 0;

/** Speech of a text: a level of its own, 20 ms a character. */
const levelOf = (text: string): number => 2_000 + 100 * (text.length % 50);
const muLawOf = (text: string): Buffer => Buffer.from(mulaw.encode(new Int16Array(160 * text.length).fill(levelOf(text))));
const pcmOf = (text: string): Buffer => Buffer.from(new Int16Array(480 * text.length).fill(levelOf(text)).buffer);

beforeAll(async () => {
  flux = await startSessions((end, upgrade) => new FakeFluxSession(end, upgrade));
  speech = await FakeSpeech.start(({ provider, text }) => (provider === 'openai' ? pcmOf(text) : muLawOf(text)));
  app = await FakeServer.start((socket, upgrade) => new AppCall(socket, String(upgrade.headers['x-twilio-signature'])));
  site = await AgentSite.startOn((all) => World.start(all), {
    TRUNKLINE_WEBHOOKS_ALLOW_PRIVATE: 'true',
    TRUNKLINE_DEEPGRAM_LISTEN_URL: `ws://127.0.0.1:${String(flux.port)}/v2/listen`,
    TRUNKLINE_DEEPGRAM_SPEECH_URL: `${speech.url}/v1/speak`,
    TRUNKLINE_ELEVENLABS_SPEECH_URL: `${speech.url}/v1/text-to-speech`,
    TRUNKLINE_OPENAI_SPEECH_URL: `${speech.url}/v1/audio/speech`,
  });
  const { org_id: orgId } = site.gateway.ready;
  token = await twilioTokenOf(site.gateway, orgId);
  const keyFile = join(site.gateway.directory, 'key');
  await writeFile(keyFile, 'provider-key');
  for (const provider of ['deepgram', 'elevenlabs']) {
    const set = await site.gateway.cli('org', 'provider-key', orgId, provider, '--key-file', keyFile);
    expect(set.code, set.stderr).toBe(0);
  }
});
afterAll(async () => {
  await site.stop();
  await Promise.all([flux.stop(), speech.stop(), app.stop()]);
});

beforeEach(async () => {
  webhook = await VoiceWebhook.start(token);
  attached += 1;
  number = `+1555010${String(5_000 + attached)}`;
  const options = { voice_url: `${webhook.url}/voice` };
  const answer = await site.gateway.api('POST', '/sip/attach', { phone_number: number, directions: ['inbound'], service: 'sip', options });
  expect(answer.status, JSON.stringify(answer.json)).toBe(200);
  return () => webhook.stop();
});

const appUrl = (): string => `ws://127.0.0.1:${String(app.port)}/relay?key=1`;

function page(path: string, write: (response: InstanceType<typeof VoiceResponse>) => unknown): void {
  const response = new VoiceResponse();
  write(response);
  webhook.pages.set(path, response.toString());
}

async function talking(): Promise<{ call: AgentCall; client: AppCall; listener: FakeFluxSession }> {
  const [clients, listeners] = [app.sessions.all.length, flux.sessions.all.length];
  const call = await site.invite({ number });
  await call.answered();
  call.ack();
  return { call, client: await app.sessions.at(clients), listener: await flux.sessions.at(listeners) };
}

it('an application exchanges text with a caller, is interrupted, and hands the call over', async () => {
  page('/voice', (response) => {
    const connect = response.connect({ action: '/handover' });
    const relay = connect.conversationRelay({ url: appUrl(), welcomeGreeting: 'Hello.', dtmfDetection: true, language: 'en-US' });
    relay.parameter({ name: 'who', value: 'Ada' });
  });
  page('/handover', (response) => response.hangup());
  const { call, client, listener } = await talking();
  expect(validateRequest(token, client.signature, appUrl(), {})).toBe(true);
  const setup = await client.at('setup');
  expect(setup).toMatchObject({ from: '+15550100999', to: number, customParameters: { who: 'Ada' } });
  await call.end.heard(muLawOf('Hello.'));
  await call.end.peer.speak(new Int16Array(4_000).fill(2_000));
  listener.turn('StartOfTurn', 'I');
  listener.turn('EndOfTurn', 'I want a room.');
  expect(await client.at('prompt')).toEqual({ type: 'prompt', voicePrompt: 'I want a room.', lang: 'en-US', last: true });
  // 20 s: a caller who is late interrupts it all the same.
  const long = 'We have several rooms with a view of the sea and of the garden and the town and the hills behind it '.repeat(10).trim();
  client.send({ type: 'text', token: long, last: true });
  await call.end.heard(muLawOf(long).subarray(0, 1_600));
  await call.end.peer.speakAhead(voiceLikeNoise(4_000, 3));
  const interrupt = await client.at('interrupt');
  expect(long.startsWith(String(interrupt['utteranceUntilInterrupt']))).toBe(true);
  expect(Number(interrupt['durationUntilInterruptMs'])).toBeGreaterThan(100);
  await call.end.peer.press(4);
  expect(await client.at('dtmf')).toEqual({ type: 'dtmf', digit: '4' });
  client.send({ type: 'text', token: 'Goodbye.', last: true });
  client.send({ type: 'end', handoffData: '{"reason":"desk"}' });
  await call.end.heard(muLawOf('Goodbye.'));
  expect(await webhook.at('/handover')).toMatchObject({
    isSigned: true,
    parameters: { HandoffData: '{"reason":"desk"}', SessionStatus: 'ended', SessionId: setup['sessionId'], CallStatus: 'in-progress' },
  });
  expect(await call.ended()).toContain('AGENT_HANGUP');
  await listener.closed.at(0);
  expect([listener.errors, speech.errors]).toEqual([[], []]);
  expect(listener.audio.length).toBeGreaterThan(4_000);
});

it('the gateway connects a lost application no second time: the action gets the failure, before the 200 and after it', async () => {
  page('/voice', (response) => {
    response.connect({ action: '/first' }).conversationRelay({ url: 'ws://127.0.0.1:9/none' });
  });
  page('/first', (response) => {
    response.connect({ action: '/second' }).conversationRelay({ url: appUrl() });
  });
  page('/second', (response) => response.hangup());
  const { call, client } = await talking();
  expect((await webhook.at('/first')).parameters).toMatchObject({
    SessionStatus: 'failed',
    ErrorCode: '64105',
    ErrorMessage: expect.stringContaining('ECONNREFUSED') as string,
  });
  await client.at('setup');
  const before = app.sessions.all.length;
  client.socket.terminate();
  expect((await webhook.at('/second')).parameters).toMatchObject({
    SessionStatus: 'failed',
    ErrorMessage: expect.stringContaining('closed with 1006') as string,
    CallStatus: 'in-progress',
  });
  expect(await call.ended()).toContain('AGENT_HANGUP');
  expect(app.sessions.all.length).toBe(before);
});

it('an update by Twiml, or by Url, replaces a conversation', async () => {
  page('/voice', (response) => response.connect({ action: '/never' }).conversationRelay({ url: appUrl() }));
  page('/next', (response) => response.hangup());
  const { call, client } = await talking();
  const { callSid } = await client.at('setup');
  const api = twilio(`AC${site.gateway.ready.org_id.replaceAll('-', '')}`, token);
  api.api.baseUrl = site.gateway.ready.http;
  const before = app.sessions.all.length;
  const again = new VoiceResponse();
  again.connect().conversationRelay({ url: appUrl(), welcomeGreeting: 'Once more.' });
  await api.calls(String(callSid)).update({ twiml: again.toString() });
  const second = await app.sessions.at(before);
  await call.end.heard(muLawOf('Once more.'));
  await client.closed.at(0);
  const trace = (await site.gateway.api('GET', `/v1/calls/${callIdOf(String(callSid)) ?? ''}/trace`)).json['trace'];
  expect(JSON.stringify(trace)).not.toContain('second leg');
  await api.calls(String(callSid)).update({ url: `${webhook.url}/next` });
  expect(await call.ended()).toContain('AGENT_HANGUP');
  await second.closed.at(0);
  expect(webhook.requests.all.map(({ path }) => path)).not.toContain('/never');
});

it('a conversation speaks by each provider, in the voice that is named', async () => {
  page('/voice', (response) => {
    const relay = response
      .connect()
      .conversationRelay({ url: appUrl(), ttsProvider: 'ElevenLabs', voice: 'abcdefghij0123456789-flash_v2_5-1.1_0.5' });
    relay.language({ code: 'de-DE', ttsProvider: 'Deepgram' });
    relay.language({ code: 'fr-FR', ttsProvider: 'OpenAI', voice: 'coral' });
  });
  const { call, client } = await talking();
  await client.at('setup');
  const before = speech.asked.all.length;
  client.send({ type: 'text', token: 'One of them.', last: true });
  await call.end.heard(muLawOf('One of them.'));
  client.send({ type: 'text', token: 'Nummer zwei ist das.', lang: 'de-DE', last: true });
  await call.end.heard(muLawOf('Nummer zwei ist das.'));
  const voiced = call.end.voiced;
  client.send({ type: 'text', token: 'Et voici le troisième.', lang: 'fr-FR', last: true });
  await call.end.peer.until(() => call.end.voiced >= voiced + 20);
  expect(speech.asked.all.slice(before).map(({ provider, voice }) => [provider, voice])).toEqual([
    ['elevenlabs', 'abcdefghij0123456789'],
    ['deepgram', expect.stringMatching(/^aura-2-[a-z]+-de$/)],
    ['openai', 'coral'],
  ]);
  expect(speech.asked.all[before]?.body).toMatchObject({
    model_id: 'eleven_flash_v2_5',
    voice_settings: { speed: 1.1, stability: 0.5 },
  });
  speech.refusal = 429;
  client.send({ type: 'text', token: 'Nobody hears this.', last: true });
  expect((await client.at('error'))['description']).toBe('text to speech: elevenlabs answered 429 (too many sessions or requests)');
  speech.refusal = null;
  await call.hangUp();
  await client.closed.at(0);
  expect(speech.errors).toEqual([]);
});

it('an agent may name its application by URL, without a webhook', async () => {
  const provider = { name: 'conversation-relay', url: `ws://127.0.0.1:${String(app.port)}/direct`, api_key: 'app-token' };
  const settings = { prompt: 'x', first_sentence: 'Guten Tag.', language: 'GER', metadata: { room: '12' }, provider };
  number = await site.numberOf(settings);
  const before = app.upgrades.length;
  const { call, client, listener } = await talking();
  expect(app.upgrades[before]?.headers.authorization).toBe('Bearer app-token');
  expect(await client.at('setup')).toMatchObject({ to: number, customParameters: { prompt: 'x', room: '12', from: '+15550100999' } });
  expect(listener.parameters).toMatchObject({ model: 'flux-general-multi', language_hint: 'de' });
  await call.end.heard(muLawOf('Guten Tag.'));
  expect(speech.asked.all.at(-1)?.voice).toMatch(/-de$/);
  client.send({ type: 'end' });
  expect(await call.ended()).toContain('AGENT_HANGUP');
  const refused = await site.gateway.api('POST', '/v1/agents', { name: 'x', provider: { name: 'conversation-relay' } });
  expect([refused.status >= 400, JSON.stringify(refused.json)]).toEqual([
    true,
    expect.stringContaining('must be the application') as string,
  ]);
});

it('Say speaks in the voice of the provider that it names', async () => {
  webhook.pages.set('/voice', '<Response><Say voice="Deepgram.aura-2-zeus-en">Welcome to the house.</Say></Response>');
  const before = speech.asked.all.length;
  const call = await site.invite({ number });
  await call.answered();
  call.ack();
  await call.end.heard(muLawOf('Welcome to the house.'));
  expect(speech.asked.all.slice(before)).toMatchObject([{ provider: 'deepgram', voice: 'aura-2-zeus-en' }]);
  expect(await call.ended()).toContain('AGENT_HANGUP');
});

import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { AgentSite } from '../../support/agent/agent-site.js';
import { PROVIDERS } from '../../support/provider/every-provider.js';
import { FakeDeepgramSession } from '../../support/provider/fake-deepgram.js';
import { FakeElevenLabsSession } from '../../support/provider/fake-elevenlabs.js';
import { FakeGeminiSession } from '../../support/provider/fake-gemini.js';
import { FakeOpenAiSession } from '../../support/provider/fake-openai.js';
import { startSessions, type FakeServer } from '../../support/provider/fake-server.js';
import { World } from '../world.js';

// Each failure of each provider that its fake can send: the record and the trace have its cause. (The console shows the record's.)

const SECRETS = ['words of the call', 'A message with secrets', 'own-key'];
type Session = FakeOpenAiSession | FakeDeepgramSession | FakeGeminiSession | FakeElevenLabsSession;
type ProviderName = (typeof PROVIDERS)[number];

/** What the next sessions do before they are accepted. */
let status: number | null = null;
let refuse: ((session: Session) => void) | null = null;
let deepgramRefusal: string | null = null;
const fakes = new Map<ProviderName, FakeServer<Session>>();
const numbers = new Map<ProviderName, string>();
let site: AgentSite<World>;

const OPEN: Readonly<Record<ProviderName, (...given: ConstructorParameters<typeof FakeOpenAiSession>) => Session>> = {
  'openai-realtime': (end, upgrade) => new FakeOpenAiSession(end, upgrade),
  deepgram: (end, upgrade) => new FakeDeepgramSession(end, upgrade, deepgramRefusal),
  'gemini-live': (end, upgrade) => new FakeGeminiSession(end, upgrade),
  elevenlabs: (end, upgrade) => new FakeElevenLabsSession(end, upgrade),
};

beforeAll(async () => {
  site = await AgentSite.startOn((all) => World.start(all), { TRUNKLINE_AGENTS_CONNECT_TIMEOUT_MS: '2000' });
  for (const name of PROVIDERS) {
    const open = (...given: Parameters<(typeof OPEN)[ProviderName]>): Session => {
      const session = OPEN[name](...given);
      refuse?.(session);
      return session;
    };
    const fake = await startSessions<Session>(open, { refusal: () => status });
    fakes.set(name, fake);
    const url = `ws://127.0.0.1:${String(fake.port)}/agent`;
    const provider = { name, model: 'm', url, api_key: 'own-key' };
    numbers.set(name, await site.numberOf({ prompt: 'x', wait_for_greeting: true, provider }));
  }
});
afterEach(() => {
  [status, refuse, deepgramRefusal] = [null, null, null];
});
afterAll(async () => {
  await site.stop();
  for (const fake of fakes.values()) await fake.stop();
});

/** The record of a call that ended, after its cause was found in its trace too. */
async function recordOf(sipCallId: string, cause: string): Promise<Readonly<Record<string, unknown>>> {
  const { call_id: id } = await site.gateway.record(sipCallId);
  const path = `/v1/calls/${String(id)}`;
  const read = async () => ((await site.gateway.api('GET', path)).json as { call: Readonly<Record<string, unknown>> }).call;
  await site.gateway.until(async () => (await read())['state'] === 'ended');
  const record = await read();
  const trace = JSON.stringify((await site.gateway.api('GET', `${path}/trace`)).json);
  expect(record['agent_error']).toContain(cause);
  expect(trace).toContain(JSON.stringify(cause).slice(1, -1));
  for (const secret of SECRETS) expect(`${trace}${JSON.stringify(record)}`).not.toContain(secret);
  return record;
}

async function refusedCall(provider: ProviderName, cause: string): Promise<void> {
  const call = await site.invite({ number: numbers.get(provider)! });
  expect((await call.signalling.final()).status).toBe(480);
  await call.close();
  expect(await recordOf(call.signalling.callId, cause)).toMatchObject({ state: 'ended', reason: 'AGENT_UNAVAILABLE' });
}

describe.each(PROVIDERS)('a call whose provider %s refuses the connection', (provider) => {
  it.each([
    [401, 'the key is wrong'],
    [403, 'the key does not allow this'],
    [404, 'there is no such address or model'],
    [429, 'too many sessions or requests'],
    [503, ''],
  ])('with %i gets 480, and its record and trace have the cause', async (code, meaning) => {
    status = code;
    await refusedCall(provider, `HTTP ${String(code)}${meaning === '' ? '' : ` (${meaning})`}`);
  });
});

const openAi = (code: string) => (session: Session) => {
  if (!(session instanceof FakeOpenAiSession)) return;
  session.acceptsSession = false;
  session.error(code);
};
const deepgram = (code: string) => () => void (deepgramRefusal = code);
const closed = (code: number, reason: string) => (session: Session) => session.close(code, reason);
const clientError = (session: Session) => session instanceof FakeElevenLabsSession && session.fail();

describe('a session in a call', () => {
  const withinTurn = (session: Session) => session instanceof FakeOpenAiSession && session.done(session.begin(), 'failed');
  const error = (code: string) => (session: Session) => {
    if (session instanceof FakeOpenAiSession) session.error(code);
    else if (session instanceof FakeDeepgramSession) session.fail(code);
  };

  it.each<[ProviderName, string, (session: Session) => unknown, string]>([
    ['openai-realtime', 'a rate limit within a turn', withinTurn, 'rate_limit_exceeded (a rate limit was reached)'],
    ['elevenlabs', 'an error within a turn', clientError, 'the provider sent an error'],
    ...PROVIDERS.flatMap((provider): [ProviderName, string, (session: Session) => unknown, string][] => [
      [provider, 'is gone', (session) => session.close(1_006), 'closed the connection with 1006; another session begins'],
      [provider, 'ends the session', closed(1_011, 'Internal error'), 'with 1011 (Internal error); another session begins'],
    ]),
    ['deepgram', 'a rate limit', error('RATE_LIMIT_EXCEEDED'), 'RATE_LIMIT_EXCEEDED; another session begins'],
  ])('of %s that meets %s leaves the call in progress', async (provider, _what, how, cause) => {
    const { call, session } = await talking(provider);
    const { sessions } = fakes.get(provider)!;
    const next = sessions.all.length;
    how(session);
    speak(cause.includes('another session') ? await sessions.at(next) : session);
    await call.end.hearsAgent();
    await call.hangUp();
    expect(await recordOf(call.signalling.callId, cause)).toMatchObject({ reason: 'CALLER_HANGUP' });
  });

  it.each<[ProviderName, string, (session: Session) => unknown, string]>([
    ['openai-realtime', 'revokes the key', error('invalid_api_key'), 'invalid_api_key (the key is wrong)'],
    ['openai-realtime', 'ends it for good', closed(4_000, 'policy'), '4000 (policy)'],
    ['deepgram', 'revokes the key', error('INVALID_AUTH'), 'INVALID_AUTH (the key is wrong)'],
    ['deepgram', 'has no credits left', error('INSUFFICIENT_CREDITS'), 'INSUFFICIENT_CREDITS (the account has no credits left)'],
    ['gemini-live', 'ends it for good', closed(1_008, 'API key expired.'), '1008 (API key expired.)'],
    ['elevenlabs', 'ends it for good', closed(1_008, 'quota exceeded'), '1008 (quota exceeded)'],
  ])('of %s ends the call with AGENT_LOST when the provider %s', async (provider, _what, how, cause) => {
    const { call, session } = await talking(provider);
    how(session);
    expect(await call.ended()).toContain('AGENT_LOST');
    expect(await recordOf(call.signalling.callId, cause)).toMatchObject({ reason: 'AGENT_LOST' });
  });
});

// Not beside the twenty refusals above: an organization has so many records of them a second.
describe('a provider that refuses the session after 101', () => {
  it.each<[ProviderName, string, (session: Session) => unknown, string]>([
    ['openai-realtime', 'the key', openAi('invalid_api_key'), 'invalid_api_key (the key is wrong)'],
    ['openai-realtime', 'the model', openAi('model_not_found'), 'model_not_found (there is no such model)'],
    ['openai-realtime', 'a field', openAi('unknown_parameter'), 'unknown_parameter (there is no such field)'],
    ['openai-realtime', 'a value', openAi('invalid_value'), 'invalid_value (a field has a wrong value)'],
    ['openai-realtime', 'the account', openAi('insufficient_quota'), 'insufficient_quota (the account has no quota left)'],
    ['openai-realtime', 'another session', openAi('rate_limit_exceeded'), 'rate_limit_exceeded (a rate limit was reached)'],
    ['deepgram', 'the key', deepgram('INVALID_AUTH'), 'INVALID_AUTH (the key is wrong)'],
    ['deepgram', 'the model or a field', deepgram('INVALID_SETTINGS'), 'INVALID_SETTINGS (a field has a wrong value)'],
    ['deepgram', 'the account', deepgram('INSUFFICIENT_CREDITS'), 'INSUFFICIENT_CREDITS (the account has no credits left)'],
    ['gemini-live', 'the key', closed(1_007, 'API key not valid.'), '1007 (API key not valid.)'],
    ['gemini-live', 'the model', closed(1_008, 'models/m is not found'), '1008 (models/m is not found)'],
    ['gemini-live', 'a field', closed(1_007, 'Invalid JSON payload received.'), '1007 (Invalid JSON payload received.)'],
    ['gemini-live', 'another session', closed(1_011, 'Resource has been exhausted.'), '1011 (Resource has been exhausted.)'],
    ['elevenlabs', 'the agent', closed(3_000, 'no such agent'), '3000 (no such agent)'],
    ['elevenlabs', 'a field', closed(1_008, 'Override of prompt is not allowed.'), '1008 (Override of prompt is not allowed.)'],
    ['elevenlabs', 'something unnamed', clientError, 'the provider sent an error'],
  ])('gets the call refused with 480: %s refuses %s', async (provider, _what, how, cause) => {
    if (provider === 'deepgram') how(undefined as never);
    else refuse = how;
    await refusedCall(provider, cause);
  });
});

async function talking(provider: ProviderName) {
  const fake = fakes.get(provider)!;
  const before = fake.sessions.all.length;
  const call = await site.invite({ number: numbers.get(provider)! });
  await call.answered();
  call.ack();
  const session = await fake.sessions.at(before);
  await call.end.peer.speak(new Int16Array(1_600).fill(2_000));
  await site.gateway.until(() => session.audio.length > 0);
  return { call, session };
}

function speak(session: Session): void {
  const audio = Buffer.alloc(19_200, 0x22);
  if (session instanceof FakeOpenAiSession) session.utter(session.begin(), audio, 'x');
  else session.say(audio);
}

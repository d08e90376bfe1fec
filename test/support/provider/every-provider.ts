import type { AgentConnectionLimits } from '../../../src/gateway/model/agent.js';
import { PROVIDERS, type ProviderName } from '../../../src/gateway/model/provider.js';
import type { ProviderSettings } from '../../../src/gateway/model/provider-settings.js';
import { FakeDeepgramSession } from './fake-deepgram.js';
import { FakeElevenLabsSession, type FakeElevenLabsOptions } from './fake-elevenlabs.js';
import { FakeGeminiSession } from './fake-gemini.js';
import { FakeOpenAiSession } from './fake-openai.js';
import { openProvider } from './provider-leg.js';

// Agents at all providers, played alike: for what must hold at each of them.

export { PROVIDERS };

/** The messages of a provider, in terms that all have. Each is sent on the latest connection. */
interface Play {
  /** The agent answers. */
  begin(): void;
  text(text: string): void;
  /** Audio in the format of the session. */
  say(audio: Uint8Array): void;
  /** Audio of the answer that was on its way when the caller interrupted it. */
  late(audio: Uint8Array): void;
  /** All of the answer was sent. ElevenLabs says so nowhere. */
  end(): void;
  /** The model calls a function. @returns the call's id */
  call(name: string, input: Readonly<Record<string, unknown>>): string;
  /** The caller interrupts, as the provider finds. */
  interrupt(): void;
  /** What the caller said. */
  wrote(text: string): void;
}

const WAITS: Partial<ProviderSettings> = { waitsForGreeting: true };

function atOpenAi(settings: Partial<ProviderSettings>, limits: Partial<AgentConnectionLimits>) {
  const leg = openProvider((end, request) => new FakeOpenAiSession(end, request), { ...WAITS, ...settings }, limits);
  let [response, item, said] = ['', '', ''];
  const play: Play = {
    begin: () => {
      response = leg.session.begin();
      [item, said] = ['', ''];
    },
    text: (text) => {
      item ||= leg.session.item(response);
      said += text;
      leg.session.say(response, item, new Uint8Array(), text);
    },
    say: (audio) => {
      item ||= leg.session.item(response);
      leg.session.say(response, item, audio, '');
    },
    late: (audio) => leg.session.say(response, item, audio, ''),
    end: () => {
      leg.session.finish(response, item, said);
      leg.session.done(response);
    },
    call: (name, input) => leg.session.call(response, name, input),
    interrupt: () => {
      leg.session.callerSpeaks();
      leg.session.cancel();
    },
    wrote: (text) => leg.session.callerStops(leg.session.callerSpeaks(leg.clock.nowMs()), text),
  };
  return { leg, play };
}

function atDeepgram(settings: Partial<ProviderSettings>, limits: Partial<AgentConnectionLimits>) {
  const common = { ...WAITS, provider: 'deepgram', url: 'wss://agent.deepgram.com/v1/agent/converse', voice: 'aura-2-thalia-en' } as const;
  const leg = openProvider((end, request) => new FakeDeepgramSession(end, request), { ...common, ...settings }, limits);
  const play: Play = {
    begin: () => undefined,
    text: (text) => leg.session.text(text),
    say: (audio) => leg.session.say(audio),
    late: (audio) => leg.session.say(audio),
    end: () => leg.session.done(),
    call: (name, input) => called((id) => leg.session.call(id, name, input)),
    interrupt: () => leg.session.callerSpeaks(),
    wrote: (text) => leg.session.callerSaid(text),
  };
  return { leg, play };
}

function atGemini(settings: Partial<ProviderSettings>, limits: Partial<AgentConnectionLimits>) {
  const common = { ...WAITS, provider: 'gemini-live', url: 'wss://generativelanguage.googleapis.com/ws/BidiGenerateContent' } as const;
  const leg = openProvider((end, request) => new FakeGeminiSession(end, request), { ...common, ...settings }, limits);
  const play: Play = {
    begin: () => undefined,
    text: (text) => leg.session.text(text),
    say: (audio) => leg.session.say(audio),
    late: (audio) => leg.session.say(audio),
    end: () => {
      leg.session.generated();
      leg.session.turnComplete();
    },
    call: (name, input) => called((id) => leg.session.call({ id, name, args: input })),
    interrupt: () => leg.session.interrupt(),
    wrote: (text) => {
      leg.session.hear(text);
      leg.session.turnComplete();
    },
  };
  return { leg, play };
}

function atElevenLabs(settings: Partial<ProviderSettings>, limits: Partial<AgentConnectionLimits>, options: FakeElevenLabsOptions) {
  const common = { ...WAITS, provider: 'elevenlabs', url: 'wss://api.elevenlabs.io/v1/convai/conversation' } as const;
  const leg = openProvider((end, request) => new FakeElevenLabsSession(end, request, options), { ...common, ...settings }, limits);
  const play: Play = {
    begin: () => undefined,
    text: (text) => leg.session.text(text),
    say: (audio) => void leg.session.say(audio),
    late: (audio) => leg.session.late(audio),
    end: () => undefined,
    call: (name, input) => called((id) => leg.session.call(id, name, input)),
    interrupt: () => leg.session.interrupt(),
    wrote: (text) => leg.session.callerSaid(text),
  };
  return { leg, play };
}

let calls = 0;
function called(call: (id: string) => void): string {
  calls += 1;
  const id = `call-${String(calls)}`;
  call(id);
  return id;
}

/** An agent at a provider, who waits for the caller unless the settings say otherwise. @param formats of ElevenLabs' agent */
export function openAt(
  provider: ProviderName,
  settings: Partial<ProviderSettings> = {},
  limits: Partial<AgentConnectionLimits> = {},
  formats: FakeElevenLabsOptions = {},
) {
  switch (provider) {
    case 'openai-realtime':
      return atOpenAi(settings, limits);
    case 'deepgram':
      return atDeepgram(settings, limits);
    case 'gemini-live':
      return atGemini(settings, limits);
    case 'elevenlabs':
      return atElevenLabs(settings, limits, formats);
  }
}

/** As `openAt`, in a call that has begun. */
export async function talkAt(...given: Parameters<typeof openAt>): Promise<ReturnType<typeof openAt>> {
  const opened = openAt(...given);
  await opened.leg.talk();
  return opened;
}

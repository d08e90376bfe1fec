import { DEFAULT_CONVERSATION, type CallerInput, type ConversationRules } from '../model/conversation.js';
import { speechProviderOf, voiceOf, type Voice } from '../model/speech-service.js';
import type { ElementReader } from './element-reader.js';

// The attributes of <ConversationRelay>: https://www.twilio.com/docs/voice/twiml/connect/conversationrelay

const INPUTS: Readonly<Record<string, CallerInput>> = {
  none: 'none',
  false: 'none',
  dtmf: 'dtmf',
  speech: 'speech',
  any: 'any',
  true: 'any',
};
const SENSITIVITIES = { low: 'low', medium: 'medium', high: 'high' } as const;
const MAX_HINTS = 100;

export const CONVERSATION_ATTRIBUTES: readonly string[] = [
  'url',
  'welcomeGreeting',
  'welcomeGreetingInterruptible',
  'interruptible',
  'interruptSensitivity',
  'preemptible',
  'dtmfDetection',
  'reportInputDuringAgentSpeech',
  'partialPrompts',
  'hints',
  'language',
  'ttsLanguage',
  'transcriptionLanguage',
  'ttsProvider',
  'voice',
  'transcriptionProvider',
];

/** Warns of what has no effect. @param languages each `<Language>` */
export function conversationRules(read: ElementReader, languages: readonly ElementReader[]): ConversationRules {
  const byDefault = DEFAULT_CONVERSATION;
  const greeting = read.text('welcomeGreeting');
  const language = read.text('language');
  const interruptible = read.oneOf('interruptible', INPUTS, byDefault.interruptible);
  warnOfRecognizer(read);
  return {
    greeting:
      greeting === null
        ? null
        : { text: greeting, interruptible: read.oneOf('welcomeGreetingInterruptible', INPUTS, byDefault.interruptible) },
    interruptible,
    sensitivity: read.oneOf('interruptSensitivity', SENSITIVITIES, byDefault.sensitivity),
    preemptible: read.flag('preemptible', false),
    reportsDigits: read.flag('dtmfDetection', false),
    reportsWhileSpeaking: read.oneOf('reportInputDuringAgentSpeech', INPUTS, byDefault.reportsWhileSpeaking),
    partialPrompts: read.flag('partialPrompts', false),
    hints: (read.text('hints') ?? '')
      .split(',')
      .map((hint) => hint.trim())
      .filter((hint) => hint !== '')
      .slice(0, MAX_HINTS),
    ttsLanguage: read.text('ttsLanguage') ?? language ?? byDefault.ttsLanguage,
    transcriptionLanguage: read.text('transcriptionLanguage') ?? language ?? byDefault.transcriptionLanguage,
    voice: voiceIn(read),
    languages: Object.fromEntries(languages.flatMap((one) => languageIn(one))),
  };
}

function languageIn(read: ElementReader): [string, Voice][] {
  read.only('code', 'ttsProvider', 'voice', 'transcriptionProvider');
  warnOfRecognizer(read);
  const [code, voice] = [read.text('code'), voiceIn(read)];
  if (code === null) read.warn('<Language> has no code: it is skipped.');
  return code === null || voice === null ? [] : [[code, voice]];
}

/** `null`: the default. */
function voiceIn(read: ElementReader): Voice | null {
  const [name, voice] = [read.text('ttsProvider'), read.text('voice')];
  const provider = name === null ? undefined : speechProviderOf(name);
  if (name !== null && provider === undefined) {
    read.warn(`The ttsProvider ${name} is not here: the default voice speaks.`);
    return null;
  }
  if (voice === null) return provider === undefined ? null : { provider, voice: null };
  const found = voiceOf(voice, provider);
  if (found === null) read.warn(`The voice ${voice} is of no provider that is here: the default voice speaks.`);
  return found;
}

function warnOfRecognizer(read: ElementReader): void {
  const name = read.text('transcriptionProvider');
  if (name !== null && name.toLowerCase() !== 'deepgram') read.warn(`The transcriptionProvider ${name} is not here: Deepgram recognizes.`);
}

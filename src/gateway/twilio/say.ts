import { espeakVoiceOf, isLanguageCode, isSupportedVoice } from '../model/espeak-voices.js';
import { voiceOf } from '../model/speech-service.js';
import type { ElementReader } from './element-reader.js';
import type { Element } from './xml.js';

// The text of <Say>, which may have SSML, and its voice: https://www.twilio.com/docs/voice/twiml/say

const TWILIO_VOICES: ReadonlySet<string> = new Set(['man', 'woman', 'alice']);
const MAX_NAMED_TAGS = 10;
const GAP = ' ';

/** The text without its SSML tags. A tag ends a word, as nothing says otherwise. */
export function spokenText(element: Element): string {
  const pieces: string[] = [];
  speak(element, pieces);
  return pieces.join('').replace(/\s+/gu, ' ').trim();
}

function speak({ content }: Element, pieces: string[]): void {
  for (const part of content) {
    if (typeof part === 'string') {
      while (/^[,.;:!?)]/u.test(part) && pieces.at(-1) === GAP) pieces.pop();
      pieces.push(part);
      continue;
    }
    const { alias } = part.attributes;
    pieces.push(GAP);
    if (alias === undefined) speak(part, pieces);
    else pieces.push(alias);
    pieces.push(GAP);
  }
}

/** Warns of SSML, a voice and a language that have no effect. */
export function warnOfSpeech(element: Element, read: ElementReader): void {
  const tags = [...new Set(tagsIn(element))].filter((name) => name !== 'sub');
  const shown = tags.slice(0, MAX_NAMED_TAGS).map((name) => `<${name}>`);
  if (tags.length > 0) read.warn(`${shown.join(', ')} in <Say> has no effect: its text is spoken.`);
  const [voice, language] = [read.text('voice'), read.text('language')];
  const isKnown = voice === null || TWILIO_VOICES.has(voice.toLowerCase()) || isSupportedVoice(voice) || voiceOf(voice) !== null;
  if (!isKnown) read.warn(`The voice ${voice} of <Say> is not here: the voice of its language speaks.`);
  if (language !== null && !isLanguageCode(language) && espeakVoiceOf(language) === undefined)
    read.warn(`The language ${language} of <Say> has no voice here: an English one speaks.`);
}

function tagsIn({ children }: Element): string[] {
  return children.flatMap((child) => [child.name, ...tagsIn(child)]);
}

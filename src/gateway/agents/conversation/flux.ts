import type { ListenService } from '../../model/speech-service.js';
import { isoOf } from '../../model/speech-service.js';
import { causeOf, fieldsOfMessage, shownReason, textOf } from '../provider/json-message.js';

// Deepgram's Flux (its reference: "Listen", version 2): speech to text that says when a turn ends. Audio is binary, in pieces of 80 ms.

export type FluxEvent =
  | { readonly type: 'connected' }
  /** The caller says something; `isNew`: for the first time in this turn. */
  | { readonly type: 'update'; readonly text: string; readonly language: string | null; readonly isNew: boolean }
  | { readonly type: 'end-of-turn'; readonly text: string; readonly language: string | null }
  /** The session is over. */
  | { readonly type: 'error'; readonly message: string };

/** @param language a language tag, or `multi` */
export function fluxTarget({ url: text, apiKey }: ListenService, language: string, hints: readonly string[]) {
  const url = new URL(text);
  const iso = isoOf(language);
  const isEnglish = iso === 'en';
  url.searchParams.set('model', isEnglish ? 'flux-general-en' : 'flux-general-multi');
  if (!isEnglish && iso !== 'multi') url.searchParams.set('language_hint', iso);
  url.searchParams.set('encoding', 'mulaw');
  url.searchParams.set('sample_rate', '8000');
  // Nothing of the call is used to train the provider's models.
  url.searchParams.set('mip_opt_out', 'true');
  for (const hint of hints) url.searchParams.append('keyterm', hint);
  return { url: url.href, headers: { Authorization: `Token ${apiKey ?? ''}` } };
}

/** `null`: a message of no interest. */
export function readFlux(message: string): FluxEvent | null {
  const fields = fieldsOfMessage(message);
  if (fields === null) return null;
  switch (fields['type']) {
    case 'Connected':
      return { type: 'connected' };
    case 'TurnInfo':
      return turnOf(fields);
    case 'Error': {
      const code = textOf(fields['code']);
      return { type: 'error', message: shownReason(`the provider sent an error: ${code}${causeOf(code)}`) };
    }
    default:
      return null;
  }
}

function turnOf(fields: Readonly<Record<string, unknown>>): FluxEvent | null {
  const { event, languages, transcript } = fields;
  const [first] = Array.isArray(languages) ? (languages as unknown[]) : [];
  const about = { text: textOf(transcript).trim(), language: typeof first === 'string' ? first : null };
  switch (event) {
    case 'StartOfTurn':
      return { type: 'update', ...about, isNew: true };
    case 'Update':
    case 'TurnResumed':
      return { type: 'update', ...about, isNew: false };
    case 'EndOfTurn':
      return { type: 'end-of-turn', ...about };
    default:
      return null;
  }
}

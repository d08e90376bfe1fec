import { sipHeaders, type SipHeaders } from '../model/passed-headers.js';
import { err, ok, type Result } from '../../lib/result.js';
import type { StreamTrack } from '../model/agent.js';
import { E164_FORM, parseE164, type E164 } from '../model/e164.js';
import type { ConversationRules } from '../model/conversation.js';
import { CONVERSATION_ATTRIBUTES, conversationRules } from './conversation-noun.js';
import { ElementReader, type Action } from './element-reader.js';
import { spokenText, warnOfSpeech } from './say.js';
import { readXml, type Element } from './xml.js';

// TwiML, Twilio's XML for a call (https://www.twilio.com/docs/voice/twiml). docs/agents/twilio.md lists what has an effect here.

/** Something that the caller gets to hear; `loop` 0: until it is interrupted. */
export type Clip =
  | { readonly kind: 'say'; readonly text: string; readonly language: string | null; readonly voice: string | null; readonly loop: number }
  | { readonly kind: 'play'; readonly url: string; readonly loop: number }
  /** DTMF to the caller; `w`: half a second of silence. */
  | { readonly kind: 'digits'; readonly digits: string }
  | { readonly kind: 'pause'; readonly ms: number };

export interface GatherRules {
  /** `null`: any number. */
  readonly numDigits: number | null;
  /** '': none. */
  readonly finishOnKey: string;
  readonly timeoutMs: number;
  /** `null`: the document itself is requested again. */
  readonly action: Action | null;
  /** The action is requested without a digit too. */
  readonly actionOnEmptyResult: boolean;
}

/** `<Stream>`: a WebSocket that gets the call's audio. */
export interface StreamNoun {
  /** `wss:` or `ws:`. */
  readonly url: string;
  /** `<Stop>` ends it by this name; `null`: it has none. */
  readonly name: string | null;
  readonly tracks: readonly StreamTrack[];
  readonly parameters: Readonly<Record<string, string>>;
  /** Gets a request when the stream starts, stops, or fails; `null`: nobody does. */
  readonly statusCallback: Action | null;
}

/** `<ConversationRelay>`: an application that exchanges text with the call. */
export interface ConversationNoun {
  /** `wss:` or `ws:`. */
  readonly url: string;
  readonly parameters: Readonly<Record<string, string>>;
  readonly rules: ConversationRules;
}

/** How `<Dial>` calls, where it is no REFER. */
export interface DialRules {
  readonly ringTimeoutMs: number;
  /** `null`: as long as the call may last. */
  readonly timeLimitMs: number | null;
  /** `null`: the number of the call. */
  readonly callerId: E164 | null;
  /** Behind the URI of `<Sip>`. */
  readonly sipHeaders?: SipHeaders;
}

export type Verb =
  | { readonly verb: 'speak'; readonly clips: readonly Clip[] }
  | { readonly verb: 'gather'; readonly clips: readonly Clip[]; readonly rules: GatherRules }
  | {
      readonly verb: 'stream';
      readonly stream: StreamNoun;
      /** `null`: the next verb follows. */
      readonly action: Action | null;
    }
  | {
      readonly verb: 'conversation';
      readonly conversation: ConversationNoun;
      /** `null`: the next verb follows. */
      readonly action: Action | null;
    }
  /** A one-way copy, beside the verbs that follow. */
  | { readonly verb: 'start-stream'; readonly stream: StreamNoun }
  | { readonly verb: 'stop-stream'; readonly name: string }
  | { readonly verb: 'dial'; readonly to: string; readonly rules: DialRules; readonly action: Action | null }
  | { readonly verb: 'redirect'; readonly to: Action }
  | { readonly verb: 'reject'; readonly reason: 'rejected' | 'busy' }
  | { readonly verb: 'hangup' };

export interface TwimlDocument {
  readonly verbs: readonly Verb[];
  /** What the document has and a call ignores; a sentence each. */
  readonly warnings: readonly string[];
}

const MAX_VERBS = 200;
const MAX_LOOPS = 1_000;
const MAX_PAUSE_S = 3_600;
const DEFAULT_GATHER_S = 5;
const MAX_GATHER_S = 600;
const DEFAULT_FINISH_KEY = '#';
const REJECTIONS = { rejected: 'rejected', busy: 'busy' } as const;
const KEYS = /^[0-9*#A-D]$/i;
const PLAYED_DIGITS = /^[0-9*#A-Dw]{1,64}$/i;

/** Verbs of Twilio's whose absence would mislead their author, or the caller. */
const REFUSED: ReadonlySet<string> = new Set([
  'Record',
  'Enqueue',
  'Pay',
  'Leave',
  'Refer',
  'Prompt',
  'Sms',
  'Message',
  'VirtualAgent',
  'Queue',
]);

class DocumentError extends Error {}

/** Reads a document. The error is a sentence for the person who wrote it. */
export function parseTwiml(text: string): Result<TwimlDocument, string> {
  const root = readXml(text);
  if (!root.ok) return root;
  const { name, children: elements } = root.value;
  if (name !== 'Response') return err(`The document must be a <Response>, not a <${name}>.`);
  if (elements.length > MAX_VERBS) return err(`The document has more than ${String(MAX_VERBS)} verbs.`);
  const warnings: string[] = [];
  const verbs: Verb[] = [];
  try {
    for (const element of elements) {
      const verb = verbOf(element, warnings);
      const last = verbs.at(-1);
      // One agent plays what follows without a gap.
      if (verb?.verb === 'speak' && last?.verb === 'speak')
        verbs[verbs.length - 1] = { verb: 'speak', clips: [...last.clips, ...verb.clips] };
      else if (verb !== null) verbs.push(verb);
    }
  } catch (error) {
    if (error instanceof DocumentError) return err(error.message);
    throw error;
  }
  return ok({ verbs, warnings });
}

/** `null`: it is ignored. */
function verbOf(element: Element, warnings: string[]): Verb | null {
  const read = new ElementReader(element);
  const verb = byName(element, read);
  warnings.push(...read.warnings);
  return verb;
}

function byName(element: Element, read: ElementReader): Verb | null {
  const { name, text } = element;
  switch (name) {
    case 'Say':
    case 'Play':
    case 'Pause':
      return { verb: 'speak', clips: clipsOf(element, read) };
    case 'Gather':
      return gatherOf(element, read);
    case 'Connect':
      return connectOf(element, read);
    case 'Start':
      return startOf(element, read);
    case 'Stop':
      return stopOf(element, read);
    case 'Dial':
      return dialOf(element, read);
    case 'Redirect':
      return { verb: 'redirect', to: { url: required(text, '<Redirect> has no URL.'), method: read.only('method').method() } };
    case 'Reject':
      return { verb: 'reject', reason: read.only('reason').oneOf('reason', REJECTIONS, 'rejected') };
    case 'Hangup':
      read.only();
      return { verb: 'hangup' };
    default:
      if (REFUSED.has(name)) throw new DocumentError(`<${name}> is not supported.`);
      read.warn(`<${name}> is no verb that is supported: it is skipped.`);
      return null;
  }
}

function clipsOf(element: Element, read: ElementReader): Clip[] {
  const { name, text } = element;
  switch (name) {
    case 'Say': {
      read.only('voice', 'language', 'loop');
      const loop = read.int('loop', 1, 0, MAX_LOOPS);
      warnOfSpeech(element, read);
      const spoken = spokenText(element);
      return spoken === '' ? [] : [{ kind: 'say', text: spoken, language: read.text('language'), voice: read.text('voice'), loop }];
    }
    case 'Play': {
      const digits = read.only('loop', 'digits').text('digits');
      if (digits === null) return [{ kind: 'play', url: required(text, '<Play> has no URL.'), loop: read.int('loop', 1, 0, MAX_LOOPS) }];
      if (PLAYED_DIGITS.test(digits)) return [{ kind: 'digits', digits }];
      read.warn('The digits of <Play> are not 1 to 64 of 0-9, *, #, A-D and w: it is skipped.');
      return [];
    }
    case 'Pause':
      return [{ kind: 'pause', ms: 1_000 * read.only('length').int('length', 1, 1, MAX_PAUSE_S) }];
    default:
      read.warn(`<${name}> has no effect here.`);
      return [];
  }
}

function gatherOf(element: Element, read: ElementReader): Verb {
  read.only('input', 'action', 'method', 'timeout', 'finishOnKey', 'numDigits', 'actionOnEmptyResult');
  takesKeys(read);
  const finishOnKey = element.attributes['finishOnKey']?.trim() ?? DEFAULT_FINISH_KEY;
  const isKey = finishOnKey === '' || KEYS.test(finishOnKey);
  if (!isKey) read.warn('The attribute finishOnKey of <Gather> is not one key, or empty: # holds.');
  const numDigits = read.int('numDigits', 0, 1, 64);
  const clips = element.children.flatMap((child) => {
    const inner = new ElementReader(child);
    const found = clipsOf(child, inner);
    for (const warning of inner.warnings) read.warn(warning);
    return found;
  });
  return {
    verb: 'gather',
    clips,
    rules: {
      numDigits: numDigits === 0 ? null : numDigits,
      finishOnKey: isKey ? finishOnKey.toUpperCase() : DEFAULT_FINISH_KEY,
      timeoutMs: 1_000 * (read.text('timeout') === 'auto' ? DEFAULT_GATHER_S : read.int('timeout', DEFAULT_GATHER_S, 0, MAX_GATHER_S)),
      action: read.action(),
      actionOnEmptyResult: read.flag('actionOnEmptyResult', false),
    },
  };
}

/** Without speech recognition the caller would talk to nobody. */
function takesKeys(read: ElementReader): void {
  const inputs = (read.text('input') ?? 'dtmf').toLowerCase().split(/[\s,]+/);
  if (inputs.includes('dtmf')) {
    if (inputs.length > 1) read.warn('<Gather> takes keys only.');
  } else if (inputs.includes('speech')) throw new DocumentError('<Gather> takes keys only: input must contain dtmf.');
  else read.warn('The attribute input of <Gather> is none of dtmf, speech: dtmf holds.');
}

function connectOf(element: Element, read: ElementReader): Verb {
  read.only('action', 'method');
  const noun = nounOf(element, 'Stream', 'ConversationRelay');
  if (noun.name === 'ConversationRelay') return { verb: 'conversation', conversation: conversationOf(noun, read), action: read.action() };
  return { verb: 'stream', stream: streamOf(noun, read, CONNECT_TRACKS), action: read.action() };
}

function startOf(element: Element, read: ElementReader): Verb {
  read.only();
  return { verb: 'start-stream', stream: streamOf(nounOf(element, 'Stream'), read, START_TRACKS) };
}

function stopOf(element: Element, read: ElementReader): Verb {
  read.only();
  const name = new ElementReader(nounOf(element, 'Stream')).text('name');
  return { verb: 'stop-stream', name: required(name ?? '', '<Stop><Stream> has no name.') };
}

/** The one child of a verb. */
function nounOf({ name, children }: Element, ...expected: string[]): Element {
  const [noun, ...more] = children;
  if (noun === undefined || more.length > 0) throw new DocumentError(`<${name}> needs exactly one noun.`);
  if (!expected.includes(noun.name)) throw new DocumentError(`<${name}> has a <${noun.name}>, which is not supported.`);
  return noun;
}

type Tracks = Readonly<Record<string, readonly StreamTrack[]>>;
/** A bot hears the caller only. */
const CONNECT_TRACKS: Tracks = { inbound_track: ['inbound'] };
const START_TRACKS: Tracks = { ...CONNECT_TRACKS, outbound_track: ['outbound'], both_tracks: ['inbound', 'outbound'] };

function streamOf(noun: Element, read: ElementReader, tracks: Tracks): StreamNoun {
  const inner = new ElementReader(noun).only('url', 'name', 'track', 'statusCallback', 'statusCallbackMethod');
  const stream: StreamNoun = {
    url: webSocketUrl(inner, 'Stream'),
    name: inner.text('name'),
    tracks: inner.oneOf('track', tracks, ['inbound']),
    parameters: parametersOf(noun),
    statusCallback: inner.action('statusCallback', 'statusCallbackMethod'),
  };
  for (const warning of inner.warnings) read.warn(warning);
  return stream;
}

function conversationOf(noun: Element, read: ElementReader): ConversationNoun {
  const inner = new ElementReader(noun).only(...CONVERSATION_ATTRIBUTES);
  const url = webSocketUrl(inner, 'ConversationRelay');
  const languages = noun.children.filter(({ name }) => name === 'Language').map((child) => new ElementReader(child));
  const rules = conversationRules(inner, languages);
  for (const { warnings } of [inner, ...languages]) for (const warning of warnings) read.warn(warning);
  return { url, parameters: parametersOf(noun), rules };
}

function webSocketUrl(read: ElementReader, noun: string): string {
  const url = required(read.text('url') ?? '', `<${noun}> has no url.`);
  if (!/^wss?:\/\//i.test(url)) throw new DocumentError(`The url of <${noun}> must begin with wss://.`);
  return url;
}

function parametersOf({ children }: Element): Readonly<Record<string, string>> {
  return Object.fromEntries(
    children.filter(({ name }) => name === 'Parameter').map(({ attributes }) => [attributes['name'] ?? '', attributes['value'] ?? '']),
  );
}

/** As at Twilio. */
const DEFAULT_RING_S = 30;
const MAX_RING_S = 600;
const MAX_DIAL_S = 86_400;

/** A transfer: by REFER, or by a call of ours that the caller is joined with. */
function dialOf(element: Element, read: ElementReader): Verb | null {
  read.only('action', 'method', 'timeout', 'timeLimit', 'callerId');
  const nouns = element.children;
  const [noun] = nouns;
  if (nouns.length > 1) throw new DocumentError('<Dial> can have one number only: nothing rings at several at once.');
  if (noun !== undefined && !['Number', 'Sip'].includes(noun.name))
    throw new DocumentError(`<Dial> has a <${noun.name}>, which is not supported.`);
  const callerId = read.text('callerId');
  const from = callerId === null ? null : (parseE164(callerId) ?? null);
  if (callerId !== null && from === null) read.warn(`The attribute callerId of <Dial> is not ${E164_FORM}: the number of the call holds.`);
  const limitS = read.int('timeLimit', 0, 1, MAX_DIAL_S);
  const rules = {
    ringTimeoutMs: 1_000 * read.int('timeout', DEFAULT_RING_S, 5, MAX_RING_S),
    timeLimitMs: limitS === 0 ? null : 1_000 * limitS,
    callerId: from,
  };
  const [to, headers] = sipUriOf(element.text.trim(), noun?.name === 'Sip', read);
  if (to === '') read.warn('<Dial> has no number: it is skipped.');
  return to === '' ? null : { verb: 'dial', to, rules: { ...rules, sipHeaders: headers }, action: read.action() };
}

/** The URI of `<Sip>`, and the headers behind it (https://www.twilio.com/docs/voice/twiml/sip#custom-headers). */
function sipUriOf(text: string, isSip: boolean, read: ElementReader): readonly [uri: string, headers: SipHeaders] {
  const at = text.indexOf('?');
  if (!isSip || at < 0) return [text, {}];
  const given = sipHeaders.safeParse(Object.fromEntries(new URLSearchParams(text.slice(at + 1).replaceAll('+', '%2B'))));
  if (!given.success) read.warn('The headers of <Sip> are not at most 10 of 1,024 printable bytes each: they are not sent.');
  return [text.slice(0, at), given.success ? given.data : {}];
}

function required(text: string, problem: string): string {
  if (text.trim() === '') throw new DocumentError(problem);
  return text.trim();
}

import { err, ok, type Result } from '../../lib/result.js';
import { withCookies, type Cookies } from './cookies.js';
import type { Action } from './element-reader.js';
import type { CallStatus } from './call-status.js';
import { parseTwiml, type Clip, type DialRules, type ConversationNoun, type GatherRules, type StreamNoun, type Verb } from './twiml.js';

// One call's way through its TwiML documents: pure. VoiceCall carries out what is next.

/** Plain data: it is part of the call's snapshot. */
export interface VoiceScript {
  /** The document's URL, which relative URLs refer to. */
  readonly base: string;
  readonly verbs: readonly Verb[];
  /** The verb that is next. */
  readonly at: number;
  /** Documents since something was last played or streamed: a circle of redirects ends. */
  readonly documents: number;
  /** What `<Start>` began and nothing stopped yet. */
  readonly forks: readonly RunningFork[];
  /** Forks that were started so far. */
  readonly started: number;
  /** The servers of its documents set them, and get them back. */
  readonly cookies: Cookies;
}

/** A stream beside the verbs. `key`: unique in the call. */
export interface RunningFork {
  readonly key: number;
  readonly stream: StreamNoun;
}

/** A document to be requested. */
export interface DocumentRequest {
  readonly url: string;
  readonly method: Action['method'];
  /** Beside those of the call. */
  readonly parameters: Readonly<Record<string, string>>;
}

export type VoiceStep =
  | { readonly do: 'speak'; readonly clips: readonly Clip[]; readonly gather: GatherRules | null }
  | { readonly do: 'stream'; readonly stream: StreamNoun }
  | { readonly do: 'conversation'; readonly conversation: ConversationNoun }
  /** These three take no time: the next verb follows at once. */
  | { readonly do: 'start-fork'; readonly fork: RunningFork }
  | { readonly do: 'stop-fork'; readonly key: number }
  | { readonly do: 'note'; readonly problem: string }
  | { readonly do: 'dial'; readonly to: string; readonly rules: DialRules }
  | { readonly do: 'request'; readonly request: DocumentRequest }
  | { readonly do: 'reject'; readonly reason: 'rejected' | 'busy' }
  | { readonly do: 'hang-up' }
  /** A sentence for a person. */
  | { readonly do: 'fail'; readonly problem: string };

/** How the verb in progress ended. */
export type VerbOutcome =
  | { readonly type: 'gathered'; readonly digits: string; readonly finishedOnKey: string }
  | { readonly type: 'ended' }
  /** `leg`: the call that was placed; `null`: none was. */
  | {
      readonly type: 'dial-ended';
      readonly status: CallStatus;
      readonly leg: { readonly callSid: string; readonly seconds: number } | null;
    }
  | {
      readonly type: 'conversation-ended';
      readonly sessionId: string;
      readonly seconds: number;
      readonly handoffData: string | null;
      /** For a person; `null`: nothing failed. */
      readonly error: string | null;
    };

export interface VoiceMove {
  readonly script: VoiceScript;
  readonly step: VoiceStep;
}

const MAX_DOCUMENTS = 20;
/** As at Twilio: each track of a stream counts. */
const MAX_FORKED_TRACKS = 4;

/** The call's script continues with this document. @param setCookies that came with it */
export function enterDocument(
  before: VoiceScript | null,
  base: string,
  text: string,
  setCookies: readonly string[] = [],
): Result<{ readonly script: VoiceScript; readonly warnings: readonly string[] }, string> {
  const documents = (before?.documents ?? 0) + 1;
  if (documents > MAX_DOCUMENTS) return err(`The call was redirected ${String(MAX_DOCUMENTS)} times without a word.`);
  const document = parseTwiml(text);
  if (!document.ok) return document;
  const { verbs, warnings } = document.value;
  const { forks = [], started = 0, cookies: known = {} } = before ?? {};
  const cookies = setCookies.length === 0 ? known : withCookies(known, base, setCookies);
  // A status callback belongs to the document that named it.
  return ok({ script: { base, verbs: verbs.map((verb) => withBase(verb, base)), at: 0, documents, forks, started, cookies }, warnings });
}

/** The document's verbs come after this DTMF. */
export function afterDigits(script: VoiceScript, digits: string): VoiceScript {
  return { ...script, verbs: [{ verb: 'speak', clips: [{ kind: 'digits', digits }] }, ...script.verbs] };
}

/** The next verb. @param isAnswered whether the 200 is out */
export function nextStep(script: VoiceScript, isAnswered: boolean): VoiceMove {
  const verb = script.verbs[script.at];
  const script_ = { ...script, at: script.at + 1 };
  if (verb === undefined) return answeredFirst(script, isAnswered, { do: 'hang-up' });
  switch (verb.verb) {
    case 'speak':
      return { script: { ...script_, documents: 0 }, step: { do: 'speak', clips: verb.clips, gather: null } };
    case 'gather':
      return { script: { ...script_, documents: 0 }, step: { do: 'speak', clips: verb.clips, gather: verb.rules } };
    case 'stream':
      return { script: { ...script_, documents: 0 }, step: { do: 'stream', stream: verb.stream } };
    case 'conversation':
      return { script: { ...script_, documents: 0 }, step: { do: 'conversation', conversation: verb.conversation } };
    case 'start-stream':
      return startFork(script_, verb.stream);
    case 'stop-stream':
      return stopFork(script_, verb.name);
    case 'redirect':
      return { script: script_, step: requestOf(script_, verb.to, {}) };
    case 'reject':
      return { script: script_, step: isAnswered ? { do: 'hang-up' } : { do: 'reject', reason: verb.reason } };
    case 'dial':
      return answeredFirst(script, isAnswered, { do: 'dial', to: verb.to, rules: verb.rules });
    case 'hangup':
      return answeredFirst(script, isAnswered, { do: 'hang-up' });
  }
}

function withBase(verb: Verb, base: string): Verb {
  if ((verb.verb !== 'stream' && verb.verb !== 'start-stream') || verb.stream.statusCallback === null) return verb;
  const { url, method } = verb.stream.statusCallback;
  const statusCallback = URL.canParse(url, base) ? { url: new URL(url, base).href, method } : null;
  return { ...verb, stream: { ...verb.stream, statusCallback } };
}

function startFork(script: VoiceScript, stream: StreamNoun): VoiceMove {
  const { forks, started } = script;
  const note = (problem: string): VoiceMove => ({ script, step: { do: 'note', problem } });
  if (stream.name !== null && forks.some((fork) => fork.stream.name === stream.name))
    return note(`A stream with the name ${stream.name} has been started already: this one is not.`);
  const tracks = forks.reduce((sum, fork) => sum + fork.stream.tracks.length, stream.tracks.length);
  if (tracks > MAX_FORKED_TRACKS)
    return note(`A call has at most ${String(MAX_FORKED_TRACKS)} tracks in streams: this one is not started.`);
  const fork = { key: started, stream };
  return { script: { ...script, forks: [...forks, fork], started: started + 1 }, step: { do: 'start-fork', fork } };
}

function stopFork(script: VoiceScript, name: string): VoiceMove {
  const fork = script.forks.find(({ stream }) => stream.name === name);
  if (fork === undefined) return { script, step: { do: 'note', problem: `There is no stream with the name ${name} to be stopped.` } };
  return { script: withoutFork(script, fork.key), step: { do: 'stop-fork', key: fork.key } };
}

/** The fork is over. */
export function withoutFork(script: VoiceScript, key: number): VoiceScript {
  return { ...script, forks: script.forks.filter((fork) => fork.key !== key) };
}

/** Only a call that is answered can be transferred or hung up: until then nothing is played, and the verb comes again. */
function answeredFirst(script: VoiceScript, isAnswered: boolean, step: VoiceStep): VoiceMove {
  if (!isAnswered) return { script, step: { do: 'speak', clips: [], gather: null } };
  return { script: { ...script, at: script.at + 1 }, step };
}

/** What follows the verb in progress. @param isAnswered whether the 200 is out */
export function afterVerb(script: VoiceScript, outcome: VerbOutcome, isAnswered = true): VoiceMove {
  const verb = script.verbs[script.at - 1];
  const next = (): VoiceMove => nextStep(script, isAnswered);
  const request = (action: Action, parameters: Readonly<Record<string, string>>): VoiceMove => ({
    script,
    step: requestOf(script, action, parameters),
  });
  switch (verb?.verb) {
    case 'gather': {
      const { digits = '', finishedOnKey = '' } = outcome.type === 'gathered' ? outcome : {};
      if (digits === '' && !verb.rules.actionOnEmptyResult) return next();
      const action = verb.rules.action ?? { url: script.base, method: 'POST' };
      return request(action, { Digits: digits, msg: 'Gather End', ...(finishedOnKey === '' ? {} : { FinishedOnKey: finishedOnKey }) });
    }
    case 'stream':
      return verb.action === null ? next() : request(verb.action, {});
    case 'conversation':
      return verb.action === null ? next() : request(verb.action, sessionParameters(outcome));
    case 'dial':
      return verb.action === null ? next() : request(verb.action, dialParameters(outcome));
    default:
      return next();
  }
}

/** Twilio's code for an application whose WebSocket failed. */
const SESSION_FAILED = '64105';

function sessionParameters(outcome: VerbOutcome): Readonly<Record<string, string>> {
  if (outcome.type !== 'conversation-ended') return {};
  const { sessionId, seconds, handoffData, error } = outcome;
  return {
    SessionId: sessionId,
    SessionStatus: error === null ? 'ended' : 'failed',
    SessionDuration: String(seconds),
    ...(handoffData === null ? {} : { HandoffData: handoffData }),
    ...(error === null ? {} : { ErrorCode: SESSION_FAILED, ErrorMessage: error }),
  };
}

function dialParameters(outcome: VerbOutcome): Readonly<Record<string, string>> {
  if (outcome.type !== 'dial-ended') return { DialCallStatus: 'failed' };
  const { status, leg } = outcome;
  return {
    DialCallStatus: status,
    ...(leg === null ? {} : { DialCallSid: leg.callSid }),
    ...(leg === null || status !== 'completed' ? {} : { DialCallDuration: String(leg.seconds) }),
  };
}

function requestOf({ base }: VoiceScript, { url, method }: Action, parameters: Readonly<Record<string, string>>): VoiceStep {
  if (!URL.canParse(url, base)) return { do: 'fail', problem: 'The document names a URL that cannot be read.' };
  return { do: 'request', request: { url: new URL(url, base).href, method, parameters } };
}

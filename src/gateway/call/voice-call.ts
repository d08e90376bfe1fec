import type { AgentDescription, AgentAnswer, ConversationSettings, ForkSettings, PlayerClip, StreamSettings } from '../model/agent.js';
import type { CallTarget } from '../model/live-calls.js';
import { accountSidOf, callSidOf, newSessionId, newStreamSid } from '../model/twilio-ids.js';
import type { VoiceApplication } from '../model/voice-application.js';
import type { LegEvent } from '../model/media.js';
import { AgentUnavailableError, type VoiceServer } from '../ports/ports.js';
import { cookieHeader } from '../twilio/cookies.js';
import type { AnsweredBy } from '../twilio/answered-by.js';
import { callParameters, type VoiceFacts } from '../twilio/call-parameters.js';
import type { Clip, ConversationNoun, StreamNoun } from '../twilio/twiml.js';
import {
  afterDigits,
  afterVerb,
  enterDocument,
  nextStep,
  withoutFork,
  type DocumentRequest,
  type RunningFork,
  type VerbOutcome,
  type VoiceMove,
  type VoiceScript,
} from '../twilio/voice-script.js';
import { callStatusOf, twilioDirection } from '../twilio/call-status.js';
import type { DialRules } from '../twilio/twiml.js';
import { beginningOf } from '../twilio/xml.js';
import { isSettled, type CallData, type LegNote } from './call.js';
import { StreamCallbacks, type StreamReport } from './stream-callbacks.js';
import { errorText } from '../../lib/result.js';
import { DEFAULT_AGENT_SETTINGS } from '../model/agent-record.js';

/** What the script of a call does to it. */
export interface VoiceHost {
  readonly call: CallData;
  /** Puts this agent in the place of the one before. Rejects with `AgentUnavailableError`. */
  connect(agent: AgentDescription): Promise<void>;
  /** The speech services that a conversation of this call may use, and their keys. */
  readonly speech: Pick<ConversationSettings, 'listen' | 'speech'>;
  /** Copies the call's audio beside the agents. Throws `MediaUnavailableError`. */
  startFork(fork: ForkSettings): void;
  stopFork(streamSid: string): void;
  transfer(to: string, requestId: string, rules: DialRules): void;
  /** The caller returns from the dialled party, or stops waiting. */
  leaveLeg(): void;
  hangUp(reason: 'AGENT_HANGUP' | 'AGENT_LOST'): void;
  /** For the trace; a failure stands in the record too. */
  note(text: string, isFailure: boolean): void;
  /** Stores a snapshot. */
  keep(): void;
  /** Milliseconds of the epoch. */
  wallMs(): number;
  /** Who answered, in Twilio's words; `null`: nobody asked, or it is not known yet. */
  readonly answeredBy: AnsweredBy | null;
}

export interface VoiceSettings {
  readonly facts: VoiceFacts;
  readonly application: Pick<VoiceApplication, 'token' | 'sendDigits' | 'fallback'>;
}

/** Twilio's code for a document that could not be retrieved. */
const RETRIEVAL_FAILED = '11200';
/** Documents of the API have no URL of their own. */
const NO_BASE = 'about:blank';
/** The agent's request that a `<Dial>` is. */
export const DIAL_REQUEST = 'dial';

type VoiceStep = VoiceMove['step'];
/** Steps that take no time. */
type Aside = 'start-fork' | 'stop-fork' | 'note';

class VoiceError extends Error {}

/** One call by TwiML: requests documents, and puts one agent after the other on the call, as the script says. */
export class VoiceCall {
  /** Counts what was begun: results of something earlier are dropped. */
  #attempt = 0;
  /** A document or an agent is awaited: what the agent before reports is too late. */
  #isMoving = false;
  readonly #ended = new AbortController();
  readonly #streams = new StreamCallbacks((report) => this.#reportStream(report));
  /** What `<Connect>` connected last: its stream, and how the bot knows it; `null`: not yet. */
  #connected: { readonly stream: StreamNoun; streamSid: string | null } | null = null;
  /** The conversation in progress; `null`: none. */
  #session: { readonly id: string; readonly startedMs: number } | null = null;
  /** What `<Start>` began, by how its server knows it. */
  readonly #forks = new Map<string, RunningFork>();
  #hasNotedFragment = false;
  /** The call that an earlier `<Dial>` placed. */
  #legBefore: string | null = null;

  constructor(
    private readonly server: VoiceServer,
    private readonly settings: VoiceSettings,
    private readonly host: VoiceHost,
  ) {}

  /** `null`: no document has come. */
  get #script(): VoiceScript | null {
    return this.host.call.now.script;
  }

  get #isSettled(): boolean {
    return isSettled(this.host.call.now);
  }

  #goOnBy(script: VoiceScript): void {
    this.host.call.change({ script });
  }

  /** The call that was dialled last; `null`: none was, as the carrier took a REFER or nothing may be dialled. */
  get #lastLeg(): LegNote | null {
    return this.host.call.now.progress.legs.at(-1) ?? null;
  }

  /** Before both sides talk. Resolves with why the call is refused, or `null` with the first agent connected. Rejects with `AgentUnavailableError`. */
  async begin(first: CallTarget): Promise<'rejected' | 'busy' | null> {
    return this.#move(() => this.#goTo(first));
  }

  /** In another process or media thread than before: the verb in progress begins again. */
  async resume(script: VoiceScript): Promise<void> {
    for (const streamSid of [...this.#forks.keys()]) this.#streams.ended(streamSid, 'the media of the call was lost');
    this.#forks.clear();
    for (const fork of script.forks) this.#startFork(fork);
    const wasDialling = script.verbs[script.at - 1]?.verb === 'dial';
    await this.#move(() => Promise.resolve(nextStep({ ...script, at: wasDialling ? script.at : Math.max(0, script.at - 1) }, true)));
  }

  /** The call goes on elsewhere at once, whatever is in progress. */
  redirect(target: CallTarget): void {
    this.host.leaveLeg();
    this.#begin(() => this.#goTo(target));
  }

  /** The media of the call ends, and with it the streams beside its verbs. */
  leaveMedia(): void {
    for (const [streamSid, fork] of [...this.#forks]) this.#endFork(streamSid, fork, 'the call was connected with another one');
  }

  /** An event of a stream. */
  takeStream(event: Extract<LegEvent, { type: 'stream-started' | 'fork-ended' }>): void {
    const { streamSid } = event;
    const fork = this.#forks.get(streamSid);
    if (event.type === 'fork-ended') {
      if (fork !== undefined) this.#endFork(streamSid, fork, event.error);
    } else if (fork !== undefined) this.#streams.started(streamSid, fork.stream);
    else if (this.#connected !== null) {
      // After a reconnection it is another one to the bot.
      if (this.#connected.streamSid !== null) this.#streams.ended(this.#connected.streamSid, 'the connection was lost');
      this.#connected.streamSid = streamSid;
      this.#streams.started(streamSid, this.#connected.stream);
    }
  }

  /** An event of the agent in progress. */
  take(event: Extract<LegEvent, { type: 'agent-finished' | 'agent-hangup' | 'agent-lost' | 'conversation-ended' }>): void {
    if (event.type === 'conversation-ended') return this.#after(this.#endedSession(event.handoffData, event.error));
    this.#leaveStream(event.type === 'agent-lost' ? 'the connection was lost' : null);
    this.#after(event.type === 'agent-finished' ? { ...event, type: 'gathered' } : { type: 'ended' });
  }

  /** How a `<Dial>` is getting on. */
  answered(answer: AgentAnswer): void {
    if (answer.requestId !== DIAL_REQUEST || (answer.type === 'transfer-progress' && answer.state === 'accepted')) return;
    if (answer.type === 'refused') this.host.note(`Dial: ${answer.message}`, true);
    this.#after(dialOutcome(answer, this.#dialledLeg()));
  }

  /** Something else decides what the caller hears: what was begun has no effect any more. */
  leave(): void {
    this.#attempt += 1;
  }

  close(): void {
    this.leave();
    this.#ended.abort();
    this.#streams.endAll();
  }

  #dialledLeg(): LegNote | null {
    const leg = this.#lastLeg;
    return leg?.callId === this.#legBefore ? null : leg;
  }

  #after(outcome: VerbOutcome): void {
    const script = this.#script;
    if (script === null || this.#isMoving) return;
    this.#begin(() => Promise.resolve(afterVerb(script, outcome, this.#isSettled)));
  }

  /** A failure ends the call: nobody else would. */
  #begin(first: () => Promise<VoiceMove>): void {
    this.#move(first).catch((error: unknown) => {
      if (!(error instanceof AgentUnavailableError)) throw error;
      this.host.hangUp('AGENT_LOST');
    });
  }

  async #move(first: () => Promise<VoiceMove>): Promise<'rejected' | 'busy' | null> {
    const attempt = (this.#attempt += 1);
    this.#isMoving = true;
    try {
      for (let move = await first(); attempt === this.#attempt;) {
        this.#goOnBy(move.script);
        const { step } = move;
        if (step.do === 'request') move = await this.#load(step.request);
        else if (this.#doAside(step)) move = nextStep(move.script, this.#isSettled);
        else if (step.do === 'conversation') {
          const failed = await this.#converse(step.conversation);
          if (failed === null || attempt !== this.#attempt) return null;
          move = afterVerb(move.script, failed, this.#isSettled);
        } else return await this.#perform(step);
      }
      return null;
    } catch (error) {
      if (attempt !== this.#attempt) return null;
      if (!(error instanceof VoiceError)) throw error;
      this.host.note(error.message, true);
      throw new AgentUnavailableError(error.message);
    } finally {
      if (attempt === this.#attempt) this.#isMoving = false;
    }
  }

  /** False: it is a step that takes time, or the last one. */
  #doAside(step: Exclude<VoiceStep, { do: 'request' }>): step is Extract<VoiceStep, { do: Aside }> {
    switch (step.do) {
      case 'note':
        this.host.note(step.problem, true);
        return true;
      case 'start-fork':
        this.#startFork(step.fork);
        return true;
      case 'stop-fork':
        for (const [streamSid, { key }] of this.#forks) if (key === step.key) this.#stopFork(streamSid);
        return true;
      default:
        return false;
    }
  }

  /** Resolves with the failure, which the script gets: `<Connect action>` may answer it with another document. */
  async #converse({ url, parameters, rules }: ConversationNoun): Promise<VerbOutcome | null> {
    const { facts } = this.settings;
    this.#leaveStream(null);
    this.#session = { id: newSessionId(), startedMs: this.host.wallMs() };
    try {
      await this.host.connect({
        kind: 'conversation',
        ...this.#addressOf({ url, parameters }),
        sessionId: this.#session.id,
        direction: twilioDirection(facts.direction),
        from: facts.caller.number,
        to: facts.to,
        callerName: facts.caller.display_name,
        forwardedFrom: facts.caller.diversions[0]?.uri ?? null,
        rules,
        ...this.host.speech,
      });
    } catch (error) {
      if (!(error instanceof AgentUnavailableError)) throw error;
      this.host.note(error.message, true);
      return this.#endedSession(null, error.message);
    }
    this.host.keep();
    return null;
  }

  #endedSession(handoffData: string | null, error: string | null): VerbOutcome {
    const { id: sessionId = '', startedMs = this.host.wallMs() } = this.#session ?? {};
    this.#session = null;
    const seconds = Math.max(0, Math.round((this.host.wallMs() - startedMs) / 1_000));
    return { type: 'conversation-ended', sessionId, seconds, handoffData, error };
  }

  async #perform(step: Exclude<VoiceStep, { do: 'request' | 'conversation' | Aside }>): Promise<'rejected' | 'busy' | null> {
    this.#leaveStream(null);
    switch (step.do) {
      case 'reject':
        return step.reason;
      case 'fail':
        throw new VoiceError(step.problem);
      case 'hang-up':
        this.host.hangUp('AGENT_HANGUP');
        return null;
      case 'dial':
        this.#legBefore = this.#lastLeg?.callId ?? null;
        this.host.transfer(step.to, DIAL_REQUEST, step.rules);
        return null;
      case 'speak':
        await this.host.connect({
          kind: 'player',
          accountSid: accountSidOf(this.settings.facts.orgId),
          clips: this.#playable(step.clips),
          gather: step.gather,
          transferTo: null,
          speech: this.host.speech.speech,
        });
        break;
      case 'stream':
        await this.#connectStream(step.stream);
        break;
    }
    this.host.keep();
    return null;
  }

  /** What cannot be had is left out, and the call goes on. */
  #playable(clips: readonly Clip[]): readonly PlayerClip[] {
    const { base } = this.#script ?? { base: NO_BASE };
    return clips.flatMap((clip): readonly PlayerClip[] => {
      if (clip.kind !== 'play') return [clip];
      const { url, loop } = clip;
      if (URL.canParse(url, base)) return [{ kind: 'audio', url: new URL(url, base).href, loop }];
      this.host.note('The URL of <Play> cannot be read.', true);
      return [];
    });
  }

  async #connectStream(stream: StreamNoun): Promise<void> {
    this.#connected = { stream, streamSid: null };
    const endOfSpeechMs = DEFAULT_AGENT_SETTINGS.interruption_threshold;
    try {
      const { bearerToken, ...address } = this.#addressOf(stream);
      await this.host.connect({ kind: 'stream', format: 'twilio', bearerToken, ...address, endOfSpeechMs, mayPress: true });
    } catch (error) {
      this.#streams.failed(newStreamSid(), stream, errorText(error));
      throw error;
    }
  }

  #addressOf({ url, parameters }: Pick<StreamNoun, 'url' | 'parameters'>) {
    const { facts, application } = this.settings;
    const sids = { accountSid: accountSidOf(facts.orgId), callSid: callSidOf(facts.callId) };
    return {
      url,
      bearerToken: null,
      signatureKey: application.token,
      ...sids,
      customParameters: parameters,
    } satisfies Partial<StreamSettings>;
  }

  /** The bot of `<Connect>` has no part in the call any more. */
  #leaveStream(error: string | null): void {
    if (this.#connected?.streamSid != null) this.#streams.ended(this.#connected.streamSid, error);
    this.#connected = null;
  }

  #startFork(fork: RunningFork): void {
    const streamSid = newStreamSid();
    this.#forks.set(streamSid, fork);
    try {
      const { bearerToken: _, ...address } = this.#addressOf(fork.stream);
      this.host.startFork({ ...address, streamSid, tracks: fork.stream.tracks });
    } catch (error) {
      this.#endFork(streamSid, fork, errorText(error));
    }
  }

  #stopFork(streamSid: string): void {
    this.#forks.delete(streamSid);
    this.host.stopFork(streamSid);
    this.#streams.ended(streamSid, null);
  }

  /** It ended by itself, or could not begin. */
  #endFork(streamSid: string, fork: RunningFork, error: string | null): void {
    this.#forks.delete(streamSid);
    if (this.#script !== null) this.#goOnBy(withoutFork(this.#script, fork.key));
    if (error !== null) this.host.note(`A stream ended: ${error}.`, false);
    if (!this.#streams.isOpen(streamSid)) this.#streams.failed(streamSid, fork.stream, error ?? 'the server closed the connection');
    else this.#streams.ended(streamSid, error);
    this.host.keep();
  }

  #reportStream({ stream, event, streamSid, error }: StreamReport): void {
    if (stream.statusCallback === null) return;
    const { facts, application } = this.settings;
    const parameters = {
      AccountSid: accountSidOf(facts.orgId),
      CallSid: callSidOf(facts.callId),
      StreamSid: streamSid,
      ...(stream.name === null ? {} : { StreamName: stream.name }),
      StreamEvent: event,
      ...(error === null ? {} : { StreamError: error }),
      Timestamp: new Date(this.host.wallMs()).toISOString(),
    };
    void this.server.notify({ ...stream.statusCallback, parameters, token: application.token }).then((sent) => {
      if (!sent.ok) this.host.note(`${event}: ${sent.error}`, false);
    });
  }

  async #goTo(target: CallTarget): Promise<VoiceMove> {
    if (!('twiml' in target)) return this.#load({ ...target, parameters: {} });
    return this.#enter(this.#script?.base ?? NO_BASE, target.twiml);
  }

  /** @param hint why the document may not be one, behind what is wrong with it */
  #enter(base: string, text: string, setCookies: readonly string[] = [], hint = ''): VoiceMove {
    const { sendDigits } = this.settings.application;
    const entered = enterDocument(this.#script, base, text, setCookies);
    if (!entered.ok) throw new VoiceError(`${entered.error}${hint}`);
    const { script, warnings } = entered.value;
    for (const warning of warnings) this.host.note(warning, false);
    return nextStep(this.#script === null && sendDigits !== null ? afterDigits(script, sendDigits) : script, this.#isSettled);
  }

  async #load(request: DocumentRequest): Promise<VoiceMove> {
    const { fallback } = this.settings.application;
    try {
      return await this.#loadFrom(request);
    } catch (error) {
      if (!(error instanceof VoiceError) || fallback === null || request.url === fallback.url) throw error;
      this.host.note(`${error.message} The fallback is requested.`, true);
      return this.#loadFrom({ ...fallback, parameters: { ErrorCode: RETRIEVAL_FAILED, ErrorUrl: request.url } });
    }
  }

  async #loadFrom(request: DocumentRequest): Promise<VoiceMove> {
    const document = await this.#request(request);
    if (!document.ok) throw new VoiceError(document.error);
    const { text, contentType, setCookies } = document.value;
    return this.#enter(request.url, text, setCookies, typeHint(contentType));
  }

  /** Twilio takes connection overrides from there (`#rc=2&rp=all`). */
  #noteFragment(): void {
    if (this.#hasNotedFragment) return;
    this.#hasNotedFragment = true;
    this.host.note('What a URL has behind # is not sent: connection overrides have no effect here.', false);
  }

  #request({ url, method, parameters }: DocumentRequest): ReturnType<VoiceServer['document']> {
    const { facts, application } = this.settings;
    if (url.includes('#')) this.#noteFragment();
    // Only the answerer hears a document of a placed call.
    const call = callParameters(
      { ...facts, answeredBy: this.host.answeredBy },
      this.#isSettled || facts.direction === 'outbound' ? 'in-progress' : 'ringing',
    );
    const cookie = cookieHeader(this.#script?.cookies ?? {}, url) ?? undefined;
    const request = { url, method, parameters: { ...call, ...parameters }, token: application.token };
    return this.server.document(cookie === undefined ? request : { ...request, cookie }, this.#ended.signal);
  }
}

/** A server that answers with another type has probably sent something else than it was asked for. */
function typeHint(contentType: string | null): string {
  if (contentType === null) return ' It has no Content-Type.';
  return /\bxml\b/iu.test(contentType) ? '' : ` Its Content-Type is ${beginningOf(contentType)}.`;
}

/** How a `<Dial>` ended: the call that it placed, or the carrier's answer to a REFER. */
function dialOutcome(answer: AgentAnswer, leg: LegNote | null): VerbOutcome {
  const { status = null, reason } = answer.type === 'transfer-progress' ? answer : {};
  const answeredAt = leg?.answeredAtMs ?? null;
  const how = { answered_at: answeredAt === null ? null : '', reason: reason ?? 'TRUNK_REFUSED', sip_status: status };
  const seconds = answeredAt === null ? 0 : Math.max(0, Math.round(((leg?.endedAtMs ?? answeredAt) - answeredAt) / 1_000));
  return { type: 'dial-ended', status: callStatusOf(how), leg: leg === null ? null : { callSid: callSidOf(leg.callId), seconds } };
}

import type { AgentDescription, AgentAnswer, PlayerClip } from '../model/agent.js';
import type { CallTarget } from '../model/live-calls.js';
import { accountSidOf, callSidOf } from '../model/twilio-ids.js';
import type { Route } from '../model/records.js';
import type { VerifiedIdentity } from '../model/verified-identity.js';
import type { CallOrigin } from './call-record.js';
import type { LegEvent } from '../model/media.js';
import { AgentUnavailableError, type VoiceServer } from '../ports/ports.js';
import { callParameters, type VoiceFacts } from '../twilio/call-parameters.js';
import type { Clip, GatherRules } from '../twilio/twiml.js';
import {
  afterVerb,
  enterDocument,
  nextStep,
  type DocumentRequest,
  type VerbOutcome,
  type VoiceMove,
  type VoiceScript,
} from '../twilio/voice-script.js';
import { DEFAULT_AGENT_SETTINGS } from '../model/agent-record.js';

/** What the script of a call does to it. */
export interface VoiceHost {
  readonly isAnswered: boolean;
  /** Puts this agent in the place of the one before. Rejects with `AgentUnavailableError`. */
  connect(agent: AgentDescription): Promise<void>;
  transfer(to: string, requestId: string): void;
  hangUp(reason: 'AGENT_HANGUP' | 'AGENT_LOST'): void;
  /** For the trace; a failure stands in the record too. */
  note(text: string, isFailure: boolean): void;
  /** Stores a snapshot. */
  keep(): void;
}

export interface VoiceSettings {
  readonly facts: VoiceFacts;
  readonly token: string;
  /** Requested when a document cannot be had, or not read; `null`: none. */
  readonly fallbackUrl: string | null;
}

export function voiceSettings(
  { callId, to, caller }: CallOrigin,
  { org, number }: Route,
  identity: VerifiedIdentity | null,
): VoiceSettings {
  return {
    facts: { callId, orgId: org.org_id, to, caller, identity },
    token: org.twilio_token,
    fallbackUrl: number.inbound?.options.voice_fallback_url ?? null,
  };
}

/** Twilio's code for a document that could not be retrieved. */
const RETRIEVAL_FAILED = '11200';
/** Documents of the API have no URL of their own. */
const NO_BASE = 'about:blank';
/** The agent's request that a `<Dial>` is. */
export const DIAL_REQUEST = 'dial';

class VoiceError extends Error {}

/** One call by TwiML: requests documents, and puts one agent after the other on the call, as the script says. */
export class VoiceCall {
  #script: VoiceScript | null = null;
  /** Counts what was begun: results of something earlier are dropped. */
  #attempt = 0;
  /** A document or an agent is awaited: what the agent before reports is too late. */
  #isMoving = false;
  readonly #ended = new AbortController();

  constructor(
    private readonly server: VoiceServer,
    private readonly settings: VoiceSettings,
    private readonly host: VoiceHost,
  ) {}

  /** Part of the call's snapshot; `null`: it has not begun. */
  get script(): VoiceScript | null {
    return this.#script;
  }

  /** Before the 200. Resolves with why the call is refused, or `null` with the first agent connected. Rejects with `AgentUnavailableError`. */
  async begin(url: string): Promise<'rejected' | 'busy' | null> {
    return this.#move(() => this.#load({ url, method: 'POST', parameters: {} }));
  }

  /** In another process than the one before: the verb in progress begins again. */
  async resume(script: VoiceScript): Promise<void> {
    this.#script = script;
    const wasDialling = script.verbs[script.at - 1]?.verb === 'dial';
    await this.#move(() => Promise.resolve(nextStep({ ...script, at: wasDialling ? script.at : Math.max(0, script.at - 1) }, true)));
  }

  /** The call goes on elsewhere at once, whatever is in progress. */
  redirect(target: CallTarget): void {
    this.#begin(() => {
      if (!('twiml' in target)) return this.#load({ ...target, parameters: {} });
      return Promise.resolve(this.#enter(this.#script?.base ?? NO_BASE, target.twiml));
    });
  }

  /** An event of the agent in progress. */
  take(event: Extract<LegEvent, { type: 'agent-finished' | 'agent-hangup' | 'agent-lost' }>): void {
    this.#after(event.type === 'agent-finished' ? { ...event, type: 'gathered' } : { type: 'ended' });
  }

  /** How a `<Dial>` is getting on. */
  answered(answer: AgentAnswer): void {
    if (answer.requestId !== DIAL_REQUEST || (answer.type === 'transfer-progress' && answer.state === 'accepted')) return;
    if (answer.type === 'refused') this.host.note(`Dial: ${answer.message}`, true);
    this.#after({ type: 'dial-failed', status: answer.type === 'transfer-progress' ? answer.status : null });
  }

  close(): void {
    this.#attempt += 1;
    this.#ended.abort();
  }

  #after(outcome: VerbOutcome): void {
    const script = this.#script;
    if (script === null || this.#isMoving) return;
    this.#begin(() => Promise.resolve(afterVerb(script, outcome)));
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
        this.#script = move.script;
        const { step } = move;
        if (step.do === 'request') {
          move = await this.#load(step.request);
          continue;
        }
        return await this.#perform(step);
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

  async #perform(step: Exclude<VoiceMove['step'], { do: 'request' }>): Promise<'rejected' | 'busy' | null> {
    switch (step.do) {
      case 'reject':
        return step.reason;
      case 'fail':
        throw new VoiceError(step.problem);
      case 'hang-up':
        this.host.hangUp('AGENT_HANGUP');
        return null;
      case 'dial':
        this.host.transfer(step.to, DIAL_REQUEST);
        return null;
      case 'speak':
        await this.host.connect({ kind: 'player', ...(await this.#playable(step.clips, step.gather)) });
        break;
      case 'stream':
        await this.host.connect(this.#streamOf(step));
        break;
    }
    this.host.keep();
    return null;
  }

  async #playable(
    clips: readonly Clip[],
    gather: GatherRules | null,
  ): Promise<Omit<Extract<AgentDescription, { kind: 'player' }>, 'kind'>> {
    const played = await Promise.all(clips.map((clip) => this.#clipOf(clip)));
    return { clips: played.filter((clip) => clip !== null), gather };
  }

  /** `null`: it cannot be had; the call goes on without it. */
  async #clipOf(clip: Clip): Promise<PlayerClip | null> {
    if (clip.kind !== 'play') return clip;
    const { base } = this.#script ?? { base: NO_BASE };
    const audio = URL.canParse(clip.url, base)
      ? await this.server.audio(new URL(clip.url, base).href, this.#ended.signal)
      : ({ ok: false, error: 'The URL of <Play> cannot be read.' } as const);
    if (audio.ok) return { kind: 'audio', bytes: audio.value, loop: clip.loop };
    this.host.note(audio.error, true);
    return null;
  }

  #streamOf({ url, parameters }: { readonly url: string; readonly parameters: Readonly<Record<string, string>> }): AgentDescription {
    const { facts, token } = this.settings;
    return {
      kind: 'stream',
      url,
      format: 'twilio',
      bearerToken: null,
      signatureKey: token,
      accountSid: accountSidOf(facts.orgId),
      callSid: callSidOf(facts.callId),
      customParameters: parameters,
      endOfSpeechMs: DEFAULT_AGENT_SETTINGS.interruption_threshold,
      mayPress: true,
    };
  }

  #enter(base: string, text: string): VoiceMove {
    const entered = enterDocument(this.#script, base, text);
    if (!entered.ok) throw new VoiceError(entered.error);
    for (const warning of entered.value.warnings) this.host.note(warning, false);
    return nextStep(entered.value.script, this.host.isAnswered);
  }

  async #load(request: DocumentRequest): Promise<VoiceMove> {
    const { fallbackUrl } = this.settings;
    try {
      return await this.#loadFrom(request);
    } catch (error) {
      if (!(error instanceof VoiceError) || fallbackUrl === null || request.url === fallbackUrl) throw error;
      this.host.note(`${error.message} The fallback is requested.`, true);
      return this.#loadFrom({ url: fallbackUrl, method: 'POST', parameters: { ErrorCode: RETRIEVAL_FAILED, ErrorUrl: request.url } });
    }
  }

  async #loadFrom(request: DocumentRequest): Promise<VoiceMove> {
    const document = await this.#request(request);
    if (!document.ok) throw new VoiceError(document.error);
    return this.#enter(request.url, document.value);
  }

  #request({ url, method, parameters }: DocumentRequest): ReturnType<VoiceServer['document']> {
    const { facts, token } = this.settings;
    const call = callParameters(facts, this.host.isAnswered ? 'in-progress' : 'ringing');
    return this.server.document({ url, method, parameters: { ...call, ...parameters }, token }, this.#ended.signal);
  }
}

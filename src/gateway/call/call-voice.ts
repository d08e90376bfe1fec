import type { AgentAnswer } from '../model/agent.js';
import type { CallTarget } from '../model/live-calls.js';
import type { LegEvent } from '../model/media.js';
import type { VoiceScript } from '../twilio/voice-script.js';
import type { VoiceServer } from '../ports/ports.js';
import type { CallMedia } from './call-media.js';
import type { CallOrigin } from './call-record.js';
import { connectSummary, type CallTrace } from './call-trace.js';
import type { CallEvent, CallState } from './state.js';
import { DIAL_REQUEST, VoiceCall, voiceSettings, type VoiceHost } from './voice-call.js';

interface CallParts {
  readonly origin: CallOrigin;
  readonly media: CallMedia;
  readonly trace: CallTrace;
  readonly state: () => CallState;
  readonly isAnswered: () => boolean;
  /** Everything of the call is freed. */
  readonly isClosed: () => boolean;
  dispatch(event: CallEvent): void;
  /** For the record. */
  noteFailure(text: string): void;
  /** Stores a snapshot. */
  keep(): void;
}

/** The script of one call, once a voice webhook, or the API, decides what the caller gets to hear. */
export class CallVoice {
  #voice: VoiceCall | null = null;

  constructor(
    private readonly server: VoiceServer,
    private readonly call: CallParts,
  ) {}

  /** Part of the call's snapshot; `null`: there is none. */
  get script(): VoiceScript | null {
    return this.#voice?.script ?? null;
  }

  /** Requests the document of the number's webhook; `null`: the call is taken. */
  begin(url: string): ReturnType<VoiceCall['begin']> {
    return this.#begun().begin(url);
  }

  resume(script: VoiceScript): Promise<void> {
    return this.#begun().resume(script);
  }

  redirect(target: CallTarget): void {
    this.#begun().redirect(target);
  }

  /** Something stands in for a webhook that failed. */
  drop(): void {
    this.#voice = null;
  }

  /** An event of the player; false: the call has no script. */
  take(event: Extract<LegEvent, { type: 'agent-hangup' | 'agent-lost' | 'agent-finished' }>): boolean {
    this.#voice?.take(event);
    return this.#voice !== null;
  }

  /** The answer to a `<Dial>`; false: the agent asked. */
  answered(answer: AgentAnswer): boolean {
    if (this.#voice === null || answer.requestId !== DIAL_REQUEST) return false;
    this.#voice.answered(answer);
    return true;
  }

  close(): void {
    this.#voice?.close();
  }

  #begun(): VoiceCall {
    const { route, identity } = this.call.state();
    if (route === null) throw new Error('a call without a route has no script');
    this.#voice ??= new VoiceCall(this.server, voiceSettings(this.call.origin, route, identity), this.#host());
    return this.#voice;
  }

  #host(): VoiceHost {
    const { media, trace, state, isAnswered, isClosed } = this.call;
    return {
      get isAnswered() {
        return isAnswered();
      },
      connect: async (agent) => {
        if (isClosed() || state().name === 'Ended') return;
        trace.add('agent', 'out', connectSummary(agent));
        await media.connectAgent(agent);
        if (state().name === 'Talking') media.start();
      },
      transfer: (to, requestId) => this.call.dispatch({ type: 'transfer-asked', requestId, to }),
      hangUp: (reason) => this.call.dispatch({ type: 'hangup', reason }),
      note: (text, isFailure) => {
        trace.add('agent', 'in', text);
        if (isFailure) this.call.noteFailure(text);
      },
      keep: () => this.call.keep(),
    };
  }
}

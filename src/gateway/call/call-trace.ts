import type { AnswererEvent } from '../../rtp/answerer/answerer-detector.js';
import type { AgentAnswer, AgentDescription } from '../model/agent.js';
import type { VerifiedIdentity } from '../model/verified-identity.js';
import type { LegEvent } from '../model/media.js';
import type { CallEvent, CallState, CallTimer, RelayLossCause } from './state.js';
import type { TimedStep, Timeline, TraceEntry } from '../model/call-trace.js';
import { isoTime, type Clock } from '../../lib/clock.js';
import type { SipMessageSeen } from '../../lib/observed.js';
import { maskSecrets } from './secrets.js';
import { withoutOwnHeaders } from '../../lib/own-headers.js';
import type { SrfRequest, SrfResponse } from '../ports/signalling.js';

/** When full, the trace keeps the first and the last entries. */
const MAX_HEAD = 100;
const MAX_TAIL = 100;
const MAX_HEAD_CHARACTERS = 32_768;
const MAX_CHARACTERS = 65_536;
const MAX_TEXT = 8_192;
const MAX_SUMMARY = 200;

export interface TraceWatch {
  /** Records when steps ran. */
  readonly isTimed?: boolean;
  readonly onSip?: ((direction: 'in' | 'out', text: string, atMs: number) => void) | undefined;
}

/** Gives each message of a call on. */
export function sipWatch(
  tell: (message: SipMessageSeen) => void,
  { sipCallId, source }: Pick<SipMessageSeen, 'sipCallId' | 'source'>,
  contact: string,
): TraceWatch['onSip'] {
  return (direction, text, atMs) => tell({ sipCallId, source, contact, direction, text, atMs });
}

interface Kept {
  readonly atMs: number;
  readonly source: TraceEntry['source'];
  readonly direction: TraceEntry['direction'];
  summary: string;
  text: string | null;
}

/**
 * The trace of one call. Storing texts unmasked costs next to nothing during the call; reading masks the secrets.
 */
export class CallTrace {
  readonly #head: Kept[] = [];
  #tail: Kept[] = [];
  #characters = 0;
  #leftOut = 0;
  #unsettled = 0;
  #onSettled: (() => void) | undefined;

  readonly timeline: CallTimeline;

  /** @param watch gets a copy of each message, with secrets masked */
  constructor(
    private readonly clock: Clock,
    private readonly isOn: boolean,
    private readonly watch: TraceWatch = {},
  ) {
    this.timeline = new CallTimeline(clock, watch.isTimed === true);
  }

  add(source: TraceEntry['source'], direction: TraceEntry['direction'], summary: string, text: string | null = null): void {
    if (this.isOn) this.#keep(source, direction, summary, text);
  }

  /** Traces a request of the carrier and our answers to it. */
  received(request: Pick<SrfRequest, 'msg'> & Partial<Pick<SrfRequest, 'method' | 'uri'>>, response?: SrfResponse): void {
    if (!this.isOn && this.watch.onSip === undefined) return;
    this.sip('in', request.msg.raw, `${request.method ?? 'CANCEL'} ${request.uri ?? ''}`);
    if (response === undefined) return;
    onSent(response, (status, reason) => this.#sending(`SIP/2.0 ${String(status)} ${reason}`));
  }

  /**
   * @param direction `null`: the SIP server's own message, in place of one that never came
   * @param summary replaces a message whose text is unknown, or that is nobody's
   */
  sip(direction: 'in' | 'out' | null, text: string | undefined, summary: string): void {
    if (direction === null) return this.add('gateway', null, summary, text ?? null);
    if (text !== undefined) this.#emit(direction, text, this.clock.wallMs());
    if (this.isOn) this.#keep('sip', direction, firstLine(text, summary), text ?? null);
  }

  /** A command to rtpengine, with the descriptions of both directions. */
  async relay<T extends { readonly sdp: string }>(command: string, sdp: string, work: Promise<T>): Promise<T> {
    const startedMs = this.clock.nowMs();
    const took = (): string => `${(this.clock.nowMs() - startedMs).toFixed(1)} ms`;
    this.add('rtpengine', 'out', command, sdp);
    try {
      const answer = await this.timeline.step(`relay ${command.replace(/ \(.*/, '')}`, work);
      this.add('rtpengine', 'in', `${command} answered, ${took()}`, answer.sdp);
      return answer;
    } catch (error) {
      this.add('rtpengine', 'in', `${command} failed, ${took()}`);
      throw error;
    }
  }

  /** Resolves when the text of every sent message is known; `null`: it is. */
  settled(): Promise<void> | null {
    if (this.#unsettled === 0) return null;
    return new Promise((resolve) => {
      this.#onSettled = resolve;
    });
  }

  /** Marks a request of ours as in flight; call the result when it was answered, or never will be. */
  expect(): () => void {
    if (!this.isOn) return () => undefined;
    let isOpen = true;
    this.#unsettled += 1;
    return () => {
      if (!isOpen) return;
      isOpen = false;
      this.#unsettled -= 1;
      if (this.#unsettled === 0) this.#onSettled?.();
    };
  }

  /** Oldest first, masked. */
  read(): readonly TraceEntry[] {
    const [next] = this.#tail;
    const gap =
      this.#leftOut === 0 || next === undefined
        ? []
        : [
            {
              ...next,
              source: 'gateway',
              direction: null,
              summary: `${String(this.#leftOut)} entries omitted`,
              text: null,
            } as const,
          ];
    return [...this.#head, ...gap, ...this.#tail].map(({ atMs, source, direction, summary, text }) => ({
      at: isoTime(atMs),
      source,
      direction,
      summary: maskSecrets(summary).slice(0, MAX_SUMMARY),
      text: text === null ? null : maskSecrets(source === 'sip' ? withoutOwnHeaders(text) : text),
    }));
  }

  /** Our answer; its text is known once the SIP server has sent it. */
  #sending(summary: string): (text: string | undefined) => void {
    const kept = this.isOn ? this.#keep('sip', 'out', summary, null) : null;
    const atMs = this.clock.wallMs();
    const done = this.expect();
    return (text) => {
      if (text !== undefined) this.#emit('out', text, atMs);
      if (text !== undefined && kept !== null) {
        kept.text = cut(text);
        kept.summary = firstLine(text, summary);
        // Counts an entry even if it was evicted meanwhile: the sum is an upper bound.
        this.#characters += kept.text.length;
        this.#trim();
      }
      done();
    };
  }

  #emit(direction: 'in' | 'out', text: string, atMs: number): void {
    this.watch.onSip?.(direction, maskSecrets(withoutOwnHeaders(text)), atMs);
  }

  #keep(source: Kept['source'], direction: Kept['direction'], summary: string, text: string | null): Kept {
    const kept: Kept = {
      atMs: this.clock.wallMs(),
      source,
      direction,
      summary: summary.slice(0, MAX_TEXT),
      text: text === null ? null : cut(text),
    };
    const isHead = this.#tail.length === 0 && this.#head.length < MAX_HEAD && this.#characters < MAX_HEAD_CHARACTERS;
    (isHead ? this.#head : this.#tail).push(kept);
    this.#characters += sizeOf(kept);
    this.#trim();
    return kept;
  }

  #trim(): void {
    while (this.#tail.length > MAX_TAIL || (this.#characters > MAX_CHARACTERS && this.#tail.length > 1)) {
      const oldest = this.#tail.shift();
      if (oldest === undefined) return;
      this.#characters -= sizeOf(oldest);
      this.#leftOut += 1;
    }
  }
}

function firstLine(text: string | undefined, otherwise: string): string {
  return text === undefined || text === '' ? otherwise : (text.split('\r\n', 1)[0] ?? otherwise);
}

function sizeOf({ summary, text }: Kept): number {
  return summary.length + (text?.length ?? 0);
}

/** A copy: a slice would hold the whole of a long text. */
function cut(text: string): string {
  return text.length <= MAX_TEXT ? text : `${Buffer.from(text.slice(0, MAX_TEXT)).toString()}\r\n(cut)`;
}

type SendArguments = Parameters<SrfResponse['send']>;

/**
 * Watches every answer that we or drachtio-srf send.
 * @param onSend gets status and reason; the function it returns gets the sent text, `undefined` if sending failed
 */
function onSent(response: SrfResponse, onSend: (status: number, reason: string) => (text: string | undefined) => void): void {
  const send = response.send.bind(response) as (...parts: readonly unknown[]) => void;
  // The package leaves the reason out: `send(200, options, callback)`.
  response.send = (...given: readonly unknown[]) => {
    const [status, reason] = given as SendArguments;
    const last = given.at(-1);
    const callback = typeof last === 'function' ? (last as (...answer: readonly unknown[]) => void) : undefined;
    const tell = onSend(status, typeof reason === 'string' ? reason : '');
    send(...(callback === undefined ? given : given.slice(0, -1)), (error: unknown, sent?: { readonly raw?: string }) => {
      tell(sent?.raw);
      callback?.(error, sent);
    });
  };
}

// What a call's trace says of its events, one line each, without what the messages of both sides have already.

/** `null`: nothing changed that the trace does not show otherwise. */
export function eventSummary(event: CallEvent, before: CallState, after: CallState): string | null {
  const why = after.reason === null || after.reason === before.reason ? '' : `: ${after.reason}`;
  const hasMoved = before.name !== after.name || before.exchange.name !== after.exchange.name;
  const wasNotSent = event.type === 'refer-answered' && event.refusal !== undefined;
  const isFailed = event.type === 'failed' && before.name !== 'Ended';
  const isShown = wasNotSent || isFailed || (event.type.startsWith('leg-') && event.type !== 'leg-reserved');
  if (!hasMoved && why === '' && !isShown) return null;
  const lack = event.type === 'leg-opened' && after.media?.telephoneEvent === null ? NO_TELEPHONE_EVENT : '';
  return `${happened(event, after)}${lack}${why}`;
}

const NO_TELEPHONE_EVENT = '; no telephone-event was agreed: digits can only come by SIP INFO, and none can be sent';

/** In words of the field; what the machine makes of it is for docs/call-lifecycle.md. */
function happened(event: CallEvent, { placing }: CallState): string {
  switch (event.type) {
    case 'invited':
      return 'INVITE received';
    case 'placed':
      return 'to be placed';
    case 'permitted':
      return `permitted; at most ${String(event.permit.reservedMicros / 1_000_000)} is reserved`;
    case 'not-permitted':
      return `not permitted: ${event.detail}`;
    case 'dial-proceeding':
      return 'the trunk has the INVITE';
    case 'dial-answered':
      return 'answered';
    case 'dial-refused':
      return event.isLocal ? 'the trunk did not answer' : `the trunk refused: ${String(event.status)}`;
    case 'inadmissible':
      return `refused before the number lookup${event.detail === null ? '' : `: ${event.detail}`}`;
    case 'routed':
      return looked(event);
    case 'agent-refused':
      return 'the voice webhook rejected the call';
    case 'agent-away':
      return 'the connection to the agent broke';
    case 'agent-connected':
      return 'the agent is connected';
    case 'relay-offered':
      return 'rtpengine accepted the offer';
    case 'relay-answered':
      return 'rtpengine accepted the answer';
    case 'relay-offered-to-carrier':
      return 'rtpengine made the offer for the carrier';
    case 'relay-answered-from-carrier':
      return "rtpengine accepted the carrier's answer";
    case 'leg-reserved':
      return "the agent's media port is reserved";
    case 'leg-opened':
      return "the agent's media is ready";
    case 'failed':
      return `a step failed (${event.reason})`;
    case 'answer-failed':
      return 'sending the 200 failed';
    case 'server-lost':
      return 'the SIP server lost the call';
    case 'cancelled':
      return 'the caller cancelled before the answer';
    case 'acknowledged':
      return 'established: ACK received';
    case 'bye':
      if (event.reason !== 'CALLER_HANGUP') return 'the SIP server ended the call';
      return placing === null ? 'the caller hung up' : 'whoever was dialled hung up';
    case 'hangup':
      return 'the gateway hangs up';
    case 'reoffered':
      return `the carrier changes the session (${event.method === 'INVITE' ? 're-INVITE' : 'UPDATE'})`;
    case 'refresh-due':
      return 'the session timer is due';
    case 'reinvite-answered':
      if (event.refusal !== undefined) return `the re-INVITE is not sent: ${event.refusal}`;
      return `the carrier answered our re-INVITE: ${String(event.status)}`;
    case 'transfer-asked':
      return 'the agent requested a transfer';
    case 'refer-answered':
      if (event.refusal !== undefined) return `the REFER is not sent: ${event.refusal}`;
      return event.status === null ? 'sending the REFER failed' : `the carrier answered the REFER: ${String(event.status)}`;
    case 'notified':
      return 'the carrier reported transfer progress';
    case 'leg-ringing':
      return `the second leg rings: call ${event.callId}`;
    case 'leg-consulting':
      return 'the other party talks with the agent';
    case 'transfer-step':
      return `the agent asks for the next step of the transfer: ${event.step}`;
    case 'briefed':
      return 'the agent hands the caller over';
    case 'leg-answered':
      return `the second leg is answered: call ${event.callId}`;
    case 'leg-ended':
      return `the second leg ended (${event.reason}): call ${event.callId}`;
    case 'leg-left':
      return 'the caller is taken back from the second leg';
    case 'side-changed':
      return 'the media of the other call is elsewhere';
    case 'relay-lost':
      return RELAY_LOSSES[event.cause];
    case 'leg-lost':
      return 'the media thread died';
    case 'pinged':
      return `the carrier ${event.isAnswered ? 'answered' : 'did not answer'} our OPTIONS`;
    case 'timer':
      return TIMERS[event.timer];
  }
}

const RELAY_LOSSES: Readonly<Record<RelayLossCause, string>> = {
  node: 'rtpengine lost the call',
  'deaf-port': 'rtpengine reads a port of the call no more',
  'sender-reports': 'the sender reports claim packets of which none arrive',
};

const TIMERS: Readonly<Record<CallTimer, string>> = {
  ringing: 'the agent is not connected yet: ringing',
  'max-duration': 'maximum duration reached',
  reinvite: 'retrying the re-INVITE',
  held: 'held for a minute: pinging the carrier with OPTIONS',
  transfer: 'no transfer progress within the time limit',
  unanswered: 'nobody answered in time',
  cancelling: 'the trunk did not answer the CANCEL',
};

function looked({ route, isStale, identity, credentials }: Extract<CallEvent, { type: 'routed' }>): string {
  const what = route === null ? 'is not attached' : `is attached, agent ${route.agent?.agent_id ?? 'of the operator'}`;
  return `looked up: the number ${what}${isStale ? ', from the cache' : ''}${credentials === null ? '' : `; credentials ${credentials}`}${identityText(identity)}`;
}

function identityText(identity: VerifiedIdentity | null): string {
  if (identity === null) return '';
  const { verdict, attestation, detail } = identity;
  return `; identity ${verdict}${attestation === null ? '' : `, attestation ${attestation}`}${detail === null ? '' : `: ${detail}`}`;
}

export function connectSummary(agent: AgentDescription): string {
  switch (agent.kind) {
    case 'test-line':
      return 'connect, test line';
    case 'stream':
      return `connect, ${agent.format}`;
    case 'provider':
      return `connect, ${agent.provider}, ${agent.model}`;
    case 'conversation':
      return 'connect, conversation';
    case 'party':
      return 'the other party joins the agent';
    case 'early-media':
      return 'early media';
    case 'player':
      return `play, ${String(agent.clips.length)} clips${agent.gather === null ? '' : ', gather digits'}${agent.transferTo === null ? '' : `, then transfer to ${agent.transferTo}`}`;
  }
}

export function legSummary(event: LegEvent): string {
  if (event.type === 'agent-note') return event.text;
  if (event.type === 'provider-tokens') return `the provider counted ${String(event.tokens)} tokens`;
  if (event.type === 'conversation-ended') return `the conversation ended${event.error === null ? '' : `: ${event.error}`}`;
  if (event.type === 'answered-by') return answererText(event.event);
  if (event.type !== 'agent-request') return event.type;
  const { request } = event;
  switch (request.type) {
    case 'transcript':
      return `transcript, ${String(request.entries.length)} entries`;
    case 'analysis':
      return `analysis, ${String(Object.keys(request.analysis).length)} data points`;
    case 'tool':
      return `tool ${request.name} requested`;
    case 'do_not_call':
      return 'do-not-call requested';
    case 'transfer':
      return `transfer requested, to ${request.to}`;
    case 'transfer-step':
      return `next step of the transfer requested: ${request.step}`;
  }
}

function answererText(event: AnswererEvent): string {
  if (event.type === 'greeting-ended') return `the machine's greeting ended, ${event.by}`;
  return `answered by: ${event.answerer}${event.type === 'guess' ? ', a guess' : ''}`;
}

/** With the sentence of a refusal. */
export function answerSummary(answer: AgentAnswer): [string, string | null] {
  switch (answer.type) {
    case 'tool-result':
      return [`tool answered${answer.httpStatus === null ? '' : `, HTTP ${String(answer.httpStatus)}`}`, null];
    case 'transfer-progress':
      return [`transfer ${[answer.state, answer.status, answer.reason].filter((part) => part != null).join(', ')}`, null];
    case 'answered-by':
      return [answererText(answer.event), null];
    case 'refused':
      return [`${answer.request} refused, ${answer.code}`, answer.message];
  }
}

/** Per call: steps, and moments. */
const MAX_TIMED = 100;

/** When the steps of one call ran, for traces across services. Keeps nothing while nobody wants it. */
export class CallTimeline {
  readonly #steps: TimedStep[] = [];
  readonly #moments: { readonly name: string; readonly atMs: number }[] = [];

  constructor(
    private readonly clock: Clock,
    private readonly isOn: boolean,
  ) {}

  step<T>(name: string, work: Promise<T>): Promise<T> {
    if (!this.isOn) return work;
    const startedMs = this.clock.wallMs();
    const keep = (isFailed: boolean): void => {
      if (this.#steps.length < MAX_TIMED) this.#steps.push({ name, startedMs, endedMs: this.clock.wallMs(), isFailed });
    };
    work.then(
      () => keep(false),
      () => keep(true),
    );
    return work;
  }

  moment(name: string): void {
    if (this.isOn && this.#moments.length < MAX_TIMED) this.#moments.push({ name, atMs: this.clock.wallMs() });
  }

  read(): Timeline {
    return { steps: this.#steps, moments: this.#moments };
  }
}

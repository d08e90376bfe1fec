import type { TraceEntry } from '../model/call-trace.js';
import type { Clock } from '../../lib/clock.js';
import { CallTimeline } from '../model/call-timeline.js';
import { maskSecrets } from './secrets.js';
import { withoutOwnHeaders } from '../../lib/own-headers.js';
import type { SrfRequest, SrfResponse } from '../ports/signalling.js';

/** The first ones and the last ones stay. */
const MAX_HEAD = 100;
const MAX_TAIL = 100;
const MAX_HEAD_CHARACTERS = 32_768;
const MAX_CHARACTERS = 65_536;
const MAX_TEXT = 8_192;
const MAX_SUMMARY = 200;

export interface TraceWatch {
  /** When steps ran is kept. */
  readonly isTimed?: boolean;
  readonly onSip?: ((direction: 'in' | 'out', text: string, atMs: number) => void) | undefined;
}

interface Kept {
  readonly atMs: number;
  readonly source: TraceEntry['source'];
  readonly direction: TraceEntry['direction'];
  summary: string;
  text: string | null;
}

/**
 * What happened in one call. While it lasts, texts are kept as they are, which costs next to nothing; what may not be shown is masked
 * when somebody reads.
 */
export class CallTrace {
  readonly #head: Kept[] = [];
  #tail: Kept[] = [];
  #characters = 0;
  #leftOut = 0;
  readonly #unsettled = new Set<() => void>();
  #onSettled: (() => void) | undefined;

  readonly timeline: CallTimeline;

  /** @param watch who else wants to know; texts are masked for it */
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

  /** A request of the carrier's, and whatever is answered to it. */
  received(request: Pick<SrfRequest, 'msg'> & Partial<Pick<SrfRequest, 'method' | 'uri'>>, response?: SrfResponse): void {
    if (!this.isOn && this.watch.onSip === undefined) return;
    this.sip('in', request.msg.raw, `${request.method ?? 'CANCEL'} ${request.uri ?? ''}`);
    if (response === undefined) return;
    onSent(response, (status, reason) => this.#sending(`SIP/2.0 ${String(status)} ${reason}`));
  }

  /** @param summary what stands for a message whose text is not known */
  sip(direction: 'in' | 'out', text: string | undefined, summary: string): void {
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

  /** Resolves when the text of every message that was sent is known. */
  settled(): Promise<void> {
    if (this.#unsettled.size === 0) return Promise.resolve();
    return new Promise((resolve) => {
      this.#onSettled = resolve;
    });
  }

  /** A request of ours is on its way; to be told when it was answered, or never will be. */
  expect(): () => void {
    const done = (): void => {
      this.#unsettled.delete(done);
      if (this.#unsettled.size === 0) this.#onSettled?.();
    };
    if (this.isOn) this.#unsettled.add(done);
    return done;
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
              summary: `${String(this.#leftOut)} entries are left out here`,
              text: null,
            } as const,
          ];
    return [...this.#head, ...gap, ...this.#tail].map(({ atMs, source, direction, summary, text }) => ({
      at: new Date(atMs).toISOString(),
      source,
      direction,
      summary: maskSecrets(summary).slice(0, MAX_SUMMARY),
      text: text === null ? null : maskSecrets(source === 'sip' ? withoutOwnHeaders(text) : text),
    }));
  }

  /** An answer of ours, whose text is known when the SIP server has sent it. */
  #sending(summary: string): (text: string | undefined) => void {
    const kept = this.isOn ? this.#keep('sip', 'out', summary, null) : null;
    const atMs = this.clock.wallMs();
    const done = this.expect();
    return (text) => {
      if (text !== undefined) this.#emit('out', text, atMs);
      if (text !== undefined && kept !== null) {
        kept.text = cut(text);
        kept.summary = firstLine(text, summary);
        // Of one that was left out meanwhile too: the sum is a bound, not a figure.
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
 * Told of everything that is sent as an answer, by us or by drachtio-srf itself.
 * @param onSend gets status and reason; what it returns gets the text once it was sent, `undefined` when it was not
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

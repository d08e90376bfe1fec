import { type SipMessage, serialize } from '../sip/message/message.js';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { TurnBatch } from '../lib/turn-batch.js';
import { nextSerialId } from '../lib/ids.js';
import type { Clock } from '../lib/clock.js';
import { DelayLimit } from '../lib/delay-limit.js';
import type { Log } from '../lib/log.js';
import {
  encodeFrame,
  FrameDecoder,
  formatAnswer,
  formatSip,
  parseCommand,
  type AppCommand,
  type SipFrame,
  formatCdr,
} from './control-protocol.js';

export interface AppLimits {
  readonly maxFrameBytes: number;
  /** Unread bytes at which we disconnect an application. */
  readonly maxUnsentFrameBytes: number;
}

export interface AppConnectionListener {
  onCommand(connection: AppConnection, command: AppCommand): void;
  onGone(connection: AppConnection): void;
}

/** The parts of the socket in use. */
export type ControlSocket = Duplex & Pick<Socket, 'setNoDelay' | 'setKeepAlive' | 'destroySoon' | 'remoteAddress' | 'remotePort'>;

/** An application's connection to the control port. */
export class AppConnection {
  isAuthenticated = false;
  tags: readonly string[] = [];
  readonly #decoder: FrameDecoder;
  readonly #writer: TurnBatch<string>;
  #isOpen = true;

  constructor(
    private readonly socket: ControlSocket,
    private readonly limits: AppLimits,
    private readonly listener: AppConnectionListener,
    private readonly log: Log,
  ) {
    this.#decoder = new FrameDecoder(limits.maxFrameBytes);
    this.#writer = new TurnBatch((texts) => this.#onWrite(texts.join('')));
    socket.setNoDelay(true);
    socket.setKeepAlive(true, 45_000);
    socket.on('data', (chunk: Buffer) => this.#onData(chunk));
    socket.on('error', () => socket.destroy());
    socket.on('close', () => {
      if (!this.#isOpen) return;
      this.#isOpen = false;
      this.#writer.clear();
      this.listener.onGone(this);
    });
  }

  get isOpen(): boolean {
    return this.#isOpen;
  }

  /** The application's identity across connections (tag `gw:<instance>`), or `null`. */
  get instance(): string | null {
    return this.tags.find((tag) => tag.startsWith('gw:')) ?? null;
  }

  get peer(): string {
    return `${this.socket.remoteAddress ?? ''}:${String(this.socket.remotePort ?? 0)}`;
  }

  sip(frame: SipFrame): void {
    this.#write(formatSip(nextSerialId(), frame));
  }

  /** Sends a formatted payload. */
  payload(text: string): void {
    this.#write(text);
  }

  answer(answered: string, verdict: 'OK' | 'NOK', ...fields: readonly string[]): void {
    this.#write(formatAnswer(nextSerialId(), answered, verdict, ...fields));
  }

  /** Answers `NO` and closes, as the protocol requires after fatal errors. */
  refuse(answered: string, reason: string): void {
    this.#write(formatAnswer(nextSerialId(), answered, 'NO', reason));
    this.#writer.flush();
    this.socket.end();
    this.socket.destroySoon();
  }

  close(): void {
    this.socket.destroy();
  }

  #onData(chunk: Buffer): void {
    for (const item of this.#decoder.push(chunk.toString('latin1'))) {
      if (item.type === 'error') {
        this.log.warn({ peer: this.peer, reason: item.reason }, 'sip_server.frame.bad');
        this.socket.destroy();
        return;
      }
      if (!this.#isOpen || this.socket.writableEnded) return;
      this.listener.onCommand(this, parseCommand(item.payload));
    }
  }

  #write(payload: string): void {
    if (this.#isOpen && !this.socket.writableEnded) this.#writer.push(encodeFrame(payload));
  }

  #onWrite(text: string): void {
    if (!this.#isOpen || this.socket.writableEnded) return;
    this.socket.write(text, 'latin1');
    if (this.socket.writableLength > this.limits.maxUnsentFrameBytes) {
      this.log.error({ peer: this.peer, bytes: this.socket.writableLength }, 'sip_server.application.not_reading');
      this.socket.destroy();
    }
  }
}

/** Minimum interval of pings. */
const PING_EACH_MS = 25;
/** Pings after this many calls; the application is behind after as many more: a pause at low load is no overload. */
const MIN_CALLS = 10;
/** Pings at low load too, with the second call after this time, so that a hung application is noticed. */
const IDLE_PING_MS = 1_000;
/** An application that leaves a ping unanswered for this long, and longer than it may be behind, is hung: it gets no calls until it answers, at any load. */
const SILENT_MS = 1_000;
/** After this time an unanswered ping counts as lost. */
const PING_LOST_MS = 10_000;

/**
 * Measures how far an application is behind. It reads its connection in order, so it answers an OPTIONS request after all earlier ones.
 * While a response is overdue, or if the last was 503, the application should get no further call.
 */
export class ApplicationPing {
  #transactionId: string | null = null;
  #sentMs: number;
  /** What its last answer said, if that was 503. */
  #busy: string | null = null;
  #isSilent = false;
  #calls = 0;
  readonly #limit: DelayLimit;

  /** @param send sends the application an OPTIONS request with this transaction id */
  constructor(
    private readonly clock: Clock,
    private readonly maxDelayMs: number,
    private readonly send: (transactionId: string) => void,
  ) {
    this.#limit = new DelayLimit(maxDelayMs);
    this.#sentMs = clock.nowMs() - PING_EACH_MS;
  }

  /** Call it for each new call: pings when due. True: the application is behind. */
  isBehind(): boolean {
    this.#calls += 1;
    const nowMs = this.clock.nowMs();
    const waitedMs = nowMs - this.#sentMs;
    if (this.#transactionId === null) {
      const isLoaded = waitedMs >= PING_EACH_MS && (this.#calls >= MIN_CALLS || this.#busy !== null);
      const isIdle = waitedMs >= IDLE_PING_MS && this.#calls > 1;
      if (!isLoaded && !isIdle) return this.#busy !== null;
    } else {
      this.#isSilent ||= waitedMs >= Math.max(SILENT_MS, this.maxDelayMs);
      if (waitedMs < PING_LOST_MS)
        return this.#isSilent || this.#busy !== null || (this.#calls >= MIN_CALLS && this.#limit.isExceeded(waitedMs, nowMs));
    }
    // An old 503 no longer counts.
    if (waitedMs > this.maxDelayMs) this.#busy = null;
    this.#transactionId = nextSerialId();
    this.#sentMs = nowMs;
    this.#calls = 0;
    this.send(this.#transactionId);
    return this.#isSilent || this.#busy !== null;
  }

  /** How far the application is behind, for a person: the figure and its limit. */
  get lag(): string {
    if (this.#busy !== null && !this.#isSilent) return this.#busy;
    const waitedMs = Math.round(this.clock.nowMs() - this.#sentMs);
    return `the gateway has not answered a question for ${String(waitedMs)} ms, limit ${String(this.maxDelayMs)} ms`;
  }

  /** False: the response belongs to another request. @param why it is overloaded, where it says so */
  onResponse(transactionId: string, status: number, why: string | undefined): boolean {
    if (transactionId !== this.#transactionId) return false;
    this.#transactionId = null;
    this.#busy = status === 503 ? (why ?? 'the gateway answered that it is overloaded') : null;
    this.#isSilent = false;
    return true;
  }
}

/** Routes methods to applications, round robin. Compares `T` by identity. */
export class Router<T> {
  readonly #slots = new Map<string, T[]>();
  readonly #offsets = new Map<string, number>();
  readonly #everRouted = new Set<string>();

  /** Routing a method twice takes two slots, as applications expect. */
  add(method: string, application: T): void {
    this.#everRouted.add(method);
    const slots = this.#slots.get(method);
    if (slots === undefined) this.#slots.set(method, [application]);
    else slots.push(application);
  }

  /** Removes the application's slots for this method only. */
  remove(method: string, application: T): void {
    this.#set(
      method,
      (this.#slots.get(method) ?? []).filter((candidate) => candidate !== application),
    );
  }

  removeAll(application: T): void {
    for (const method of [...this.#slots.keys()]) this.remove(method, application);
  }

  /** `method` in lower case. */
  next(method: string): T | undefined {
    const slots = this.#slots.get(method);
    if (slots === undefined) return undefined;
    const offset = (this.#offsets.get(method) ?? 0) % slots.length;
    this.#offsets.set(method, offset + 1);
    return slots[offset];
  }

  /** Every application with a slot for the method. */
  of(method: string): readonly T[] {
    return this.#slots.get(method) ?? [];
  }

  /** Whether any application routed it, now or before: then its absence is temporary. */
  isServed(method: string): boolean {
    return this.#everRouted.has(method);
  }

  /** Every routed SIP method, in lower case, without `cdr:` events. */
  methods(): string[] {
    return [...this.#slots.keys()].filter((name) => !name.includes(':'));
  }

  #set(method: string, slots: T[]): void {
    if (slots.length === 0) this.#slots.delete(method);
    else this.#slots.set(method, slots);
  }
}

/** Cause of the event. */
type CdrSource = 'network' | 'application';
type CdrRole = 'uac' | 'uas' | 'proxy-uas';
type CdrReason = 'call-rejected' | 'call-canceled' | 'normal-release' | 'session-expired' | 'ackbye';

/** Call detail events, for applications that route `cdr:attempt`, `cdr:start` or `cdr:stop`. */
export class CdrReporter {
  constructor(
    private readonly router: Router<AppConnection>,
    private readonly time: () => string,
  ) {}

  attempt(source: CdrSource, invite: SipMessage | string): void {
    this.#report('attempt', source, '', invite);
  }

  start(source: CdrSource, role: CdrRole, success: SipMessage | string): void {
    this.#report('start', source, role, success);
  }

  stop(source: CdrSource, reason: CdrReason, message: SipMessage | string): void {
    this.#report('stop', source, reason, message);
  }

  #report(event: 'attempt' | 'start' | 'stop', source: CdrSource, detail: string, message: SipMessage | string): void {
    const app = this.router.next(`cdr:${event}`);
    if (app === undefined) return;
    const text = typeof message === 'string' ? message : serialize(message);
    app.payload(formatCdr(nextSerialId(), event, source, this.time(), detail, text));
  }
}

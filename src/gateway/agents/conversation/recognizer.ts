import type { CancelTimer, Clock } from '../../../lib/clock.js';
import type { ListenService } from '../../model/speech-service.js';
import { causeOf, closedText } from '../provider/json-message.js';
import type { AgentSocket, DialSocket } from '../stream/socket.js';
import { fluxTarget, readFlux, type FluxEvent } from './flux.js';

/** Pieces of 80 ms, as the provider wants them. */
const PIECE_BYTES = 640;
/** What is kept while there is no connection: 2 s. */
const MAX_HELD_BYTES = 16_000;
const RETRY_MS = 250;
const MAX_ATTEMPTS = 4;
/** A connection that has lasted so long is not the one that fails. */
const SETTLED_MS = 5_000;
const MAX_UNSENT_BYTES = 64_000;

interface RecognizerEvents {
  /** It listens, for the first time. */
  onReady(): void;
  onEvent(event: Extract<FluxEvent, { type: 'update' | 'end-of-turn' }>): void;
  /** The connection failed, and is tried again. */
  onTrouble(message: string): void;
  /** It cannot go on. */
  onFailed(message: string): void;
}

/** Speech to text of one call: what the caller says, over a connection that is made again when it breaks. */
export class Recognizer {
  #socket: AgentSocket | null = null;
  #isReady = false;
  #stopDialling: () => void = () => undefined;
  #cancelRetry: CancelTimer = () => undefined;
  #piece = Buffer.alloc(PIECE_BYTES);
  #filled = 0;
  #held: Buffer[] = [];
  #attempts = 0;
  #connectedMs = 0;
  /** Counts connections: what an earlier one says is too late. */
  #connection = 0;
  #isClosed = false;
  #language = '';

  constructor(
    private readonly service: ListenService,
    private readonly hints: readonly string[],
    private readonly dial: DialSocket,
    private readonly clock: Clock,
    private readonly events: RecognizerEvents,
  ) {}

  /** Connects, or connects again for another language. @param language a language tag, or `multi` */
  listen(language: string): void {
    if (this.#isClosed || language === this.#language) return;
    this.#language = language;
    this.#attempts = 0;
    this.#connect();
  }

  /** µ-law of the caller; valid during the call only. */
  audio(bytes: Uint8Array): void {
    for (let at = 0; at < bytes.length;) {
      const part = Math.min(PIECE_BYTES - this.#filled, bytes.length - at);
      this.#piece.set(bytes.subarray(at, at + part), this.#filled);
      this.#filled += part;
      at += part;
      if (this.#filled < PIECE_BYTES) return;
      this.#filled = 0;
      this.#send(this.#piece);
    }
  }

  close(): void {
    this.#isClosed = true;
    this.#leave();
  }

  #connect(): void {
    this.#leave();
    const connection = (this.#connection += 1);
    const isCurrent = (): boolean => connection === this.#connection && !this.#isClosed;
    this.#stopDialling = this.dial(fluxTarget(this.service, this.#language, this.hints), {
      onOpen: (socket) => {
        if (isCurrent()) this.#socket = socket;
        else socket.close();
      },
      onFailed: (message) => isCurrent() && this.#onLost(`${message}${causeOf(/HTTP (\d{3})$/.exec(message)?.[1] ?? '')}`),
      onText: (text) => isCurrent() && this.#onText(text),
      onBinary: () => undefined,
      onPong: () => undefined,
      onClosed: (code, reason = '') => isCurrent() && this.#onLost(closedText(code, reason)),
    });
  }

  #onText(text: string): void {
    const event = readFlux(text);
    if (event === null) return;
    if (event.type === 'error') return this.#onLost(event.message);
    if (event.type !== 'connected') return this.events.onEvent(event);
    this.#isReady = true;
    this.#connectedMs = this.clock.nowMs();
    for (const piece of this.#held.splice(0)) this.#send(piece);
    this.events.onReady();
  }

  #onLost(message: string): void {
    if (this.#isReady && this.clock.nowMs() - this.#connectedMs >= SETTLED_MS) this.#attempts = 0;
    this.#leave();
    this.#attempts += 1;
    if (this.#attempts >= MAX_ATTEMPTS) {
      this.#isClosed = true;
      return this.events.onFailed(message);
    }
    this.events.onTrouble(message);
    this.#cancelRetry = this.clock.setTimer(RETRY_MS, () => this.#connect());
  }

  #send(piece: Buffer): void {
    if (this.#isClosed) return;
    if (this.#socket !== null && this.#isReady) {
      // A provider that does not read would hear the caller ever later.
      if (this.#socket.unsentBytes <= MAX_UNSENT_BYTES) this.#socket.sendBinary(Buffer.from(piece));
      return;
    }
    this.#held.push(Buffer.from(piece));
    if (this.#held.length * PIECE_BYTES > MAX_HELD_BYTES) this.#held.shift();
  }

  #leave(): void {
    this.#cancelRetry();
    this.#stopDialling();
    this.#connection += 1;
    this.#isReady = false;
    if (this.#socket !== null) {
      this.#socket.sendText(JSON.stringify({ type: 'CloseStream' }));
      this.#socket.close();
    }
    this.#socket = null;
  }
}

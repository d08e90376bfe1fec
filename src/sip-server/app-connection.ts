import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { TurnBatch } from '../lib/turn-batch.js';
import { nextSerialId } from '../lib/ids.js';
import type { Log } from '../lib/log.js';
import { encodeFrame, FrameDecoder } from './frame.js';
import { formatAnswer, formatSip, parseCommand, type AppCommand, type SipFrame } from './meta-line.js';

export interface AppLimits {
  readonly maxFrameBytes: number;
  /** Bytes that an application may leave unread before it is cut off. */
  readonly maxUnsentFrameBytes: number;
}

export interface AppConnectionListener {
  onCommand(connection: AppConnection, command: AppCommand): void;
  onGone(connection: AppConnection): void;
}

/** What is used of the socket. */
export type ControlSocket = Duplex & Pick<Socket, 'setNoDelay' | 'setKeepAlive' | 'destroySoon' | 'remoteAddress' | 'remotePort'>;

/** One application on the control port. */
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

  /** Who the application is across its connections (tag `gw:<instance>`), or `null`: it did not say. */
  get instance(): string | null {
    return this.tags.find((tag) => tag.startsWith('gw:')) ?? null;
  }

  get peer(): string {
    return `${this.socket.remoteAddress ?? ''}:${String(this.socket.remotePort ?? 0)}`;
  }

  sip(frame: SipFrame): void {
    this.#write(formatSip(nextSerialId(), frame));
  }

  /** A ready payload. */
  payload(text: string): void {
    this.#write(text);
  }

  answer(answered: string, verdict: 'OK' | 'NOK', ...fields: readonly string[]): void {
    this.#write(formatAnswer(nextSerialId(), answered, verdict, ...fields));
  }

  /** Answers `NO` and closes, as the protocol does for what it cannot go on after. */
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

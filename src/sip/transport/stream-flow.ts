import type { Socket } from 'node:net';
import { TLSSocket } from 'node:tls';
import type { CancelTimer, Clock } from '../../lib/clock.js';
import { TurnBatch } from '../../lib/turn-batch.js';
import { StreamFramer, type StreamLimits } from '../message/stream-framer.js';
import type { Endpoint, FlowListener, TlsFacts } from './flow.js';
import type { RetiringFlow } from './retirement.js';
import { identityOf } from './tls-identity.js';

export interface StreamFlowLimits extends StreamLimits {
  /** From the first byte of a message to its last. */
  readonly messageTimeoutMs: number;
  /** Unread bytes at which we disconnect a peer. */
  readonly maxUnsentBytes: number;
}

/** A TCP or TLS connection that carries SIP. */
export class StreamFlow implements RetiringFlow {
  readonly reliable = true;
  readonly #socket: Socket;
  readonly #listener: FlowListener;
  readonly #limits: StreamFlowLimits;
  readonly #clock: Clock;
  readonly #framer: StreamFramer;
  readonly #writer: TurnBatch<string>;
  #cancelMessageTimer: CancelTimer | undefined;
  #isOpen = true;
  #hasSpoken = false;
  #hasPong = false;
  #tlsIdentity: string | undefined;
  #tls: TlsFacts | null | undefined;

  constructor(
    socket: Socket,
    readonly transport: 'TLS' | 'TCP',
    readonly local: Endpoint,
    readonly remote: Endpoint,
    listener: FlowListener,
    limits: StreamFlowLimits,
    clock: Clock,
  ) {
    this.#socket = socket;
    this.#listener = listener;
    this.#limits = limits;
    this.#clock = clock;
    this.#framer = new StreamFramer(limits);
    this.#writer = new TurnBatch((texts) => this.#write(texts.join('')));
    socket.setNoDelay(true);
    // The kernel's probes detect a peer that vanished without a FIN.
    socket.setKeepAlive(true, 30_000);
    socket.on('data', (chunk: Buffer) => this.#onData(chunk));
    socket.on('error', () => this.close());
    socket.on('close', () => this.#onClosed());
    // Closes our side too: no requests follow, and responses need an open connection.
    socket.on('end', () => socket.end());
  }

  get isOpen(): boolean {
    return this.#isOpen;
  }

  pause(): void {
    this.#socket.pause();
  }

  get isMidMessage(): boolean {
    return this.#framer.isMidMessage;
  }

  retire(): Promise<void> {
    this.#writer.flush();
    const socket = this.#socket;
    const sent = new Promise<void>((resolve) => {
      socket.once('close', resolve);
      socket.end(resolve);
    });
    this.#onClosed();
    // What nobody reads would make the kernel reset the connection, and the peer lose what it has not read.
    socket.resume();
    return sent;
  }

  /** A complete message arrived: until then the peer is a stranger. */
  get hasSpoken(): boolean {
    return this.#hasSpoken;
  }

  get tlsIdentity(): string {
    const socket = this.#socket;
    this.#tlsIdentity ??= socket instanceof TLSSocket && socket.authorized ? identityOf(socket.getPeerCertificate()) : '';
    return this.#tlsIdentity;
  }

  get tls(): TlsFacts | null {
    const socket = this.#socket;
    this.#tls ??= socket instanceof TLSSocket ? tlsFactsOf(socket) : null;
    return this.#tls;
  }

  /** Whether a pong came since the last call. */
  takePong(): boolean {
    const hadPong = this.#hasPong;
    this.#hasPong = false;
    return this.#framer.takePong() || hadPong;
  }

  send(text: string): void {
    if (!this.#isOpen) return;
    this.#writer.push(text);
  }

  close(): void {
    this.#socket.destroy();
    this.#onClosed();
  }

  #write(text: string): void {
    if (!this.#isOpen) return;
    this.#socket.write(text, 'latin1');
    if (this.#socket.writableLength > this.#limits.maxUnsentBytes) this.close();
  }

  #onData(chunk: Buffer): void {
    if (!this.isOpen) return;
    const items = this.#framer.push(chunk.toString('latin1'));
    // The bytes left in the framer began in this read: the limit applies to each message, not to the connection.
    if (items.length > 0 || !this.#framer.isMidMessage) this.#stopMessageTimer();
    for (const item of items) {
      switch (item.type) {
        case 'message':
          this.#hasSpoken = true;
          this.#listener.onMessage(this, item.text);
          break;
        case 'ping':
          this.send('\r\n');
          break;
        case 'pong':
          this.#hasPong = true;
          break;
        case 'error':
          this.#listener.onSpoiled(this, item);
          this.#writer.flush();
          this.#socket.destroySoon();
          this.#onClosed();
          return;
      }
      if (!this.#isOpen) return;
    }
    // Limits the time for a message, however slowly its bytes arrive.
    if (this.#framer.isMidMessage) this.#cancelMessageTimer ??= this.#clock.setTimer(this.#limits.messageTimeoutMs, () => this.close());
  }

  #stopMessageTimer(): void {
    this.#cancelMessageTimer?.();
    this.#cancelMessageTimer = undefined;
  }

  #onClosed(): void {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    this.#writer.clear();
    this.#stopMessageTimer();
    this.#listener.onClose(this);
  }
}

function tlsFactsOf(socket: TLSSocket): TlsFacts {
  return { version: socket.getProtocol() ?? '', cipher: socket.getCipher().standardName };
}

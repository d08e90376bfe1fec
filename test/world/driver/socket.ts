import { Socket } from 'node:net';
import { currentProcess, type Possession, type WorldProcess } from './process.js';
import { later } from './time.js';

export interface SocketAddress {
  readonly address: string;
  readonly port: number;
}

/** What a connection through TLS shows: nothing is encrypted, since no test of the world is of TLS itself. */
const TLS_FACTS = {
  encrypted: true,
  // Nobody shows a certificate.
  authorized: false,
  alpnProtocol: false,
  getProtocol: () => 'TLSv1.3',
  getCipher: () => ({ name: 'TLS_AES_256_GCM_SHA384', standardName: 'TLS_AES_256_GCM_SHA384', version: 'TLSv1.3' }),
  getPeerCertificate: () => ({ subject: {} }),
  getPeerX509Certificate: () => undefined,
  getSession: () => undefined,
  isSessionReused: () => false,
  disableRenegotiation: () => undefined,
};

/** `onread` of net.connect: bytes come in one buffer, without the stream. */
export interface OnRead {
  readonly buffer: Uint8Array;
  readonly callback: (bytes: number, buffer: Uint8Array) => boolean;
}

/** One end of a connection within the test's process. What one end writes the other reads in a later turn of the event loop, as with a real one. */
export class WorldSocket extends Socket implements Possession {
  #other: WorldSocket | null = null;
  readonly #owner: WorldProcess | null;
  #timeoutMs = 0;
  #timer: NodeJS.Timeout | undefined;
  #wantsMore: (() => void) | null = null;
  /** What came while a reader by `onread` had paused. */
  readonly #held: (() => void)[] = [];
  #isPaused = false;
  #isCut = false;
  isTls = false;
  #local: SocketAddress = { address: '127.0.0.1', port: 0 };
  #remote: SocketAddress | undefined;

  constructor(
    owner: WorldProcess | null = currentProcess(),
    options: { readonly allowHalfOpen?: boolean } = {},
    private readonly onRead: OnRead | null = null,
  ) {
    super(options);
    this.#owner = owner;
    setConnecting(this, true);
    // Node's own are getters of a system's socket, which has none here.
    Object.defineProperties(this, {
      localAddress: { get: () => this.#local.address },
      localPort: { get: () => this.#local.port },
      remoteAddress: { get: () => this.#remote?.address },
      remotePort: { get: () => this.#remote?.port },
      remoteFamily: { value: 'IPv4' },
    });
    owner?.opened(this);
  }

  /** The connection stands: `connect` follows at both ends that wait for it. */
  static join(client: WorldSocket, server: WorldSocket, from: SocketAddress, to: SocketAddress): void {
    for (const one of [client, server]) setConnecting(one, false);
    [client.#other, server.#other] = [server, client];
    [client.#local, client.#remote, server.#local, server.#remote] = [from, to, to, from];
  }

  /** In the process of this end: the connection stands. */
  connected(): void {
    this.#inOwner(() => {
      this.emit('connect');
      this.emit('ready');
      if (this.isTls) this.emit('secureConnect');
    });
  }

  asTls(): this {
    this.isTls = true;
    return Object.assign(this, TLS_FACTS);
  }

  override setNoDelay(): this {
    return this;
  }

  override setKeepAlive(): this {
    return this;
  }

  override ref(): this {
    return this;
  }

  override unref(): this {
    return this;
  }

  /** Node's own timers of sockets are real. */
  override setTimeout(ms: number, onTimeout?: () => void): this {
    this.#timeoutMs = ms;
    if (onTimeout !== undefined) this.once('timeout', onTimeout);
    this.#touch();
    return this;
  }

  #touch(): void {
    clearTimeout(this.#timer);
    this.#timer = this.#timeoutMs > 0 ? setTimeout(() => this.emit('timeout'), this.#timeoutMs) : undefined;
  }

  override _read(): void {
    const more = this.#wantsMore;
    this.#wantsMore = null;
    more?.();
  }

  override _write(chunk: Buffer | string, encoding: BufferEncoding, done: (error?: Error | null) => void): void {
    if (this.connecting) {
      this.once('connect', () => this._write(chunk, encoding, done));
      return;
    }
    this.#touch();
    const bytes = typeof chunk === 'string' ? Buffer.from(chunk, encoding) : Buffer.from(chunk);
    this.#deliver(bytes, done);
  }

  override _writev(chunks: { chunk: Buffer | string; encoding: BufferEncoding }[], done: (error?: Error | null) => void): void {
    const bytes = chunks.map(({ chunk, encoding }) => (typeof chunk === 'string' ? Buffer.from(chunk, encoding) : chunk));
    this._write(Buffer.concat(bytes), 'binary', done);
  }

  override _final(done: () => void): void {
    if (this.connecting) {
      this.once('connect', () => this._final(done));
      return;
    }
    this.#deliver(null, done);
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    clearTimeout(this.#timer);
    this.#owner?.closed(this);
    const other = this.#other;
    if (other !== null && !this.#isCut) later(() => other.#gone());
    done(error);
    // Node's own sockets do so themselves, and not their stream.
    process.nextTick(() => this.#inOwner(() => this.emit('close', error !== null)));
  }

  /** The process at this end is gone: this end is silent from now on, and the other one hears that it is closed. */
  cut(): void {
    this.#isCut = true;
    clearTimeout(this.#timer);
    const other = this.#other;
    this.#other = null;
    if (other !== null) later(() => other.#gone());
  }

  /** In another turn, in the process of the other end; `done` once that one wants more, so that a reader that waits holds its writer up. */
  #deliver(bytes: Buffer | null, done: (error?: Error | null) => void): void {
    const other = this.#other;
    if (other === null || this.#isCut) {
      later(done);
      return;
    }
    later(() => {
      if (other.destroyed || other.#isCut) return done();
      other.#inOwner(() => {
        other.#touch();
        if (other.onRead !== null && bytes !== null) return other.#readInto(other.onRead, bytes, done);
        if (other.onRead !== null) other.resume();
        if (other.push(bytes)) done();
        else other.#wantsMore = bytes === null ? null : () => this.#inOwner(done);
        if (bytes === null) done();
      });
    });
  }

  /** Of a paused reader its writer waits. */
  #readInto(onRead: OnRead, bytes: Buffer, done: () => void): void {
    const read = (): void => {
      for (let at = 0; at < bytes.length && !this.destroyed; at += onRead.buffer.length) {
        const piece = bytes.subarray(at, at + onRead.buffer.length);
        onRead.buffer.set(piece);
        onRead.callback(piece.length, onRead.buffer);
      }
      done();
    };
    if (this.#isPaused) this.#held.push(read);
    else read();
  }

  override pause(): this {
    this.#isPaused = true;
    return this.onRead === null ? super.pause() : this;
  }

  override resume(): this {
    this.#isPaused = false;
    for (const read of this.#held.splice(0)) read();
    return super.resume();
  }

  #gone(): void {
    if (this.destroyed || this.#isCut) return;
    this.#other = null;
    this.#inOwner(() => {
      if (!this.readableEnded) this.push(null);
      this.destroy();
    });
  }

  #inOwner(work: () => void): void {
    if (this.#owner === null) work();
    else if (!this.#owner.isDead) this.#owner.run(work);
  }
}

function setConnecting(socket: Socket, isConnecting: boolean): void {
  Object.assign(socket, { connecting: isConnecting });
}

import { randomBytes } from 'node:crypto';
import { publish } from '../ports/events.js';
import { bdecode, bencode } from './bencode.js';
import BaseClient from 'rtpengine-client/lib/BaseClient.js';
import type { CancelTimer, Clock } from '../../lib/clock.js';
import { errorText } from '../../lib/result.js';
import { formatHostPort } from '../../lib/address.js';
import type { Log } from '../../lib/log.js';
import { PassingMap } from '../../lib/passing-map.js';
import { LONGEST_BYTES, UdpSocket } from '../../srtp/udp-socket.js';
import type { NgCommand } from './flags.js';

/** Why a command failed. */
export class RtpengineError extends Error {
  override readonly name = 'RtpengineError';

  constructor(
    readonly kind: 'timeout' | 'refused' | 'closed',
    message: string,
  ) {
    super(message);
  }
}

export type NgReply = Readonly<Record<string, unknown>>;

export interface NodeOptions {
  /** An IPv4 address: a name would need a look-up per datagram. */
  readonly address: string;
  readonly port: number;
  /** Time limit of one command, retransmissions included. */
  readonly timeoutMs: number;
  readonly clock: Clock;
  readonly log: Log;
}

/** With more outstanding, rtpengine's socket drops commands; with 64 it lost none. */
export const MAX_OUTSTANDING = 64;
const FIRST_RETRANSMIT_MS = 100;

/** Length of a cookie, by which rtpengine recognizes a retransmitted command. */
const COOKIE_CHARACTERS = 36;

/**
 * A transport of the package's, as its own are: on a socket that sends and reads many datagrams with one system call. It drops late
 * replies instead of throwing, and exposes a command's datagram, so that it can be retransmitted with the same cookie. Commands bypass the
 * package's `send_internal`, which formats two debug texts each, and replies bypass its two deferrals to a later turn.
 */
class UdpClient extends BaseClient {
  protected override readonly socket: UdpSocket;
  readonly #prefix = randomBytes(12).toString('hex');
  readonly #rtpengine: number;
  #commands = 0;

  constructor({ address, port }: { readonly address: string; readonly port: number }) {
    super({ type: 'udp' });
    this.messages = new PassingMap();
    const from = address.startsWith('127.') ? '127.0.0.1' : '0.0.0.0';
    // What others send is dropped.
    this.socket = new UdpSocket(from, 0, (_rtpengine, datagram) => this.#onReply(bufferOf(datagram)), LONGEST_BYTES);
    this.#rtpengine = this.socket.addPeer(address, port);
  }

  /** Returns the datagram; `callback` runs once, in a later turn. */
  command(name: NgCommand, args: object, callback: (error: unknown, reply?: NgReply) => void): Buffer {
    this.#commands += 1;
    const cookie = this.#prefix + String(this.#commands).padStart(COOKIE_CHARACTERS - this.#prefix.length, '0');
    const datagram = Buffer.from(`${cookie} ${bencode({ ...args, command: name })}`);
    if (datagram.length > LONGEST_BYTES)
      queueMicrotask(() => callback(new Error(`${name} has ${String(datagram.length)} bytes, which no datagram has room for`)));
    else {
      this.messages.set(cookie, callback);
      this.again(datagram);
    }
    return datagram;
  }

  /** At the end of this turn of the event loop. One that the system does not take is as good as lost: it is retransmitted. */
  again(datagram: Buffer): void {
    this.socket.send(this.#rtpengine, datagram, datagram.length);
  }

  forget(datagram: Buffer): void {
    this.messages.delete(cookieOf(datagram));
  }

  #onReply(message: Buffer): void {
    const cookie = cookieOf(message);
    const callback = this.messages.get(cookie);
    if (callback === undefined) return;
    this.messages.delete(cookie);
    let reply: NgReply;
    try {
      reply = bdecode(message, COOKIE_CHARACTERS + 1);
    } catch (error) {
      return callback(new Error(`the reply of rtpengine cannot be read: ${errorText(error)}`));
    }
    callback(null, reply);
  }
}

function bufferOf(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
}

function cookieOf(datagram: Buffer): string {
  return datagram.toString('latin1', 0, COOKIE_CHARACTERS);
}

interface Waiting {
  readonly name: NgCommand;
  readonly args: object;
  readonly timeoutMs: number;
  readonly sinceMs: number;
  /** Does not count as outstanding. */
  readonly isProbe: boolean;
  readonly resolve: (reply: NgReply) => void;
  readonly reject: (error: RtpengineError) => void;
}

/**
 * One rtpengine: commands with a time limit, retransmission with the same cookie, and a limit on outstanding ones. Beyond it offers wait
 * behind everything else: a call that has begun goes before a new one.
 */
export class RtpengineNode {
  readonly #client: UdpClient;
  readonly #queue: Waiting[] = [];
  readonly #offers: Waiting[] = [];
  /** Aborts each command that was sent. */
  readonly #giveUps = new PassingMap<number, (error: RtpengineError) => void>();
  #sent = 0;
  #outstanding = 0;
  #isClosed = false;

  constructor(private readonly options: NodeOptions) {
    this.#client = new UdpClient(options);
  }

  get outstanding(): number {
    return this.#outstanding + this.#queue.length + this.#offers.length;
  }

  /** How long the oldest offer has waited to be sent, in milliseconds; 0: none waits. */
  get delayMs(): number {
    const [oldest] = this.#offers;
    return oldest === undefined ? 0 : this.options.clock.nowMs() - oldest.sinceMs;
  }

  /** Rejects with `RtpengineError`: `refused` carries rtpengine's own reason. */
  command(name: NgCommand, args: object = {}): Promise<NgReply> {
    const { clock, address, port } = this.options;
    const startedMs = clock.nowMs();
    const ended = (failure: RtpengineError['kind'] | null): void =>
      publish('rtpengine.command', { node: formatHostPort(address, port), command: name, tookMs: clock.nowMs() - startedMs, failure });
    return new Promise((resolve_, reject_) => {
      const resolve = (reply: NgReply): void => {
        ended(null);
        resolve_(reply);
      };
      const reject = (error: RtpengineError): void => {
        ended(error.kind);
        reject_(error);
      };
      if (this.#isClosed) return reject(new RtpengineError('closed', 'the connection to rtpengine is closed'));
      const waiting = { name, args, timeoutMs: this.options.timeoutMs, sinceMs: startedMs, isProbe: false, resolve, reject };
      (name === 'offer' ? this.#offers : this.#queue).push(waiting);
      this.#pump();
    });
  }

  /** A command that checks whether the node lives: it bypasses the limit on outstanding ones, and has its own timeout. */
  probe(name: NgCommand, timeoutMs: number): Promise<NgReply> {
    return new Promise((resolve, reject) => {
      if (this.#isClosed) return reject(new RtpengineError('closed', 'the connection to rtpengine is closed'));
      this.#send({ name, args: {}, timeoutMs, isProbe: true, resolve, reject });
    });
  }

  /** Aborts all pending commands: the node is dead. */
  abandon(): void {
    const error = new RtpengineError('timeout', `rtpengine at ${this.options.address}:${this.options.port} does not answer`);
    for (const { reject } of this.#unsent()) reject(error);
    for (const giveUp of [...this.#giveUps.values()]) giveUp(error);
  }

  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    for (const { reject } of this.#unsent()) reject(new RtpengineError('closed', 'the connection to rtpengine is closed'));
    this.#client.close();
  }

  #unsent(): Waiting[] {
    return [...this.#queue.splice(0), ...this.#offers.splice(0)];
  }

  #pump(): void {
    while (this.#outstanding < MAX_OUTSTANDING) {
      const next = this.#queue.shift() ?? this.#offers.shift();
      if (next === undefined) return;
      this.#outstanding += 1;
      this.#send(next);
    }
  }

  #send({ name, args, timeoutMs, isProbe, resolve, reject }: Omit<Waiting, 'sinceMs'>): void {
    const { clock, address, port } = this.options;
    const id = (this.#sent += 1);
    let cancel: CancelTimer | undefined;
    let isDone = false;
    const done = (): boolean => {
      if (isDone) return false;
      isDone = true;
      cancel?.();
      this.#giveUps.delete(id);
      if (!isProbe) {
        this.#outstanding -= 1;
        this.#pump();
      }
      return true;
    };
    const datagram = this.#client.command(name, args, (error, data) => {
      if (!done()) return;
      if (error !== null) reject(new RtpengineError('refused', errorText(error)));
      else if (data?.['result'] === 'error') reject(new RtpengineError('refused', errorText(data['error-reason'])));
      else resolve(data ?? {});
    });
    const giveUp = (error: RtpengineError): void => {
      this.#client.forget(datagram);
      if (done()) reject(error);
    };
    // What counts is what the waits take, not the time: after a stall of ours the reply is here, and is read before the next wait ends.
    const wait = (delayMs: number, leftMs: number): void => {
      const takesMs = Math.min(delayMs, leftMs);
      cancel = clock.setTimer(takesMs, () => {
        if (this.#isClosed || takesMs === leftMs) {
          giveUp(new RtpengineError('timeout', `rtpengine at ${address}:${port} did not answer ${name} within ${timeoutMs} ms`));
          return;
        }
        // The same cookie: rtpengine repeats its stored reply instead of executing the command twice.
        this.#client.again(datagram);
        wait(delayMs * 2, leftMs - takesMs);
      });
    };
    if (!isProbe) this.#giveUps.set(id, giveUp);
    wait(FIRST_RETRANSMIT_MS, timeoutMs);
  }
}

import { isUtf8 } from 'node:buffer';
import { randomBytes } from 'node:crypto';
import { connect as connectTcp, isIP, type LookupFunction, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { bareHost } from '../../../lib/address.js';
import type { Clock } from '../../../lib/clock.js';
import { errorText } from '../../../lib/result.js';
import { systemClock } from '../../../lib/system-clock.js';
import { CLOSE_CODE, closePayload, FrameReader, frameOf, OPCODE } from './frames.js';
import { ReadAllowance } from './read-allowance.js';
import type { AgentSocket, AgentSocketEvents } from './socket.js';
import { UpgradeAnswer, upgradeText } from './upgrade.js';

export interface WebSocketOptions {
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
  readonly lookup: LookupFunction;
  /** PEM; without it, the certificates that Node.js trusts. */
  readonly ca?: readonly string[];
  readonly maxMessageBytes: number;
}

/** The peer has so long for its own close frame and for the end of the connection. */
const CLOSE_TIMEOUT_MS = 30_000;
/** More than this unsent, and pings are not answered: their sender reads nothing. */
const MAX_UNSENT_PONGS_BYTES = 65_536;

/** One read at a time, of whichever connection of the thread. */
const READ = Buffer.allocUnsafeSlow(65_536);

/**
 * A client's connection by WebSocket (RFC 6455): no extensions, no subprotocol, no redirects. Half of what a call's media costs in
 * JavaScript was ws' way through Node's streams: here bytes are read into one buffer, and a message is one frame and one write.
 */
export class ClientWebSocket implements AgentSocket {
  readonly #socket: Socket;
  readonly #reader: FrameReader;
  #answer: UpgradeAnswer | null;
  #state: 'connecting' | 'open' | 'closing' | 'over' = 'connecting';
  #closeTimer: NodeJS.Timeout | undefined;
  /** The latest one that is not answered yet. */
  #ping: Buffer | null = null;
  readonly #allowance: ReadAllowance;

  /** @throws Error if a header cannot be sent */
  constructor(
    { url, headers, lookup, ca, maxMessageBytes }: WebSocketOptions,
    private readonly events: AgentSocketEvents,
    private readonly clock: Pick<Clock, 'nowMs' | 'setTimer'> = systemClock,
  ) {
    this.#allowance = new ReadAllowance(clock.nowMs());
    const key = randomBytes(16).toString('base64');
    const request = upgradeText({ url, headers, key });
    this.#answer = new UpgradeAnswer(key);
    this.#reader = new FrameReader(maxMessageBytes, {
      onText: (buffer, start, end) => this.#state !== 'open' || this.#takeText(buffer, start, end),
      onBinary: (buffer, start, end) => this.#state === 'open' && events.onBinary(Buffer.from(buffer.subarray(start, end))),
      onPing: (buffer, start, end) => (this.#ping = Buffer.from(buffer.subarray(start, end))),
      onPong: (buffer, start, end) => this.#state === 'open' && events.onPong(Number.parseInt(buffer.toString('latin1', start, end), 10)),
      onClose: (code, reason) => this.#onClose(code, reason),
      onFault: (code) => this.#onFault(code),
    });
    const host = bareHost(url.hostname);
    const isEncrypted = url.protocol === 'wss:';
    const common = {
      host,
      port: Number(url.port === '' ? (isEncrypted ? 443 : 80) : url.port),
      lookup,
      onread: {
        buffer: READ,
        callback: (bytes: number) => {
          this.#read(bytes);
          return true;
        },
      },
    };
    this.#socket = isEncrypted
      ? connectTls({
          ...common,
          servername: isIP(host) === 0 ? host : '',
          minVersion: 'TLSv1.2',
          ALPNProtocols: ['http/1.1'],
          ...(ca === undefined ? {} : { ca: [...ca] }),
        })
      : connectTcp(common);
    this.#socket.setNoDelay(true);
    this.#socket.once(isEncrypted ? 'secureConnect' : 'connect', () => this.#socket.write(request, 'latin1'));
    // `close` fires next.
    this.#socket.on('error', (error) => this.#fail(errorText(error)));
    this.#socket.on('close', () => this.#onGone());
  }

  /** Ends the attempt, without a word; nothing once it is open. */
  giveUp(): void {
    if (this.#state === 'connecting') this.terminate();
  }

  get unsentBytes(): number {
    return this.#socket.writableLength;
  }

  sendText(text: string): void {
    this.#write(OPCODE.text, text);
  }

  sendUtf8(bytes: Uint8Array): void {
    this.#write(OPCODE.text, bytes);
  }

  sendBinary(bytes: Uint8Array): void {
    this.#write(OPCODE.binary, bytes);
  }

  ping(serial: number): void {
    this.#write(OPCODE.ping, String(serial));
  }

  close(): void {
    this.#leave(CLOSE_CODE.normal, '');
  }

  terminate(): void {
    this.#state = 'over';
    this.#socket.destroy();
  }

  #write(opcode: (typeof OPCODE)[keyof typeof OPCODE], payload: Uint8Array | string): void {
    if (this.#state === 'open') this.#socket.write(frameOf(opcode, payload));
  }

  #read(bytes: number): void {
    const pauseMs = this.#allowance.take(bytes, this.clock.nowMs());
    if (pauseMs > 0) {
      this.#socket.pause();
      this.clock.setTimer(pauseMs, () => this.#socket.resume());
    }
    if (this.#answer === null) return this.#readFrames(READ, bytes);
    const outcome = this.#answer.read(READ.subarray(0, bytes));
    if (outcome === null) return;
    this.#answer = null;
    if (!outcome.ok) return this.#fail(outcome.message);
    if (this.#state !== 'connecting') return;
    this.#state = 'open';
    this.events.onOpen(this);
    this.#readFrames(outcome.rest, outcome.rest.length);
  }

  #takeText(buffer: Buffer, start: number, end: number): boolean {
    if (this.events.takeText?.(buffer, start, end) === true) return true;
    if (!isUtf8(buffer.subarray(start, end))) return false;
    this.events.onText(buffer.toString('utf8', start, end));
    return true;
  }

  #readFrames(buffer: Buffer, bytes: number): void {
    this.#reader.read(buffer, 0, bytes);
    // Of many pings only the latest need be answered (RFC 6455 §5.5.3): thousands fit into one read.
    if (this.#ping !== null && this.unsentBytes <= MAX_UNSENT_PONGS_BYTES) this.#write(OPCODE.pong, this.#ping);
    this.#ping = null;
  }

  #onClose(code: number, reason: string): void {
    if (this.#state === 'open') {
      this.#leave(code, reason);
      this.events.onClosed(code, reason);
    }
    this.#socket.end();
  }

  #onFault(code: number): void {
    const isOpen = this.#state === 'open';
    this.#leave(code, '');
    this.#socket.destroySoon();
    if (isOpen) this.events.onClosed(CLOSE_CODE.abnormal);
  }

  /** Says that it closes, and waits for the peer. */
  #leave(code: number, reason: string): void {
    if (this.#state !== 'open') return this.terminate();
    this.#write(OPCODE.close, code === CLOSE_CODE.none ? '' : closePayload(code, reason));
    this.#state = 'closing';
    this.#closeTimer = setTimeout(() => this.#socket.destroy(), CLOSE_TIMEOUT_MS).unref();
  }

  #fail(message: string): void {
    if (this.#state !== 'connecting') return;
    this.terminate();
    this.events.onFailed(message);
  }

  #onGone(): void {
    clearTimeout(this.#closeTimer);
    this.#fail('the connection was closed');
    if (this.#state !== 'open') return;
    this.#state = 'over';
    this.events.onClosed(CLOSE_CODE.abnormal);
  }
}

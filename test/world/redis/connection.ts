import type { Duplex } from 'node:stream';
import { encode, type Reply } from './reply.js';
import { Requests } from './requests.js';

interface Transaction {
  readonly queued: (() => Reply)[];
  /** A command could not be queued. */
  isBroken: boolean;
}

/** One connection, and what Redis keeps of it. */
export class Connection {
  readonly requests = new Requests();
  readonly channels = new Set<string>();
  protocol: 2 | 3 = 2;
  name = '';
  transaction: Transaction | null = null;
  /** It takes no more commands, and is closed behind what was answered. */
  isEnding = false;
  #unsent = '';

  constructor(
    readonly id: number,
    private readonly socket: Duplex,
    private readonly onUnsent: () => void,
  ) {}

  /** In RESP2, one that has subscribed takes no other commands. */
  get isSubscriber(): boolean {
    return this.protocol === 2 && this.channels.size > 0;
  }

  send(reply: Reply): void {
    if (this.#unsent === '') this.onUnsent();
    this.#unsent += encode(reply, this.protocol);
  }

  /** Writes what was sent. */
  flush(): void {
    const bytes = this.#unsent;
    this.#unsent = '';
    if (bytes !== '' && this.socket.writable) this.socket.write(Buffer.from(bytes, 'latin1'));
    if (this.isEnding) this.socket.end();
  }

  /** The other side sends no more. */
  end(): void {
    this.isEnding = true;
    this.flush();
  }

  /** What the other side has sent and was not read is lost. */
  destroy(): void {
    this.isEnding = true;
    this.#unsent = '';
    this.socket.destroy();
  }
}

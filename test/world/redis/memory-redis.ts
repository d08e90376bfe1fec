import type { Duplex } from 'node:stream';
import type { Clock } from '../../../src/lib/clock.js';
import { Connection } from './connection.js';
import { execute, type Refusal } from './execute.js';
import { Keyspace } from './keyspace.js';
import { Push, RedisError } from './reply.js';
import { Scripts } from './scripts.js';

/**
 * A Redis 7.0 in this process, for what the product asks of one: its scripts, too, in RESP2 or RESP3. Time is the clock's. It does nothing by
 * itself, and answers within the call in which a command comes. What it does not know it answers with an error.
 */
export class MemoryRedis {
  readonly keys: Keyspace;
  readonly scripts = new Scripts(this);
  /** As INFO tells it. Above `maxBytes` (0: no limit) it takes no writes that need memory. */
  memory = { usedBytes: 1 << 20, maxBytes: 0, policy: 'noeviction' };
  /** Why it takes no writes: it is a replica now, lacks one, or cannot save its data. `null`: it takes them. */
  refusal: Refusal | null = null;
  /** How many replicas have what was written. */
  replicas = 0;
  /** How often each command came, those of scripts among them. */
  readonly counts = new Map<string, number>();
  readonly #connections = new Set<Connection>();
  /** Those with answers that are not sent yet. */
  readonly #unsent = new Set<Connection>();
  /** What came while it stands still; `null`: it does not. */
  #stalled: (() => void)[] | null = null;
  #isFlushing = false;
  #lastId = 0;

  constructor(readonly clock: Pick<Clock, 'wallMs'>) {
    this.keys = new Keyspace(clock);
  }

  /** Serves a connection. */
  accept(socket: Duplex): void {
    this.#lastId += 1;
    const connection = new Connection(this.#lastId, socket, () => this.#unsent.add(connection));
    this.#connections.add(connection);
    socket.on('data', (chunk: Buffer) => this.#serve(() => this.#receive(connection, chunk)));
    socket.on('end', () => this.#serve(() => connection.end()));
    socket.on('error', () => undefined);
    socket.on('close', () => this.#connections.delete(connection));
  }

  /** Answers nothing from now on, and keeps its connections. */
  stall(): void {
    this.#stalled ??= [];
  }

  /** Goes on, with all that came meanwhile: also from those who have given it up. */
  go(): void {
    const waiting = this.#stalled ?? [];
    this.#stalled = null;
    for (const work of waiting) work();
  }

  /** @param name only those that have this name */
  dropConnections(name?: string): void {
    for (const connection of this.#connections) {
      if (name !== undefined && connection.name !== name) continue;
      this.#connections.delete(connection);
      this.#unsent.delete(connection);
      connection.destroy();
    }
  }

  /** Ends at once, and begins again with its data, or without. It has no scripts then. */
  crash({ forget = false } = {}): void {
    this.dropConnections();
    this.#stalled = null;
    this.scripts.flush();
    if (forget) this.keys.clear();
  }

  /** Sends a message to everyone who has subscribed; returns how many. */
  publish(channel: string, message: string): number {
    let told = 0;
    for (const connection of this.#connections) {
      if (!connection.channels.has(channel)) continue;
      connection.send(new Push(['message', channel, message]));
      told += 1;
    }
    return told;
  }

  subscribers(channel: string): number {
    return [...this.#connections].filter(({ channels }) => channels.has(channel)).length;
  }

  #serve(work: () => void): void {
    if (this.#stalled === null) work();
    else this.#stalled.push(work);
  }

  #receive(connection: Connection, chunk: Buffer): void {
    try {
      for (const words of connection.requests.take(chunk)) {
        if (connection.isEnding) break;
        connection.send(execute(this, words, connection));
      }
    } catch (error) {
      if (!(error instanceof RedisError)) throw error;
      connection.send(error);
      connection.isEnding = true;
    }
    this.#flush();
  }

  /** Answers go out when all commands that came are done: who reads one may send more at once. */
  #flush(): void {
    if (this.#isFlushing) return;
    this.#isFlushing = true;
    try {
      for (const connection of this.#unsent) {
        this.#unsent.delete(connection);
        connection.flush();
      }
    } finally {
      this.#isFlushing = false;
    }
  }
}

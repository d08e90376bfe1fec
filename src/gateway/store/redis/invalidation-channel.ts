import type { CancelTimer, Clock } from '../../../lib/clock.js';
import { errorText } from '../../../lib/result.js';
import type { Log } from '../../../lib/log.js';
import { CHANGES_CHANNEL } from './keys.js';
import type { RedisConnection } from './redis.js';

export interface InvalidationListener {
  /** The record under this key was written. */
  onChange(key: string): void;
  /** What is heard beside changes: a channel, and what to do with its messages. */
  readonly also: { readonly channel: string; take(message: string): void };
  /** Changes may have been missed before this moment; from now on they are told. */
  onGap(): void;
  /** From now on they may be missed. */
  onLost(): void;
}

const RETRY_MS = 1_000;

/** Hears of every record that any gateway writes, over a connection of its own, which Redis wants for that. */
export class InvalidationChannel {
  #isPinging = false;
  #isReported = false;
  #cancelRetry: CancelTimer | undefined;

  constructor(
    private readonly redis: RedisConnection,
    private readonly listener: InvalidationListener,
    private readonly clock: Clock,
    private readonly log: Log,
  ) {
    redis.client.on('message', (channel: string, message: string) => {
      if (channel === CHANGES_CHANNEL) listener.onChange(message);
      else listener.also.take(message);
    });
    redis.client.on('ready', () => void this.#subscribe());
    redis.client.on('close', () => listener.onLost());
  }

  /** A connection that says nothing may be dead: one that leaves a question without an answer is dialled again. */
  check(): void {
    const { client } = this.redis;
    if (this.#isPinging || client.status !== 'ready') return;
    this.#isPinging = true;
    client
      .ping()
      .catch(() => undefined)
      .finally(() => {
        this.#isPinging = false;
      });
  }

  close(): Promise<void> {
    this.#cancelRetry?.();
    return this.redis.close();
  }

  async #subscribe(): Promise<void> {
    const { client } = this.redis;
    this.#cancelRetry?.();
    try {
      await client.subscribe(CHANGES_CHANNEL, this.listener.also.channel);
      this.#isReported = false;
      this.listener.onGap();
    } catch (error) {
      // Lost again: the next connection subscribes. Still there: refused, by an ACL for instance.
      if (client.status !== 'ready') return;
      if (!this.#isReported) this.log.warn({ error: errorText(error) }, 'redis.invalidation.refused');
      this.#isReported = true;
      this.#cancelRetry = this.clock.setTimer(RETRY_MS, () => void this.#subscribe());
    }
  }
}

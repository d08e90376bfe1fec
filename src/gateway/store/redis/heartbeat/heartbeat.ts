import { randomInt } from 'node:crypto';
import { Cluster } from 'ioredis';
import type { CancelTimer, Clock } from '../../../../lib/clock.js';
import { gatewayChannel, GATEWAYS_KEY } from '../keys.js';
import { RedisScript, type RedisConnection } from '../redis.js';

const BEAT = new RedisScript('heartbeat/beat');
const BEAT_MS = 200;
/** A route that is remembered is used only while the last beat that came back is younger. */
export const FRESH_MS = 500;
/** Longer than a beat is fresh: every gateway that may use a route confirms its change. */
const LIVES_MS = 1_000;
const PREFIX = 'beat ';

/**
 * Proves that no change was missed: a gateway publishes beats to its own channel and gets them back over the subscription that announces
 * changes. What was published before a beat was told before it. On a cluster a beat goes through every primary, as changes do.
 */
export class Heartbeat {
  /** Number of the current subscription; 0: there is none. */
  #session = 0;
  /** Its successor has the same channel for a moment. */
  #sessions = randomInt(2 ** 32);
  /** By primary, when its last beat that came back was sent. */
  readonly #sentMs = new Map<string, number>();
  /** Through which the last beat was sent; a single Redis has no name. */
  #primaries: readonly string[] = [];
  #cancel: CancelTimer | undefined;

  constructor(
    private readonly redis: RedisConnection,
    /** Over it goes what the API asks. */
    private readonly api: RedisConnection,
    private readonly instance: string,
    private readonly clock: Clock,
  ) {}

  get isFresh(): boolean {
    const sinceMs = this.clock.nowMs() - FRESH_MS;
    return (
      this.#session !== 0 && this.#primaries.length > 0 && this.#primaries.every((name) => (this.#sentMs.get(name) ?? -Infinity) > sinceMs)
    );
  }

  /** Changes are told from now on. */
  begin(): void {
    this.stop();
    this.#sessions += 1;
    this.#session = this.#sessions;
    this.#beatOn(this.#session);
  }

  /** Changes may be missed from now on. */
  stop(): void {
    this.#session = 0;
    this.#sentMs.clear();
    this.#cancel?.();
  }

  /** Nobody waits for this gateway any more. */
  async close(): Promise<void> {
    this.stop();
    await this.#beat(0).catch(() => undefined);
  }

  /** A message of this gateway's channel; false: it is not a beat. */
  take(message: string): boolean {
    if (!message.startsWith(PREFIX)) return false;
    const [session, sentMs, primary = ''] = message.slice(PREFIX.length).split(' ');
    if (Number(session) === this.#session) this.#sentMs.set(primary, Number(sentMs));
    return true;
  }

  /** Every gateway that may use what it remembers. */
  gateways(): Promise<readonly string[]> {
    return this.#beat(LIVES_MS, this.api);
  }

  /** The same, for a program that takes no calls. */
  others(): Promise<readonly string[]> {
    return this.#beat(0, this.api);
  }

  /** One that Redis does not answer is not followed by more. */
  #beatOn(session: number): void {
    void this.#beat(LIVES_MS)
      .catch(() => undefined)
      .then(() => {
        if (this.#session === session) this.#cancel = this.clock.setTimer(BEAT_MS, () => this.#beatOn(session));
      });
  }

  async #beat(livesMs: number, redis = this.redis): Promise<readonly string[]> {
    const { client } = redis;
    const channel = gatewayChannel(this.instance);
    const text = `${PREFIX}${String(this.#session)} ${String(this.clock.nowMs())}`;
    const gateways = await redis.script(BEAT, [GATEWAYS_KEY], [this.instance, livesMs, channel, text]);
    if (!(client instanceof Cluster)) this.#primaries = [''];
    else {
      const primaries = client.nodes('master').map((node) => ({ node, name: `${node.options.host ?? ''}:${String(node.options.port)}` }));
      this.#primaries = primaries.map(({ name }) => name);
      await redis.run(() => Promise.all(primaries.map(({ node, name }) => node.publish(channel, `${text} ${name}`))));
    }
    return gateways as string[];
  }
}

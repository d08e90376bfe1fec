import { errorText } from '../../../lib/result.js';
import { TurnBatch } from '../../../lib/turn-batch.js';
import { RedisScript, storeError, type RedisCommand, type RedisConnection } from './redis.js';

const WRITE_TOGETHER = new RedisScript('write-together');
/** Redis serves nobody else while it runs one script. */
const WRITES_AT_ONCE = 500;

interface Write {
  readonly command: RedisCommand;
  readonly settle: (error?: Error) => void;
}

/**
 * Writes of all calls in one turn of the event loop: one command of the client's, and one round trip. Of a cluster, one for each hash tag.
 * Each write has one key, its first argument.
 */
export class TurnWrites {
  readonly #batch: TurnBatch<Write>;
  readonly #before: (() => void)[] = [];

  constructor(private readonly redis: RedisConnection) {
    this.#batch = new TurnBatch((writes) => this.#send(writes));
  }

  /** What is to be sent before any write. */
  before(send: () => void): void {
    this.#before.push(send);
  }

  /** Resolves when all are written, in order where they have one hash tag; rejects with the first error among them. */
  write(commands: readonly RedisCommand[]): Promise<void> {
    return new Promise((resolve, reject) => {
      let waiting = commands.length;
      const settle = (error?: Error): void => {
        waiting -= 1;
        if (error !== undefined) reject(error);
        else if (waiting === 0) resolve();
      };
      if (waiting === 0) resolve();
      for (const command of commands) this.#batch.push({ command, settle });
    });
  }

  /** Sends at once what waits. */
  flush(): void {
    this.#batch.flush();
  }

  #send(writes: readonly Write[]): void {
    for (const send of this.#before) send();
    for (const group of this.redis.isCluster ? byTag(writes) : [writes])
      for (let from = 0; from < group.length; from += WRITES_AT_ONCE) void this.#run(group.slice(from, from + WRITES_AT_ONCE));
  }

  async #run(writes: readonly Write[]): Promise<void> {
    const words: (string | number)[] = [];
    for (const { command } of writes) words.push(command.length, ...command);
    const errors = new Map<number, Error>();
    try {
      // In full: sent again after NOSCRIPT, a write would come behind a later one.
      const failed = await this.redis.run((client) => client.eval(WRITE_TOGETHER.source, 1, keyOf(writes[0]), ...words));
      if (!Array.isArray(failed)) throw new Error('write-together.lua answered no array');
      for (let at = 0; at < failed.length; at += 2) errors.set(Number(failed[at]), storeError(String(failed[at + 1])));
    } catch (error) {
      const failure = error instanceof Error ? error : new Error(errorText(error));
      for (const { settle } of writes) settle(failure);
      return;
    }
    writes.forEach(({ settle }, place) => settle(errors.get(place)));
  }
}

function keyOf(write: Write | undefined): string {
  return String(write?.command[1]);
}

/** Groups by hash tag, each in order. */
function byTag(writes: readonly Write[]): readonly (readonly Write[])[] {
  const groups = new Map<string, Write[]>();
  for (const write of writes) {
    const key = keyOf(write);
    const tag = /\{([^}]+)\}/.exec(key)?.[1] ?? key;
    const group = groups.get(tag);
    if (group === undefined) groups.set(tag, [write]);
    else group.push(write);
  }
  return [...groups.values()];
}

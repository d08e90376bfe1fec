import { executeInScript, type RunningScript } from './execute.js';
import type { Connection } from './connection.js';
import { compile, runCompiled, sha1Of } from './lua-vm.js';
import type { MemoryRedis } from './memory-redis.js';
import { RedisError, type Reply } from './reply.js';

/** The scripts that one Redis knows, until it starts again. */
export class Scripts {
  readonly #known = new Set<string>();

  constructor(private readonly redis: MemoryRedis) {}

  /** Returns its SHA-1, in hex. */
  load(source: string): string {
    const sha1 = sha1Of(source);
    compile(sha1, source);
    this.#known.add(sha1);
    return sha1;
  }

  has(sha1: string): boolean {
    return this.#known.has(sha1);
  }

  flush(): void {
    this.#known.clear();
  }

  run(sha1: string, keys: readonly string[], args: readonly string[], connection: Connection): Reply {
    if (!this.#known.has(sha1)) throw new RedisError('NOSCRIPT No matching script. Please use EVAL.');
    const script: RunningScript = { hasWritten: false };
    return runCompiled(sha1, keys, args, (words) => executeInScript(this.redis, words, connection, script));
  }
}

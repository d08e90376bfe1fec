import type { Worker } from 'node:worker_threads';
import type { Clock } from '../../lib/clock.js';
import { FairTurns } from '../../lib/fair-turns.js';
import { err, ok, type Result } from '../../lib/result.js';
import { startThread } from '../../lib/thread.js';
import type { Picked, PickOrder, ResultPathsByName } from './pick-results.js';

export interface ResultPaths {
  /** Applies the paths to a text of JSON: one value as it is, several as a list, none as null. The error is a sentence for a person. */
  pick(orgId: string, paths: ResultPathsByName, text: string): Promise<Result<unknown, string>>;
  close(): Promise<void>;
}

const LIMIT_MS = 1_000;
const MAX_MEMORY_MB = 128;
const MAX_OF_AN_ORG = 21;

/**
 * Searches answers in a thread of its own. How long a path takes depends on the answer, which a tool's server chooses: so it has a limit of
 * time and memory, and each organization has one turn at a time.
 */
export class ThreadedResultPaths implements ResultPaths {
  readonly #turns: FairTurns;
  #thread: Worker | undefined;
  /** Ends the order that the thread has. */
  #settle: (outcome: Result<unknown, string>) => void = () => undefined;

  constructor(private readonly clock: Clock) {
    this.#turns = new FairTurns({ atOnce: 1, atOnceOfOne: 1, maxSize: MAX_OF_AN_ORG, rest: 1 }, clock);
  }

  async pick(orgId: string, paths: ResultPathsByName, text: string): Promise<Result<unknown, string>> {
    const picked = this.#turns.run(orgId, 1, () => this.#pick({ paths, text }));
    return picked ?? err('too many responses of the organization wait to be searched');
  }

  async close(): Promise<void> {
    await this.#thread?.terminate();
  }

  #pick(order: PickOrder): Promise<Result<unknown, string>> {
    return new Promise((resolve) => {
      const cancel = this.clock.setTimer(LIMIT_MS, () => this.#abandon(`searching it took longer than ${String(LIMIT_MS)} ms`));
      this.#settle = (outcome) => {
        cancel();
        resolve(outcome);
      };
      this.#thread ??= this.#start();
      this.#thread.postMessage(order);
    });
  }

  #start(): Worker {
    const thread = startThread(new URL('./result-paths-thread', import.meta.url), null, MAX_MEMORY_MB);
    const lost = (reason: string): void => {
      if (this.#thread === thread) this.#abandon(reason);
    };
    thread.on('message', (picked: Picked) => {
      if (this.#thread === thread) this.#settle(picked.ok ? ok(JSON.parse(picked.value) as unknown) : picked);
    });
    thread.on('error', () => lost(`searching it took more than ${String(MAX_MEMORY_MB)} MB of memory`));
    thread.on('exit', () => lost('the thread that searched it ended'));
    return thread;
  }

  /** The thread is of no use any more; the next order gets another one. */
  #abandon(reason: string): void {
    void this.#thread?.terminate();
    this.#thread = undefined;
    this.#settle(err(reason));
  }
}

import { join } from 'node:path';
import type { Clock } from '../../lib/clock.js';
import type { SippJob } from '../sipp-command.js';
import type { CallSource, CallSourceListener } from './call-source.js';
import type { ProcessWatch } from './process-watch.js';
import { SippProcess } from './sipp-process.js';

const MOST_STARTS = 5;
/** EADDRINUSE of Linux, as SIPp prints it. */
const PORT_TAKEN = /Unable to (bind|listen) main socket, errno = 98\b/;

/**
 * Calls by SIPp. It looks for a port of its own, and two that start together may bind the same one, of which only one can listen: the other
 * has placed no call then and is started again.
 */
export class SippCalls implements CallSource {
  #sipp: SippProcess;
  #starts = 0;
  #isStopping = false;

  /** @param directory which it makes; files of each start are in one of their own below it */
  constructor(
    private readonly job: SippJob,
    private readonly directory: string,
    private readonly listener: CallSourceListener,
    private readonly clock: Clock,
    private readonly watch: Pick<ProcessWatch, 'add' | 'remove'>,
    private readonly name: string,
  ) {
    this.#sipp = this.#start();
  }

  read(): void {
    this.#sipp.read();
  }

  async ended(): Promise<string | null> {
    for (;;) {
      const problem = await this.#sipp.ended();
      this.watch.remove(this.#sipp.pid);
      const isAgain = problem !== null && PORT_TAKEN.test(problem) && this.#starts < MOST_STARTS && !this.#isStopping;
      if (!isAgain) return problem;
      this.#sipp = this.#start();
    }
  }

  async stop(): Promise<void> {
    this.#isStopping = true;
    await this.#sipp.stop();
  }

  #start(): SippProcess {
    this.#starts += 1;
    const sipp = new SippProcess(this.job, join(this.directory, String(this.#starts)), this.listener, this.clock);
    this.watch.add(sipp.pid, this.name);
    return sipp;
  }
}

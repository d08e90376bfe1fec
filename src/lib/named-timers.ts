import type { QueuedTimer, TimerQueue } from './timer-queue.js';

interface Running<Name> {
  readonly name: Name;
  handle: QueuedTimer;
  next: Running<Name> | undefined;
}

/** The timers of one state machine, by the names that it gives them: one or two at a time, so a chain is shorter than a map. */
export class NamedTimers<Name extends string> {
  #first: Running<Name> | undefined;

  constructor(
    private readonly queue: TimerQueue,
    private readonly onTimer: (name: Name) => void,
  ) {}

  /** One of this name that runs already is started anew. */
  start(name: Name, delayMs: number): void {
    this.stop(name);
    const running: Running<Name> = { name, handle: this.queue.start(delayMs, () => this.#fire(running)), next: this.#first };
    this.#first = running;
  }

  stop(name: Name): void {
    for (let running = this.#first; running !== undefined; running = running.next) {
      if (running.name !== name) continue;
      this.queue.stop(running.handle);
      this.#remove(running);
      return;
    }
  }

  stopAll(): void {
    for (let running = this.#first; running !== undefined; running = running.next) this.queue.stop(running.handle);
    this.#first = undefined;
  }

  #fire(running: Running<Name>): void {
    this.#remove(running);
    this.onTimer(running.name);
  }

  #remove(running: Running<Name>): void {
    if (this.#first === running) {
      this.#first = running.next;
      return;
    }
    let before = this.#first;
    while (before !== undefined && before.next !== running) before = before.next;
    if (before !== undefined) before.next = running.next;
  }
}

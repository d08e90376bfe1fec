/** The streams that a batch was written to: it goes out with what waits there, not a turn later. `null`: no batch is being sent. */
let ending: Set<() => void> | null = null;

/**
 * Gathers what is sent in one turn of the event loop into one batch, in order: a write to a socket costs as much as the work of a message,
 * on both ends, and so does a message between threads. What nobody waits for may be gathered for longer.
 */
export class TurnBatch<T> {
  #items: T[] = [];
  #isDue = false;

  /** @param later calls what it is given when a batch that has begun is to go out; left out: at the end of the turn */
  constructor(
    private readonly send: (items: readonly T[]) => void,
    private readonly later: (flush: () => void) => unknown = setImmediate,
  ) {}

  push(item: T): void {
    this.#items.push(item);
    if (this.#isDue) return;
    this.#isDue = true;
    this.later(this.#onDue);
  }

  readonly #onDue = (): void => {
    this.#isDue = false;
    this.flush();
  };

  /** Sends at once what waits. */
  flush(): void {
    if (this.#items.length === 0) return;
    const items = this.#items;
    this.#items = [];
    const isOutermost = ending === null;
    const streams = (ending ??= new Set());
    try {
      this.send(items);
    } finally {
      if (isOutermost) {
        ending = null;
        for (const uncork of streams) uncork();
      }
    }
  }

  /** What waits is not sent any more. */
  clear(): void {
    this.#items = [];
  }
}

/** What a stream of Node's offers for it. */
export interface CorkedStream {
  readonly writableCorked: number;
  cork(): void;
  uncork(): void;
  write(...chunk: unknown[]): boolean;
}

/**
 * What is written to the stream in one turn of the event loop goes out in one system call, at the turn's end: for sockets that belong
 * to packages, which write each message by itself.
 */
export function gatherWrites(stream: CorkedStream): void {
  const write = stream.write.bind(stream);
  const flush = (): void => stream.uncork();
  stream.write = (...chunk) => {
    if (stream.writableCorked === 0) {
      stream.cork();
      if (ending === null) setImmediate(flush);
    }
    ending?.add(flush);
    return write(...chunk);
  };
}

/** What a stream of Node's offers for it. */
export interface CorkedStream {
  readonly writableCorked: number;
  cork(): void;
  uncork(): void;
  write(...chunk: unknown[]): boolean;
}

/**
 * What is written to the stream in one turn of the event loop goes out in one system call, at the turn's end: for sockets that belong
 * to packages, which write each message by itself. What `TurnWriter` does for our own.
 */
export function gatherWrites(stream: CorkedStream): void {
  const write = stream.write.bind(stream);
  const flush = (): void => stream.uncork();
  stream.write = (...chunk) => {
    if (stream.writableCorked === 0) {
      stream.cork();
      setImmediate(flush);
    }
    return write(...chunk);
  };
}

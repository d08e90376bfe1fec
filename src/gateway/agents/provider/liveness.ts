/** Whether the other end of a connection is there: by its messages, and its answers to our pings. */
export class Liveness {
  #silentMs = 0;
  #sincePingMs = 0;

  constructor(
    private readonly pingIntervalMs: number,
    private readonly ping: () => void,
  ) {}

  /** A message or a pong came, or the connection is new. */
  seen(): void {
    this.#silentMs = 0;
  }

  /** False: nothing came in time. @param silentAfterMs `null`: two intervals of our pings */
  pass(milliseconds: number, silentAfterMs: number | null): boolean {
    this.#silentMs += milliseconds;
    this.#sincePingMs += milliseconds;
    if (this.#silentMs > (silentAfterMs ?? 2 * this.pingIntervalMs)) return false;
    if (this.#sincePingMs < this.pingIntervalMs) return true;
    this.#sincePingMs = 0;
    this.ping();
    return true;
  }
}

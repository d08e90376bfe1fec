const MAX_BYTES = 2 * 1_024 * 1_024;
/** What a message takes beside its bytes. */
const MESSAGE_BYTES = 256;

/** Holds what a bot sends before the call is acknowledged: it takes effect behind `start`. */
export class EarlyMessages {
  #work: (() => void)[] = [];
  #bytes = 0;

  /** False: there is no room, and the message is lost. @param work carries the message out */
  add(bytes: number, work: () => void): boolean {
    const size = bytes + MESSAGE_BYTES;
    if (this.#bytes + size > MAX_BYTES) return false;
    this.#bytes += size;
    this.#work.push(work);
    return true;
  }

  /** Removes them. */
  take(): readonly (() => void)[] {
    const work = this.#work;
    this.#work = [];
    this.#bytes = 0;
    return work;
  }
}

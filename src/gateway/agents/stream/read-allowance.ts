const AT_ONCE_BYTES = 1_024 * 1_024;
const BYTES_PER_MS = 1_024;

/**
 * What a thread, which has other calls, reads of one connection: 1 MiB at once, and 1 MiB a second, sixteen times the samples of a provider at
 * 24 kHz. What is over waits at its sender.
 */
export class ReadAllowance {
  #left = AT_ONCE_BYTES;
  #atMs: number;

  constructor(nowMs: number) {
    this.#atMs = nowMs;
  }

  /** @returns milliseconds until more may be read; 0: at once */
  take(bytes: number, nowMs: number): number {
    this.#left = Math.min(AT_ONCE_BYTES, this.#left + (nowMs - this.#atMs) * BYTES_PER_MS) - bytes;
    this.#atMs = nowMs;
    return Math.max(0, -this.#left / BYTES_PER_MS);
  }
}

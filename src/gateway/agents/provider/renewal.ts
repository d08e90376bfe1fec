/** So long before the end of a session another one begins, in a pause; */
const RENEW_MS = 5 * 60_000;
/** and at the latest. */
const RENEW_LATEST_MS = 30_000;

/** When a session is replaced by another one, before the provider ends it. */
export class Renewal {
  #atMs = Infinity;
  #latestMs = Infinity;

  /** The session ends within this time, or earlier. */
  endsIn(withinMs: number, nowMs: number): void {
    const endMs = nowMs + withinMs;
    this.#atMs = Math.min(this.#atMs, endMs - Math.min(RENEW_MS, withinMs));
    this.#latestMs = Math.min(this.#latestMs, endMs - Math.min(RENEW_LATEST_MS, withinMs / 2));
  }

  /** @param isQuiet asked only if it matters: nobody speaks, and no tool runs */
  isDue(nowMs: number, isQuiet: () => boolean): boolean {
    return nowMs >= this.#atMs && (nowMs >= this.#latestMs || isQuiet());
  }

  clear(): void {
    this.#atMs = Infinity;
    this.#latestMs = Infinity;
  }
}

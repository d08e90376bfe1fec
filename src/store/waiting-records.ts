import { StoreUnavailableError, type CallStore, type EndedCall } from '../gateway/ports.js';
import type { CancelTimer, Clock } from '../lib/clock.js';
import type { Log } from '../lib/log.js';

const REFUSED_PER_SECOND = 20;
const MAX_WAITING = 1_000;
const RETRY_MS = 1_000;
const SECOND_MS = 1_000;

/**
 * Writes records of calls within bounds. Of calls that were not answered, so many a second of each organization: a flood of them costs
 * the store little and pushes no real call out of it. Records that cannot be written wait until Redis is back.
 */
export class WaitingRecords implements CallStore {
  readonly #log: Log;
  readonly #clock: Clock;
  readonly #store: CallStore;
  #waiting: EndedCall[] = [];
  /** Records of unanswered calls in this second, by organization. */
  readonly #refused = new Map<string | null, number>();
  #writing: Promise<void> | undefined;
  #cancelSecond: CancelTimer | undefined;
  #cancelRetry: CancelTimer | undefined;

  constructor(store: CallStore, clock: Clock, log: Log) {
    this.#store = store;
    this.#clock = clock;
    this.#log = log;
  }

  get size(): number {
    return this.#waiting.length;
  }

  /** Rejects when Redis is away and too many records wait already. */
  async write(call: EndedCall): Promise<void> {
    const { record } = call;
    if (record.answered_at === null && this.#isLimited(record.org_id)) return;
    try {
      await this.#store.write(call);
    } catch (error) {
      if (!(error instanceof StoreUnavailableError) || this.#waiting.length >= MAX_WAITING) throw error;
      // Not its trace: while Redis is away memory is for records.
      this.#waiting.push({ ...call, trace: [] });
      this.#cancelRetry ??= this.#clock.setTimer(RETRY_MS, () => void this.#retry());
    }
  }

  /** Writes what waits, if it can be written now; the rest is lost. */
  async close(): Promise<void> {
    this.#cancelRetry?.();
    this.#cancelSecond?.();
    await this.#writeWaiting();
    if (this.#waiting.length > 0) this.#log.error({ lost: this.#waiting.length }, 'call.record.lost');
    this.#waiting = [];
  }

  async #retry(): Promise<void> {
    await this.#writeWaiting();
    this.#cancelRetry = this.#waiting.length === 0 ? undefined : this.#clock.setTimer(RETRY_MS, () => void this.#retry());
  }

  /** One at a time: two would each take the other's record away. */
  #writeWaiting(): Promise<void> {
    this.#writing ??= this.#writeAll().finally(() => {
      this.#writing = undefined;
    });
    return this.#writing;
  }

  async #writeAll(): Promise<void> {
    for (let call = this.#waiting[0]; call !== undefined; call = this.#waiting[0]) {
      try {
        await this.#store.write(call);
      } catch (error) {
        if (error instanceof StoreUnavailableError) return;
        this.#log.error({ callId: call.record.call_id }, 'call.record.lost');
      }
      this.#waiting.shift();
    }
  }

  #isLimited(orgId: string | null): boolean {
    const count = (this.#refused.get(orgId) ?? 0) + 1;
    this.#refused.set(orgId, count);
    this.#cancelSecond ??= this.#clock.setTimer(SECOND_MS, () => this.#endSecond());
    return count > REFUSED_PER_SECOND;
  }

  #endSecond(): void {
    this.#cancelSecond = undefined;
    const over = [...this.#refused.values()].filter((count) => count > REFUSED_PER_SECOND);
    this.#refused.clear();
    if (over.length === 0) return;
    const leftOut = over.reduce((sum, count) => sum + count - REFUSED_PER_SECOND, 0);
    this.#log.warn({ leftOut, orgs: over.length }, 'call.record.limited');
  }
}

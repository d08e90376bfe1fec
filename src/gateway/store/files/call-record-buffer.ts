import { StoreUnavailableError, type CallStore, type EndedCall } from '../../ports/ports.js';
import type { CancelTimer, Clock } from '../../../lib/clock.js';
import { errorText } from '../../../lib/result.js';
import type { Log } from '../../../lib/log.js';
import type { CallSpool } from './call-spool.js';

const REFUSED_PER_SECOND = 20;
const RETRY_MS = 1_000;
const SECOND_MS = 1_000;

/**
 * Writes records of calls within bounds. It keeps a fixed number of unanswered calls a second per organization: a flood of them costs
 * the store little and pushes no real call out of it. Calls that cannot be written wait in the spool until Redis is back.
 */
export class CallRecordBuffer implements CallStore {
  /** Records of unanswered calls in this second, by organization. */
  readonly #refused = new Map<string | null, number>();
  #writing: Promise<void> | undefined;
  #cancelSecond: CancelTimer | undefined;
  #cancelRetry: CancelTimer | undefined;

  /** @param spool `null`: calls that cannot be written are the caller's to keep */
  constructor(
    private readonly store: CallStore,
    private readonly spool: CallSpool | null,
    private readonly clock: Clock,
    private readonly log: Log,
  ) {}

  get size(): number {
    return this.spool?.size ?? 0;
  }

  /** Rejects when the call can be kept neither in Redis nor in the spool. */
  async write(call: EndedCall): Promise<void> {
    const { record } = call;
    if (record.answered_at === null && record.summed_calls === null && this.#isLimited(record.org_id)) return;
    try {
      await this.store.write(call);
    } catch (error) {
      if (!(error instanceof StoreUnavailableError) || this.spool === null) throw error;
      await this.spool.append(call);
      this.#cancelRetry ??= this.clock.setTimer(RETRY_MS, () => void this.#retry());
    }
  }

  /** Writes what an earlier process left, now or once the store takes it. Never rejects. */
  begin(): Promise<void> {
    this.#cancelRetry?.();
    return this.#retry();
  }

  /** Writes what waits, as far as it can be written now. Never rejects. */
  #flush(): Promise<void> {
    // One at a time: two would each take the other's call away.
    this.#writing ??= this.#writeAll().finally(() => {
      this.#writing = undefined;
    });
    return this.#writing;
  }

  /** Writes what waits, if it can be written now; the rest stays in the spool for the next start. */
  async close(): Promise<void> {
    this.#cancelRetry?.();
    this.#cancelSecond?.();
    await this.#flush();
    if (this.size > 0) this.log.warn({ calls: this.size }, 'call.record.spooled');
    await this.spool?.close();
  }

  async #retry(): Promise<void> {
    await this.#flush();
    this.#cancelRetry = this.size === 0 ? undefined : this.clock.setTimer(RETRY_MS, () => void this.#retry());
  }

  async #writeAll(): Promise<void> {
    const write = async (call: EndedCall): Promise<void> => {
      try {
        await this.store.write(call);
      } catch (error) {
        if (error instanceof StoreUnavailableError) throw error;
        this.log.error({ call_id: call.record.call_id, error: errorText(error) }, 'call.record.lost');
      }
    };
    try {
      await this.spool?.drain(write);
    } catch (error) {
      // Redis is still away.
      if (!(error instanceof StoreUnavailableError)) this.log.error({ error: errorText(error) }, 'call.record.spool_unreadable');
    }
  }

  #isLimited(orgId: string | null): boolean {
    const count = (this.#refused.get(orgId) ?? 0) + 1;
    this.#refused.set(orgId, count);
    this.#cancelSecond ??= this.clock.setTimer(SECOND_MS, () => this.#endSecond());
    return count > REFUSED_PER_SECOND;
  }

  #endSecond(): void {
    this.#cancelSecond = undefined;
    const over = [...this.#refused.values()].filter((count) => count > REFUSED_PER_SECOND);
    this.#refused.clear();
    if (over.length === 0) return;
    const leftOut = over.reduce((sum, count) => sum + count - REFUSED_PER_SECOND, 0);
    this.log.warn({ left_out: leftOut, orgs: over.length }, 'call.record.limited');
  }
}

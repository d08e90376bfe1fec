import { StoreUnavailableError, type CallStore, type EndedCall } from '../../ports/ports.js';
import type { CancelTimer, Clock } from '../../../lib/clock.js';
import { errorText } from '../../../lib/result.js';
import type { Log } from '../../../lib/log.js';
import type { CallSpool } from './call-spool.js';
import { isRefusedInbound } from '../../model/call-record.js';
import { RefusedSums } from './refused-sums.js';

const RETRY_MS = 1_000;
const SECOND_MS = 1_000;

/**
 * Writes records of calls within bounds. A call that we placed, that rang or that was answered has a record of its own, whatever the rate:
 * the limits of its organization bound it. Of calls that were refused as they came in, a flood shares records with exact counts. Calls that
 * cannot be written wait in the spool until Redis is back.
 */
export class CallRecordBuffer implements CallStore {
  readonly #refused = new RefusedSums();
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
    if (isRefusedInbound(call.record)) {
      this.#cancelSecond ??= this.clock.setTimer(SECOND_MS, () => void this.#writeSums());
      if (!this.#refused.hasRoom(call.record)) return;
    }
    await this.#write(call);
  }

  async #write(call: EndedCall): Promise<void> {
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
    await this.#writeSums();
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

  /** What the second that ends has summed. Never rejects. */
  async #writeSums(): Promise<void> {
    this.#cancelSecond = undefined;
    const sums = this.#refused.take();
    if (sums.length === 0) return;
    const calls = sums.reduce((sum, { summed_calls: summed }) => sum + (summed ?? 0), 0);
    this.log.warn({ calls, records: sums.length }, 'call.record.limited');
    for (const record of sums) {
      await this.#write({ record, trace: [], completion: null }).catch((error: unknown) =>
        this.log.error({ call_id: record.call_id, error: errorText(error) }, 'call.record.lost'),
      );
    }
  }
}

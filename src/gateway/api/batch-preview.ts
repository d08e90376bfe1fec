import type { BatchNumber, BatchPlan } from '../model/batch.js';
import { MOST_NAMED_ROWS, type BatchPreview, type RefusedRow } from '../model/batch-preview.js';
import { nextCallableMs } from '../model/calling-hours.js';
import { dialPermit } from '../model/dialling.js';
import type { E164 } from '../model/e164.js';
import { zonesOf } from '../model/number-zones.js';
import type { DoNotCallList } from '../ports/batches.js';
import type { Result } from '../../lib/result.js';
import { numberOf, type GivenNumber } from './batch-numbers.js';

/** What the rows of a batch are held against. */
export interface BatchTerms {
  readonly orgId: string;
  readonly plan: Pick<BatchPlan, 'hours'>;
  /** Price of a minute, or why the number is never dialled. */
  readonly priceOf: (to: E164) => Result<number, string>;
  /** The longest that a call may last, in minutes. */
  readonly minutes: number;
  readonly doNotCall: Pick<DoNotCallList, 'find'>;
  /** Epoch milliseconds. */
  readonly nowMs: number;
}

const MINUTE_MS = 60_000;
const MICROS = 1_000_000;

/** Judges the rows of a batch before anything is dialled. Each number is judged again when its turn comes. */
export class RowJudge {
  readonly #seen = new Set<E164>();
  readonly #refused: RefusedRow[] = [];
  #refusedCount = 0;
  #now = 0;
  #later = 0;
  #firstMs = Infinity;
  #micros = 0;
  /** By zones: many numbers have the same. */
  readonly #openMs = new Map<string, number | null>();

  constructor(private readonly terms: BatchTerms) {}

  /** Those that the batch would dial. Rejects with `StoreUnavailableError`. */
  async judge(rows: readonly GivenNumber[]): Promise<readonly BatchNumber[]> {
    const valid: { readonly row: number; readonly entry: BatchNumber }[] = [];
    for (const one of rows) {
      const read = numberOf(one);
      if (!read.ok) this.refuse(read.error);
      else if (this.#seen.has(read.value.number))
        this.refuse({ row: one.row, phone_number: read.value.number, reason: 'DUPLICATE', message: 'is there already' });
      else {
        this.#seen.add(read.value.number);
        valid.push({ row: one.row, entry: read.value });
      }
    }
    const { orgId, doNotCall } = this.terms;
    const listed =
      valid.length === 0
        ? new Set()
        : await doNotCall.find(
            orgId,
            valid.map(({ entry }) => entry.number),
          );
    return valid.flatMap(({ row, entry }) => (this.#isDialled(row, entry, listed.has(entry.number)) ? [entry] : []));
  }

  refuse(row: RefusedRow): void {
    this.#refusedCount += 1;
    if (this.#refused.length < MOST_NAMED_ROWS) this.#refused.push(row);
  }

  get preview(): BatchPreview {
    return {
      refused: this.#refusedCount,
      callable_now: this.#now,
      callable_later: this.#later,
      first_call_at: this.#firstMs === Infinity ? null : new Date(this.#firstMs).toISOString(),
      reserved_cost: this.#micros / MICROS,
    };
  }

  /** The first of them, in their order. */
  get refused(): readonly RefusedRow[] {
    return [...this.#refused].sort((one, other) => one.row - other.row);
  }

  #isDialled(row: number, { number, zone }: BatchNumber, isListed: boolean): boolean {
    const { priceOf, minutes, nowMs } = this.terms;
    const no = (reason: RefusedRow['reason'], message: string): false => {
      this.refuse({ row, phone_number: number, reason, message });
      return false;
    };
    if (isListed) return no('DO_NOT_CALL', 'is on the do-not-call list');
    const price = priceOf(number);
    if (!price.ok) return no('DIAL_NOT_ALLOWED', price.error);
    const zones = zone === undefined ? zonesOf(number) : [zone];
    const openMs = this.#nextMs(zones);
    if (openMs === null)
      return no('OUTSIDE_HOURS', zones.length === 0 ? 'has no known time zone: give one' : 'has no hour in which it may be called');
    if (openMs > nowMs) this.#later += 1;
    else this.#now += 1;
    this.#firstMs = Math.min(this.#firstMs, openMs);
    this.#micros += dialPermit(price.value, minutes * MINUTE_MS, nowMs).reservedMicros;
    return true;
  }

  #nextMs(zones: readonly string[]): number | null {
    const { plan, nowMs } = this.terms;
    const key = zones.join(' ');
    const known = this.#openMs.get(key);
    if (known !== undefined) return known;
    const openMs = nextCallableMs(zones, plan.hours, nowMs);
    this.#openMs.set(key, openMs);
    return openMs;
  }
}

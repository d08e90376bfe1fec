import type { BatchNumber, BatchPlan } from '../../../src/gateway/model/batch.js';
import type { BatchPreview } from '../../../src/gateway/model/batch-preview.js';
import type { E164 } from '../../../src/gateway/model/e164.js';
import type { BatchMove, BatchRun, BatchRuns, DoNotCallList } from '../../../src/gateway/ports/batches.js';
import type { BatchLog, Page, Scope } from '../../../src/gateway/ports/stores.js';
import type { Clock } from '../../../src/lib/clock.js';

/** Batches that nobody dials. */
export class MemoryBatchRuns implements BatchRuns {
  readonly #runs = new Map<string, BatchRun>();
  readonly #numbers = new Map<string, Set<string>>();
  readonly #clock: Clock;
  readonly #log: BatchLog;

  constructor(clock: Clock, log: BatchLog) {
    this.#clock = clock;
    this.#log = log;
  }

  begin(orgId: string, batchId: string, plan: BatchPlan, requested: number): Promise<void> {
    const counts = {
      requested,
      validated: 0,
      waiting: 0,
      dialling: 0,
      dispatched: 0,
      successful: 0,
      failed: 0,
      ambiguous: 0,
      answered_today: 0,
      abandoned_today: 0,
    };
    const sinceResumed = { answered: 0, abandoned: 0 };
    this.#runs.set(batchId, {
      batchId,
      orgId,
      state: 'validating',
      plan,
      counts,
      preview: null,
      sinceResumed,
      changedMs: this.#clock.wallMs(),
    });
    this.#numbers.set(batchId, new Set());
    return Promise.resolve();
  }

  show(batchId: string, preview: BatchPreview): Promise<void> {
    const run = this.#runs.get(batchId);
    if (run !== undefined) this.#runs.set(batchId, { ...run, preview });
    return Promise.resolve();
  }

  add(batchId: string, numbers: readonly BatchNumber[]): Promise<number> {
    const [run, known] = [this.#runs.get(batchId), this.#numbers.get(batchId)];
    if (run?.state !== 'validating' || known === undefined) return Promise.resolve(0);
    const before = known.size;
    for (const { number } of numbers) known.add(number);
    this.#runs.set(batchId, { ...run, counts: { ...run.counts, validated: known.size, waiting: known.size } });
    return Promise.resolve(known.size - before);
  }

  read(scope: Scope, batchIds: readonly string[]): Promise<readonly (BatchRun | null)[]> {
    return Promise.resolve(
      batchIds.map((id) => {
        const run = this.#runs.get(id) ?? null;
        return run !== null && (scope === null || run.orgId === scope) ? run : null;
      }),
    );
  }

  async move(batchId: string, { to, from, events }: BatchMove): Promise<boolean> {
    const run = this.#runs.get(batchId);
    if (run === undefined || !from.includes(run.state)) return false;
    this.#runs.set(batchId, { ...run, state: to ?? run.state, changedMs: this.#clock.wallMs() });
    for (const event of events) await this.#log.append(run.orgId, batchId, event);
    return true;
  }
}

export class MemoryDoNotCallList implements DoNotCallList {
  readonly #byOrg = new Map<string, Map<E164, string>>();
  readonly #clock: Clock;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  add(orgId: string, numbers: readonly E164[]): Promise<number> {
    const list = this.#of(orgId);
    const fresh = numbers.filter((number) => !list.has(number));
    for (const number of fresh) list.set(number, new Date(this.#clock.wallMs()).toISOString());
    return Promise.resolve(fresh.length);
  }

  remove(orgId: string, number: E164): Promise<boolean> {
    return Promise.resolve(this.#of(orgId).delete(number));
  }

  find(orgId: string, numbers: readonly E164[]): Promise<ReadonlySet<E164>> {
    return Promise.resolve(new Set(numbers.filter((number) => this.#of(orgId).has(number))));
  }

  list(orgId: string, { take, skip }: Page): Promise<readonly { readonly phone_number: E164; readonly added_at: string }[]> {
    const all = [...this.#of(orgId)].map(([phone_number, added_at]) => ({ phone_number, added_at })).reverse();
    return Promise.resolve(all.slice(skip, skip + take));
  }

  #of(orgId: string): Map<E164, string> {
    const known = this.#byOrg.get(orgId) ?? new Map<E164, string>();
    this.#byOrg.set(orgId, known);
    return known;
  }
}

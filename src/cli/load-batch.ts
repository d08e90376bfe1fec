import type { BatchEvent } from '../gateway/model/batch-log.js';
import { errorText } from '../lib/error-text.js';
import type { RunFigures } from '../loadtest/figures.js';
import type { StageRecorder } from '../loadtest/recorder.js';
import { findOrg, noteChange, type Connect } from './org.js';

const REACHED_WITHIN_MS = 3_000;

type Opened = Awaited<ReturnType<Connect>>;

/** The batch that a load test is written to; without access to the store there is none, and the test goes on. */
export class LoadBatch {
  private constructor(
    readonly id: string | null,
    /** Why there is none. */
    readonly notes: readonly string[],
    private readonly stores: Opened | null,
  ) {}

  /** @param org id or name; null: none is known */
  static async open(connect: Connect, org: string | null, name: string): Promise<LoadBatch> {
    if (org === null)
      return new LoadBatch(null, ['no batch is written: name the organization with --org, and its Redis with redis.url'], null);
    let stores: Opened | null = null;
    try {
      stores = await within(connect());
      const { org_id: orgId } = await findOrg(stores, org);
      const made = await stores.batches.create({ orgId, name });
      await noteChange(stores, orgId, 'batch.create', made.batch_id, ['name']);
      return new LoadBatch(made.batch_id, [], stores);
    } catch (error) {
      await stores?.close();
      return new LoadBatch(null, [`no batch is written: ${errorText(error)}`], null);
    }
  }

  lifecycle(message: string, stateChange: string): Promise<void> {
    return this.#append({ event_type: 'lifecycle', payload: { message: message.slice(0, 2_000), state_change: stateChange } });
  }

  /** Each second, so that the run can be looked at while it goes on. */
  figures(recorder: StageRecorder, elapsedMs: number): Promise<void> {
    // The second that is going on is not whole.
    const whole = recorder.seconds().at(-2);
    const payload = {
      stage: recorder.stage,
      second: Math.round(elapsedMs / 1_000),
      calls_per_second: whole?.started ?? 0,
      in_progress: recorder.inProgress,
      answered: recorder.answeredCount,
      failed: recorder.failed,
      setup_p50_ms: whole?.p50 ?? null,
      setup_p99_ms: whole?.p99 ?? null,
    };
    return this.#append({ event_type: 'figures', payload });
  }

  /** Of all stages. */
  async complete({ stages, interrupted }: RunFigures): Promise<void> {
    const sum = (pick: (stage: RunFigures['stages'][number]) => number): number => stages.reduce((all, stage) => all + pick(stage), 0);
    if (interrupted) await this.lifecycle('the load test was interrupted, calls in progress were ended', 'interrupted');
    const payload = {
      calls_total: sum((one) => one.started),
      calls_failed: sum((one) => one.failed),
      calls_successful: sum((one) => one.successful),
    };
    await this.#append({ event_type: 'complete', payload });
  }

  async close(): Promise<void> {
    await this.stores?.close();
  }

  /** A log that cannot be written is no reason to end a test. */
  async #append(event: BatchEvent): Promise<void> {
    if (this.stores === null || this.id === null) return;
    await within(this.stores.batches.append(this.id, event)).catch(() => undefined);
  }
}

async function within<T>(work: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const limit = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(new Error(`Redis does not answer within ${String(REACHED_WITHIN_MS)} ms`)), REACHED_WITHIN_MS);
  });
  // What comes after the limit is nobody's.
  work.catch(() => undefined);
  try {
    return await Promise.race([work, limit]);
  } finally {
    clearTimeout(timer);
  }
}

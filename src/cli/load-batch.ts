import type { Client } from '../client/index.js';
import { errorText } from '../lib/result.js';
import type { RunFigures } from '../loadtest/figures.js';
import type { StageRecorder } from '../loadtest/recorder.js';

/** The batch that a load test is written to; where none can be made there is none, and the test goes on. */
export class LoadBatch {
  #written: Promise<void> = Promise.resolve();
  #isWriting = false;

  private constructor(
    readonly id: string | null,
    /** Why there is none. */
    readonly notes: readonly string[],
    private readonly api: Client | null,
  ) {}

  static async open(openApi: () => Promise<Client>, name: string): Promise<LoadBatch> {
    try {
      const api = await openApi();
      const { data } = await api.POST('/v2/batches', { body: { name } });
      return new LoadBatch(data.batch_id, [], api);
    } catch (error) {
      return new LoadBatch(null, [`cannot write a batch: ${errorText(error)}`], null);
    }
  }

  lifecycle(message: string, stateChange: string): Promise<void> {
    return this.#append({ event_type: 'lifecycle', payload: { message: message.slice(0, 2_000), state_change: stateChange } });
  }

  /** Each second, so that the run can be looked at while it goes on; one that is over before the last entry is written is left out. */
  async figures(recorder: StageRecorder, elapsedMs: number): Promise<void> {
    if (this.#isWriting) return;
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
    await this.#append({ event_type: 'figures', payload });
  }

  /** Reports the sum of all stages. */
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

  /** One after the other, in their order. A log that cannot be written is no reason to end a test. */
  #append(body: { readonly event_type: string; readonly payload: Record<string, unknown> }): Promise<void> {
    const { api, id } = this;
    if (api === null || id === null) return Promise.resolve();
    const write = async (): Promise<void> => {
      this.#isWriting = true;
      await api.POST('/v2/batches/{batch_id}/logs', { params: { path: { batch_id: id } }, body }).catch(() => undefined);
      this.#isWriting = false;
    };
    this.#written = this.#written.then(write);
    return this.#written;
  }
}

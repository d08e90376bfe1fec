import type { CancelTimer, Clock } from '../../lib/clock.js';
import { errorText } from '../../lib/result.js';
import { reasonOf } from '../sipp-files.js';
import type { SippJob } from '../sipp-command.js';
import type { AnsweringCarrier } from './answering-carrier.js';
import type { CallSource, CallSourceListener } from './call-source.js';

/** Why a call was not placed, as the API says. */
export interface Refusal {
  /** The answer's; null: there was none. */
  readonly status: number | null;
  readonly code: string;
}

/** The control API of the gateway. */
export interface CallPlacing {
  place(called: string): Promise<{ readonly callId: string } | Refusal>;
  /** Why a call ended; null: it has not. */
  reasonOf(callId: string): Promise<string | null>;
}

interface Placed {
  readonly atMs: number;
  callId: string | null;
  isAcknowledged: boolean;
  cancel: CancelTimer | undefined;
}

const TICK_MS = 5;
const COUNT_MS = 1_000;
const STOP_LIMIT_MS = 3_000;
/** Behind the prefix of the called numbers. */
const DIGITS = 6;

/** Calls that the API places and the carrier answers: a request each, held, and ended by the carrier. Every call has a number of its own. */
export class PlacedCalls implements CallSource {
  readonly #underway = new Map<string, Placed>();
  readonly #startMs: number;
  #countedMs: number;
  #created = 0;
  #successful = 0;
  #failed = 0;
  #isStopping = false;
  #onEnded: () => void = () => undefined;
  readonly #whole: Promise<void>;

  constructor(
    private readonly job: SippJob,
    private readonly carrier: AnsweringCarrier,
    private readonly api: CallPlacing,
    private readonly listener: CallSourceListener,
    private readonly clock: Clock,
  ) {
    this.#startMs = clock.nowMs();
    this.#countedMs = this.#startMs;
    this.#whole = new Promise((resolve) => (this.#onEnded = resolve));
    carrier.listener = {
      onAcknowledged: (called) => this.#onAcknowledged(called),
      onHungUp: (called) => this.#end(called, null),
      onEnded: (called, how, reason) => this.#end(called, { code: how, reason: reasonOf(`Reason: ${reason ?? ''}`) }),
    };
    this.#tick();
  }

  read(): void {
    if (this.clock.nowMs() - this.#countedMs >= COUNT_MS) this.#count();
  }

  async ended(): Promise<string | null> {
    await this.#whole;
    this.#count();
    return null;
  }

  stop(): Promise<void> {
    if (!this.#isStopping) {
      this.#isStopping = true;
      for (const [called, { isAcknowledged }] of this.#underway) {
        if (isAcknowledged) this.carrier.hangUp(called);
      }
      this.clock.setTimer(STOP_LIMIT_MS, () => {
        for (const called of [...this.#underway.keys()]) this.#end(called, { code: 'interrupted', reason: null });
      });
      this.#settle();
    }
    return this.#whole;
  }

  #tick(): void {
    const { cps, calls } = this.job;
    const due = Math.min(calls, Math.floor((cps * (this.clock.nowMs() - this.#startMs)) / 1_000) + 1);
    while (!this.#isStopping && this.#created < due) void this.#place();
    if (!this.#isStopping && this.#created < calls) this.clock.setTimer(TICK_MS, () => this.#tick());
  }

  async #place(): Promise<void> {
    const called = `${this.job.called}${String(this.#created % 10 ** DIGITS).padStart(DIGITS, '0')}`;
    this.#created += 1;
    const placed: Placed = { atMs: this.clock.nowMs(), callId: null, isAcknowledged: false, cancel: undefined };
    this.#underway.set(called, placed);
    placed.cancel = this.clock.setTimer(this.job.setupTimeoutMs, () => void this.#onTimeout(called, placed));
    try {
      const answer = await this.api.place(called);
      if ('callId' in answer) placed.callId = answer.callId;
      else this.#end(called, { code: answer.status === null ? 'connection' : String(answer.status), reason: answer.code });
    } catch (error) {
      this.#end(called, { code: 'connection', reason: errorText(error).slice(0, 64) });
    }
  }

  async #onTimeout(called: string, { callId }: Placed): Promise<void> {
    const reason = callId === null ? null : await this.api.reasonOf(callId).catch(() => null);
    this.#end(called, { code: 'timeout', reason });
  }

  #onAcknowledged(called: string): void {
    const placed = this.#underway.get(called);
    if (placed === undefined || placed.isAcknowledged) return;
    placed.isAcknowledged = true;
    placed.cancel?.();
    this.listener.call({ kind: 'answered', atMs: this.clock.wallMs(), latencyMs: this.clock.nowMs() - placed.atMs, media: null });
    placed.cancel = this.clock.setTimer(this.job.holdMs, () => this.carrier.hangUp(called));
    if (this.#isStopping) this.carrier.hangUp(called);
  }

  /** @param failure null: in order */
  #end(called: string, failure: { readonly code: string; readonly reason: string | null } | null): void {
    const placed = this.#underway.get(called);
    if (placed === undefined) return;
    this.#underway.delete(called);
    placed.cancel?.();
    if (failure === null) this.#successful += 1;
    else {
      this.#failed += 1;
      this.listener.error({ atMs: this.clock.wallMs(), ...failure });
    }
    this.#settle();
  }

  #settle(): void {
    const isPlaced = this.#isStopping || this.#created >= this.job.calls;
    if (isPlaced && this.#underway.size === 0) this.#onEnded();
  }

  #count(): void {
    this.#countedMs = this.clock.nowMs();
    const counts = { created: this.#created, current: this.#underway.size, successful: this.#successful, failed: this.#failed };
    this.listener.counters({ atMs: this.clock.wallMs(), ...counts });
  }
}

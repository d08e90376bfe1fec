import { monitorEventLoopDelay, performance } from 'node:perf_hooks';
import type { Clock } from '../../lib/clock.js';
import type { Log } from '../../lib/log.js';
import { nextVerdict, NOT_OVERLOADED, type OverloadLimits, type OverloadVerdict } from './overload-verdict.js';

const SAMPLE_MS = 500;
// A process that has nothing to do wakes up 20 times a second for it, not 100.
const RESOLUTION_MS = 50;

/** Measures the delay of this process's event loop, and its CPU. */
export class OverloadDetector {
  #verdict: OverloadVerdict = NOT_OVERLOADED;
  #isStopped = false;
  readonly #delay = monitorEventLoopDelay({ resolution: RESOLUTION_MS });
  #cpu = process.cpuUsage();
  #atMs = performance.now();

  constructor(
    private readonly limits: OverloadLimits,
    private readonly clock: Clock,
    private readonly log: Log,
  ) {}

  /** Starts measuring. The work of a start must not count as load: it would refuse the first calls. */
  start(): void {
    this.#delay.enable();
    this.#cpu = process.cpuUsage();
    this.#atMs = performance.now();
    this.#schedule();
  }

  get isOverloaded(): boolean {
    return this.#verdict.isOverloaded;
  }

  stop(): void {
    this.#isStopped = true;
    this.#delay.disable();
  }

  #schedule(): void {
    this.clock.setTimer(SAMPLE_MS, () => {
      if (this.#isStopped) return;
      this.#sample();
      this.#schedule();
    });
  }

  #sample(): void {
    const nowMs = performance.now();
    const { user, system } = process.cpuUsage(this.#cpu);
    const cpuPercent = (user + system) / 10 / (nowMs - this.#atMs);
    // The histogram holds nanoseconds between ticks, including the resolution.
    const delayMs = Math.max(0, this.#delay.percentile(99) / 1e6 - RESOLUTION_MS);
    this.#cpu = process.cpuUsage();
    this.#atMs = nowMs;
    this.#delay.reset();
    const before = this.#verdict.isOverloaded;
    this.#verdict = nextVerdict(this.#verdict, { delayMs, cpuPercent }, this.limits);
    if (this.#verdict.isOverloaded === before) return;
    const facts = { event_loop_delay_ms: Math.round(delayMs), cpu_percent: Math.round(cpuPercent) };
    if (before) this.log.info(facts, 'gateway.overload.ended');
    else this.log.warn(facts, 'gateway.overload.began');
  }
}

import { cpus } from 'node:os';
import { monitorEventLoopDelay, performance } from 'node:perf_hooks';
import type { Clock } from '../../lib/clock.js';
import type { Log } from '../../lib/log.js';
import type { MediaDelays } from '../model/media.js';

export interface OverloadLimits {
  readonly maxEventLoopDelayMs: number;
  readonly maxMediaDelayMs: number;
  /** 100 is one core. */
  readonly maxCpuPercent: number;
}

export interface OverloadSample {
  /** How late the process's event loop is, in milliseconds. */
  readonly delayMs: number;
  readonly media: MediaDelays;
  readonly cpuPercent: number;
  /** The share of the machine's CPU that nobody uses. */
  readonly idlePercent: number;
}

export interface OverloadVerdict {
  readonly isOverloaded: boolean;
  /** Samples in a row that contradict the verdict. */
  readonly against: number;
  /** The figure of the last sample that was the furthest over its limit; `null`: none was over. */
  readonly worst: Excess | null;
}

/** A figure and its limit. */
export interface Excess {
  readonly figure: 'event_loop_delay_ms' | 'media_delay_ms' | 'media_arrival_delay_ms' | 'cpu_percent';
  readonly value: number;
  readonly limit: number;
}

export const NOT_OVERLOADED: OverloadVerdict = { isOverloaded: false, against: 0, worst: null };

const SAMPLE_MS = 500;
// A process that has nothing to do wakes up 20 times a second for it, not 100.
const RESOLUTION_MS = 50;
/**
 * Samples in a row over a limit: 1.5 s. One pause, as of a garbage collection or of a machine that stood still, shows in two of them, and in
 * the second more than in the first when it began at the end of that; a queue that grows is over its limit in the third too. A carrier that
 * gets 503 turns away from the whole trunk.
 */
const OVER_AFTER = 3;
/** Samples in a row that end the overload. */
const RELIEVED_AFTER = 2;
/**
 * Even the callers' fastest packets are late, and the machine has no CPU left: they wait in rtpengine, and would wait longer with each
 * further call. Late packets on a machine that has CPU only had a longer way.
 */
const IDLE_PERCENT = 5;
/** An overloaded process recovers only well below the limits, so that the verdict does not oscillate. */
const RELIEF = 0.8;

const CORES = cpus().length;

const idleMs = (): number => cpus().reduce((sum, { times }) => sum + times.idle, 0);

export function nextVerdict(verdict: OverloadVerdict, sample: OverloadSample, limits: OverloadLimits): OverloadVerdict {
  const worst = worstOf(sample, limits, verdict.isOverloaded ? RELIEF : 1);
  const isOver = worst !== null;
  if (isOver === verdict.isOverloaded) return { ...verdict, against: 0, worst };
  const against = verdict.against + 1;
  const isTurned = against >= (isOver ? OVER_AFTER : RELIEVED_AFTER);
  return isTurned ? { isOverloaded: isOver, against: 0, worst } : { ...verdict, against, worst };
}

const excess = ({ value, limit }: Excess): number => value / Math.max(limit, Number.EPSILON);

/** @param factor of the limits that counts as over them */
function worstOf({ delayMs, media, cpuPercent, idlePercent }: OverloadSample, limits: OverloadLimits, factor: number): Excess | null {
  const { maxEventLoopDelayMs, maxMediaDelayMs, maxCpuPercent } = limits;
  const all: readonly Excess[] = [
    { figure: 'event_loop_delay_ms', value: delayMs, limit: maxEventLoopDelayMs },
    { figure: 'media_delay_ms', value: media.frameMs, limit: maxMediaDelayMs },
    ...(idlePercent < IDLE_PERCENT ? [{ figure: 'media_arrival_delay_ms' as const, value: media.arrivalMs, limit: maxMediaDelayMs }] : []),
    { figure: 'cpu_percent', value: cpuPercent, limit: maxCpuPercent },
  ];
  const over = all.filter(({ value, limit }) => value > limit * factor);
  return over.reduce<Excess | null>((worst, one) => (worst === null || excess(one) > excess(worst) ? one : worst), null);
}

const FIGURES: Readonly<Record<Excess['figure'], readonly [name: string, unit: string]>> = {
  event_loop_delay_ms: ['the event loop is late', ' ms'],
  media_delay_ms: ['audio leaves late', ' ms'],
  media_arrival_delay_ms: ['audio arrives late', ' ms'],
  cpu_percent: ['the process uses its CPU', ' %'],
};

/** The figure and its limit, for a person. */
export function excessText(worst: Excess | null): string {
  if (worst === null) return 'the process is late';
  const [name, unit] = FIGURES[worst.figure];
  return `${name}: ${String(Math.round(worst.value))}${unit}, limit ${String(worst.limit)}${unit}`;
}

/** Measures the delay of this process's event loop, and its CPU; the media threads measure their own delay. */
export class OverloadDetector {
  #verdict: OverloadVerdict = NOT_OVERLOADED;
  /** That began the overload. */
  #excess: Excess | null = null;
  #isStopped = false;
  readonly #delay = monitorEventLoopDelay({ resolution: RESOLUTION_MS });
  #cpu = process.cpuUsage();
  #atMs = performance.now();
  #idleMs = idleMs();

  constructor(
    private readonly limits: OverloadLimits,
    private readonly mediaDelays: () => MediaDelays,
    private readonly clock: Clock,
    private readonly log: Log,
  ) {}

  /** Starts measuring. The work of a start must not count as load: it would refuse the first calls. */
  start(): void {
    this.#delay.enable();
    this.#cpu = process.cpuUsage();
    this.#atMs = performance.now();
    this.#idleMs = idleMs();
    this.#schedule();
  }

  /** The figure that is too high and its limit, for a person; `null`: the process is not overloaded. */
  get excess(): string | null {
    return this.#verdict.isOverloaded ? excessText(this.#excess) : null;
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
    const media = this.mediaDelays();
    const idleNowMs = idleMs();
    const idlePercent = (100 * (idleNowMs - this.#idleMs)) / (nowMs - this.#atMs) / CORES;
    this.#cpu = process.cpuUsage();
    this.#atMs = nowMs;
    this.#idleMs = idleNowMs;
    this.#delay.reset();
    const before = this.#verdict.isOverloaded;
    this.#verdict = nextVerdict(this.#verdict, { delayMs, media, cpuPercent, idlePercent }, this.limits);
    if (this.#verdict.isOverloaded === before) return;
    const facts = {
      event_loop_delay_ms: Math.round(delayMs),
      media_delay_ms: media.frameMs,
      media_arrival_delay_ms: media.arrivalMs,
      cpu_percent: Math.round(cpuPercent),
    };
    if (before) this.log.info(facts, 'gateway.overload.ended');
    else {
      this.#excess = this.#verdict.worst;
      const { figure, limit } = this.#excess ?? { figure: null, limit: null };
      this.log.warn({ ...facts, over: figure, limit }, 'gateway.overload.began');
    }
  }
}

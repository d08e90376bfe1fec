import { readdir, readFile } from 'node:fs/promises';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { getHeapStatistics } from 'node:v8';
import type { Clock } from '../../lib/clock.js';
import { packageVersion } from '../../config/version.js';
import { droppedLogLines } from '../log/logger.js';
import type { Metrics } from './registry.js';

const WINDOW_MS = 5_000;
// A process that has nothing to do wakes up 20 times a second for it, not 100.
const RESOLUTION_MS = 50;

/** Metrics that every process has; returns a function that stops them. */
export function watchProcess(metrics: Metrics, clock: Clock): () => void {
  const startedS = clock.wallMs() / 1_000 - process.uptime();
  const delay = watchEventLoop(clock);
  metrics.collect(async (figures) => {
    const cpu = process.cpuUsage();
    figures.set('trunkline_build_info', { version: packageVersion(), node: process.version }, 1);
    figures.set('trunkline_process_cpu_seconds_total', { mode: 'user' }, cpu.user / 1e6);
    figures.set('trunkline_process_cpu_seconds_total', { mode: 'system' }, cpu.system / 1e6);
    const resident = residentBytes();
    if (resident !== null) figures.set('trunkline_process_resident_bytes', {}, resident);
    figures.set('trunkline_process_heap_bytes', {}, getHeapStatistics().used_heap_size);
    figures.set('trunkline_log_lines_dropped_total', {}, droppedLogLines());
    figures.set('trunkline_process_start_time_seconds', {}, startedS);
    for (const [percentile, seconds] of Object.entries(delay.last))
      figures.set('trunkline_event_loop_delay_seconds', { percentile }, seconds);
    const { open, max } = await fileHandles();
    if (open !== null) figures.set('trunkline_process_open_files', {}, open);
    if (max !== null) figures.set('trunkline_process_max_files', {}, max);
  });
  return delay.stop;
}

/** null: no file handle is left to read it with. */
function residentBytes(): number | null {
  try {
    return process.memoryUsage.rss();
  } catch {
    return null;
  }
}

/** Uses windows of its own, so all scrapers see the same, however often they scrape. */
function watchEventLoop(clock: Clock): { readonly last: Readonly<Record<string, number>>; readonly stop: () => void } {
  const histogram = monitorEventLoopDelay({ resolution: RESOLUTION_MS });
  histogram.enable();
  // The histogram holds nanoseconds between ticks, including the resolution.
  const seconds = (nanoseconds: number): number => Math.max(0, nanoseconds / 1e9 - RESOLUTION_MS / 1_000);
  const state = { last: { '50': 0, '99': 0, '100': 0 }, stop: (): void => undefined };
  const next = (): void => {
    const cancel = clock.setTimer(WINDOW_MS, () => {
      state.last = { '50': seconds(histogram.percentile(50)), '99': seconds(histogram.percentile(99)), '100': seconds(histogram.max) };
      histogram.reset();
      next();
    });
    state.stop = () => {
      cancel();
      histogram.disable();
    };
  };
  next();
  return {
    get last() {
      return state.last;
    },
    stop: () => state.stop(),
  };
}

/** `null` outside Linux. */
async function fileHandles(): Promise<{ readonly open: number | null; readonly max: number | null }> {
  try {
    const [open, limits] = await Promise.all([readdir('/proc/self/fd'), readFile('/proc/self/limits', 'utf8')]);
    const max = Number(/^Max open files\s+(\d+)/m.exec(limits)?.[1]);
    return { open: open.length, max: Number.isFinite(max) ? max : null };
  } catch {
    return { open: null, max: null };
  }
}

import type { Clock } from './clock.js';
import type { Log, LogFields } from './log.js';

interface Window {
  startMs: number;
  lines: number;
  dropped: number;
}

/**
 * A log for what peers can cause at will: a fixed number of lines a second for each event, and with the first one after that
 * how many were left out (`leftOut`). So nobody fills a disk, and nothing is hidden.
 */
export function boundedLog(log: Log, clock: Clock, linesPerSecond: number): Log {
  const windows = new Map<string, Window>();
  const write =
    (level: 'debug' | 'info' | 'warn' | 'error') =>
    (fields: LogFields, event: string): void => {
      const nowMs = clock.nowMs();
      let window = windows.get(event);
      if (window === undefined) {
        window = { startMs: nowMs, lines: 0, dropped: 0 };
        windows.set(event, window);
      }
      let leftOut = 0;
      if (nowMs - window.startMs >= 1_000) {
        leftOut = window.dropped;
        Object.assign(window, { startMs: nowMs, lines: 0, dropped: 0 });
      }
      window.lines += 1;
      if (window.lines > linesPerSecond) {
        window.dropped += 1;
        return;
      }
      log[level](leftOut === 0 ? fields : { ...fields, leftOut }, event);
    };
  return {
    debug: write('debug'),
    info: write('info'),
    warn: write('warn'),
    error: write('error'),
    child: (fields) => boundedLog(log.child(fields), clock, linesPerSecond),
  };
}

import type { Config } from '../config/schema.js';
import { ensureDataDir } from '../config/data-dir.js';
import { FACTS_QUESTION, followerName, serveProcess, type ProcessAnswers } from '../config/process-socket.js';
import type { Log } from '../lib/log.js';
import { errorText } from '../lib/result.js';
import { takeCounts } from '../observability/metrics/left-counts.js';
import { METRICS_QUESTION } from '../observability/metrics/peers.js';
import type { Metrics } from '../observability/metrics/registry.js';
import { FOLLOW_SIGNAL, livenessOf } from '../supervisor/running-process.js';

/** Answers the supervisor and the first gateway from now on: this process serves. Returns a function that stops it. */
export function answerProcesses(
  config: Config,
  metrics: Metrics,
  facts: Readonly<Record<string, unknown>>,
  log: Log,
  others: ProcessAnswers = {},
): () => void {
  metrics.goOnFrom(takeCounts(ensureDataDir(config), metrics.process));
  const answers = {
    ...others,
    [FACTS_QUESTION]: () => ({ pid: process.pid, facts }),
    [METRICS_QUESTION]: () => metrics.snapshot(),
  };
  return serveProcess(ensureDataDir(config), metrics.process, answers, (reason) => log.error({ reason }, 'process.socket.not_opened'));
}

/** The supervisor tells it by a signal, unless it has died too. */
const FOLLOW_POLL_MS = 1_000;

/**
 * Resolves when the process that this one follows has ended. Meanwhile it answers the supervisor that it has loaded.
 * @param others what else it answers
 */
export async function followed(config: Config, name: string, pid: number, log: Log, others: ProcessAnswers = {}): Promise<void> {
  const answers = { ...others, [FACTS_QUESTION]: () => ({ pid: process.pid }) };
  const unserve = serveProcess(ensureDataDir(config), followerName(name), answers, (reason) =>
    log.error({ reason }, 'process.socket.not_opened'),
  );
  const isThere = livenessOf(pid);
  await new Promise<void>((resolve) => {
    const look = (): void => {
      if (isThere()) return;
      clearInterval(timer);
      resolve();
    };
    const timer = setInterval(look, FOLLOW_POLL_MS);
    // For good: a signal that comes later would end a process that does not listen for it.
    process.on(FOLLOW_SIGNAL, look);
    look();
  });
  unserve();
}

/** What to do at a signal: once, and the process exits 0 when it succeeded. Returns the way to begin one otherwise. */
export function onStopSignal(log: Log, stops: Readonly<Record<'SIGTERM' | 'SIGINT', () => Promise<void>>>): (why: string) => void {
  let isStopping = false;
  const begin = (why: string, stop: () => Promise<void>): void => {
    if (isStopping) return;
    isStopping = true;
    log.info({ why }, 'process.stopping');
    stop().then(
      () => process.exit(0),
      (error: unknown) => {
        log.error({ error: errorText(error) }, 'process.stop_failed');
        process.exit(1);
      },
    );
  };
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, () => begin(signal, stops[signal]));
  return (why) => begin(why, stops.SIGTERM);
}

/** SIGHUP asks a service to read its files again. To a program in a terminal it says that the terminal is gone, which ends it. */
export function onHangUp(reload: () => void, stop: (why: string) => void): void {
  const isInTerminal = process.stdin.isTTY || process.stdout.isTTY;
  process.on('SIGHUP', () => (isInTerminal ? stop('SIGHUP') : reload()));
}

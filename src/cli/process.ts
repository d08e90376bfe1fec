import type { Log } from '../lib/log.js';
import type { ReadyMessage } from '../supervisor/child.js';

/** Tells the supervisor, when there is one, that this process serves. */
export function tellReady(facts: ReadyMessage['facts']): void {
  process.send?.({ type: 'ready', facts } satisfies ReadyMessage);
}

/** Runs `stop` once at SIGTERM or SIGINT, or when the supervisor has exited; exits 0 when it succeeded. Returns the way to begin it otherwise. */
export function onStopSignal(log: Log, stop: () => Promise<void>): (why: string) => void {
  let isStopping = false;
  const begin = (why: string): void => {
    if (isStopping) return;
    isStopping = true;
    log.info({ why }, 'process.stopping');
    stop().then(
      () => process.exit(0),
      (error: unknown) => {
        log.error({ error: error instanceof Error ? error.message : String(error) }, 'process.stop_failed');
        process.exit(1);
      },
    );
  };
  // A terminal sends SIGINT to every process of the group: under a supervisor only its SIGTERM counts.
  const isSupervised = process.send !== undefined;
  process.on('SIGTERM', () => begin('SIGTERM'));
  process.on('SIGINT', () => (isSupervised ? undefined : begin('SIGINT')));
  process.on('disconnect', () => begin('the supervisor has exited'));
  return begin;
}

/** SIGHUP asks a service to read its files again. To a program in a terminal it says that the terminal is gone, which ends it. */
export function onHangUp(reload: () => void, stop: (why: string) => void): void {
  const isInTerminal = process.stdin.isTTY || process.stdout.isTTY;
  process.on('SIGHUP', () => (isInTerminal ? stop('SIGHUP') : reload()));
}

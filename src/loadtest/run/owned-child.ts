import { spawn, type ChildProcess, type SpawnOptions } from 'node:child_process';
import { existsSync } from 'node:fs';

const SETPRIV = '/usr/bin/setpriv';

/**
 * Starts a program that the kernel ends with us, in a group of its own: at Ctrl-C a terminal signals the whole group of the foreground, and
 * calls in progress would be lost before we end them.
 */
export function ownedChild(command: string, args: readonly string[], options: SpawnOptions): ChildProcess {
  const guarded = existsSync(SETPRIV);
  const all = guarded ? ['--pdeathsig', 'KILL', '--', command, ...args] : [...args];
  return spawn(guarded ? SETPRIV : command, all, { ...options, detached: true });
}

/** Resolves when it is gone; one that could not be started is gone. */
export function whenGone(child: ChildProcess): Promise<number | null> {
  if (child.exitCode !== null || child.signalCode !== null) return Promise.resolve(child.exitCode);
  return new Promise((resolve) => {
    child.once('exit', (code) => resolve(code));
    child.once('error', () => resolve(null));
  });
}

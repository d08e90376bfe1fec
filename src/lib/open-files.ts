import { readFileSync } from 'node:fs';

/**
 * How many files this process may have open, as the programs that it starts: Node.js raises its soft limit to the hard one when it
 * begins, and hands it on. `null`: not known, or without a limit.
 */
export function maxOpenFiles(limits = readLimits()): number | null {
  const soft = /^Max open files\s+(\d+)/m.exec(limits)?.[1];
  return soft === undefined ? null : Number(soft);
}

function readLimits(): string {
  try {
    return readFileSync('/proc/self/limits', 'utf8');
  } catch {
    return '';
  }
}

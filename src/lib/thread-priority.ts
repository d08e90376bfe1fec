import { setPriority } from 'node:os';

const NICE = 10;

/** Lets those that keep the pace of audio go first. @param pid a process, and those that it starts; 0: this thread alone, on Linux */
export function yieldToCalls(pid = 0): void {
  // Elsewhere 0 is the whole process.
  if (pid !== 0 || process.platform === 'linux') setPriority(pid, NICE);
}

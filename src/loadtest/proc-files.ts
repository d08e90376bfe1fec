// Files of /proc (Linux), as text.

/** USER_HZ of Linux. */
const MS_PER_TICK = 10;

/** CPU time of `/proc/PID/stat` or of a thread, user and system, in milliseconds; null: it is gone. */
export function cpuMsOf(stat: string): number | null {
  // The name, in brackets, may hold anything.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  const ticks = Number(fields[11]) + Number(fields[12]);
  return Number.isFinite(ticks) && fields.length > 12 ? ticks * MS_PER_TICK : null;
}

/** Resident memory in megabytes, of `/proc/PID/status`; null: it is gone. */
export function residentMbOf(status: string): number | null {
  const match = /^VmRSS:\s+(\d+) kB$/m.exec(status);
  return match === null ? null : Number(match[1]) / 1_024;
}

/** The soft limit of `/proc/PID/limits`; null: unlimited, or unknown. */
export function maxOpenFilesOf(limits: string): number | null {
  const match = /^Max open files\s+(\d+)/m.exec(limits);
  return match === null ? null : Number(match[1]);
}

/** What a person calls the process, of `/proc/PID/cmdline`: the command of our own programs, else the program. */
export function processName(cmdline: string): string {
  const parts = cmdline.split('\0');
  const main = parts.findIndex((part) => part.endsWith('/cli/main.js'));
  const command = main < 0 ? undefined : parts[main + 1];
  if (command === 'up') return 'supervisor';
  return command !== undefined && command !== '' ? command : (parts[0]?.split('/').at(-1)?.split(' ')[0] ?? 'unknown');
}

/** Busy and all time of the machine's cores, of the first line of `/proc/stat`. */
export function machineTimes(stat: string): { readonly busy: number; readonly all: number } | null {
  const match = /^cpu +([\d ]+)$/m.exec(stat);
  if (match === null) return null;
  // user nice system idle iowait irq softirq steal; guest times are in user already.
  const times = (match[1] ?? '').split(' ').slice(0, 8).map(Number);
  const all = times.reduce((sum, time) => sum + time, 0);
  return { all, busy: all - (times[3] ?? 0) - (times[4] ?? 0) };
}

export function memoryFreeMbOf(meminfo: string): number {
  const match = /^MemAvailable:\s+(\d+) kB$/m.exec(meminfo);
  return match === null ? Infinity : Number(match[1]) / 1_024;
}

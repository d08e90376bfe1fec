import { readdirSync, readFileSync, readlinkSync } from 'node:fs';

/** The names of `trunkline up`'s children. */
export const CHILDREN = ['redis-server', 'rtpengine', 'socket-holder', 'sip-server', 'gateway'] as const;
export type ChildName = (typeof CHILDREN)[number];

/** The process ids of what a process has started, in their order. */
export function startedBy(parent: number): number[] {
  return readdirSync('/proc')
    .map(Number)
    .filter((pid) => Number.isInteger(pid) && parentOf(pid) === parent);
}

/** A supervisor's children, in the order of their process ids; one that is away at the moment is missing. */
export function childrenOf(supervisorPid: number): { readonly name: ChildName; readonly pid: number }[] {
  return startedBy(supervisorPid).flatMap((pid) => {
    const name = CHILDREN.find((child) => isCalled(pid, child));
    return name === undefined ? [] : [{ name, pid }];
  });
}

/** The first child of a name. */
export function childPid(supervisorPid: number, name: ChildName): number {
  const pid = childrenOf(supervisorPid).find((child) => child.name === name)?.pid;
  if (pid === undefined) throw new Error(`${name} is not running below ${String(supervisorPid)}`);
  return pid;
}

/** Whether the process is there and is no zombie. */
export function isAlive(pid: number): boolean {
  return !/^State:\s+[ZX]/m.test(text(`/proc/${String(pid)}/status`) || 'State: X');
}

export function openFiles(pid: number): number {
  return readdirSync(`/proc/${String(pid)}/fd`).length;
}

/** Resident memory in kB. */
export function memoryKb(pid: number): number {
  return Number(/^VmRSS:\s+(\d+)/m.exec(text(`/proc/${String(pid)}/status`))?.[1] ?? 0);
}

function parentOf(pid: number): number {
  return Number(/^PPid:\s+(\d+)/m.exec(text(`/proc/${String(pid)}/status`))?.[1] ?? 0);
}

/** redis-server and rtpengine by their program, the others by their argument. */
function isCalled(pid: number, name: ChildName): boolean {
  const [program = '', ...args] = text(`/proc/${String(pid)}/cmdline`).split('\0');
  // Until setpriv has become the child, its own arguments hold the child's.
  if (program.endsWith('setpriv')) return false;
  return program.split(/[/ ]/).includes(name) || args.includes(name);
}

function directoryOf(pid: number): string {
  try {
    return readlinkSync(`/proc/${String(pid)}/cwd`);
  } catch {
    return '';
  }
}

function text(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return '';
  }
}

/** Every living process of an instance: its data directory is in the environment, or where the process works (redis-server overwrites the former). */
export function processesOf(dataDir: string): { readonly pid: number; readonly command: string }[] {
  return readdirSync('/proc')
    .map(Number)
    .filter(
      (pid) => Number.isInteger(pid) && `${text(`/proc/${String(pid)}/environ`)} ${directoryOf(pid)}`.includes(dataDir) && isAlive(pid),
    )
    .map((pid) => ({ pid, command: text(`/proc/${String(pid)}/cmdline`).replaceAll('\0', ' ') }));
}

/** A signal to each living process of an instance, or to some of them. */
export function signalAll(dataDir: string, signal: NodeJS.Signals, isMeant: (command: string) => boolean = () => true): void {
  for (const { pid, command } of processesOf(dataDir)) {
    try {
      if (isMeant(command)) process.kill(pid, signal);
    } catch (error) {
      // It ended with another one meanwhile.
      if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
    }
  }
}

import { readdirSync, readFileSync } from 'node:fs';
import { cpus } from 'node:os';
import type { Side } from '../figures.js';
import { cpuMsOf, machineTimes, maxOpenFilesOf, memoryFreeMbOf, processName, residentMbOf } from '../proc-files.js';
import type { UsageSample } from '../recorder.js';

interface Known {
  readonly name: string;
  readonly side: Side;
  readonly maxOpenFiles: number | null;
  cpuMs: number;
  threads: Map<string, number>;
  openFiles: number;
}

const FILES_EVERY = 5;

export const CORES = cpus().length;

/** Looks once a second at the processes of the gateway (all below one) and of the load generator. Linux only: elsewhere it sees none. */
export class ProcessWatch {
  readonly #known = new Map<number, Known>();
  readonly #load = new Map<number, string>();
  #atMs: number | undefined;
  #machine: { readonly busy: number; readonly all: number } | null = null;
  #looks = 0;

  /** @param gatewayPid of `trunkline up`; null: it is not on this machine */
  constructor(private readonly gatewayPid: number | null) {}

  add(pid: number, name: string): void {
    if (pid > 0) this.#load.set(pid, name);
  }

  remove(pid: number): void {
    this.#load.delete(pid);
    this.#known.delete(pid);
  }

  /** What was used since the look before; a process that is new shows up at the next one. */
  look(nowMs: number): { readonly samples: UsageSample[]; readonly busyPercent: number | null; readonly memoryFreeMb: number } {
    const elapsedMs = this.#atMs === undefined ? 0 : nowMs - this.#atMs;
    this.#atMs = nowMs;
    this.#looks += 1;
    const gateway = this.gatewayPid === null ? [] : [this.gatewayPid, ...descendants(this.gatewayPid)];
    const all: [number, Side][] = [
      ...gateway.map((pid): [number, Side] => [pid, 'gateway']),
      ...[...this.#load.keys()].map((pid): [number, Side] => [pid, 'load']),
    ];
    const samples = all.map(([pid, side]) => this.#sample(pid, side, elapsedMs)).filter((sample) => sample !== null);
    return { samples, busyPercent: this.#machineBusy(), memoryFreeMb: memoryFreeMbOf(text('/proc/meminfo')) };
  }

  #sample(pid: number, side: Side, elapsedMs: number): UsageSample | null {
    const cpuMs = cpuMsOf(text(`/proc/${String(pid)}/stat`));
    const memoryMb = residentMbOf(text(`/proc/${String(pid)}/status`));
    if (cpuMs === null || memoryMb === null) {
      this.#known.delete(pid);
      return null;
    }
    const threads = threadTimes(pid);
    const known = this.#known.get(pid);
    if (known === undefined) {
      const maxOpenFiles = maxOpenFilesOf(text(`/proc/${String(pid)}/limits`));
      this.#known.set(pid, { name: this.#nameOf(pid), side, maxOpenFiles, cpuMs, threads, openFiles: openFiles(pid) });
      return null;
    }
    if (this.#looks % FILES_EVERY === 0) known.openFiles = openFiles(pid);
    const used = cpuMs - known.cpuMs;
    const busiest = Math.max(0, ...[...threads].map(([thread, ms]) => ms - (known.threads.get(thread) ?? ms)));
    Object.assign(known, { cpuMs, threads });
    const percent = (ms: number): number => (elapsedMs <= 0 ? 0 : (100 * ms) / elapsedMs);
    const { name, maxOpenFiles, openFiles: files } = known;
    return { name, side, pid, cpuMs: used, cpu: percent(used), threadBusy: percent(busiest), memoryMb, openFiles: files, maxOpenFiles };
  }

  /** Several of one name are numbered: gateway, gateway 2. */
  #nameOf(pid: number): string {
    const own = this.#load.get(pid) ?? processName(text(`/proc/${String(pid)}/cmdline`));
    const taken = new Set([...this.#known.values()].map(({ name }) => name));
    let name = own;
    for (let number = 2; taken.has(name); number += 1) name = `${own} ${String(number)}`;
    return name;
  }

  #machineBusy(): number | null {
    const times = machineTimes(text('/proc/stat'));
    const before = this.#machine;
    this.#machine = times;
    if (times === null || before === null || times.all === before.all) return null;
    return (100 * (times.busy - before.busy)) / (times.all - before.all);
  }
}

/** A file of /proc; '' when it is gone. */
function text(file: string): string {
  try {
    return readFileSync(file, 'latin1');
  } catch {
    return '';
  }
}

function names(directory: string): string[] {
  try {
    return readdirSync(directory);
  } catch {
    return [];
  }
}

function threadTimes(pid: number): Map<string, number> {
  const directory = `/proc/${String(pid)}/task`;
  return new Map(names(directory).map((thread) => [thread, cpuMsOf(text(`${directory}/${thread}/stat`)) ?? 0]));
}

const openFiles = (pid: number): number => names(`/proc/${String(pid)}/fd`).length;

function descendants(pid: number): number[] {
  const children = names(`/proc/${String(pid)}/task`)
    .flatMap((thread) =>
      text(`/proc/${String(pid)}/task/${thread}/children`)
        .trim()
        .split(' '),
    )
    .filter((child) => child !== '')
    .map(Number);
  return children.flatMap((child) => [child, ...descendants(child)]);
}

declare module '@bcoe/v8-coverage' {
  import type { Profiler } from 'node:inspector';

  /** Of one process or thread. */
  export interface ProcessCov {
    readonly result: readonly Profiler.ScriptCoverage[];
  }

  /** The sums, by script. */
  export function mergeProcessCovs(processes: readonly ProcessCov[]): ProcessCov;
}

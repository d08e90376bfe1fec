import { execFileSync } from 'node:child_process';
import { closeSync, constants, mkdtempSync, openSync, rmSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import type { ChildName } from '../support/processes.js';

/** What may be wrong with a process. */
export interface MachineFaults {
  /** Added to its wall clock; its monotonic time goes on as it was. */
  readonly clockSeconds?: number;
  readonly isDiskFull?: boolean;
  readonly isDnsGone?: boolean;
}

const NAMES: readonly ChildName[] = ['gateway', 'sip-server', 'redis-server', 'rtpengine'];

/** Faults of a machine that single processes have, while they run: needs no rights and no program but the C compiler. */
export class PreloadedFaults {
  private constructor(readonly directory: string) {}

  static build(): PreloadedFaults {
    const directory = mkdtempSync(join(tmpdir(), 'trunkline-faults-'));
    const faults = new PreloadedFaults(directory);
    for (const name of NAMES) faults.set(name, {});
    // Not by the environment: redis-server and rtpengine get little of it.
    const place = `-DFAULTS_DIRECTORY="${directory}"`;
    execFileSync('cc', ['-O2', '-shared', '-fPIC', place, '-o', faults.#library, resolve('test/faults/preload.c'), '-ldl']);
    return faults;
  }

  get #library(): string {
    return join(this.directory, 'preload.so');
  }

  /** For `trunkline up`; its children inherit it. */
  get environment(): Readonly<Record<string, string>> {
    return { LD_PRELOAD: this.#library };
  }

  /** From now on, in every process of that name. */
  set(name: ChildName, { clockSeconds = 0, isDiskFull = false, isDnsGone = false }: MachineFaults): void {
    const fields = BigInt64Array.of(BigInt(clockSeconds), BigInt(isDiskFull), BigInt(isDnsGone));
    // In place: the processes have the file mapped.
    const file = openSync(join(this.directory, name), constants.O_RDWR | constants.O_CREAT, 0o600);
    writeSync(file, new Uint8Array(fields.buffer));
    closeSync(file);
  }

  remove(): void {
    rmSync(this.directory, { recursive: true, force: true });
  }
}

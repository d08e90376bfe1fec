import { keepLogs } from './left-logs.js';
import { execFile } from 'node:child_process';
import { mkdtempSync } from 'node:fs';
import { chmod, mkdtemp, rm, stat } from 'node:fs/promises';
import type { Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join, resolve, sep } from 'node:path';
import { promisify } from 'node:util';
import { testEnvironment } from './gateway.js';
import { signalAll } from './processes.js';
import { Program } from './program.js';

/** `trunkline up` where the start itself is looked at: starts that are refused, cut short, or interrupted by a terminal. */
export class UpProcess extends Program {
  private constructor(
    args: readonly string[],
    environment: Readonly<Record<string, string>>,
    uid: number | undefined,
    checkout: string,
    private readonly dataDir: string,
  ) {
    super(args, environment, { main: resolve(checkout, 'dist/cli/main.js'), isGroup: true, ...(uid === undefined ? {} : { uid }) });
  }

  /**
   * @param uid of another user than this one
   * @param checkout what it is started from
   * @param command `up`, or another that stays in the foreground
   */
  static spawn(environment: Readonly<Record<string, string>>, uid?: number, checkout = '.', command = 'up'): UpProcess {
    return new UpProcess([command], environment, uid, checkout, environment['TRUNKLINE_DATA_DIR'] ?? '');
  }

  /** Ends it, if a failed test has left it running, with everything that it started. */
  async destroy(): Promise<void> {
    await this.end('SIGKILL');
    signalAll(this.dataDir, 'SIGKILL');
  }
}

/** Settings of an instance that nothing else uses, in a directory of its own. */
export class Instance {
  private constructor(
    readonly directory: string,
    readonly environment: Readonly<Record<string, string>>,
    private readonly lock: Server,
  ) {}

  static async settings(overrides: Readonly<Record<string, string>> = {}): Promise<Instance> {
    const directory = mkdtempSync(join(tmpdir(), 'trunkline-up-'));
    const { environment, lock } = await testEnvironment(directory);
    return new Instance(directory, { ...environment, ...overrides }, lock);
  }

  get dataDir(): string {
    return join(this.directory, 'data');
  }

  async remove(): Promise<void> {
    await new Promise((done) => this.lock.close(done));
    await keepLogs(this.dataDir);
    await rm(this.directory, { recursive: true, force: true });
  }
}

/** What a run needs of this checkout, where any user gets at it: a copy by links when this one lies in a directory of root's alone. */
export async function checkoutForAll(): Promise<{ readonly directory: string; remove(): Promise<void> }> {
  const here = resolve('.');
  const above = here.split(sep).map((_, index, parts) => parts.slice(0, index + 1).join(sep) || sep);
  const modes = await Promise.all(above.map(async (path) => (await stat(path)).mode));
  if (modes.every((mode) => (mode & 0o001) !== 0)) return { directory: here, remove: () => Promise.resolve() };
  const directory = await mkdtemp(join(tmpdir(), 'trunkline-checkout-'));
  await chmod(directory, 0o755);
  const copy = async (how: string): Promise<void> => {
    await promisify(execFile)('cp', [how, 'dist', 'node_modules', 'native', 'config', 'package.json', directory]);
  };
  await copy('-al').catch(() => copy('-a'));
  return { directory, remove: () => rm(directory, { recursive: true, force: true }) };
}

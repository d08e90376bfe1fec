import { execFile, spawn, type ChildProcess } from 'node:child_process';
import { mkdtempSync } from 'node:fs';
import { chmod, mkdtemp, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve, sep } from 'node:path';
import { promisify } from 'node:util';
import { freePorts, freeRange, relayPorts } from './ports.js';
import { signalAll } from './processes.js';

/** `trunkline up` where the start itself is looked at: starts that are refused, cut short, or interrupted by a terminal. */
export class UpProcess {
  #output = '';
  readonly #onOutput = new Set<() => void>();
  /** Exit code, or the signal that ended it. */
  readonly ended: Promise<number | NodeJS.Signals | null>;

  private constructor(
    private readonly child: ChildProcess,
    private readonly dataDir: string,
  ) {
    const read = (chunk: Buffer): void => {
      this.#output += chunk.toString();
      for (const look of [...this.#onOutput]) look();
    };
    child.stdout?.on('data', read);
    child.stderr?.on('data', read);
    this.ended = new Promise((resolve_) => child.once('close', (code, signal) => resolve_(code ?? signal)));
  }

  /**
   * In a process group of its own, as a shell with job control starts it.
   * @param uid of another user than this one
   * @param checkout what it is started from
   * @param command `up`, or another that stays in the foreground
   */
  static spawn(environment: Readonly<Record<string, string>>, uid?: number, checkout = '.', command = 'up'): UpProcess {
    const child = spawn(process.execPath, [resolve(checkout, 'dist/cli/main.js'), command], {
      env: { ...process.env, ...environment },
      stdio: ['ignore', 'pipe', 'pipe'],
      detached: true,
      uid,
    });
    return new UpProcess(child, environment['TRUNKLINE_DATA_DIR'] ?? '');
  }

  get pid(): number {
    return this.child.pid ?? 0;
  }

  get output(): string {
    return this.#output;
  }

  /** Resolves when it has printed the text; rejects when it ends without. */
  async printed(text: string): Promise<void> {
    const seen = new Promise<'seen'>((resolve_) => {
      const look = (): void => {
        if (!this.#output.includes(text)) return;
        this.#onOutput.delete(look);
        resolve_('seen');
      };
      this.#onOutput.add(look);
      look();
    });
    if ((await Promise.race([seen, this.ended])) !== 'seen') throw new Error(`it ended without ${JSON.stringify(text)}:\n${this.#output}`);
  }

  kill(signal: NodeJS.Signals): void {
    this.child.kill(signal);
  }

  /** What a terminal does at Ctrl-C: the whole group gets the signal. */
  interruptGroup(): void {
    process.kill(-this.pid, 'SIGINT');
  }

  /** Ends it, if a failed test has left it running, with everything that it started. */
  async destroy(): Promise<void> {
    this.child.kill('SIGKILL');
    await this.ended;
    signalAll(this.dataDir, 'SIGKILL');
  }
}

/** Settings of an instance that nothing else uses, in a directory of its own. */
export class Instance {
  private constructor(
    readonly directory: string,
    readonly environment: Readonly<Record<string, string>>,
  ) {}

  static async settings(overrides: Readonly<Record<string, string>> = {}): Promise<Instance> {
    const directory = mkdtempSync(join(tmpdir(), 'trunkline-up-'));
    const [sip, http, redis, control, ng] = await freePorts(5);
    const [media, relay] = [await freeRange(40), await relayPorts(100)];
    return new Instance(directory, {
      TRUNKLINE_DATA_DIR: join(directory, 'data'),
      TRUNKLINE_GATEWAY_WORKERS: '1',
      TRUNKLINE_SPARE_PROCESSES: 'false',
      TRUNKLINE_SIP_TLS_PORT: String(sip),
      TRUNKLINE_HTTP_PORT: String(http),
      TRUNKLINE_REDIS_PORT: String(redis),
      TRUNKLINE_DRACHTIO_PORT: String(control),
      TRUNKLINE_RTPENGINE_NG_PORT: String(ng),
      TRUNKLINE_RTPENGINE_PORT_MIN: String(relay.min),
      TRUNKLINE_RTPENGINE_PORT_MAX: String(relay.max),
      TRUNKLINE_MEDIA_PORT_MIN: String(media),
      TRUNKLINE_MEDIA_PORT_MAX: String(media + 39),
      ...overrides,
    });
  }

  get dataDir(): string {
    return join(this.directory, 'data');
  }

  remove(): Promise<void> {
    return rm(this.directory, { recursive: true, force: true });
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

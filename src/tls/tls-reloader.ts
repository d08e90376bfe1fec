import { watch, type FSWatcher } from 'node:fs';
import { dirname, resolve } from 'node:path';
import type { CancelTimer, Clock } from '../lib/clock.js';
import { errorText } from '../lib/result.js';
import type { Log } from '../lib/log.js';
import type { TlsMaterial } from '../sip/transport/tls-server-contexts.js';
import type { ServerTls } from './tls-material.js';

/** Certificate and key are written one after the other: a look in between would find two that do not belong together. */
const SETTLE_MS = 300;
/** What no watch tells of, such as a link above the directory that was changed, is found by looking. */
const LOOK_EVERY_MS = 60_000;

export interface TlsReloaderOptions {
  readonly read: () => Promise<ServerTls>;
  /** Takes the new material into use; throws when it cannot, and then the old one stays. */
  readonly apply: (material: TlsMaterial, facts: ServerTls['facts']) => void;
  readonly clock: Clock;
  readonly log: Log;
}

/**
 * Takes changed certificates into use while connections go on. The directories of the files are watched, not the files: certbot and
 * cert-manager put new ones in place by renaming and by changing links. A bad file is logged, once, and what was in use stays.
 */
export class TlsReloader {
  readonly #watchers = new Map<string, FSWatcher>();
  #inUse: string;
  #files: readonly string[];
  #lastProblem = '';
  #cancelLook: CancelTimer | undefined;
  #isClosed = false;
  #running: Promise<void> = Promise.resolve();

  constructor(
    private readonly options: TlsReloaderOptions,
    initial: ServerTls,
  ) {
    this.#inUse = JSON.stringify(initial.material);
    this.#files = initial.files;
    this.#watch();
    this.#lookIn(LOOK_EVERY_MS);
  }

  /** Reads the files now. Speaks of it whatever comes of it: somebody asked. */
  reload(): Promise<void> {
    this.#lastProblem = '';
    return this.#look(true);
  }

  close(): void {
    this.#isClosed = true;
    this.#cancelLook?.();
    for (const watcher of this.#watchers.values()) watcher.close();
    this.#watchers.clear();
  }

  /** One look at a time. */
  #look(isAsked: boolean): Promise<void> {
    this.#running = this.#running.then(() => this.#lookNow(isAsked));
    return this.#running;
  }

  async #lookNow(isAsked: boolean): Promise<void> {
    if (this.#isClosed) return;
    const { read, apply, log } = this.options;
    try {
      const { material, files, facts } = await read();
      const text = JSON.stringify(material);
      this.#lastProblem = '';
      this.#files = files;
      if (text !== this.#inUse) {
        apply(material, facts);
        this.#inUse = text;
        for (const certificate of facts) log.info(certificate, 'sip.tls.certificate_loaded');
      } else if (isAsked) log.info({}, 'sip.tls.certificate_unchanged');
    } catch (error) {
      const problem = errorText(error);
      if (problem !== this.#lastProblem) log.error({ error: problem }, 'sip.tls.reload_failed');
      this.#lastProblem = problem;
    }
    this.#watch();
    this.#lookIn(LOOK_EVERY_MS);
  }

  #lookIn(ms: number): void {
    this.#cancelLook?.();
    if (!this.#isClosed) this.#cancelLook = this.options.clock.setTimer(ms, () => void this.#look(false));
  }

  /** A directory that is not there now is watched from the next look on. */
  #watch(): void {
    if (this.#isClosed) return;
    for (const directory of new Set(this.#files.map((file) => dirname(resolve(file))))) {
      if (this.#watchers.has(directory)) continue;
      try {
        const watcher = watch(directory, { persistent: false }, () => this.#lookIn(SETTLE_MS));
        this.#watchers.set(directory, watcher);
        watcher.on('error', () => this.#unwatch(directory, watcher));
        watcher.on('close', () => this.#unwatch(directory, watcher));
      } catch {
        // Looked at every minute all the same.
      }
    }
  }

  #unwatch(directory: string, watcher: FSWatcher): void {
    if (this.#watchers.get(directory) === watcher) this.#watchers.delete(directory);
    watcher.close();
  }
}

import { watch, type FSWatcher } from 'node:fs';
import { dirname, resolve } from 'node:path';
import type { CancelTimer, Clock } from '../lib/clock.js';
import { errorText } from '../lib/result.js';
import type { Log } from '../lib/log.js';
import type { TlsMaterial } from '../sip/transport/tls-server-contexts.js';
import type { ServerTls } from './tls-material.js';

/** Certificate and key are written one after the other: a reload in between would read two that do not match. */
const SETTLE_MS = 300;
/** Polling finds what a watch misses, such as a changed link above the directory. */
const LOOK_EVERY_MS = 60_000;

export interface TlsReloaderOptions {
  readonly read: () => Promise<ServerTls>;
  /** Applies the new material; throws if it cannot, and the old material stays in use. */
  readonly apply: (material: TlsMaterial, facts: ServerTls['facts']) => void;
  readonly clock: Clock;
  readonly log: Log;
}

/**
 * Applies changed certificates without closing connections. It watches the directories, not the files: certbot and cert-manager install
 * files by renaming and by changing links. It logs an invalid file once and keeps the previous material.
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

  /** Reads the files now, and logs the result in any case: the operator requested it. */
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

  /** One reload at a time. */
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
        for (const certificate of facts) log.info({ ...certificate }, 'sip.tls.certificate_loaded');
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

  /** A directory that does not exist yet is watched after a later poll. */
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
        // The poll, once a minute, covers it.
      }
    }
  }

  #unwatch(directory: string, watcher: FSWatcher): void {
    if (this.#watchers.get(directory) === watcher) this.#watchers.delete(directory);
    watcher.close();
  }
}

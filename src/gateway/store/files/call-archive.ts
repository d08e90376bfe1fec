import { appendFile, mkdir, readdir, unlink } from 'node:fs/promises';
import { join } from 'node:path';
import type { CallRecord } from '../../model/call-record.js';
import type { Clock } from '../../../lib/clock.js';
import { errorText } from '../../../lib/result.js';
import type { Log } from '../../../lib/log.js';

const DAY_MS = 86_400_000;
const FILE = /^(\d{4}-\d\d-\d\d)\.jsonl$/;
/** What may wait for a slow disk. */
const MAX_WAITING_BYTES = 16 << 20;

/**
 * Every call's record as a line of JSON in `<directory>/<day, UTC>.jsonl`, to keep them all. Several gateways may share
 * the directory: a line is one append. Files older than `days` are removed.
 */
export class CallArchive {
  #waiting: string[] = [];
  #waitingBytes = 0;
  #lost = 0;
  #writing: Promise<void> | undefined;
  /** The day whose file was written last. */
  #day = '';

  constructor(
    private readonly directory: string,
    private readonly days: number,
    private readonly clock: Clock,
    private readonly log: Log,
  ) {}

  /** Returns at once. What a disk does not take is lost, and logged. */
  append(record: CallRecord): void {
    const line = `${JSON.stringify(record)}\n`;
    if (this.#waitingBytes + line.length > MAX_WAITING_BYTES) {
      this.#lost += 1;
      return;
    }
    this.#waiting.push(line);
    this.#waitingBytes += line.length;
    this.#writing ??= this.#writeAll().finally(() => (this.#writing = undefined));
  }

  async close(): Promise<void> {
    await this.#writing;
  }

  async #writeAll(): Promise<void> {
    while (this.#waiting.length > 0) {
      const lines = this.#waiting;
      this.#waiting = [];
      this.#waitingBytes = 0;
      const day = new Date(this.clock.wallMs()).toISOString().slice(0, 10);
      try {
        if (day !== this.#day) await this.#beginDay(day);
        await appendFile(join(this.directory, `${day}.jsonl`), lines.join(''), { mode: 0o600 });
      } catch (error) {
        this.#lost += lines.length;
        this.log.error({ records: this.#lost, error: errorText(error) }, 'call.archive.lost');
        this.#lost = 0;
      }
    }
  }

  async #beginDay(day: string): Promise<void> {
    await mkdir(this.directory, { recursive: true, mode: 0o700 });
    const oldest = new Date(Date.parse(day) - (this.days - 1) * DAY_MS).toISOString().slice(0, 10);
    const old = (await readdir(this.directory)).filter((name) => (FILE.exec(name)?.[1] ?? oldest) < oldest);
    // Another gateway may have been faster.
    await Promise.all(old.map((name) => unlink(join(this.directory, name)).catch(() => undefined)));
    this.#day = day;
  }
}

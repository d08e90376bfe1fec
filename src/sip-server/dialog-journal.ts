import { closeSync, ftruncateSync, openSync, readFileSync, renameSync, rmSync, writeSync } from 'node:fs';
import type { CancelTimer, Clock } from '../lib/clock.js';
import type { Log } from '../lib/log.js';
import { errorText } from '../lib/result.js';
import { TurnBatch } from '../lib/turn-batch.js';
import type { DialogRecord, DialogStore } from '../sip/dialog/dialog-record.js';
import { dialogKey } from '../sip/dialog/dialog.js';

export interface JournalOptions {
  readonly file: string;
  /** Journals that nobody goes on with, to be taken into this one. */
  readonly left?: readonly string[];
  readonly clock: Clock;
  readonly log: Log;
  /** Bytes from which the journal begins anew, if it has doubled since. Default: 4 MiB. */
  readonly maxBytes?: number;
}

/** What the journal needs of the dialogs to begin anew. */
export interface JournalSource {
  /** Every live dialog with a record. */
  records(): readonly DialogRecord[];
  /** Dialogs of an earlier process, which ended so long ago. Called once for each. */
  restore(records: readonly DialogRecord[], awayMs: number): void;
}

const MAX_BYTES = 4 << 20;
/** Pause between attempts while the disk refuses. */
const RETRY_MS = 1_000;
/** How exactly the end of a process is known to the next one. */
const BEAT_MS = 5_000;

/**
 * The dialogs of this SIP server in one file: a line for each change, written without fsync, so that they outlive the
 * process, not the machine. A line is `[key, changed fields]`, `[key]` at the end of the dialog, or `[time]` at which the process lived. It is
 * a byte string, as SIP text is.
 */
export class DialogJournal implements DialogStore {
  readonly isOwner = true;
  readonly isAwake = true;
  #file: number | null = null;
  #bytes = 0;
  #startBytes = 0;
  #failures = 0;
  #isRead = false;
  #source: JournalSource | undefined;
  #cancelRetry: CancelTimer | undefined;
  #cancelBeat: CancelTimer | undefined;
  /** Sent after the messages of this turn: the application that gets an ACK or BYE has it by then. */
  readonly #soon = new TurnBatch<string>((lines) => this.#append(lines.length === 1 ? (lines[0] ?? '') : lines.join('')));

  constructor(private readonly options: JournalOptions) {}

  /** Failed attempts to read or write. */
  get failures(): number {
    return this.#failures;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** False while the file cannot be read: it may have dialogs that nobody knows. */
  get isRead(): boolean {
    return this.#isRead;
  }

  /** Restores what an earlier process left, and begins anew with it. While the disk refuses, tries again every second. */
  open(source: JournalSource): void {
    this.#source = source;
    this.#begin();
    this.#beatLater();
  }

  write(key: string, changes: Partial<DialogRecord>, when: 'now' | 'soon'): void {
    this.#add([key, changes]);
    if (when === 'now') this.#soon.flush();
  }

  end(key: string): void {
    this.#add([key]);
  }

  isElsewhere(): false {
    return false;
  }

  close(): void {
    this.#soon.flush();
    this.#cancelRetry?.();
    this.#cancelBeat?.();
    this.#closeFile();
  }

  #beatLater(): void {
    this.#cancelBeat = this.options.clock.setTimer(BEAT_MS, () => {
      this.#add([this.options.clock.wallMs()]);
      this.#beatLater();
    });
  }

  #add(line: readonly unknown[]): void {
    if (this.#file !== null) this.#soon.push(`${JSON.stringify(line)}\n`);
  }

  #append(text: string): void {
    if (this.#file === null) return;
    try {
      const written = writeSync(this.#file, text, null, 'latin1');
      this.#bytes += written;
      if (written < text.length) throw new Error(`${String(written)} of ${String(text.length)} bytes written`);
    } catch (error) {
      return this.#fail(error);
    }
    if (this.#bytes > (this.options.maxBytes ?? MAX_BYTES) && this.#bytes > 2 * this.#startBytes) this.#begin();
  }

  /** Reads the file, unless this was done, and replaces it by one with the live dialogs alone. */
  #begin(): void {
    this.#cancelRetry = undefined;
    try {
      if (!this.#isRead) {
        const { file, left = [], clock } = this.options;
        const journals = [file, ...left].map((each) => this.#read(each));
        this.#isRead = true;
        for (const { records, livedMs } of journals) this.#source?.restore(records, livedMs === null ? 0 : clock.wallMs() - livedMs);
      }
      this.#rewrite(this.#source?.records() ?? []);
      for (const file of this.options.left ?? []) rmSync(file, { force: true });
    } catch (error) {
      this.#fail(error);
    }
  }

  #read(file: string): ReturnType<typeof readJournal> {
    const { log } = this.options;
    const journal = readJournal(readOrEmpty(file));
    if (journal.badLines > 0) log.warn({ lines: journal.badLines }, 'sip_server.journal.bad_lines');
    return journal;
  }

  #rewrite(records: readonly DialogRecord[]): void {
    const { file, clock } = this.options;
    const lines = [[clock.wallMs()], ...records.map((record) => [keyOf(record), record])];
    const text = lines.map((line) => `${JSON.stringify(line)}\n`).join('');
    // One that an earlier process could not complete.
    rmSync(`${file}.new`, { force: true });
    const next = openSync(`${file}.new`, 'ax', 0o600);
    try {
      writeAll(next, text);
      renameSync(`${file}.new`, file);
    } catch (error) {
      // Leaves the room to others.
      ftruncateSync(next);
      closeSync(next);
      throw error;
    }
    this.#closeFile();
    this.#file = next;
    this.#bytes = text.length;
    this.#startBytes = text.length;
  }

  /** The last line may be cut: nothing follows it until the journal could begin anew. */
  #fail(error: unknown): void {
    this.#failures += 1;
    this.options.log.error({ error: errorText(error) }, 'sip_server.journal.failed');
    this.#closeFile();
    this.#cancelRetry = this.options.clock.setTimer(RETRY_MS, () => this.#begin());
  }

  #closeFile(): void {
    if (this.#file !== null) closeSync(this.#file);
    this.#file = null;
  }
}

/**
 * The dialogs that a journal leaves, in the order of their first line, and when its process lived last (`null`: unknown). A line that is cut
 * or damaged counts as missing.
 */
export function readJournal(text: string): {
  readonly records: DialogRecord[];
  readonly livedMs: number | null;
  readonly badLines: number;
} {
  const dialogs = new Map<string, Partial<DialogRecord>>();
  let livedMs: number | null = null;
  let badLines = 0;
  for (const line of text.split('\n')) {
    if (line === '') continue;
    const entry = parseLine(line);
    if (entry === undefined) badLines += 1;
    else if ('livedMs' in entry) livedMs = entry.livedMs;
    else if (entry.changes === undefined) dialogs.delete(entry.key);
    else dialogs.set(entry.key, { ...dialogs.get(entry.key), ...entry.changes });
  }
  const records = [...dialogs.values()].filter(isWhole);
  return { records, livedMs, badLines: badLines + dialogs.size - records.length };
}

type Line = { readonly key: string; readonly changes: Partial<DialogRecord> | undefined } | { readonly livedMs: number };

function parseLine(line: string): Line | undefined {
  try {
    const parsed: unknown = JSON.parse(line);
    if (!Array.isArray(parsed)) return undefined;
    const [key, changes] = parsed as unknown[];
    if (typeof key === 'number' && parsed.length === 1) return { livedMs: key };
    if (typeof key !== 'string' || (changes !== undefined && (typeof changes !== 'object' || changes === null))) return undefined;
    return { key, changes };
  } catch {
    return undefined;
  }
}

const TEXTS = ['callId', 'localTag', 'remoteTag', 'local', 'remote', 'remoteTarget', 'userData', 'transport', 'sourceAddress'] as const;

/** False for a dialog whose first line is lost: it has changes only. */
function isWhole(record: Partial<DialogRecord>): record is DialogRecord {
  return (
    TEXTS.every((name) => typeof record[name] === 'string') &&
    Array.isArray(record.routeSet) &&
    Array.isArray(record.actors) &&
    Number.isInteger(record.reservedSeq)
  );
}

function keyOf({ callId, localTag, remoteTag }: DialogRecord): string {
  return dialogKey(callId, localTag, remoteTag);
}

function readOrEmpty(file: string): string {
  try {
    return readFileSync(file, 'latin1');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return '';
    throw error;
  }
}

function writeAll(file: number, text: string): void {
  const bytes = Buffer.from(text, 'latin1');
  for (let at = 0; at < bytes.length;) at += writeSync(file, bytes, at);
}

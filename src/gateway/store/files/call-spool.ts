import { mkdir, open, type FileHandle } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { EndedCall } from '../../ports/ports.js';

/** Written in advance, so that a full disk, which is why Redis takes nothing, has room for some 1,000 calls. */
const RESERVED_BYTES = 4 << 20;
const MAX_BYTES = 256 << 20;
const CHUNK_BYTES = 1 << 20;
const LINE_END = 0x0a;

interface Line {
  readonly position: number;
  readonly length: number;
}

export interface SpoolOptions {
  readonly reservedBytes?: number;
  readonly maxBytes?: number;
}

/**
 * Ended calls that Redis could not take, in a file: one JSON object a line, up to the first NUL. They outlive the gateway. One process has
 * the file. What it was given is safe from the end of the process, not of the machine.
 */
export class CallSpool {
  readonly #waiting: Line[] = [];
  #end = 0;
  #file: FileHandle | undefined;
  /** One operation on the file after the other. */
  #last: Promise<unknown> = Promise.resolve();

  constructor(
    private readonly path: string,
    private readonly options: SpoolOptions = {},
  ) {}

  /** Opens the file, or makes it, with what an earlier process left in it. Rejects when it cannot be written. */
  static async open(path: string, options: SpoolOptions = {}): Promise<CallSpool> {
    const spool = new CallSpool(path, options);
    await spool.open();
    return spool;
  }

  /** As `CallSpool.open`: nothing can be appended before. */
  async open(): Promise<void> {
    await mkdir(dirname(this.path), { recursive: true, mode: 0o700 });
    // `r+` fails where there is none, `w+` empties the one that there is.
    this.#file = await open(this.path, 'r+', 0o600).catch(() => open(this.path, 'w+', 0o600));
    await this.#findLines();
    await this.#reserve();
  }

  /** Calls that wait. */
  get size(): number {
    return this.#waiting.length;
  }

  /** Rejects when the spool is full, or the disk. */
  append(call: EndedCall): Promise<void> {
    return this.#inTurn(async () => {
      const line = Buffer.from(`${JSON.stringify(call)}\n\0`);
      const length = line.length - 1;
      const { maxBytes = MAX_BYTES } = this.options;
      if (this.#end + line.length > maxBytes) throw new Error(`the spool file is full (${String(maxBytes)} bytes)`);
      await writeAll(this.#opened, line, this.#end);
      this.#waiting.push({ position: this.#end, length });
      this.#end += length;
    });
  }

  /**
   * Hands the calls to `write` in their order; one that was taken is gone. Rejects with what `write` rejects with: that call stays. A line
   * that is no JSON is left out; rejects at the end when there was one.
   */
  async drain(write: (call: EndedCall) => Promise<void>): Promise<void> {
    let unreadable = 0;
    for (let line = this.#waiting[0]; line !== undefined; line = this.#waiting[0]) {
      const call = parsed(await this.#read(line));
      if (call === null) unreadable += 1;
      else await write(call);
      this.#waiting.shift();
    }
    await this.#empty();
    if (unreadable > 0) throw new Error(`${String(unreadable)} lines of the spool file are not JSON`);
  }

  async close(): Promise<void> {
    await this.#inTurn(async () => this.#file?.close());
  }

  get #opened(): FileHandle {
    if (this.#file === undefined) throw new Error('the spool file is not open');
    return this.#file;
  }

  get #reservedBytes(): number {
    return this.options.reservedBytes ?? RESERVED_BYTES;
  }

  async #empty(): Promise<void> {
    await this.#inTurn(async () => {
      if (this.#waiting.length > 0 || this.#end === 0) return;
      await this.#opened.truncate(this.#reservedBytes);
      await writeAll(this.#opened, Buffer.of(0), 0);
      this.#end = 0;
    });
  }

  async #read({ position, length }: Line): Promise<string> {
    const line = Buffer.alloc(length);
    await this.#opened.read(line, 0, length, position);
    return line.toString();
  }

  /** A process that was killed while it wrote leaves a line without an end, which is written over. */
  async #findLines(): Promise<void> {
    const chunk = Buffer.alloc(CHUNK_BYTES);
    for (let at = 0; ;) {
      const { bytesRead } = await this.#opened.read(chunk, 0, chunk.length, at);
      const nul = chunk.subarray(0, bytesRead).indexOf(0);
      const text = chunk.subarray(0, nul < 0 ? bytesRead : nul);
      for (let end = text.indexOf(LINE_END); end >= 0; end = text.indexOf(LINE_END, end + 1)) {
        const next = at + end + 1;
        this.#waiting.push({ position: this.#end, length: next - this.#end });
        this.#end = next;
      }
      if (nul >= 0 || bytesRead === 0) return;
      at += bytesRead;
    }
  }

  async #reserve(): Promise<void> {
    const { size } = await this.#opened.stat();
    // Zeros that are written, and not a hole, which has no room on the disk.
    if (size >= this.#reservedBytes) return;
    // On a disk that is full already there is nothing to reserve.
    await writeAll(this.#opened, Buffer.alloc(this.#reservedBytes - size), size).catch(() => undefined);
  }

  #inTurn<T>(act: () => Promise<T>): Promise<T> {
    const turn = this.#last.then(act);
    this.#last = turn.catch(() => undefined);
    return turn;
  }
}

function parsed(line: string): EndedCall | null {
  try {
    return JSON.parse(line) as EndedCall;
  } catch {
    return null;
  }
}

async function writeAll(file: FileHandle, bytes: Buffer, position: number): Promise<void> {
  for (let written = 0; written < bytes.length;) {
    const { bytesWritten } = await file.write(bytes, written, bytes.length - written, position + written);
    written += bytesWritten;
  }
}

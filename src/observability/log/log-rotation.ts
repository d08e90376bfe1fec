import { closeSync, fstatSync, ftruncateSync, openSync, readSync, writeSync } from 'node:fs';

const MAX_LOG_BYTES = 50 << 20;
const CHUNK_BYTES = 1 << 20;

/**
 * Moves the lines of a log over 50 MiB to `<file>.1`, which it replaces, and empties the log. The writer has it open for appending and
 * continues. Does nothing without such a file or without space for the copy.
 */
export function rotateLog(file: string, maxBytes = MAX_LOG_BYTES): void {
  const open: number[] = [];
  try {
    const log = openSync(file, 'r+');
    open.push(log);
    if (fstatSync(log).size <= maxBytes) return;
    const old = openSync(`${file}.1`, 'w', 0o600);
    open.push(old);
    const chunk = Buffer.alloc(CHUNK_BYTES);
    // Until nothing is left to read: this copies lines written meanwhile too.
    for (let bytes = readSync(log, chunk); bytes > 0; bytes = readSync(log, chunk)) writeSync(old, chunk, 0, bytes);
    ftruncateSync(log);
  } catch {
    // The next attempt is in a minute.
  } finally {
    for (const handle of open) closeSync(handle);
  }
}

import { writeSync } from 'node:fs';
import { pino, type DestinationStream, type Logger } from 'pino';
import sonicBoom from 'sonic-boom';
import { isoTime } from '../../lib/clock.js';
import type { Log, LogFields } from '../../lib/log.js';

type Fields = Record<string, unknown>;

/** Names of fields whose values the logger redacts wherever they come from. An SDP holds media keys. Personal data comes as `Pii`. */
export const SECRET_FIELDS: readonly string[] = ['authorization', 'apiKey', 'api_key', 'secret', 'password', 'masterKey', 'sdp'];
const REDACTED = new Set(SECRET_FIELDS);
const CENSOR = '[redacted]';
const STDOUT = 1;
const MAX_UNWRITTEN_BYTES = 1 << 20;
/** How long lines gather, and up to how many characters: each write is a turn of the thread pool. */
const GATHER_MS = 20;
const GATHER_CHARACTERS = 8_192;
/** At exit the logger tries this often, 100 ms apart, to write what a slow reader has not read. */
const TRIES_AT_EXIT = 5;
const READER_MS = 100;

let dropped = 0;

/** Lines dropped by this process because the log's reader was behind by `MAX_UNWRITTEN_BYTES`. */
export function droppedLogLines(): number {
  return dropped;
}

export type LogLevel = 'debug' | 'info' | 'warn' | 'error';

/**
 * One JSON line per event: `time` (ISO 8601), `level`, `process`, `msg` (the event's name) and its fields.
 * Redacts secrets in the fields and one level below; personal data redacts itself (`Pii`).
 */
export function createLogger(name: string, level: LogLevel, destination?: DestinationStream): Log {
  const options = {
    level,
    base: { process: name, pid: process.pid },
    timestamp: () => `,"time":"${isoTime(Date.now())}"`,
    // Not with pino's `redact`, which copies the whole object once per path and line.
    serializers: { error: pino.stdSerializers.err },
    formatters: {
      level: (label: string) => ({ level: label }),
      log: (fields: Fields) => redacted(fields, 2),
    },
  };
  const logger: Logger = pino(options, destination ?? standardOutput((lines) => logger.warn({ lines }, 'log.lines_dropped')));
  const log = new RedactingLog(logger);
  if (destination === undefined) takeWarnings(log);
  return log;
}

/** Node.js prints its warnings, and those of packages, as text between the lines of JSON. */
function takeWarnings(log: Log): void {
  process.removeAllListeners('warning');
  process.on('warning', ({ name, message }) => log.warn({ warning: name, error: message }, 'process.warning'));
}

/**
 * Neither an unread pipe nor a full disk may block the process and its calls: lines wait in memory, and beyond `MAX_UNWRITTEN_BYTES` they
 * are dropped.
 * @param onCaughtUp gets the number of dropped lines once the reader has read everything that waited
 */
function standardOutput(onCaughtUp: (lines: number) => void): DestinationStream {
  // Node creates this stream at its first use, and sets O_NONBLOCK on a pipe or a socket: a blocking write would delay the end of the
  // process.
  process.stdout.on('error', () => undefined);
  // Node.js itself and packages write to it, and a write that fails would end the process.
  process.stderr.on('error', () => undefined);
  let triesLeft = Infinity;
  const retryEAGAIN = (): boolean => {
    triesLeft -= 1;
    return triesLeft >= 0;
  };
  const destination = new sonicBoom.SonicBoom({ fd: STDOUT, sync: false, maxLength: MAX_UNWRITTEN_BYTES, retryEAGAIN });
  let gathered = '';
  const write = (): void => {
    if (gathered !== '') destination.write(gathered);
    gathered = '';
  };
  let isBroken = false;
  let told = dropped;
  destination.on('drop', (lines: string) => (dropped += lines.split('\n').length - 1));
  destination.on('drain', () => {
    const lines = dropped - told;
    told = dropped;
    if (lines > 0) onCaughtUp(lines);
  });
  // The reader is gone, or the disk is full: the next line tries again.
  destination.on('error', () => (isBroken = true));
  destination.on('write', () => (isBroken = false));
  process.on('exit', () => {
    triesLeft = TRIES_AT_EXIT;
    try {
      if (!isBroken) destination.flushSync();
      // Not by way of the destination: it would leave the write to a thread, which the end of the process overtakes.
      if (!isBroken) writeNow(gathered, retryEAGAIN);
    } catch {
      // The reader is still behind: the waiting lines are lost with the process.
    }
  });
  return {
    write: (line) => {
      if (gathered === '') setTimeout(write, GATHER_MS).unref();
      gathered += line;
      if (gathered.length >= GATHER_CHARACTERS) write();
    },
  };
}

/** Writes all of it before it returns. @param mayTryAgain whether to wait once more for a reader that is behind */
function writeNow(text: string, mayTryAgain: () => boolean): void {
  let rest = Buffer.from(text);
  while (rest.length > 0) {
    try {
      rest = rest.subarray(writeSync(STDOUT, rest));
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EAGAIN' || !mayTryAgain()) throw error;
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, READER_MS);
    }
  }
}

/** The same object if it holds nothing to redact, down to `levels`. */
function redacted<T extends object>(fields: T, levels: number): T {
  let copy: Fields | undefined;
  for (const [name, value] of Object.entries(fields)) {
    const shown: unknown = REDACTED.has(name)
      ? CENSOR
      : levels > 1 && typeof value === 'object' && value !== null
        ? redacted(value, levels - 1)
        : value;
    if (shown === value) continue;
    // Keep an error as it is: pino writes its stack.
    copy ??= Object.create(Object.getPrototypeOf(fields) as object | null, Object.getOwnPropertyDescriptors(fields)) as Fields;
    copy[name] = shown;
  }
  return (copy as T | undefined) ?? fields;
}

/** Redacts bindings too: pino's `formatters.bindings` applies to the first logger only. */
class RedactingLog implements Log {
  constructor(private readonly logger: Logger) {}

  debug(fields: LogFields, event: string): void {
    this.logger.debug(fields, event);
  }

  info(fields: LogFields, event: string): void {
    this.logger.info(fields, event);
  }

  warn(fields: LogFields, event: string): void {
    this.logger.warn(fields, event);
  }

  error(fields: LogFields, event: string): void {
    this.logger.error(fields, event);
  }

  child(bindings: LogFields): Log {
    return new RedactingLog(this.logger.child(redacted(bindings, 2)));
  }
}

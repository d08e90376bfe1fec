import { pino, type DestinationStream, type Logger } from 'pino';
import sonicBoom from 'sonic-boom';
import type { Log } from '../../lib/log.js';
import { REDACTED_FIELDS } from './pii.js';

type Fields = Record<string, unknown>;

const REDACTED = new Set(REDACTED_FIELDS);
const CENSOR = '[redacted]';
const STDOUT = 1;
const MAX_UNWRITTEN_BYTES = 1 << 20;
/** At the end of the process a reader that is behind gets so many tries, 100 ms apart. */
const TRIES_AT_EXIT = 5;

let dropped = 0;

/** Lines of this process that were thrown away because whoever reads the log was behind by `MAX_UNWRITTEN_BYTES`. */
export function droppedLogLines(): number {
  return dropped;
}

export type LogLevel = 'debug' | 'info' | 'warn' | 'error';

/**
 * One JSON line an event: `time` (ISO 8601), `level`, `process`, `msg` (the event's name) and its fields.
 * Personal data and secrets are redacted at the top level of the fields and one level below.
 */
export function createLogger(name: string, level: LogLevel, destination?: DestinationStream): Log {
  const options = {
    level,
    base: { process: name, pid: process.pid },
    timestamp: () => `,"time":"${new Date().toISOString()}"`,
    // Not by pino's `redact`, which copies the whole object for each path, of every line.
    serializers: { error: pino.stdSerializers.err },
    formatters: {
      level: (label: string) => ({ level: label }),
      log: (fields: Fields) => redacted(fields, 2),
    },
  };
  const logger: Logger = pino(options, destination ?? standardOutput((lines) => logger.warn({ lines }, 'log.lines_dropped')));
  return withRedactedBindings(logger);
}

/**
 * Neither a pipe that nobody reads nor a full disk may hold up the process and its calls: lines wait in memory, beyond `MAX_UNWRITTEN_BYTES`
 * they are dropped.
 * @param onCaughtUp told how many lines were dropped, when the reader has read all that waited
 */
function standardOutput(onCaughtUp: (lines: number) => void): DestinationStream {
  // Node makes this stream when it is first asked for, and sets O_NONBLOCK on a pipe or a socket: a blocking write would hold up the end
  // of the process.
  process.stdout.on('error', () => undefined);
  let triesLeft = Infinity;
  const retryEAGAIN = (): boolean => {
    triesLeft -= 1;
    return triesLeft >= 0;
  };
  const destination = new sonicBoom.SonicBoom({ fd: STDOUT, sync: false, maxLength: MAX_UNWRITTEN_BYTES, retryEAGAIN });
  let isBroken = false;
  let told = dropped;
  destination.on('drop', () => (dropped += 1));
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
    } catch {
      // The reader is still behind: what waits is lost with the process.
    }
  });
  return destination;
}

/** The same object when nothing in it has to go, down to so many levels. */
function redacted<T extends object>(fields: T, levels: number): T {
  let copy: Fields | undefined;
  for (const [name, value] of Object.entries(fields)) {
    const shown: unknown = REDACTED.has(name)
      ? CENSOR
      : levels > 1 && typeof value === 'object' && value !== null
        ? redacted(value, levels - 1)
        : value;
    if (shown === value) continue;
    // An error stays one: pino writes its stack.
    copy ??= Object.create(Object.getPrototypeOf(fields) as object | null, Object.getOwnPropertyDescriptors(fields)) as Fields;
    copy[name] = shown;
  }
  return (copy as T | undefined) ?? fields;
}

/** pino's `formatters.bindings` is for the first logger only. */
function withRedactedBindings(logger: Logger): Log {
  const log: Log = logger;
  return {
    debug: (fields, event) => log.debug(fields, event),
    info: (fields, event) => log.info(fields, event),
    warn: (fields, event) => log.warn(fields, event),
    error: (fields, event) => log.error(fields, event),
    child: (bindings) => withRedactedBindings(logger.child(redacted(bindings, 2))),
  };
}

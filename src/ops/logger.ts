import { pino, type DestinationStream, type Logger } from 'pino';
import type { Log } from '../lib/log.js';
import { REDACTED_FIELDS } from '../lib/pii.js';

type Fields = Record<string, unknown>;

const REDACTED = new Set(REDACTED_FIELDS);
const CENSOR = '[redacted]';
const MAX_UNWRITTEN_BYTES = 1 << 20;

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
    formatters: {
      level: (label: string) => ({ level: label }),
      log: (fields: Fields) => redacted(fields, 2),
    },
  };
  const logger: Logger = pino(options, destination ?? standardOutput());
  return withRedactedBindings(logger);
}

/** A disk that is full must not end the process, and its calls: lines wait for room, beyond `MAX_UNWRITTEN_BYTES` they are dropped. */
function standardOutput(): DestinationStream {
  const destination = pino.destination({ dest: 1, sync: true, maxLength: MAX_UNWRITTEN_BYTES });
  destination.on('error', () => undefined);
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

import { pino, type DestinationStream, type Logger } from 'pino';
import type { Log } from '../lib/log.js';
import { REDACTED_FIELDS } from '../lib/pii.js';

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
    formatters: { level: (label: string) => ({ level: label }) },
    redact: { paths: REDACTED_FIELDS.flatMap((field) => [`["${field}"]`, `*["${field}"]`]), censor: '[redacted]' },
  };
  const logger: Logger = destination === undefined ? pino(options) : pino(options, destination);
  return logger;
}

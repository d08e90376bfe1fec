import type { Pii } from './pii.js';

/** Fields of a log line. Names that stand for personal data take it only as `Pii`. */
export interface LogFields {
  readonly [name: string]: unknown;
  readonly from?: Pii<unknown>;
  readonly to?: Pii<unknown>;
  readonly caller?: Pii<unknown>;
  readonly called?: Pii<unknown>;
  readonly phoneNumber?: Pii<unknown>;
  readonly phone_number?: Pii<unknown>;
  readonly digit?: Pii<unknown>;
  readonly digits?: Pii<unknown>;
}

/** The part of a pino logger that the product uses; passed in, so that pure code needs none and tests can read it. */
export interface Log {
  debug(fields: LogFields, event: string): void;
  info(fields: LogFields, event: string): void;
  warn(fields: LogFields, event: string): void;
  error(fields: LogFields, event: string): void;
  child(fields: LogFields): Log;
}

/** Discards everything. */
export const silentLog: Log = {
  debug: () => undefined,
  info: () => undefined,
  warn: () => undefined,
  error: () => undefined,
  child: () => silentLog,
};

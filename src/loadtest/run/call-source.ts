import type { AnsweredLine, CallError, EndingLine, SippCounters } from '../sipp-files.js';

/** Gets the calls as they are read. */
export interface CallSourceListener {
  call(line: AnsweredLine | EndingLine): void;
  error(error: CallError): void;
  counters(counters: SippCounters): void;
}

/** What makes the calls of a stage, or a part of them. */
export interface CallSource {
  /** Hands on what has happened since the last time. */
  read(): void;
  /** Resolves when all calls have ended and all is handed on; with what went wrong when it broke off. */
  ended(): Promise<string | null>;
  /** Ends the calls in progress in order. */
  stop(): Promise<void>;
}

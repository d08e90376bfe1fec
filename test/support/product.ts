import type { CliResult, Ready } from './gateway.js';

/** The whole product as a test uses it: real processes (`RunningGateway`), or in one process and virtual time (`World`). */
export interface Product {
  readonly ready: Ready;
  readonly sipPort: number;
  readonly ca: string;
  /** Of its own, and removed with it. */
  readonly directory: string;
  readonly dataDir: string;
  /** Its settings. */
  readonly environment: Readonly<Record<string, string>>;
  /** A request to the control API with the demo key. */
  api(method: 'GET' | 'POST' | 'DELETE', path: string, body?: object): Promise<{ status: number; json: Record<string, unknown> }>;
  /** The record of the call with this Call-ID, once it is written. */
  record(sipCallId: string): Promise<Readonly<Record<string, unknown>>>;
  /** A command of the CLI with this instance's settings. */
  cli(...args: readonly string[]): Promise<CliResult>;
  /** The log of a process: JSON, a line each. */
  log(name: string): Promise<string>;
  /** Resolves when the text stands in the log of a process. */
  logged(name: string, text: string): Promise<void>;
  destroy(): Promise<void>;
}

/** Starts one; settings by the names of their environment variables. */
export type StartProduct<P extends Product = Product> = (settings?: Readonly<Record<string, string>>) => Promise<P>;

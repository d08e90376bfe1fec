import type { ApiError } from '../../src/client/api-error.js';

// When a request that failed is made again.

const FIRST_MS = 1_000;
const MAX_MS = 15_000;

/** The failure as far as it matters here. */
export type Refusal = Pick<ApiError, 'status' | 'code' | 'retryAfterSeconds'>;

/** Milliseconds until the next try; `null`: trying again is of no use. @param failures how many in a row, this one included */
export function retryDelayMs({ status, retryAfterSeconds }: Refusal, failures: number): number | null {
  if (status === 429 || status === 503) return Math.max(FIRST_MS, (retryAfterSeconds ?? 1) * 1_000);
  if (status !== 0 && status < 500) return null;
  return Math.min(MAX_MS, FIRST_MS * 2 ** Math.min(10, failures - 1));
}

export function troubleText({ status, code }: Refusal, delayMs: number): string {
  const again = `Trying again in ${String(Math.round(delayMs / 1_000))} s.`;
  if (status === 429) return `Too many requests for this key or address. ${again}`;
  if (code === 'TIMEOUT') return `The server did not answer in time. ${again}`;
  if (status === 0) return `The server cannot be reached. ${again}`;
  return `The server failed (${String(status)} ${code}). ${again}`;
}

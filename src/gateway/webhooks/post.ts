import type { Clock } from '../../lib/clock.js';
import { GuardedClient, type GuardedFailure } from '../net/guarded-client.js';

/** What became of one attempt. */
export type Attempt =
  | { readonly kind: 'delivered' }
  /** `error`: a sentence without addresses, for logs and for the owner. */
  | { readonly kind: 'failed'; readonly error: string; readonly retryAfterMs: number | null }
  /** It will never be taken. */
  | { readonly kind: 'refused'; readonly error: string }
  /** Nobody knows: it was broken off by us. */
  | { readonly kind: 'aborted' };

/** Nobody reads what a receiver answers. */
const MAX_RESPONSE_BYTES = 65_536;
const MAX_RETRY_AFTER_S = 86_400;

export interface PosterOptions {
  /** Receivers at private and loopback addresses too. */
  readonly allowPrivate: boolean;
  readonly timeoutMs: number;
  readonly clock: Clock;
}

/** One POST to a receiver: its address guarded, redirects not followed, time and answer limited. */
export class Poster {
  readonly #client: GuardedClient;

  constructor(private readonly options: PosterOptions) {
    const { allowPrivate, clock } = options;
    this.#client = new GuardedClient({ allowPrivate, clock, maxResponseBytes: MAX_RESPONSE_BYTES });
  }

  /** Never rejects. */
  async post(address: string, body: string, headers: Readonly<Record<string, string>>, aborted: AbortSignal): Promise<Attempt> {
    const { timeoutMs } = this.options;
    if (!URL.canParse(address)) return { kind: 'failed', error: UNREACHABLE, retryAfterMs: null };
    const request = {
      method: 'POST',
      headers: { ...headers, 'content-type': 'application/json' },
      body,
      timeoutMs,
      signal: aborted,
    } as const;
    const sent = await this.#client.send(new URL(address), request, async (answer) => {
      // It is taken, whatever becomes of the rest of the answer.
      await answer.body.dump().catch(() => undefined);
      return answer;
    });
    if (!sent.ok) return failureOf(sent.error, timeoutMs);
    const { statusCode, headers: answered } = sent.value;
    if (statusCode >= 200 && statusCode < 300) return { kind: 'delivered' };
    return { kind: 'failed', error: `it answered ${String(statusCode)}`, retryAfterMs: retryAfterOf(answered['retry-after']) };
  }

  close(): Promise<void> {
    return this.#client.close();
  }
}

const UNREACHABLE = 'it could not be reached';

function failureOf(failure: GuardedFailure, timeoutMs: number): Attempt {
  switch (failure.kind) {
    case 'aborted':
      return { kind: 'aborted' };
    case 'private':
      return { kind: 'refused', error: 'it is not at an address of the public internet' };
    case 'timeout':
      return { kind: 'failed', error: `no answer within ${String(timeoutMs)} ms`, retryAfterMs: null };
    case 'too-large':
      return { kind: 'failed', error: 'it answered more than is read', retryAfterMs: null };
    case 'unreachable':
      return { kind: 'failed', error: `${UNREACHABLE}${failure.code === null ? '' : ` (${failure.code})`}`, retryAfterMs: null };
  }
}

/** Seconds only: a date would depend on two clocks. */
function retryAfterOf(header: string | string[] | undefined): number | null {
  if (typeof header !== 'string' || !/^\d{1,9}$/.test(header)) return null;
  return Math.min(Number(header), MAX_RETRY_AFTER_S) * 1_000;
}

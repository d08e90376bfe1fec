import type { Clock } from '../../lib/clock.js';
import { GuardedClient, type Reach } from '../net/guarded-client.js';

/** What became of one attempt. */
export type Attempt =
  | { readonly kind: 'delivered'; readonly status: number }
  /** `error`: a sentence without addresses, for logs and for the owner. */
  | { readonly kind: 'failed'; readonly error: string; readonly retryAfterMs: number | null; readonly status?: number }
  /** It will never be taken. */
  | { readonly kind: 'refused'; readonly error: string }
  /** Nobody knows: it was broken off by us. */
  | { readonly kind: 'aborted' };

/** Nobody reads what a receiver answers. */
const MAX_RESPONSE_BYTES = 65_536;
const MAX_RETRY_AFTER_S = 86_400;

export interface PosterOptions extends Reach {
  readonly timeoutMs: number;
  readonly clock: Clock;
}

/** One POST to a receiver: its address guarded, redirects not followed, time and answer limited. */
export class Poster {
  readonly #client: GuardedClient;

  constructor(private readonly options: PosterOptions) {
    const { allowPrivate, caPem, clock } = options;
    this.#client = new GuardedClient({ allowPrivate, caPem, clock, maxResponseBytes: MAX_RESPONSE_BYTES });
  }

  /** Never rejects. */
  async post(address: string, body: string, headers: Readonly<Record<string, string>>, aborted: AbortSignal): Promise<Attempt> {
    if (!URL.canParse(address)) return failed('it could not be reached');
    const sent = await this.#client.send(new URL(address), {
      method: 'POST',
      headers: { ...headers, 'content-type': 'application/json' },
      body,
      timeoutMs: this.options.timeoutMs,
      signal: aborted,
      isRead: () => false,
    });
    if (!sent.ok) {
      const { kind, text } = sent.error;
      if (kind === 'aborted') return { kind };
      return kind === 'private' ? { kind: 'refused', error: `it ${text}` } : failed(`it ${text}`);
    }
    const { status, headers: answered } = sent.value;
    if (status >= 200 && status < 300) return { kind: 'delivered', status };
    return { ...failed(`it answered ${String(status)}`, retryAfterOf(answered['retry-after'])), status };
  }

  close(): Promise<void> {
    return this.#client.close();
  }
}

function failed(error: string, retryAfterMs: number | null = null): Extract<Attempt, { kind: 'failed' }> {
  return { kind: 'failed', error, retryAfterMs };
}

/** Seconds only: a date would depend on two clocks. */
function retryAfterOf(header: string | string[] | undefined): number | null {
  if (typeof header !== 'string' || !/^\d{1,9}$/.test(header)) return null;
  return Math.min(Number(header), MAX_RETRY_AFTER_S) * 1_000;
}

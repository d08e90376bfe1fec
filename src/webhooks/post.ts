import type { Agent } from 'undici';
import type { Clock } from '../lib/clock.js';
import { guardedAgent } from '../outbound/guarded-agent.js';
import { assertAllowedHost } from '../outbound/guarded-lookup.js';

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
  readonly #dispatcher: Agent;

  constructor(private readonly options: PosterOptions) {
    this.#dispatcher = guardedAgent(options.allowPrivate, MAX_RESPONSE_BYTES);
  }

  /** Never rejects. */
  async post(address: string, body: string, headers: Readonly<Record<string, string>>, aborted: AbortSignal): Promise<Attempt> {
    const { allowPrivate, timeoutMs, clock } = this.options;
    const limit = new AbortController();
    const cancel = clock.setTimer(timeoutMs, () => limit.abort());
    try {
      const url = new URL(address);
      assertAllowedHost(url.hostname, allowPrivate);
      const {
        statusCode,
        headers: answered,
        body: rest,
      } = await this.#dispatcher.request({
        origin: url.origin,
        path: `${url.pathname}${url.search}`,
        method: 'POST',
        headers: { ...headers, 'content-type': 'application/json' },
        body,
        signal: AbortSignal.any([limit.signal, aborted]),
      });
      // It is taken, whatever becomes of the rest of the answer.
      await rest.dump().catch(() => undefined);
      if (statusCode >= 200 && statusCode < 300) return { kind: 'delivered' };
      return { kind: 'failed', error: `it answered ${String(statusCode)}`, retryAfterMs: retryAfterOf(answered['retry-after']) };
    } catch (error) {
      if (aborted.aborted) return { kind: 'aborted' };
      if (limit.signal.aborted) return { kind: 'failed', error: `no answer within ${String(timeoutMs)} ms`, retryAfterMs: null };
      return failureOf(error);
    } finally {
      cancel();
    }
  }

  close(): Promise<void> {
    return this.#dispatcher.destroy();
  }
}

function failureOf(error: unknown): Attempt {
  const code = (error as { code?: unknown } | null)?.code;
  if (code === 'EPRIVATE') return { kind: 'refused', error: 'it is not at an address of the public internet' };
  return { kind: 'failed', error: `it could not be reached${typeof code === 'string' ? ` (${code})` : ''}`, retryAfterMs: null };
}

/** Seconds only: a date would depend on two clocks. */
function retryAfterOf(header: string | string[] | undefined): number | null {
  if (typeof header !== 'string' || !/^\d{1,9}$/.test(header)) return null;
  return Math.min(Number(header), MAX_RETRY_AFTER_S) * 1_000;
}

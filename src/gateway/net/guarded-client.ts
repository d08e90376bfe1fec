import { Agent, type Dispatcher } from 'undici';
import type { Clock } from '../../lib/clock.js';
import { err, ok, type Result } from '../../lib/result.js';
import { assertAllowedHost, guardedLookup } from './guarded-lookup.js';
import { USER_AGENT } from './user-agent.js';

const MAX_CONNECTIONS_PER_ORIGIN = 64;
const IDLE_MS = 10_000;

export interface GuardedClientOptions {
  /** Servers at private and loopback addresses too. */
  readonly allowPrivate: boolean;
  readonly maxResponseBytes: number;
  readonly clock: Clock;
}

export interface GuardedRequest {
  readonly method: Dispatcher.HttpMethod;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | null;
  /** For the whole of it, the answer read. */
  readonly timeoutMs: number;
  /** Breaks it off. */
  readonly signal?: AbortSignal;
}

/** Why there is no answer. `code` is of the system or of undici: without names and addresses, which may hold keys. */
export type GuardedFailure =
  { readonly kind: 'timeout' | 'aborted' | 'private' | 'too-large' } | { readonly kind: 'unreachable'; readonly code: string | null };

/** Requests to addresses that customers and strangers name: looked at where they are connected, redirects not followed, time and answer limited. */
export class GuardedClient {
  readonly #dispatcher: Agent;

  constructor(private readonly options: GuardedClientOptions) {
    this.#dispatcher = new Agent({
      connect: { lookup: guardedLookup(options.allowPrivate) },
      connections: MAX_CONNECTIONS_PER_ORIGIN,
      keepAliveTimeout: IDLE_MS,
      maxResponseSize: options.maxResponseBytes,
      headersTimeout: 0,
      bodyTimeout: 0,
    });
  }

  /** Resolves with what `read` makes of the answer. Never rejects. */
  async send<T>(
    url: URL,
    { method, headers, body, timeoutMs, signal }: GuardedRequest,
    read: (answer: Dispatcher.ResponseData) => Promise<T>,
  ): Promise<Result<T, GuardedFailure>> {
    const { allowPrivate, clock } = this.options;
    const limit = new AbortController();
    const cancel = clock.setTimer(timeoutMs, () => limit.abort());
    const isNamed = Object.keys(headers).some((name) => name.toLowerCase() === 'user-agent');
    try {
      assertAllowedHost(url.hostname, allowPrivate);
      const answer = await this.#dispatcher.request({
        origin: url.origin,
        path: `${url.pathname}${url.search}`,
        method,
        headers: isNamed ? headers : { 'user-agent': USER_AGENT, ...headers },
        body,
        signal: signal === undefined ? limit.signal : AbortSignal.any([limit.signal, signal]),
      });
      return ok(await read(answer));
    } catch (error) {
      if (signal?.aborted === true) return err({ kind: 'aborted' });
      if (limit.signal.aborted) return err({ kind: 'timeout' });
      return err(failureOf(error));
    } finally {
      cancel();
    }
  }

  close(): Promise<void> {
    return this.#dispatcher.destroy();
  }
}

function failureOf(error: unknown): GuardedFailure {
  const code = (error as { code?: unknown } | null)?.code;
  if (code === 'EPRIVATE') return { kind: 'private' };
  if (code === 'UND_ERR_RES_EXCEEDED_MAX_SIZE') return { kind: 'too-large' };
  return { kind: 'unreachable', code: typeof code === 'string' ? code : null };
}

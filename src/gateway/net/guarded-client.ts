import type { Agent, Dispatcher } from 'undici';
import type { Clock } from '../../lib/clock.js';
import { err, ok, type Result } from '../../lib/result.js';
import { textOfBody, uncoded } from './answer-body.js';
import { assertAllowedHost } from './guarded-lookup.js';
import { USER_AGENT } from './user-agent.js';

/** Which servers are reached. */
export interface Reach {
  /** Servers at private and loopback addresses too. */
  readonly allowPrivate: boolean;
  /** CAs (PEM) besides the public ones, the operator's `ca_file`; `null`: none. */
  readonly caPem: string | null;
}

export interface GuardedClientOptions extends Reach {
  readonly maxResponseBytes: number;
  readonly clock: Clock;
}

export interface GuardedRequest {
  readonly method: Dispatcher.HttpMethod;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | null;
  /** For the whole of it, the answer read. */
  readonly timeoutMs: number;
  /** Aborts it. */
  readonly signal?: AbortSignal;
  /** Whether the body of an answer with this status is of use. Other bodies are discarded, whatever becomes of them. Default: every body is. */
  readonly isRead?: (status: number) => boolean;
}

export interface GuardedAnswer {
  readonly status: number;
  readonly headers: Dispatcher.ResponseData['headers'];
  /** Without content coding; empty when it was not read. */
  readonly bytes: Buffer;
  /** The bytes as text, by the charset that the answer states. */
  readonly text: string;
}

export interface GuardedFailure {
  readonly kind: 'timeout' | 'aborted' | 'private' | 'too-large' | 'unreadable' | 'unreachable';
  /** What the server did, as a sentence without its subject. It names no address, which may hold a key. */
  readonly text: string;
}

/** What the first request would have to wait for, and every call with it: some 100 ms of one thread. */
export async function loadHttpClient(): Promise<void> {
  await agentModule();
}

/** Kept: a test runner asks anew at each import, also for what is loaded. */
let loading: Promise<typeof import('./guarded-agent.js')> | undefined;

function agentModule(): Promise<typeof import('./guarded-agent.js')> {
  loading ??= import('./guarded-agent.js');
  return loading;
}

/** Requests to addresses that customers and strangers name: looked at where they are connected, redirects not followed, time and answer limited. */
export class GuardedClient {
  #dispatcher: Promise<Agent> | null = null;

  constructor(private readonly options: GuardedClientOptions) {}

  /** With the first request: a gateway starts while calls wait for it. */
  #opened(): Promise<Agent> {
    const { allowPrivate, caPem, maxResponseBytes } = this.options;
    this.#dispatcher ??= agentModule().then(({ openGuardedAgent }) => openGuardedAgent(allowPrivate, caPem, maxResponseBytes));
    return this.#dispatcher;
  }

  /** Never rejects. */
  send(url: URL, request: GuardedRequest): Promise<Result<GuardedAnswer, GuardedFailure>> {
    const { isRead = () => true } = request;
    return this.#request(url, request, async ({ statusCode: status, headers, body }) => {
      const raw = isRead(status) ? Buffer.from(await body.arrayBuffer()) : Buffer.alloc(0);
      if (!isRead(status)) await body.dump().catch(() => undefined);
      const bytes = await uncoded(raw, firstOf(headers['content-encoding']), this.options.maxResponseBytes);
      if (!bytes.ok) return err(bytes.error === 'too-large' ? this.#tooLarge : { kind: 'unreadable', text: bytes.error.text });
      const plain = bytes.value;
      return ok({
        status,
        headers,
        bytes: plain,
        get text() {
          return textOfBody(plain, firstOf(headers['content-type']));
        },
      });
    });
  }

  /** Gives the body of a 200 on piece by piece; resolves with the status once all of it came. Never rejects; `onPiece` must not throw. */
  stream(url: URL, request: Omit<GuardedRequest, 'isRead'>, onPiece: (bytes: Buffer) => void): Promise<Result<number, GuardedFailure>> {
    return this.#request(url, request, async ({ statusCode: status, body }) => {
      if (status === 200) for await (const piece of body) onPiece(piece as Buffer);
      else await body.dump().catch(() => undefined);
      return ok(status);
    });
  }

  async #request<T>(
    url: URL,
    { method, headers, body, timeoutMs, signal }: Omit<GuardedRequest, 'isRead'>,
    read: (answer: Dispatcher.ResponseData) => Promise<Result<T, GuardedFailure>>,
  ): Promise<Result<T, GuardedFailure>> {
    const { allowPrivate, clock } = this.options;
    const limit = new AbortController();
    const cancel = clock.setTimer(timeoutMs, () => limit.abort());
    const isNamed = Object.keys(headers).some((name) => name.toLowerCase() === 'user-agent');
    try {
      assertAllowedHost(url.hostname, allowPrivate);
      const dispatcher = await this.#opened();
      const answer = await dispatcher.request({
        origin: url.origin,
        path: `${url.pathname}${url.search}`,
        method,
        headers: isNamed ? headers : { 'user-agent': USER_AGENT, ...headers },
        body,
        signal: signal === undefined ? limit.signal : AbortSignal.any([limit.signal, signal]),
      });
      return await read(answer);
    } catch (error) {
      if (signal?.aborted === true) return err({ kind: 'aborted', text: 'was not waited for' });
      if (limit.signal.aborted) return err({ kind: 'timeout', text: `did not answer within ${String(timeoutMs)} ms` });
      return err(this.#failureOf(error));
    } finally {
      cancel();
    }
  }

  async close(): Promise<void> {
    await (await this.#dispatcher)?.destroy();
  }

  get #tooLarge(): GuardedFailure {
    return { kind: 'too-large', text: `answered with more than ${String(this.options.maxResponseBytes)} bytes` };
  }

  #failureOf(error: unknown): GuardedFailure {
    const code = (error as { code?: unknown } | null)?.code;
    if (code === 'EPRIVATE') return { kind: 'private', text: 'is not at an address of the public internet' };
    if (code === 'UND_ERR_RES_EXCEEDED_MAX_SIZE') return this.#tooLarge;
    return { kind: 'unreachable', text: `could not be reached${typeof code === 'string' ? ` (${code})` : ''}` };
  }
}

/** A header may come several times. */
export function firstOf(header: string | string[] | undefined): string {
  return [header ?? ''].flat()[0] ?? '';
}

import createFetchClient, {
  type Client as FetchClient,
  type ClientPathsWithMethod,
  type FetchResponse,
  type MaybeOptionalInit,
} from 'openapi-fetch';
import { brokenRequest, refusal } from './api-error.js';
import type { components, paths } from './types.js';

// A typed client of the control API, for Node and for the console: nothing of Node is imported here.
// A page of another origin cannot use it, since the API sends no CORS headers: the key belongs on a server.

export { ApiError, type ApiErrorEntry } from './api-error.js';
export type { paths };
/** The named records of the API: `Schemas['Call']`. */
export type Schemas = components['schemas'];

export interface ClientOptions {
  /** Such as `http://127.0.0.1:8080`. */
  readonly baseUrl: string;
  readonly apiKey: string;
  /** For one request, its whole answer included; 30 s when left out. */
  readonly timeoutMs?: number;
  /** In place of the global one. */
  readonly fetch?: typeof fetch;
}

type HttpMethod = 'get' | 'post' | 'delete';
type MediaType = `${string}/${string}`;
type PathWith<M extends HttpMethod> = ClientPathsWithMethod<FetchClient<paths>, M>;
type Init<Path extends keyof paths, M extends HttpMethod> = MaybeOptionalInit<paths[Path], M>;
type Answer<Operation> = Operation extends Record<string | number, unknown> ? FetchResponse<Operation, object, MediaType>['data'] : never;

/** Resolves with the body of a success; rejects with an `ApiError` and with nothing else. */
type Method<M extends HttpMethod> = <Path extends PathWith<M>>(
  path: Path,
  ...init: object extends Init<Path, M> ? [Init<Path, M>?] : [Init<Path, M>]
) => Promise<NonNullable<Answer<paths[Path][M]>>>;

export interface Client {
  readonly GET: Method<'get'>;
  readonly POST: Method<'post'>;
  readonly DELETE: Method<'delete'>;
}

const DEFAULT_TIMEOUT_MS = 30_000;

export function createClient({ baseUrl, apiKey, timeoutMs = DEFAULT_TIMEOUT_MS, fetch: given }: ClientOptions): Client {
  const client = createFetchClient<paths>({
    baseUrl,
    headers: { authorization: `Bearer ${apiKey}` },
    redirect: 'error',
    ...(given === undefined ? {} : { fetch: given }),
  });
  const method = <M extends HttpMethod>(name: 'GET' | 'POST' | 'DELETE'): Method<M> => {
    // What each path takes and gives is in the type of `Method`; openapi-fetch looks at none of it when it runs.
    const send = client[name] as (path: string, init?: object) => Promise<FetchResponse<Record<number, unknown>, object, MediaType>>;
    return (async (path: string, init?: { readonly signal?: AbortSignal }) => {
      // A controller of our own: Node may collect AbortSignal.timeout and AbortSignal.any while a request waits, and it would wait forever.
      const limit = new AbortController();
      const timer = setTimeout(() => limit.abort(new DOMException('no answer in time', 'TimeoutError')), timeoutMs);
      const abort = (): void => limit.abort(init?.signal?.reason);
      if (init?.signal?.aborted === true) abort();
      init?.signal?.addEventListener('abort', abort);
      // Until the body is read.
      const { data, error, response } = await send(path, { ...init, signal: limit.signal })
        .catch((cause: unknown) => {
          throw brokenRequest(cause, timeoutMs);
        })
        .finally(() => {
          clearTimeout(timer);
          init?.signal?.removeEventListener('abort', abort);
        });
      if (!response.ok) throw refusal(response, error);
      return data;
    }) as Method<M>;
  };
  return { GET: method('GET'), POST: method('POST'), DELETE: method('DELETE') };
}

import { unescape } from 'node:querystring';
import type { Clock } from '../../lib/clock.js';
import { err, ok, type Result } from '../../lib/result.js';
import {
  firstOf,
  GuardedClient,
  type GuardedAnswer,
  type GuardedClientOptions,
  type GuardedRequest,
  type Reach,
} from '../net/guarded-client.js';
import type { VoiceDocument, VoiceRequest, VoiceServer } from '../ports/ports.js';
import { twilioSignature } from './signature.js';
import { MAX_XML_BYTES } from './xml.js';

const MAX_AUDIO_BYTES = 8 * 1_024 * 1_024;
const FORM = 'application/x-www-form-urlencoded; charset=utf-8';

type Client = Pick<GuardedClient, 'send' | 'close'>;

export interface VoiceClientOptions extends Reach {
  readonly timeoutMs: number;
  readonly clock: Clock;
}

/** Voice webhooks over HTTP: addresses guarded, redirects not followed, time and answers limited. */
export class HttpVoiceServer implements VoiceServer {
  readonly #client: Client;

  constructor(
    private readonly options: VoiceClientOptions,
    open: (options: GuardedClientOptions) => Client = (of) => new GuardedClient(of),
  ) {
    const { allowPrivate, caPem, clock } = options;
    this.#client = open({ allowPrivate, caPem, clock, maxResponseBytes: MAX_XML_BYTES });
  }

  async document(request: VoiceRequest, ended: AbortSignal): Promise<Result<VoiceDocument, string>> {
    const answer = await this.#send(request, { signal: ended });
    if (!answer.ok) return answer;
    const { text, headers } = answer.value;
    const contentType = firstOf(headers['content-type']) || null;
    return ok({ text, contentType, setCookies: [headers['set-cookie'] ?? []].flat() });
  }

  async notify(request: VoiceRequest): Promise<Result<true, string>> {
    const answer = await this.#send(request, { isRead: () => false });
    return answer.ok ? ok(true) : answer;
  }

  close(): Promise<void> {
    return this.#client.close();
  }

  async #send(
    { url: text, method, parameters, token, cookie }: VoiceRequest,
    more: Pick<GuardedRequest, 'signal' | 'isRead'>,
  ): Promise<Result<GuardedAnswer, string>> {
    const url = withoutUser(text);
    if (method === 'GET') for (const [name, value] of Object.entries(parameters)) url.searchParams.set(name, value);
    const isForm = method === 'POST';
    const headers = {
      'x-twilio-signature': twilioSignature(token, url.href, isForm ? parameters : {}),
      accept: 'text/xml, application/xml',
      ...(isForm ? { 'content-type': FORM } : {}),
      ...(cookie === undefined ? {} : { cookie }),
    };
    const body = isForm ? new URLSearchParams(parameters).toString() : null;
    const answer = await this.#client.send(url, requestTo(text, { method, headers, body, timeoutMs: this.options.timeoutMs, ...more }));
    if (!answer.ok) return err(`The voice webhook ${answer.error.text}.`);
    const { status } = answer.value;
    return status >= 200 && status < 300 ? answer : err(`The voice webhook answered ${String(status)}.`);
  }
}

/** Servers of audio files, as `HttpVoiceServer`. */
export class HttpAudioServer {
  readonly #client: Client;

  constructor(
    private readonly options: VoiceClientOptions,
    open: (options: GuardedClientOptions) => Client = (of) => new GuardedClient(of),
  ) {
    const { allowPrivate, caPem, clock } = options;
    this.#client = open({ allowPrivate, caPem, clock, maxResponseBytes: MAX_AUDIO_BYTES });
  }

  /** The bytes have a buffer of their own. The error is a sentence that names no URL. */
  async audio(url: string, ended: AbortSignal): Promise<Result<Uint8Array, string>> {
    const { timeoutMs } = this.options;
    const request = requestTo(url, { method: 'GET', headers: { accept: 'audio/*' }, body: null, timeoutMs, signal: ended });
    const answer = await this.#client.send(withoutUser(url), request);
    if (!answer.ok) return err(`The server of the audio ${answer.error.text}.`);
    const { status, bytes } = answer.value;
    return status === 200 ? ok(bytes) : err(`The server of the audio answered ${String(status)}.`);
  }

  close(): Promise<void> {
    return this.#client.close();
  }
}

/** With the URL's user and password in a header. */
function requestTo(url: string, request: GuardedRequest): GuardedRequest {
  const { username, password } = new URL(url);
  if (username === '') return request;
  // A `%` that escapes nothing stays.
  const user = [username, password].map((part) => unescape(part)).join(':');
  const authorization = `Basic ${Buffer.from(user).toString('base64')}`;
  return { ...request, headers: { ...request.headers, authorization } };
}

/** User and password go into a header. */
function withoutUser(text: string): URL {
  const url = new URL(text);
  url.username = '';
  url.password = '';
  return url;
}

import type { X509Certificate } from 'node:crypto';
import { recentlyUsed } from '../../lib/recently-used.js';
import type { Clock } from '../../lib/clock.js';
import { err, type Result } from '../../lib/result.js';
import { GuardedClient, type Reach } from '../net/guarded-client.js';
import { credentialOf, type Credential } from './credential.js';

export type CredentialFailure = { readonly verdict: 'bad-info' | 'credential'; readonly detail: string };

export interface CertificateRepositoryOptions extends Reach {
  readonly roots: readonly X509Certificate[];
  /** Allows `http:`, too. */
  readonly allowPrivate: boolean;
  readonly timeoutMs: number;
  readonly clock: Clock;
}

const MAX_CERTIFICATES = 1_000;
const MAX_FETCHES = 64;
const MAX_BYTES = 65_536;
const MAX_URL = 2_048;
const DAY_MS = 86_400_000;
const DEFAULT_AGE_MS = 3_600_000;
/** How long a failed fetch is not repeated. */
const FAILURE_AGE_MS = 30_000;

interface Kept {
  readonly result: Result<Credential, CredentialFailure>;
  readonly untilMs: number;
}

/** Fetches signers' certificates, each once while it is fresh. */
export class CertificateRepository {
  readonly #client: GuardedClient;
  readonly #kept = recentlyUsed<string, Kept>(MAX_CERTIFICATES);
  readonly #fetching = new Map<string, Promise<Kept>>();

  constructor(private readonly options: CertificateRepositoryOptions) {
    const { allowPrivate, caPem, clock } = options;
    this.#client = new GuardedClient({ allowPrivate, caPem, clock, maxResponseBytes: MAX_BYTES });
  }

  /** Never rejects. */
  async find(address: string): Promise<Result<Credential, CredentialFailure>> {
    const { clock } = this.options;
    const kept = this.#kept.get(address);
    if (kept !== undefined && clock.wallMs() < kept.untilMs) return kept.result;
    const running = this.#fetching.get(address);
    if (running !== undefined) return (await running).result;
    if (this.#fetching.size >= MAX_FETCHES) return badInfo('The gateway is fetching too many certificates at the moment.');
    const fetching = this.#fetch(address);
    this.#fetching.set(address, fetching);
    const fetched = await fetching;
    this.#fetching.delete(address);
    this.#kept.set(address, fetched);
    return fetched.result;
  }

  close(): Promise<void> {
    return this.#client.close();
  }

  async #fetch(address: string): Promise<Kept> {
    const { clock, roots, timeoutMs } = this.options;
    const url = this.#allowed(address);
    if (typeof url === 'string') return this.#failed(url);
    const headers = { accept: 'application/pem-certificate-chain, application/x-pem-file' };
    const request = { method: 'GET', headers, body: null, timeoutMs, isRead: (status: number) => status === 200 } as const;
    const answer = await this.#client.send(url, request);
    if (!answer.ok) return this.#failed(`The certificate repository ${answer.error.text}.`);
    const { status, headers: answered, text } = answer.value;
    if (status !== 200) return this.#failed(`The certificate repository answered ${String(status)}.`);
    const nowMs = clock.wallMs();
    const credential = credentialOf(text, roots, nowMs);
    if (!credential.ok) return { result: err({ verdict: 'credential', detail: credential.error }), untilMs: nowMs + FAILURE_AGE_MS };
    return { result: credential, untilMs: Math.min(nowMs + ageOf(answered['cache-control']), credential.value.notAfterMs) };
  }

  /** Why the URL may not be fetched, as a sentence. */
  #allowed(address: string): URL | string {
    const { allowPrivate } = this.options;
    if (address.length > MAX_URL || !URL.canParse(address)) return 'The certificate URL is invalid.';
    const url = new URL(address);
    if (url.protocol !== 'https:' && !(allowPrivate && url.protocol === 'http:')) return 'The certificate URL is not https.';
    if (url.username !== '' || url.password !== '') return 'The certificate URL contains a password.';
    return url;
  }

  #failed(detail: string): Kept {
    return { result: badInfo(detail), untilMs: this.options.clock.wallMs() + FAILURE_AGE_MS };
  }
}

function badInfo(detail: string): Result<never, CredentialFailure> {
  return err({ verdict: 'bad-info', detail });
}

/** RFC 9111 §5.2.2: only how long a response is fresh. */
function ageOf(cacheControl: string | string[] | undefined): number {
  const text = typeof cacheControl === 'string' ? cacheControl.toLowerCase() : '';
  if (/\bno-(?:store|cache)\b/.test(text)) return 0;
  const seconds = /\bmax-age=(\d{1,9})/.exec(text)?.[1];
  return seconds === undefined ? DEFAULT_AGE_MS : Math.min(Number(seconds) * 1_000, DAY_MS);
}

import type { X509Certificate } from 'node:crypto';
import type { Agent } from 'undici';
import type { Clock } from '../lib/clock.js';
import { err, type Result } from '../lib/result.js';
import { LruMap } from '../lib/lru.js';
import { guardedAgent } from '../outbound/guarded-agent.js';
import { assertAllowedHost } from '../outbound/guarded-lookup.js';
import { credentialOf, type Credential } from './credential.js';

export type CredentialFailure = { readonly verdict: 'bad-info' | 'credential'; readonly detail: string };

export interface CertificateRepositoryOptions {
  readonly roots: readonly X509Certificate[];
  /** Repositories at private and loopback addresses, and by `http:`, too. */
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
/** What failed is not asked for again at each call. */
const FAILURE_AGE_MS = 30_000;

interface Kept {
  readonly result: Result<Credential, CredentialFailure>;
  readonly untilMs: number;
}

/** Fetches signers' certificates, each once while it is fresh. */
export class CertificateRepository {
  readonly #dispatcher: Agent;
  readonly #kept = new LruMap<string, Kept>(MAX_CERTIFICATES);
  readonly #fetching = new Map<string, Promise<Kept>>();

  constructor(private readonly options: CertificateRepositoryOptions) {
    this.#dispatcher = guardedAgent(options.allowPrivate, MAX_BYTES);
  }

  /** Never rejects. */
  async find(address: string): Promise<Result<Credential, CredentialFailure>> {
    const { clock } = this.options;
    const kept = this.#kept.get(address);
    if (kept !== undefined && clock.wallMs() < kept.untilMs) return kept.result;
    const running = this.#fetching.get(address);
    if (running !== undefined) return (await running).result;
    if (this.#fetching.size >= MAX_FETCHES) return badInfo('Too many certificates are being fetched at this moment.');
    const fetching = this.#fetch(address);
    this.#fetching.set(address, fetching);
    const fetched = await fetching;
    this.#fetching.delete(address);
    this.#kept.set(address, fetched);
    return fetched.result;
  }

  close(): Promise<void> {
    return this.#dispatcher.destroy();
  }

  async #fetch(address: string): Promise<Kept> {
    const { clock, roots, timeoutMs } = this.options;
    const limit = new AbortController();
    const cancel = clock.setTimer(timeoutMs, () => limit.abort());
    try {
      const url = this.#allowed(address);
      if (typeof url === 'string') return this.#failed(url);
      const { statusCode, headers, body } = await this.#dispatcher.request({
        origin: url.origin,
        path: `${url.pathname}${url.search}`,
        method: 'GET',
        headers: { accept: 'application/pem-certificate-chain, application/x-pem-file' },
        signal: limit.signal,
      });
      if (statusCode !== 200) {
        await body.dump().catch(() => undefined);
        return this.#failed(`The certificate repository answered ${String(statusCode)}.`);
      }
      const nowMs = clock.wallMs();
      const credential = credentialOf(await body.text(), roots, nowMs);
      if (!credential.ok) return { result: err({ verdict: 'credential', detail: credential.error }), untilMs: nowMs + FAILURE_AGE_MS };
      return { result: credential, untilMs: Math.min(nowMs + ageOf(headers['cache-control']), credential.value.notAfterMs) };
    } catch (error) {
      return this.#failed(limit.signal.aborted ? 'The certificate repository did not answer in time.' : failureText(error));
    } finally {
      cancel();
    }
  }

  /** A sentence when it may not be fetched. */
  #allowed(address: string): URL | string {
    const { allowPrivate } = this.options;
    if (address.length > MAX_URL || !URL.canParse(address)) return 'The address of the certificate is none.';
    const url = new URL(address);
    if (url.protocol !== 'https:' && !(allowPrivate && url.protocol === 'http:'))
      return 'The address of the certificate is not one of https.';
    if (url.username !== '' || url.password !== '') return 'The address of the certificate has a password in it.';
    assertAllowedHost(url.hostname, allowPrivate);
    return url;
  }

  #failed(detail: string): Kept {
    return { result: badInfo(detail), untilMs: this.options.clock.wallMs() + FAILURE_AGE_MS };
  }
}

function badInfo(detail: string): Result<never, CredentialFailure> {
  return err({ verdict: 'bad-info', detail });
}

/** RFC 9111 §5.2.2, as far as it says how long. */
function ageOf(cacheControl: string | string[] | undefined): number {
  const text = typeof cacheControl === 'string' ? cacheControl.toLowerCase() : '';
  if (/\bno-(?:store|cache)\b/.test(text)) return 0;
  const seconds = /\bmax-age=(\d{1,9})/.exec(text)?.[1];
  return seconds === undefined ? DEFAULT_AGE_MS : Math.min(Number(seconds) * 1_000, DAY_MS);
}

function failureText(error: unknown): string {
  const code = (error as { code?: unknown } | null)?.code;
  if (code === 'EPRIVATE') return 'The certificate repository is not at an address of the public internet.';
  return `The certificate repository could not be reached${typeof code === 'string' ? ` (${code})` : ''}.`;
}

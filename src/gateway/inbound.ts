import { randomBytes, randomInt } from 'node:crypto';
import { formatHostPort } from '../lib/host-port.js';
import { newUuid } from '../lib/ids.js';
import type { Log } from '../lib/log.js';
import { CallCounters } from './call-counters.js';
import { CallRunner, type CallServices } from './call-runner.js';
import { ownContact, type OwnAddress } from './policy/contact.js';
import { admit, ALLOWED_METHODS, SUPPORTED_OPTIONS, type AdmissibleInvite } from './policy/invite.js';
import { REASONS, warningOf, type Reason } from './policy/reasons.js';
import type { SrfRequest, SrfResponse } from './srf-facade.js';

export interface InboundOptions {
  /** Name in Contact and Warning; `null`: the host that the SIP server states. */
  readonly sipHost: string | null;
  readonly ringingAfterMs: number;
  readonly maxDurationMs: number;
}

export type InboundServices = Omit<CallServices, 'retryAfterSeconds' | 'counters'>;

/** drachtio-srf's handlers → call events, and the list of calls in progress. */
export class Inbound {
  readonly #services: CallServices;
  readonly #runners = new Map<string, CallRunner>();
  #own: readonly OwnAddress[] = [];
  #isConnected = false;
  #isDraining = false;
  #onIdle: (() => void) | undefined;
  #onConnected: (() => void) | undefined;
  #lastError = 'it did not answer';

  constructor(
    services: InboundServices,
    private readonly options: InboundOptions,
    private readonly log: Log,
  ) {
    this.#services = { ...services, counters: new CallCounters(services.clock), retryAfterSeconds: () => randomInt(1, 11) };
    const { srf } = services;
    srf.invite((request, response) => this.#onInvite(request, response));
    srf.handle('options', (_request, response) => this.#onOptions(response));
    // Every other method is taken too: what nobody takes gets 404 from drachtio-srf.
    for (const method of ['register', 'message', 'subscribe', 'publish', 'info', 'notify', 'refer']) {
      srf.handle(method, (request, response) => this.#onOther(request, response));
    }
    srf.use((request, response) => this.#onOther(request, response));
    srf.onConnect((error, hostPorts) => this.#onConnect(error, hostPorts));
    srf.onLost((error) => {
      if (this.#isConnected) this.log.error({ error: error.message }, 'gateway.sip_server.lost');
      this.#isConnected = false;
      this.#lastError = error.message;
    });
  }

  get isConnected(): boolean {
    return this.#isConnected;
  }

  get callCount(): number {
    return this.#runners.size;
  }

  /** Resolves when the SIP server has taken us; rejects when it has not in time. */
  whenConnected(withinMs: number): Promise<void> {
    if (this.#isConnected) return Promise.resolve();
    return new Promise((resolve, reject) => {
      const cancel = this.#services.clock.setTimer(withinMs, () =>
        reject(new Error(`no SIP server within ${withinMs} ms: ${this.#lastError}`)),
      );
      this.#onConnected = () => {
        cancel();
        resolve();
      };
    });
  }

  /** `host:port` that the SIP server states for a transport; `null`: it does not listen on it. */
  listensOn(transport: string): string | null {
    const stated = this.#own.find((candidate) => candidate.transport === transport);
    return stated === undefined ? null : formatHostPort(stated.host, stated.port);
  }

  /** Refuses new calls with 503; those in progress go on. */
  drain(): void {
    this.#isDraining = true;
  }

  /** Ends every call with a BYE; resolves when all are gone. */
  async endAll(): Promise<void> {
    for (const runner of [...this.#runners.values()]) runner.dispatch({ type: 'hangup', reason: 'SHUTDOWN' });
    await this.whenIdle();
  }

  /** Resolves when no call is in progress. */
  whenIdle(): Promise<void> {
    if (this.#runners.size === 0) return Promise.resolve();
    return new Promise((resolve) => {
      this.#onIdle = resolve;
    });
  }

  #onConnect(error: unknown, hostPorts: readonly string[]): void {
    if (error !== null && error !== undefined) {
      this.#isConnected = false;
      this.#lastError = error instanceof Error ? error.message : 'the secret was not accepted';
      this.log.error({ error: this.#lastError }, 'gateway.sip_server.refused');
      return;
    }
    this.#own = hostPorts.flatMap(parseHostPort);
    this.#isConnected = true;
    // A new connection: the SIP server keeps nothing of the old one's calls, or nothing that this connection is asked about.
    for (const runner of [...this.#runners.values()]) runner.serverLost();
    this.log.info({ hostPorts }, 'gateway.sip_server.connected');
    this.#onConnected?.();
  }

  #onInvite(request: SrfRequest, response: SrfResponse): void {
    // A re-INVITE of a dialog that this process does not have arrives here too.
    if (!request.isNewInvite) return response.send(481, REASONS.NO_DIALOG.sipPhrase, {});
    const contactUri = contactOf(request);
    const admission = admit({
      uri: request.uri,
      require: request.get('Require'),
      contentType: request.get('Content-Type'),
      body: request.body,
      contactUri,
      supported: request.get('Supported'),
      sessionExpires: request.get('Session-Expires'),
    });
    const runner = this.#newRunner(request, response, contactUri, admission.ok ? admission.value : null);
    this.#runners.set(runner.callId, runner);
    // Before anything else: a CANCEL is seen only here.
    request.on('cancel', () => runner.dispatch({ type: 'cancelled' }));
    const refusal: Reason | null = this.#isDraining ? 'DRAINING' : admission.ok ? null : admission.error;
    runner.dispatch(refusal === null ? { type: 'invited' } : { type: 'inadmissible', reason: refusal });
  }

  #newRunner(request: SrfRequest, response: SrfResponse, contactUri: string | undefined, invite: AdmissibleInvite | null): CallRunner {
    const own = this.#ownAddress(request.protocol);
    return new CallRunner(
      this.#services,
      {
        callId: newUuid(),
        request,
        response,
        called: invite?.called ?? null,
        sessionTimer: invite?.sessionTimer ?? {},
        facts: {
          sourceAddress: request.source_address,
          sdp: invite?.sdp ?? '',
          sessionId: String(randomBytes(6).readUIntBE(0, 6)),
          maxDurationMs: this.options.maxDurationMs,
          ringingAfterMs: /(?:^|,)\s*100rel\s*(?:,|$)/i.test(request.get('Require') ?? '') ? null : this.options.ringingAfterMs,
        },
        contact: ownContact(own, { requestUri: request.uri, topRecordRoute: request.get('Record-Route'), contactUri }),
        warningHost: own.host,
      },
      (ended) => this.#onEnded(ended),
    );
  }

  #onEnded(runner: CallRunner): void {
    this.#runners.delete(runner.callId);
    if (this.#runners.size === 0) this.#onIdle?.();
  }

  /** The carrier's health check. */
  #onOptions(response: SrfResponse): void {
    if (this.#isDraining) {
      const warning = warningOf('DRAINING', this.#ownAddress('tls').host);
      return response.send(503, 'Service Unavailable', { headers: { 'Retry-After': String(randomInt(1, 11)), Warning: warning } });
    }
    response.send(200, 'OK', { headers: { Allow: ALLOWED_METHODS, Accept: 'application/sdp', Supported: SUPPORTED_OPTIONS.join(', ') } });
  }

  #onOther(request: SrfRequest, response: SrfResponse): void {
    if (request.method === 'ACK' || request.method === 'CANCEL') return;
    if (/;\s*tag\s*=/i.test(request.get('To') ?? '')) return response.send(481, REASONS.NO_DIALOG.sipPhrase, {});
    response.send(405, 'Method Not Allowed', { headers: { Allow: ALLOWED_METHODS } });
  }

  #ownAddress(transport: string): OwnAddress {
    const stated = this.#own.find((candidate) => candidate.transport === transport) ?? this.#own[0];
    return { host: this.options.sipHost ?? stated?.host ?? 'localhost', port: stated?.port ?? 5061, transport };
  }
}

/** The Contact's URI, or `undefined` when there is none that can be read: drachtio-srf would throw on it after the 200. */
function contactOf(request: SrfRequest): string | undefined {
  if (!request.has('Contact')) return undefined;
  try {
    const uri = request.getParsedHeader('contact')[0]?.uri;
    return uri !== undefined && /^sips?:.+/i.test(uri) ? uri : undefined;
  } catch {
    return undefined;
  }
}

/** `tls/192.0.2.1:5061`, as the SIP server states its listeners. */
function parseHostPort(text: string): OwnAddress[] {
  const match = /^(\w+)\/(?:\[([^\]]+)\]|([^:]+)):(\d+)$/.exec(text);
  return match === null ? [] : [{ transport: match[1] ?? '', host: match[2] ?? match[3] ?? '', port: Number(match[4]) }];
}

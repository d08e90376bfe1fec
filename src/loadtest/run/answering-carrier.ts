import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import type { AddressInfo } from 'node:net';
import { isIP } from 'node:net';
import { join } from 'node:path';
import { createServer, type Server, type TLSSocket } from 'node:tls';
import { promisify } from 'node:util';
import type { Clock } from '../../lib/clock.js';
import { silentLog } from '../../lib/log.js';
import { getHeader, header } from '../../sip/message/message.js';
import { parseSipUri } from '../../sip/message/uri.js';
import { SipStack } from '../../sip/stack.js';
import { DEFAULT_TIMERS } from '../../sip/transaction/timers.js';
import { StreamFlow } from '../../sip/transport/stream-flow.js';
import type { IncomingRequest, OutgoingRequest, UserAgentListener } from '../../sip/user-agent/user-agent-context.js';
import { UserAgent } from '../../sip/user-agent.js';
import type { DialogEntry } from '../../sip/dialog/dialog-table.js';

const run = promisify(execFile);

/** What the carrier sees of a call, by its called number. */
export interface AnsweredCallListener {
  onInvited?(called: string): void;
  onAcknowledged(called: string): void;
  /** The carrier's own BYE is answered. */
  onHungUp(called: string): void;
  /** The gateway ended it, or its connection did. @param reason its Reason header */
  onEnded(called: string, how: 'BYE' | 'CANCEL' | 'connection', reason: string | undefined): void;
}

interface Call {
  readonly called: string;
  readonly dialog: DialogEntry;
}

const LIMITS = { maxHeaders: 200, maxHeaderBytes: 16_384, maxHeadBytes: 65_536, maxBodyBytes: 65_536, maxTransactions: 100_000 };
const STREAM_LIMITS = { ...LIMITS, messageTimeoutMs: 10_000, maxUnsentBytes: 1 << 20 };

/** A carrier that answers each call at once with SRTP that nobody listens to. */
export class AnsweringCarrier {
  readonly #stack: SipStack;
  readonly #userAgent: UserAgent;
  readonly #flows = new Set<StreamFlow>();
  /** By called number; and the number by dialog. */
  readonly #calls = new Map<string, Call>();
  readonly #numbers = new Map<DialogEntry, string>();
  readonly #byRequest = new Map<OutgoingRequest, string>();
  readonly #ringing = new Map<string, IncomingRequest>();
  listener: AnsweredCallListener | undefined;
  /** Calls ring until `answerAll`. */
  rings = false;

  private constructor(
    private readonly server: Server,
    /** PEM: its own certificate, which is its CA too. */
    readonly ca: string,
    private readonly address: string,
    private readonly direction: 'sendrecv' | 'inactive',
    private readonly clock: Clock,
  ) {
    this.#stack = new SipStack({ clock, timers: DEFAULT_TIMERS, limits: LIMITS, log: silentLog });
    this.#userAgent = new UserAgent(this.#stack, {
      open: () => [...this.#flows].find(({ isOpen }) => isOpen),
      advertised: () => ({ address, port: this.port }),
    });
    this.#userAgent.attach(this.#userAgentListener());
    server.on('secureConnection', (socket) => this.#accept(socket));
  }

  /** @param directory for its certificate @param address where the gateway reaches it */
  static async open(directory: string, address: string, direction: 'sendrecv' | 'inactive', clock: Clock): Promise<AnsweringCarrier> {
    const [certFile, keyFile] = [join(directory, 'carrier.pem'), join(directory, 'carrier-key.pem')];
    const name = isIP(address) === 0 ? `DNS:${address}` : `IP:${address}`;
    const key = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-keyout', keyFile];
    const certificate = ['-x509', ...key, '-days', '2', '-subj', '/CN=load-test', '-addext', `subjectAltName=${name}`, '-out', certFile];
    await run('openssl', ['req', ...certificate], { timeout: 20_000 });
    const [cert, ownKey] = await Promise.all([readFile(certFile, 'utf8'), readFile(keyFile, 'utf8')]);
    const server = createServer({ cert, key: ownKey, minVersion: 'TLSv1.2' });
    server.listen(0, address);
    await once(server, 'listening');
    return new AnsweringCarrier(server, cert, address, direction, clock);
  }

  get port(): number {
    return (this.server.address() as AddressInfo).port;
  }

  /** How many it answered. */
  answerAll(): number {
    const ringing = [...this.#ringing].filter(([, request]) => request.transaction.isUnanswered);
    this.#ringing.clear();
    for (const [called, request] of ringing) this.#take(called, request);
    return ringing.length;
  }

  /** Ends the call of this number, if it is answered. */
  hangUp(called: string): void {
    const call = this.#calls.get(called);
    if (call === undefined) return;
    const sent = this.#userAgent.sendInDialog(call.dialog, { method: 'BYE', headers: [], body: '' });
    if (typeof sent === 'object') this.#byRequest.set(sent, called);
  }

  async close(): Promise<void> {
    for (const flow of this.#flows) flow.close();
    this.#stack.close();
    this.server.close();
    await once(this.server, 'close');
  }

  #accept(socket: TLSSocket): void {
    const remote = { address: socket.remoteAddress ?? '', port: socket.remotePort ?? 0 };
    const flow = new StreamFlow(
      socket,
      'TLS',
      { address: this.address, port: this.port },
      remote,
      {
        onMessage: (from, text) => this.#stack.onMessage(from, text),
        onSpoiled: (from, problem) => this.#stack.onSpoiled(from, problem),
        onClose: (closed) => {
          this.#flows.delete(flow);
          this.#stack.onClose(closed);
        },
      },
      STREAM_LIMITS,
      this.clock,
    );
    this.#flows.add(flow);
  }

  #userAgentListener(): UserAgentListener {
    return {
      onRequest: (request) => this.#onRequest(request),
      onAck: (dialog) => {
        const called = this.#numbers.get(dialog);
        if (called !== undefined) this.listener?.onAcknowledged(called);
      },
      onResponse: (request, response) => {
        const called = this.#byRequest.get(request);
        if (response.status < 200 || called === undefined) return;
        this.#byRequest.delete(request);
        this.#forget(called);
        this.listener?.onHungUp(called);
      },
      onDialogEnded: (dialog) => this.#onGone(dialog, undefined),
    };
  }

  #onRequest(request: IncomingRequest): void {
    const { method, uri } = request.message;
    if (method === 'BYE' && request.dialog !== null) this.#onGone(request.dialog, getHeader(request.message, 'reason'));
    if (method === 'BYE' || method === 'OPTIONS') return this.#respond(request, 200, 'OK');
    if (method !== 'INVITE' || request.isInDialog) return this.#respond(request, 501, 'Not Implemented');
    const called = parseSipUri(uri)?.user ?? '';
    request.onCancelled = (cancel) => {
      this.#ringing.delete(called);
      if (cancel === null) this.listener?.onEnded(called, 'connection', undefined);
      else this.listener?.onEnded(called, 'CANCEL', getHeader(cancel, 'reason'));
    };
    this.listener?.onInvited?.(called);
    if (!this.rings) return this.#take(called, request);
    this.#ringing.set(called, request);
    this.#respond(request, 180, 'Ringing');
  }

  #take(called: string, request: IncomingRequest): void {
    this.#respond(request, 200, 'OK', this.#answer());
    if (request.dialog === null) return;
    this.#calls.set(called, { called, dialog: request.dialog });
    this.#numbers.set(request.dialog, called);
  }

  #onGone(dialog: DialogEntry, reason: string | undefined): void {
    const called = this.#numbers.get(dialog);
    if (called === undefined) return;
    this.#forget(called);
    this.listener?.onEnded(called, 'BYE', reason);
  }

  #forget(called: string): void {
    const call = this.#calls.get(called);
    if (call === undefined) return;
    this.#calls.delete(called);
    this.#numbers.delete(call.dialog);
  }

  #respond(request: IncomingRequest, status: number, reason: string, body = ''): void {
    const headers = [
      header('Contact', `<sip:load@${this.address}:${String(this.port)};transport=tls>`),
      ...(body === '' ? [] : [header('Content-Type', 'application/sdp')]),
    ];
    this.#userAgent.respond(request, { status, reason, headers, body });
  }

  /** The discard port: nobody listens to the agent. */
  #answer(): string {
    const family = isIP(this.address) === 6 ? 'IP6' : 'IP4';
    return [
      ...['v=0', `o=load 1 1 IN ${family} ${this.address}`, 's=-', `c=IN ${family} ${this.address}`, 't=0 0'],
      ...['m=audio 9 RTP/SAVP 0 101', 'a=rtpmap:0 PCMU/8000', 'a=rtpmap:101 telephone-event/8000', 'a=fmtp:101 0-15'],
      'a=crypto:1 AES_CM_128_HMAC_SHA1_80 inline:d0RmdmcmVCspeEc3QGZiNWpVLFJhQX1cfHAwJSoj',
      ...[`a=${this.direction}`, ''],
    ].join('\r\n');
  }
}

import { connect, rootCertificates, type TLSSocket } from 'node:tls';
import { isIP } from 'node:net';
import type { Clock } from '../../lib/clock.js';
import { formatHostPort } from '../../lib/address.js';
import { silentLog } from '../../lib/log.js';
import { getHeader, header, type Header, type SipRequest, type SipResponse } from '../../sip/message/message.js';
import { parseMessage } from '../../sip/message/parse.js';
import { SipStack } from '../../sip/stack.js';
import { DEFAULT_TIMERS } from '../../sip/transaction/timers.js';
import type { FlowListener, TlsFacts } from '../../sip/transport/flow.js';
import { StreamFlow } from '../../sip/transport/stream-flow.js';
import type { OutgoingRequest, IncomingRequest, UserAgentListener } from '../../sip/user-agent/user-agent-context.js';
import { UserAgent } from '../../sip/user-agent.js';
import type { DialogEntry } from '../../sip/dialog/dialog-table.js';

/** One SIP message that went by. */
export interface SipEvent {
  /** Milliseconds after the INVITE's connection was asked for. */
  readonly atMs: number;
  readonly direction: 'sent' | 'received';
  /** The start line. */
  readonly summary: string;
}

export interface CarrierTarget {
  readonly host: string;
  readonly port: number;
  /** PEM of the CA that must have signed the gateway's certificate; `null`: the system's CAs. */
  readonly ca: string | null;
  /** The name in the gateway's certificate, where `host` is an address that the certificate does not name. */
  readonly certificateName?: string;
}

export interface CallOutcome {
  readonly status: number;
  readonly reason: string;
  /** The gateway's explanation, from the Warning header. */
  readonly warning: string | null;
  readonly sdp: string;
}

const ALLOW = 'INVITE, ACK, CANCEL, BYE, OPTIONS, UPDATE';
const LIMITS = { maxHeaders: 200, maxHeaderBytes: 16_384, maxHeadBytes: 65_536, maxBodyBytes: 65_536, maxTransactions: 1_000 };
const STREAM_LIMITS = { ...LIMITS, messageTimeoutMs: 10_000, maxUnsentBytes: 1 << 20 };

/** The SIP side of the test carrier: its own TLS connection, one call at a time. */
export class CarrierClient {
  readonly events: SipEvent[] = [];
  readonly #stack: SipStack;
  readonly #userAgent: UserAgent;
  readonly #startedMs: number;
  #flow: StreamFlow | undefined;
  #dialog: DialogEntry | null = null;
  #onFinal: ((outcome: CallOutcome) => void) | undefined;
  #onBye: (() => void) | undefined;
  /** Answers the gateway's offer within the call with a session description; `null`: it cannot be answered. */
  onOffer: ((sdp: string) => string | null) | undefined;
  #isEnded = false;
  #endReason: string | null = null;
  #callId: string | null = null;

  constructor(
    private readonly target: CarrierTarget,
    private readonly clock: Clock,
  ) {
    this.#startedMs = clock.nowMs();
    this.#stack = new SipStack({ clock, timers: DEFAULT_TIMERS, limits: LIMITS, log: silentLog });
    this.#userAgent = new UserAgent(this.#stack, {
      open: () => this.#flow,
      advertised: () => this.#flow?.local ?? { address: '127.0.0.1', port: 5061 },
    });
    this.#userAgent.attach(this.#listener());
  }

  /** Resolves when TLS is up, with what it settled. Rejects with the TLS error. */
  connect(): Promise<TlsFacts> {
    return new Promise((resolve, reject) => {
      const { host, port, ca, certificateName = host } = this.target;
      const socket = connect({
        host,
        port,
        minVersion: 'TLSv1.2',
        ...(ca === null ? {} : { ca: [...rootCertificates, ca] }),
        ...(isIP(certificateName) === 0 ? { servername: certificateName } : {}),
      });
      socket.once('error', reject);
      socket.once('secureConnect', () => {
        socket.off('error', reject);
        this.#flow = this.#adopt(socket);
        resolve({ version: socket.getProtocol() ?? '', cipher: socket.getCipher().name });
      });
    });
  }

  /** Our address on the connection: what the gateway can reach us by. */
  get localAddress(): string {
    return this.#flow?.local.address ?? '127.0.0.1';
  }

  /** Sends the INVITE and resolves with its final answer; a 2xx is acknowledged. */
  invite(called: string, caller: string, sdp: string, extra: readonly Header[] = []): Promise<CallOutcome> {
    return new Promise((resolve, reject) => {
      this.#onFinal = resolve;
      const { host, port } = this.target;
      const uri = `sip:${called}@${formatHostPort(host, port)};transport=tls`;
      const sent = this.#userAgent.send(
        uri,
        {
          method: 'INVITE',
          headers: [
            header('From', `"Trunkline test carrier" <sip:${caller}@${this.localAddress}>`),
            header('To', `<sip:${called}@${host}>`),
            header('Allow', ALLOW),
            header('User-Agent', 'trunkline-call'),
            header('Content-Type', 'application/sdp'),
            ...extra,
          ],
          body: sdp,
        },
        null,
      );
      if (typeof sent === 'string') return reject(new Error(`the call cannot be placed: ${sent}`));
      this.#dialog = null;
      this.#callId = getHeader(sent.message, 'call-id') ?? null;
    });
  }

  /** Call-ID of the INVITE; `null`: none was sent. */
  get callId(): string | null {
    return this.#callId;
  }

  /** Resolves when the gateway has ended the call. */
  whenEnded(): Promise<void> {
    if (this.#isEnded) return Promise.resolve();
    return new Promise((resolve) => {
      this.#onBye = resolve;
    });
  }

  get isEnded(): boolean {
    return this.#isEnded;
  }

  /** `Reason` of the gateway's BYE (RFC 3326); `null`: none came. */
  get endReason(): string | null {
    return this.#endReason;
  }

  /** Ends the call from our side; resolves when the BYE is answered, or the connection gone. */
  hangUp(): Promise<void> {
    if (this.#dialog === null || this.#isEnded) return Promise.resolve();
    const ended = this.whenEnded();
    this.#userAgent.sendInDialog(this.#dialog, { method: 'BYE', headers: [], body: '' });
    return ended;
  }

  close(): void {
    this.#flow?.close();
    this.#stack.close();
  }

  #adopt(socket: TLSSocket): StreamFlow {
    const remote = { address: socket.remoteAddress ?? this.target.host, port: socket.remotePort ?? this.target.port };
    const local = { address: socket.localAddress ?? '127.0.0.1', port: socket.localPort ?? 5061 };
    const listener: FlowListener = {
      onMessage: (flow, text) => {
        this.#note('received', text);
        this.#stack.onMessage(flow, text);
      },
      onSpoiled: (flow, problem) => this.#stack.onSpoiled(flow, problem),
      onClose: (flow) => {
        this.#stack.onClose(flow);
        this.#ended();
      },
    };
    const flow = new StreamFlow(socket, 'TLS', local, remote, listener, STREAM_LIMITS, this.clock);
    const send = flow.send.bind(flow);
    flow.send = (text: string) => {
      this.#note('sent', text);
      send(text);
    };
    return flow;
  }

  #listener(): UserAgentListener {
    return {
      onRequest: (request) => this.#onRequest(request),
      onAck: () => undefined,
      onResponse: (request, response) => this.#onResponse(request, response),
      onDialogEnded: () => this.#ended(),
    };
  }

  #onRequest(request: IncomingRequest): void {
    const { method, body } = request.message;
    if (method === 'INVITE' || method === 'UPDATE') return this.#onSession(request, body);
    const isBye = method === 'BYE';
    this.#respond(request, isBye ? 200 : 501, isBye ? 'OK' : 'Not Implemented');
    if (!isBye) return;
    this.#endReason ??= getHeader(request.message, 'reason') ?? null;
    this.#ended();
  }

  /** As carriers do: an offer gets an answer, an UPDATE without one refreshes the session. */
  #onSession(request: IncomingRequest, offer: string): void {
    if (request.dialog === null) return this.#respond(request, 486, 'Busy Here');
    if (offer === '' && request.message.method === 'UPDATE') return this.#respond(request, 200, 'OK');
    const answer = this.onOffer?.(offer) ?? null;
    if (answer === null) return this.#respond(request, 488, 'Not Acceptable Here');
    this.#respond(request, 200, 'OK', answer);
  }

  #respond(request: IncomingRequest, status: number, reason: string, sdp = ''): void {
    const headers = sdp === '' ? [] : [header('Allow', ALLOW), header('Content-Type', 'application/sdp')];
    this.#userAgent.respond(request, { status, reason, headers, body: sdp });
  }

  #onResponse(request: OutgoingRequest, response: SipResponse): void {
    if (response.status < 200) return;
    if (request.message.method === 'BYE') return this.#ended();
    if (request.message.method !== 'INVITE') return;
    if (response.status < 300 && request.dialog !== null) {
      this.#dialog = request.dialog;
      this.#userAgent.sendInDialog(request.dialog, { method: 'ACK', headers: [], body: '' });
    }
    const warning = getHeader(response, 'warning') ?? null;
    this.#onFinal?.({ status: response.status, reason: response.reason, warning, sdp: response.body });
    this.#onFinal = undefined;
  }

  #ended(): void {
    this.#isEnded = true;
    this.#onBye?.();
  }

  #note(direction: SipEvent['direction'], text: string): void {
    const parsed = parseMessage(text, LIMITS);
    if (!parsed.ok) return;
    this.events.push({ atMs: Math.round(this.clock.nowMs() - this.#startedMs), direction, summary: summaryOf(parsed.value) });
  }
}

/** `INVITE`, `200 OK (INVITE)`. */
function summaryOf(message: SipRequest | SipResponse): string {
  if (message.kind === 'request') return message.method;
  return `${String(message.status)} ${message.reason} (${(getHeader(message, 'cseq') ?? '').split(/\s+/)[1] ?? ''})`;
}

import { randomInt } from 'node:crypto';
import type { Socket } from 'node:net';
import type { PeerCertificate } from 'node:tls';
import type { CancelTimer, Clock } from '../../lib/clock.js';
import { errorText } from '../../lib/result.js';
import type { Log } from '../../lib/log.js';
import { connectionFailure, failuresOf } from './connection-failure.js';
import { defaultPort } from './service-location.js';
import type { Endpoint, FlowListener, PeerTls, Target, TlsFacts } from './flow.js';
import type { RetiringFlow } from './retirement.js';
import { StreamFlow, type StreamFlowLimits } from './stream-flow.js';

export interface OutgoingLimits extends StreamFlowLimits {
  /** For one address, TLS handshake included. */
  readonly connectTimeoutMs: number;
  /** Closes after this time without bytes either way. */
  readonly idleTimeoutMs: number;
}

export interface Connecting {
  readonly socket: Socket;
  /** The event after which it is writable. */
  readonly ready: 'connect' | 'secureConnect';
  /** The certificate that the peer has shown so far; left out: no TLS. */
  readonly shown?: () => PeerCertificate | null;
}

export interface Dialing {
  locate(target: Target): Promise<readonly Endpoint[]>;
  connect(endpoint: Endpoint): Connecting;
  readonly listener: FlowListener;
  readonly limits: OutgoingLimits;
  readonly clock: Clock;
  readonly log: Log;
}

/** RFC 5626 §4.4.1: between two pings. */
const PING_MS = [95_000, 120_000] as const;
/** RFC 5626 §4.4.1: for the pong. */
const PONG_LIMIT_MS = 10_000;
/** A kept connection without a message this long is kept no more. */
const UNUSED_MS = 3_600_000;

/**
 * A connection that we open. It queues messages until connected and tries the addresses in turn (RFC 3263 §4.3). If all fail, the flow
 * closes: a transport error for its transactions.
 */
export class OutgoingFlow implements RetiringFlow {
  readonly reliable = true;
  readonly transport: 'TLS' | 'TCP';
  #remote: Endpoint;
  #isOpen = true;
  #waiting: string[] = [];
  #waitingBytes = 0;
  #connecting: Socket | undefined;
  #stream: StreamFlow | undefined;
  #hasHeard = false;
  /** With TLS 1.3 a server refuses our certificate after the handshake (RFC 8446 §4.4.2.4): it has read nothing. */
  #isRefused = false;
  #failure: string | null = null;
  #isKept = false;
  /** The peer has answered a ping: from then on it must (RFC 5626 §3.5.1, for peers that do not say whether they can). */
  #answersPings = false;
  #usedMs = 0;
  #cancelPing: CancelTimer | undefined;

  constructor(
    private readonly target: Target & { readonly transport: 'TLS' | 'TCP' },
    readonly local: Endpoint,
    private readonly dialing: Dialing,
  ) {
    this.transport = target.transport;
    this.#remote = { address: target.address ?? target.host, port: target.port ?? defaultPort(target.transport) };
    dialing.locate(target).then(
      (endpoints) => this.#tryEach(endpoints, []),
      (error: unknown) => {
        this.#failure = `no server of ${target.host} was found: ${errorText(error)}`;
        this.dialing.log.warn({ host: target.host, transport: target.transport, error: errorText(error) }, 'sip.locate.failed');
        this.close();
      },
    );
  }

  get isOpen(): boolean {
    return this.#isOpen;
  }

  get wasConnected(): boolean {
    return this.#stream !== undefined && !this.#isRefused;
  }

  get wasRefused(): boolean {
    return this.#isRefused;
  }

  get failure(): string | null {
    return this.#failure;
  }

  /** The target's host and port until connected, then the peer's address. */
  get remote(): Endpoint {
    return this.#remote;
  }

  get tlsIdentity(): string {
    return this.#stream?.tlsIdentity ?? '';
  }

  get tls(): TlsFacts | null {
    return this.#stream?.tls ?? null;
  }

  get peerTls(): PeerTls | undefined {
    return this.target.tls;
  }

  /** From now on the connection is kept open and watched. */
  keep(): void {
    if (this.#isKept) return;
    this.#isKept = true;
    this.#usedMs = this.dialing.clock.nowMs();
    if (this.#stream !== undefined) this.#pingLater();
  }

  send(text: string): void {
    if (!this.#isOpen) return;
    if (this.#isKept) this.#usedMs = this.dialing.clock.nowMs();
    if (this.#stream !== undefined) return this.#stream.send(text);
    this.#waiting.push(text);
    this.#waitingBytes += text.length;
    if (this.#waitingBytes > this.dialing.limits.maxUnsentBytes) this.close();
  }

  pause(): void {
    this.#stream?.pause();
  }

  get isMidMessage(): boolean {
    return this.#stream?.isMidMessage ?? false;
  }

  retire(): Promise<void> {
    if (this.#stream !== undefined) return this.#stream.retire();
    this.close();
    return Promise.resolve();
  }

  close(): void {
    if (!this.#isOpen) return;
    // The stream's `onClose` then ends this flow.
    if (this.#stream !== undefined) return this.#stream.close();
    this.#connecting?.destroy();
    this.#ended();
  }

  #tryEach(endpoints: readonly Endpoint[], tried: Parameters<typeof failuresOf>[0]): void {
    if (!this.#isOpen) return;
    const endpoint = endpoints[tried.length];
    if (endpoint === undefined) {
      this.#failure = failuresOf(tried);
      return this.close();
    }
    const { clock, limits, log } = this.dialing;
    const { socket, ready, shown } = this.dialing.connect(endpoint);
    this.#connecting = socket;
    const cancelTimer: CancelTimer = clock.setTimer(limits.connectTimeoutMs, () =>
      socket.destroy(new Error(`not connected within ${limits.connectTimeoutMs} ms`)),
    );
    let failure = 'closed the connection';
    const onError = (error: Error): void => void (failure = connectionFailure(error, shown?.() ?? null));
    const onClose = (): void => {
      cancelTimer();
      log.warn({ host: this.target.host, ...endpoint, transport: this.transport, error: failure }, 'sip.connect.failed');
      this.#tryEach(endpoints, [...tried, { endpoint, failure }]);
    };
    socket.on('error', onError);
    socket.once('close', onClose);
    socket.once(ready, () => {
      cancelTimer();
      socket.off('error', onError);
      socket.off('close', onClose);
      this.#adopt(socket, endpoint);
    });
  }

  #adopt(socket: Socket, endpoint: Endpoint): void {
    const { dialing } = this;
    const { listener, limits, clock } = dialing;
    this.#connecting = undefined;
    this.#remote = endpoint;
    const own: FlowListener = {
      onMessage: (_stream, text) => {
        this.#hasHeard = true;
        if (this.#isKept) this.#usedMs = clock.nowMs();
        listener.onMessage(this, text);
      },
      onSpoiled: (_stream, problem) => listener.onSpoiled(this, problem),
      onClose: () => this.#ended(),
    };
    // Before the stream's own listener, which closes it.
    socket.once('error', (error: NodeJS.ErrnoException) => {
      const failure = connectionFailure(error, null);
      this.#failure = failuresOf([{ endpoint, failure }]);
      this.#isRefused = !this.#hasHeard && /^ERR_SSL_\w*ALERT/.test(error.code ?? '');
      if (this.#isRefused)
        dialing.log.warn({ host: this.target.host, ...endpoint, transport: this.transport, error: failure }, 'sip.connect.failed');
    });
    const stream = new StreamFlow(socket, this.transport, this.local, endpoint, own, limits, clock);
    socket.setTimeout(limits.idleTimeoutMs, () => stream.close());
    this.#stream = stream;
    if (this.#isKept) this.#pingLater();
    for (const text of this.#waiting.splice(0)) stream.send(text);
  }

  #pingLater(): void {
    const [least, most] = PING_MS;
    this.#cancelPing = this.dialing.clock.setTimer(randomInt(least, most + 1), () => this.#ping());
  }

  #ping(): void {
    const { clock, log } = this.dialing;
    const atMs = clock.nowMs();
    if (atMs - this.#usedMs > UNUSED_MS) {
      this.#isKept = false;
      return;
    }
    this.#stream?.takePong();
    this.#stream?.send('\r\n\r\n');
    this.#cancelPing = clock.setTimer(PONG_LIMIT_MS, () => {
      const hasPong = this.#stream?.takePong() === true;
      this.#answersPings ||= hasPong;
      // A message meanwhile shows as much.
      if (hasPong || !this.#answersPings || this.#usedMs > atMs) return this.#pingLater();
      log.warn({ host: this.target.host, ...this.#remote, transport: this.transport }, 'sip.connection.pong_missing');
      this.close();
    });
  }

  #ended(): void {
    this.#cancelPing?.();
    this.#isOpen = false;
    this.#waiting = [];
    this.dialing.listener.onClose(this);
  }
}

export type TransportName = 'TLS' | 'TCP' | 'UDP';

export interface Endpoint {
  readonly address: string;
  readonly port: number;
}

/** What a TLS handshake settled. */
export interface TlsFacts {
  /** `TLSv1.2` or `TLSv1.3`. */
  readonly version: string;
  readonly cipher: string;
}

/**
 * The way to one peer: a TCP or TLS connection, or a UDP peer seen through our socket (the "flow" of RFC 5626).
 * `send` never throws; a flow that cannot carry on closes, and says so to whoever listens.
 */
export interface Flow {
  readonly transport: TransportName;
  /** TCP and TLS: nothing is lost or repeated while the flow is open. */
  readonly reliable: boolean;
  readonly remote: Endpoint;
  /** The listening address the flow came in on, or the address it was opened from. */
  readonly local: Endpoint;
  readonly isOpen: boolean;
  /** For an outgoing connection: it was established at some time. */
  readonly wasConnected?: boolean;
  /** The name in the peer's verified certificate; '' or unset: no verified certificate. */
  readonly tlsIdentity?: string;
  /** `null` or none: no TLS. */
  readonly tls?: TlsFacts | null;
  /** Queues a message (a byte string); everything of one turn of the event loop goes out in one write. */
  send(text: string): void;
  close(): void;
}

/** What a transport reports. `text` is a byte string. */
export interface FlowListener {
  onMessage(flow: Flow, text: string): void;
  /** The stream cannot be read on; the transport closes the flow after this returns. */
  onSpoiled(flow: Flow, problem: { readonly status: number; readonly reason: string; readonly head: string | null }): void;
  onClose(flow: Flow): void;
}

/** Where a request goes when there is no flow yet. */
export interface Target {
  readonly transport: TransportName;
  /** A name or an address. A TLS certificate is checked against it. */
  readonly host: string;
  /** `null`: none was named, so that SRV records may say (RFC 3263 §4.2). */
  readonly port: number | null;
  /** Where the host is, when that is known already. */
  readonly address?: string;
  /** There is another way: a connection that does not come at once is not waited for, and one that failed lately is not tried. */
  readonly isAttempt?: boolean;
}

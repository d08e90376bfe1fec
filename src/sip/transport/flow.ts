export type TransportName = 'TLS' | 'TCP' | 'UDP';

export interface Endpoint {
  readonly address: string;
  readonly port: number;
}

/** The result of a TLS handshake. */
export interface TlsFacts {
  /** `TLSv1.2` or `TLSv1.3`. */
  readonly version: string;
  readonly cipher: string;
}

/**
 * The way to one peer: a TCP or TLS connection, or a UDP peer on our socket ("flow" in RFC 5626). `send` never throws; a failed flow closes
 * and notifies its listener.
 */
export interface Flow {
  readonly transport: TransportName;
  /** TCP and TLS: no loss or duplication while the flow is open. */
  readonly reliable: boolean;
  readonly remote: Endpoint;
  /** The listening address of an incoming flow, or the source address of an outgoing one. */
  readonly local: Endpoint;
  readonly isOpen: boolean;
  /** For an outgoing connection: it was once established. */
  readonly wasConnected?: boolean;
  /** For an outgoing connection: the peer refused it after the handshake, and has read nothing. `wasConnected` is false then. */
  readonly wasRefused?: boolean;
  /** For a flow that we opened and that has failed: why, for a person; `null` or unset: it has not, or nothing is known. */
  readonly failure?: string | null;
  /** Name in the peer's verified certificate; '' or unset: none verified. */
  readonly tlsIdentity?: string;
  /** `null` or unset: no TLS. */
  readonly tls?: TlsFacts | null;
  /** For an outgoing connection with settings of its own. */
  readonly peerTls?: PeerTls | undefined;
  /** Another process has the socket, and has counted what came by it against the limits of its source. */
  readonly isAdmitted?: boolean;
  /** Queues a message (a byte string); one turn of the event loop makes one write. */
  send(text: string): void;
  close(): void;
}

/** Events of a transport. `text` is a byte string. */
export interface FlowListener {
  onMessage(flow: Flow, text: string): void;
  /** The stream is unreadable; the transport closes the flow after this returns. */
  onSpoiled(flow: Flow, problem: { readonly status: number; readonly reason: string; readonly head: string | null }): void;
  onClose(flow: Flow): void;
}

/** How one TLS peer is checked, and what it is shown. PEM texts. */
export interface PeerTls {
  /** One for one content: connections are not shared between two. */
  readonly id: string;
  /** `null`: the transport's. */
  readonly ca: string | null;
  /** The certificate must have one of them (RFC 5922 §7); none: the target's host. */
  readonly names: readonly string[];
  /** `null`: we show none. */
  readonly own: { readonly certificate: string; readonly key: string } | null;
}

/** Destination of a request without a flow. */
export interface Target {
  readonly transport: TransportName;
  /** A name or address; the TLS certificate must match it. */
  readonly host: string;
  /** `null`: none given, so SRV records apply (RFC 3263 §4.2). */
  readonly port: number | null;
  /** The host's address, if known. */
  readonly address?: string;
  /** In place of the transport's own settings. */
  readonly tls?: PeerTls;
  /** A connection that we open leads to a public address alone, whatever the host resolves to. */
  readonly isPublicOnly?: boolean;
  /** The connection is kept open and watched (RFC 5626 §3.5.1) as long as it is used. */
  readonly isKept?: boolean;
  /** An alternative exists: a short connect timeout applies, and no retry soon after a failure. */
  readonly isAttempt?: boolean;
}

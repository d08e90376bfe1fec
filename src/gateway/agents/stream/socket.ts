/** An open WebSocket to an agent, as far as a call needs it. After `close` or `terminate` nothing is called back. */
export interface AgentSocket {
  /** Given to the system or waiting for it, not yet sent, in bytes. */
  readonly unsentBytes: number;
  sendText(text: string): void;
  /** A text from its UTF-8, which may be changed after the call. */
  sendUtf8(bytes: Uint8Array): void;
  /** The bytes may be changed after the call. */
  sendBinary(bytes: Uint8Array): void;
  /** Its pong has the same number, when the peer has read what was sent before. */
  ping(serial: number): void;
  /** With code 1000, after what was sent before. */
  close(): void;
  /** At once. */
  terminate(): void;
}

export interface AgentSocketEvents {
  onOpen(socket: AgentSocket): void;
  /** No connection came about; the message is for a person and names no secret. */
  onFailed(message: string): void;
  /** May take a text from its bytes, `buffer[start, end)` for the time of the call, before they become one; true: it did. */
  takeText?(buffer: Uint8Array, start: number, end: number): boolean;
  onText(text: string): void;
  /** The bytes belong to the one who is called. */
  onBinary(bytes: Uint8Array): void;
  /** `NaN`: it answers no ping of ours. */
  onPong(serial: number): void;
  /** @param reason of the close frame, as the peer wrote it */
  onClosed(code: number, reason?: string): void;
}

/** Where to and as whom. */
export interface AgentAddress {
  readonly url: string;
  readonly bearerToken: string | null;
  readonly signatureKey: string;
  readonly traceparent?: string;
}

/** Begins to connect; the one function that is returned gives the attempt up, and does nothing once it has come to its end. */
export type DialAgent = (address: AgentAddress, events: AgentSocketEvents) => () => void;

/** As `DialAgent`, to any WebSocket. */
export type DialSocket = (
  request: { readonly url: string; readonly headers: Readonly<Record<string, string>> },
  events: AgentSocketEvents,
) => () => void;

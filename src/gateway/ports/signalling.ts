// The SIP side of a call as drachtio-srf 5.0.29 gives it, with types of our own: those of the package are wrong or missing in places.

export interface SrfMessage {
  get(name: string): string | undefined;
  has(name: string): boolean;
}

/** An incoming request. */
export interface SrfRequest extends SrfMessage {
  readonly method: string;
  readonly uri: string;
  readonly body: string;
  /** `tls`, `tcp`, `udp`. */
  readonly protocol: string;
  /** From the connection, not from a header. */
  readonly source_address: string;
  readonly source_port: number;
  /** False for a re-INVITE of an unknown dialog. */
  readonly isNewInvite: boolean;
  /** The received message, and its headers by name. */
  readonly msg: { readonly raw?: string; readonly headers: Readonly<Record<string, string>> };
  /** Throws on a header that cannot be parsed. */
  getParsedHeader(name: 'contact'): readonly { readonly uri: string }[];
  on(event: 'cancel', listener: (cancel?: { readonly raw?: string }) => void): void;
  /** `application`: the SIP server sent it by itself. */
  readonly source?: 'network' | 'application';
}

export interface SrfResponse {
  send(status: number, reason: string, options: { headers?: SrfHeaders; body?: string }, callback?: (error: unknown) => void): void;
}

export type SrfHeaders = Readonly<Record<string, string>>;

/** An answered call as drachtio-srf keeps it. */
export interface SrfDialog {
  /** The SIP server's id of the dialog. */
  readonly id: string;
  readonly sip: { readonly callId: string; readonly localTag: string; readonly remoteTag: string };
  readonly local: { readonly contact: string };
  /** drachtio-srf calls it with each request of the dialog. */
  handle(request: SrfRequest, response: SrfResponse, ...rest: readonly unknown[]): void;
  on(event: 'destroy', listener: (request: SrfRequest, reason: string) => void): void;
}

export type SrfHandler = (request: SrfRequest, response: SrfResponse) => void;

export interface SrfOptions {
  readonly host: string;
  readonly port: number;
  readonly secret: string;
  readonly tags: readonly string[];
}

/** A final answer to a request of ours. */
export interface SrfAnswer {
  readonly status: number;
  readonly body: string;
  /** The message; '' when it is not known. */
  readonly raw: string;
  /** The SIP server's own, in place of one: why there is none, for a person; `null`: the peer's. */
  readonly unanswered: string | null;
}

export interface RequestInDialog {
  readonly method: 'BYE' | 'INVITE' | 'OPTIONS' | 'PRACK' | 'REFER' | 'UPDATE';
  readonly headers?: SrfHeaders;
  readonly body?: string;
}

/** No connection to the SIP server, or it broke before the answer: the request's outcome is unknown. */
export class ConnectionLostError extends Error {
  override readonly name = 'ConnectionLostError';
}

/** What another process needs to resume a dialog. */
export interface DialogSnapshot {
  readonly id: string;
  /** The INVITE as it came, or as it was sent. */
  readonly invite: string;
  /** For an INVITE that we sent: its 2xx. */
  readonly answer?: string;
  readonly localTag: string;
  readonly contact: string;
}

/** A request of ours, outside dialogs. */
export interface SrfInvite {
  readonly uri: string;
  readonly headers: SrfHeaders;
  readonly body: string;
}

/** The same, as the SIP server sent it. */
export interface SentInvite extends Pick<SrfMessage, 'get'> {
  readonly raw: string | undefined;
  /** The SIP server sends the CANCEL as soon as it may (RFC 3261 §9.1). */
  cancel(headers: SrfHeaders): void;
}

/** A response to it. */
export interface InviteResponse extends Pick<SrfMessage, 'get'> {
  readonly status: number;
  readonly body: string;
  readonly raw: string | undefined;
  /** The SIP server's own, in place of one: why nobody answered, or could be reached, for a person; `null`: the peer's. */
  readonly unanswered: string | null;
  /** The SIP server's id of the dialog. */
  readonly dialogId: string;
  /** The dialog that a 2xx makes, with its listeners before anything that follows. Throws when the 2xx has no Contact. */
  dialog(): SrfDialog;
  /** ACK to a 2xx. @param onSent gets it as it was sent */
  acknowledge(headers: SrfHeaders, onSent: (raw: string | undefined) => void): void;
}

export interface InviteListener {
  onSent(sent: SentInvite): void;
  onResponse(response: InviteResponse): void;
  /** A request within the early dialog. */
  onUpdate: SrfHandler;
  /** No final response comes. After a `ConnectionLostError` the INVITE may have left; after any other error it did not. */
  onFailed(error: unknown): void;
}

/** Gets each message of our request: the request as sent, and its responses. `null`: the SIP server's own, in place of a response. */
export type OnMessage = (direction: 'in' | 'out' | null, text: string | undefined, summary: string) => void;

/** What the gateway uses of drachtio-srf. */
export interface SrfApp {
  invite(handler: SrfHandler): void;
  /** Routes any other method out of dialogs. */
  handle(method: string, handler: SrfHandler): void;
  /** Runs for requests without any other handler. */
  use(handler: SrfHandler): void;
  /** Answers an INVITE with 200. The callback may run twice; the dialog is there the moment the SIP server has sent the 200. */
  createUAS(
    request: SrfRequest,
    response: SrfResponse,
    options: { localSdp: string; headers: SrfHeaders },
    callback: (error: unknown, dialog?: SrfDialog) => void,
  ): void;
  /** `hostPorts`: what the SIP server listens on, `proto/host:port` each. Runs at every (re)connection. */
  onConnect(listener: (error: unknown, hostPorts: readonly string[], version: string) => void): void;
  /** Runs when the connection breaks and after each failed reconnection; reconnecting never stops. */
  onLost(listener: (error: Error) => void): void;
  /**
   * Sends a request in a dialog, over whatever connection to the SIP server there is now. `onAnswer` runs once, with the final answer
   * (an INVITE's is acknowledged) or with an error, `ConnectionLostError` among them; an UPDATE that crosses an INVITE goes to
   * `onUpdate`. A BYE whose connection was lost is sent again by itself when there is one.
   */
  request(
    dialogId: string,
    request: RequestInDialog,
    onAnswer: (error: unknown, answer?: SrfAnswer) => void,
    onUpdate?: SrfHandler,
    onMessage?: OnMessage,
  ): void;
  /** Sends an INVITE outside dialogs, over the connection to the SIP server that there is now. */
  place(invite: SrfInvite, listener: InviteListener): void;
  /** Sends a REGISTER. `onAnswer` runs once. */
  register(request: Omit<SrfInvite, 'body'>, onAnswer: (error: unknown, answer?: SrfAnswer) => void): void;
  /** Sends an OPTIONS outside dialogs. `onAnswer` runs once. */
  options(request: Omit<SrfInvite, 'body'>, onAnswer: (error: unknown, answer?: SrfAnswer) => void): void;
  /** Forgets the dialog: later requests in it are unknown. */
  forget(dialog: SrfDialog): void;
  /** @param invite as it came, or as we sent it */
  snapshot(dialog: SrfDialog, invite: string): DialogSnapshot;
  /** Restores a dialog of an earlier process. Throws when the stored INVITE is unreadable. */
  restore(kept: DialogSnapshot): SrfDialog;
  connect(options: SrfOptions): void;
  disconnect(): void;
  /** Withdraws the methods, so that no new request arrives: the first step of a drain. */
  withdraw(methods: readonly string[]): void;
}

import Srf from 'drachtio-srf';

// The package's own types are wrong or missing in places: this is the only file that touches it, and says what the rest may rely on.
// Seen with drachtio-srf 5.0.29.

export interface SipAddress {
  readonly uri: string;
}

/** An incoming request. */
export interface SrfRequest {
  readonly method: string;
  readonly uri: string;
  readonly body: string;
  /** `tls`, `tcp`, `udp`. */
  readonly protocol: string;
  /** Of the connection, not of a header. */
  readonly source_address: string;
  readonly source_port: number;
  /** False for a re-INVITE of a dialog that nobody has. */
  readonly isNewInvite: boolean;
  get(name: string): string | undefined;
  has(name: string): boolean;
  /** Throws on a header that cannot be parsed. */
  getParsedHeader(name: 'contact'): readonly SipAddress[];
  on(event: 'cancel', listener: () => void): void;
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
  readonly local: { sdp: string };
  on(event: 'ack', listener: (request: SrfRequest) => void): void;
  on(event: 'destroy', listener: (request: SrfRequest, reason: string) => void): void;
  on(event: 'modify' | 'info' | 'update' | 'refer' | 'message' | 'notify' | 'options' | 'publish', listener: SrfHandler): void;
  /** Sends BYE at once. */
  destroy(options: { headers: SrfHeaders }, callback: (error: unknown) => void): void;
}

export type SrfHandler = (request: SrfRequest, response: SrfResponse) => void;

export interface SrfOptions {
  readonly host: string;
  readonly port: number;
  readonly secret: string;
  readonly tags: readonly string[];
}

/** What the gateway uses of drachtio-srf. */
export interface SrfApp {
  invite(handler: SrfHandler): void;
  /** Routes any other method out of dialogs. */
  handle(method: string, handler: SrfHandler): void;
  /** Runs for requests that nothing else took. */
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
  /** The connection is gone; it is dialled again without end. Runs for each failed attempt too. */
  onLost(listener: (error: Error) => void): void;
  /** BYE in a dialog that drachtio-srf cannot reach any more, by its id. */
  byeByDialogId(dialogId: string, headers: SrfHeaders): void;
  connect(options: SrfOptions): void;
  disconnect(): void;
  /** Withdraws methods, so that no new request comes here: the first step of a drain. */
  withdraw(methods: readonly string[]): void;
}

/** The parts of drachtio-srf's object that the facade calls. */
interface RawSrf {
  invite(handler: SrfHandler): void;
  use(handler: SrfHandler): void;
  createUAS(request: SrfRequest, response: SrfResponse, options: object, callback: (error: unknown, dialog?: SrfDialog) => void): void;
  on(event: string, listener: (...args: never[]) => void): void;
  connect(options: object): void;
  disconnect(): void;
  unregisterForMessages(method: string): void;
  request(uri: string, options: object, callback: (error: unknown) => void): void;
}

export function createSrfApp(): SrfApp {
  const srf = new Srf() as unknown as RawSrf & Record<string, ((handler: SrfHandler) => void) | undefined>;
  return {
    invite: (handler) => srf.invite(handler),
    handle: (method, handler) => srf[method]?.(handler),
    use: (handler) => srf.use(handler),
    createUAS: (request, response, options, callback) => {
      srf.createUAS(request, response, { localSdp: options.localSdp, headers: { ...options.headers } }, callback);
    },
    onConnect: (listener) =>
      srf.on('connect', (error: unknown, hostPorts: string | undefined, version: string | undefined) =>
        listener(error, (hostPorts ?? '').split(',').filter(Boolean), version ?? ''),
      ),
    onLost: (listener) => {
      srf.on('error', listener);
      srf.on('close', () => listener(new Error('the connection was closed')));
    },
    byeByDialogId: (dialogId, headers) => {
      // The object-only form of `request` throws; the URI is replaced by the dialog's target.
      srf.request('sip:placeholder', { method: 'BYE', stackDialogId: dialogId, headers: { ...headers } }, () => undefined);
    },
    connect: ({ host, port, secret, tags }) => srf.connect({ host, port, secret, tags: [...tags], enablePing: true }),
    disconnect: () => srf.disconnect(),
    withdraw: (methods) => {
      for (const method of methods) srf.unregisterForMessages(method);
    },
  };
}

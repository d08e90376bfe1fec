import Srf from 'drachtio-srf';

// drachtio-srf's own types are wrong in places; the tests see it as plain JavaScript applications use it.

export type Headers = Readonly<Record<string, string>>;

export interface SrfMessage {
  readonly body: string;
  readonly status: number;
  readonly reason: string;
  readonly method: string;
  readonly uri: string;
  readonly protocol: string;
  readonly source_address: string;
  get(name: string): string;
  has(name: string): boolean;
}

export interface SrfRequest extends SrfMessage {
  on(event: 'response', listener: (res: SrfMessage, ack: (options?: object) => void) => void): void;
  on(event: 'cancel' | 'authenticate' | 'update', listener: (message: SrfMessage, res: SrfResponse) => void): void;
  cancel(options?: object, callback?: (error: unknown) => void): void;
  readonly stackTxnId: string;
}

export interface SrfResponse {
  send(
    status: number,
    options?: { headers?: Headers; body?: string },
    callback?: (error: unknown, sent: SrfMessage) => void,
    onPrack?: (prack: SrfMessage) => void,
  ): void;
  readonly finalResponseSent: boolean;
}

export interface SrfDialog {
  readonly id: string;
  readonly sip: { readonly callId: string; readonly localTag: string; readonly remoteTag: string };
  readonly local: { sdp: string };
  readonly remote: { sdp: string };
  readonly res: SrfMessage;
  readonly connected: boolean;
  readonly onHold: boolean;
  on(event: string, listener: (req: SrfRequest, res: SrfResponse) => void): void;
  on(event: 'destroy', listener: (req: SrfRequest, reason: string) => void): void;
  once(event: string, listener: (req: SrfRequest, res: SrfResponse) => void): void;
  destroy(options?: { headers?: Headers; auth?: Credentials }): Promise<SrfMessage>;
  modify(sdp: string | object): Promise<string>;
  request(options: { method: string; headers?: Headers; body?: string }): Promise<SrfMessage>;
}

export interface Credentials {
  readonly username: string;
  readonly password: string;
}

export interface Progress {
  readonly cbRequest?: (error: unknown, request: SrfRequest) => void;
  readonly cbProvisional?: (response: SrfMessage) => void;
}

export interface ProxyResult {
  readonly connected: boolean;
  readonly finalStatus: number;
  readonly responses: readonly { readonly address: string; readonly port: number; readonly msgs: readonly { readonly status: number }[] }[];
}

type Handler = (req: SrfRequest, res: SrfResponse) => void;
type Route = 'invite' | 'register' | 'options' | 'message' | 'subscribe' | 'publish' | 'info' | 'notify' | 'refer';

export type SrfApplication = Readonly<Record<Route, (handler: Handler) => void>> & {
  connect(options: object): void;
  disconnect(): void;
  on(event: 'cdr:attempt', listener: (source: string, time: string, message: SrfMessage) => void): void;
  on(event: 'cdr:start' | 'cdr:stop', listener: (source: string, time: string, detail: string, message: SrfMessage) => void): void;
  on(event: 'connect', listener: (error: Error | null, hostports: string, version: string) => void): void;
  on(event: 'error', listener: (error: Error) => void): void;
  createUAS(req: SrfRequest, res: SrfResponse, options: object): Promise<SrfDialog>;
  createUAS(req: SrfRequest, res: SrfResponse, options: object, callback: (error: unknown, dialog: SrfDialog) => void): void;
  createUAC(uri: string, options: object, progress?: Progress): Promise<SrfDialog>;
  createB2BUA(req: SrfRequest, res: SrfResponse, uri: string, options: object): Promise<{ uas: SrfDialog; uac: SrfDialog }>;
  proxyRequest(req: SrfRequest, destination: string | string[], options?: object): Promise<ProxyResult>;
  request(uri: string, options: object): Promise<SrfRequest>;
  unregisterForMessages(method: string): void;
  readonly version: string;
};

/** An unchanged drachtio-srf application, connected to the server; `prepare` sets up what it handles. */
export async function srfApplication(
  controlPort: number,
  prepare: (srf: SrfApplication) => void = () => undefined,
  tags: readonly string[] = [],
): Promise<SrfApplication> {
  const srf = new Srf(tags as string[]) as unknown as SrfApplication;
  srf.on('error', () => undefined);
  prepare(srf);
  const version = await new Promise<string>((resolve, reject) => {
    srf.on('connect', (error, _hostports, stated) => (error == null ? resolve(stated) : reject(error)));
    srf.connect({ host: '127.0.0.1', port: controlPort, secret: 'test-secret' });
  });
  return Object.assign(srf, { version });
}

/** The next response to a request of the application's that is no provisional one. */
export function finalOf(request: SrfRequest): Promise<SrfMessage> {
  return new Promise((resolve) => request.on('response', (response) => (response.status >= 200 ? resolve(response) : undefined)));
}

/** Resolves at the next event of this name. */
export function eventOf(dialog: SrfDialog, name: string): Promise<SrfRequest> {
  return new Promise((resolve) => dialog.once(name, resolve));
}

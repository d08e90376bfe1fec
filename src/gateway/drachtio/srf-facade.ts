import Srf from 'drachtio-srf';
import { errorText } from '../../lib/error-text.js';
import { gatherWrites, type CorkedStream } from '../../lib/gather-writes.js';

// The package's own types are wrong or missing in places: this is the only file that touches it, and says what the rest may rely on.
// Seen with drachtio-srf 5.0.29.

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
  /** Of the connection, not of a header. */
  readonly source_address: string;
  readonly source_port: number;
  /** False for a re-INVITE of a dialog that nobody has. */
  readonly isNewInvite: boolean;
  /** The message as it came, and its headers by name. */
  readonly msg: { readonly raw?: string; readonly headers: Readonly<Record<string, string>> };
  /** Throws on a header that cannot be parsed. */
  getParsedHeader(name: 'contact'): readonly { readonly uri: string }[];
  on(event: 'cancel', listener: (cancel?: { readonly raw?: string }) => void): void;
  /** `application`: the SIP server sent it by itself. */
  readonly source?: 'network' | 'application';
}

/** drachtio-srf expands the one-letter names of RFC 3261 and not the `x` of RFC 4028 §4. */
export function sessionExpiresOf(request: SrfMessage): string | undefined {
  return request.get('Session-Expires') ?? request.get('x');
}

export interface SrfResponse {
  send(status: number, reason: string, options: { headers?: SrfHeaders; body?: string }, callback?: (error: unknown) => void): void;
}

type SendArguments = Parameters<SrfResponse['send']>;

/**
 * Told of everything that is sent as an answer, by us or by drachtio-srf itself.
 * @param onSend gets status and reason; what it returns gets the text once it was sent, `undefined` when it was not
 */
export function onSent(response: SrfResponse, onSend: (status: number, reason: string) => (text: string | undefined) => void): void {
  const send = response.send.bind(response) as (...parts: readonly unknown[]) => void;
  // The package leaves the reason out: `send(200, options, callback)`.
  response.send = (...given: readonly unknown[]) => {
    const [status, reason] = given as SendArguments;
    const last = given.at(-1);
    const callback = typeof last === 'function' ? (last as (...answer: readonly unknown[]) => void) : undefined;
    const tell = onSend(status, typeof reason === 'string' ? reason : '');
    send(...(callback === undefined ? given : given.slice(0, -1)), (error: unknown, sent?: { readonly raw?: string }) => {
      tell(sent?.raw);
      callback?.(error, sent);
    });
  };
}

/** Told of a BYE of the peer's before drachtio-srf answers it by itself: at `destroy` it is too late to be told of that 200. */
export function onBye(dialog: SrfDialog, listener: SrfHandler): void {
  const handle = dialog.handle.bind(dialog);
  dialog.handle = (request, response, ...rest) => {
    if (request.method === 'BYE' && request.source !== 'application') listener(request, response);
    handle(request, response, ...rest);
  };
}

export type SrfHeaders = Readonly<Record<string, string>>;

/** An answered call as drachtio-srf keeps it. */
export interface SrfDialog {
  /** The SIP server's id of the dialog. */
  readonly id: string;
  readonly sip: { readonly callId: string; readonly localTag: string; readonly remoteTag: string };
  /** `sdp`: what drachtio-srf would answer by itself. */
  readonly local: { sdp: string; readonly contact: string };
  /** Called by drachtio-srf with each request of the dialog; what it does not answer by itself it emits. */
  handle(request: SrfRequest, response: SrfResponse, ...rest: readonly unknown[]): void;
  on(event: 'ack', listener: (request: SrfRequest) => void): void;
  on(event: 'destroy', listener: (request: SrfRequest, reason: string) => void): void;
  on(event: 'modify' | 'info' | 'update' | 'refer' | 'message' | 'notify' | 'options' | 'publish', listener: SrfHandler): void;
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
}

export interface RequestInDialog {
  readonly method: 'BYE' | 'INVITE' | 'OPTIONS' | 'REFER';
  readonly headers?: SrfHeaders;
  readonly body?: string;
}

/** There is no connection to the SIP server, or it broke before the answer came: what became of the request is not known. */
export class ConnectionLostError extends Error {
  override readonly name = 'ConnectionLostError';
}

/** What of a dialog has to be kept to have it again in another process. */
export interface KeptDialog {
  readonly id: string;
  /** The INVITE as it came. */
  readonly invite: string;
  readonly localTag: string;
  readonly contact: string;
}

/** Told of each message of a request of ours: itself as it was sent, and its answers. */
export type OnMessage = (direction: 'in' | 'out', text: string | undefined, summary: string) => void;

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
  /** The dialog is over on our side: what comes for it is unknown from now on. */
  forget(dialog: SrfDialog): void;
  keep(dialog: SrfDialog, request: SrfRequest): KeptDialog;
  /** A dialog of an earlier process. Throws when the kept INVITE cannot be read. */
  restore(kept: KeptDialog, localSdp: string): SrfDialog;
  connect(options: SrfOptions): void;
  disconnect(): void;
  /** Withdraws methods, so that no new request comes here: the first step of a drain. */
  withdraw(methods: readonly string[]): void;
}

const MAX_RECONNECT_MS = 1_000;

type Listener = (...args: never[]) => void;
type OnAnswer = Parameters<SrfApp['request']>[2];

interface RawMessage extends SrfMessage {
  readonly status: number;
  readonly body?: string;
  readonly raw?: string;
}

interface RawRequest {
  readonly raw?: string;
  on(event: 'response', listener: (response: RawMessage, acknowledge: () => void) => void): void;
  on(event: 'update', listener: SrfHandler): void;
}

/** The parts of drachtio-srf's object that the facade calls. */
interface RawSrf {
  invite(handler: SrfHandler): void;
  use(handler: SrfHandler): void;
  createUAS(request: SrfRequest, response: SrfResponse, options: object, callback: (error: unknown, dialog?: SrfDialog) => void): void;
  on(event: string, listener: Listener): void;
  connect(options: object): void;
  disconnect(): void;
  unregisterForMessages(method: string): void;
  request(uri: string, options: object, callback: (error: unknown, request?: RawRequest) => void): void;
  addDialog(dialog: SrfDialog): void;
  removeDialog(dialog: SrfDialog): void;
}

interface RawStatics {
  readonly Dialog: new (srf: RawSrf, type: 'uas', parts: { req: object; res: object; sent: object }) => SrfDialog;
  readonly SipMessage: new (text: string) => object;
}

export function createSrfApp(): SrfApp {
  const srf = new Srf() as unknown as RawSrf & Record<string, ((handler: SrfHandler) => void) | undefined>;
  const requests = new DialogRequests(srf);
  const gathered = new WeakSet<CorkedStream>();
  // Each message of the package would be a system call of its own.
  const gather = (socket: CorkedStream): void => {
    if (gathered.has(socket)) return;
    gathered.add(socket);
    gatherWrites(socket);
  };
  return {
    invite: (handler) =>
      srf.invite((request, response) => {
        gather((request as SrfRequest & { readonly socket: CorkedStream }).socket);
        handler(request, response);
      }),
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
    request: (dialogId, request, onAnswer, onUpdate, onMessage) => requests.send(dialogId, request, onAnswer, onUpdate, onMessage),
    forget: (dialog) => srf.removeDialog(dialog),
    keep: (dialog, request) => ({
      id: dialog.id,
      invite: request.msg.raw ?? '',
      localTag: dialog.sip.localTag,
      contact: dialog.local.contact,
    }),
    restore: (kept, localSdp) => restoreDialog(srf, kept, localSdp),
    // The pauses between attempts would grow without end.
    connect: ({ host, port, secret, tags }) =>
      srf.connect({ host, port, secret, tags: [...tags], enablePing: true, reconnect: { retryMaxDelay: MAX_RECONNECT_MS } }),
    disconnect: () => srf.disconnect(),
    withdraw: (methods) => {
      for (const method of methods) srf.unregisterForMessages(method);
    },
  };
}

/** Requests of ours that wait for their answer. The package forgets them when the connection is lost. */
class DialogRequests {
  readonly #waiting = new Set<OnAnswer>();
  /** Without them a carrier would stay in a call that has ended: the SIP server hands it back to us with the connection. */
  readonly #unsaidByes = new Map<string, RequestInDialog>();

  constructor(private readonly srf: RawSrf) {
    srf.on('close', () => {
      for (const fail of [...this.#waiting]) fail(new ConnectionLostError('the connection to the SIP server was lost'));
    });
    srf.on('connect', (error: unknown) => {
      if (error === null || error === undefined) this.#sayByes();
    });
  }

  send(dialogId: string, request: RequestInDialog, onAnswer: OnAnswer, onUpdate?: SrfHandler, onMessage?: OnMessage): void {
    const settle: OnAnswer = (error, answer) => {
      if (!this.#waiting.delete(settle)) return;
      const isLost = error instanceof ConnectionLostError || (error as { code?: unknown } | null)?.code === 'ESOCKETDESTROYED';
      if (isLost && request.method === 'BYE') this.#unsaidByes.set(dialogId, request);
      onAnswer(isLost ? new ConnectionLostError(errorText(error)) : error, answer);
    };
    this.#waiting.add(settle);
    try {
      requestInDialog(this.srf, dialogId, request, settle, onUpdate, onMessage);
    } catch (error) {
      // Without a connection the package throws.
      settle(new ConnectionLostError(errorText(error)));
    }
  }

  #sayByes(): void {
    for (const [dialogId, bye] of [...this.#unsaidByes]) {
      this.#unsaidByes.delete(dialogId);
      this.send(dialogId, bye, () => undefined);
    }
  }
}

// `Dialog.request` and `destroy` use the connection that the call came by, which may be gone, and hide the request, on which an UPDATE
// that crosses it is told: it would be left without an answer.
function requestInDialog(
  srf: RawSrf,
  dialogId: string,
  { method, headers = {}, body }: RequestInDialog,
  onAnswer: OnAnswer,
  onUpdate: SrfHandler | undefined,
  onMessage: OnMessage | undefined,
): void {
  const options = { method, stackDialogId: dialogId, headers: { ...headers }, ...(body === undefined ? {} : { body }) };
  // The object-only form of `request` throws; the URI is replaced by the dialog's target.
  srf.request('sip:placeholder', options, (error, sent) => {
    if (error !== null && error !== undefined) return onAnswer(error);
    if (sent === undefined) return onAnswer(new Error('the SIP server did not say what it sent'));
    onMessage?.('out', sent.raw, method);
    if (onUpdate !== undefined) sent.on('update', onUpdate);
    sent.on('response', (response, acknowledge) => {
      onMessage?.('in', response.raw, `SIP/2.0 ${String(response.status)}`);
      if (response.status < 200) return;
      if (method === 'INVITE') {
        acknowledge();
        onMessage?.('out', undefined, 'ACK');
      }
      onAnswer(null, { status: response.status, body: response.body ?? '' });
    });
  });
}

/** The package makes dialogs of the messages that began them: the kept INVITE, and as much of the 200 as it reads. */
function restoreDialog(srf: RawSrf, kept: KeptDialog, localSdp: string): SrfDialog {
  const { Dialog, SipMessage } = Srf as unknown as RawStatics;
  const invite = new SipMessage(kept.invite) as SrfMessage & object;
  const to = (invite.get('to') ?? '').replace(/;\s*tag=[^;>]*$/i, '');
  const head = ['from', 'call-id', 'cseq'].map((name) => `${name}: ${invite.get(name) ?? ''}\r\n`).join('');
  const sent = new SipMessage(
    `SIP/2.0 200 OK\r\n${head}to: ${to};tag=${kept.localTag}\r\ncontact: ${kept.contact}\r\n` +
      `content-length: ${String(localSdp.length)}\r\n\r\n${localSdp}`,
  );
  const response = Object.assign(sent, { stackDialogId: kept.id });
  const dialog = new Dialog(srf, 'uas', { req: invite, res: response, sent });
  srf.addDialog(dialog);
  return dialog;
}

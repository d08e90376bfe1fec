import Srf from 'drachtio-srf';
import WireProtocol from 'drachtio-srf/lib/wire-protocol.js';
import { isOwnServer, PUBLIC_ONLY_HEADER, TRUNK_TLS_HEADER } from '../../lib/own-headers.js';
import { PassingMap } from '../../lib/passing-map.js';
import { errorText } from '../../lib/result.js';
import { gatherWrites, type CorkedStream } from '../../lib/turn-batch.js';
import {
  type SrfMessage,
  type SrfRequest,
  type SrfResponse,
  type SrfDialog,
  type SrfHandler,
  type RequestInDialog,
  ConnectionLostError,
  type DialogSnapshot,
  type InviteListener,
  type InviteResponse,
  type OnMessage,
  type SrfApp,
  type SrfHeaders,
  type SrfInvite,
} from '../ports/signalling.js';

// Some of the package's own types are wrong or missing: only this file uses the package, and types what the rest relies on
// (drachtio-srf 5.0.29).

const MAX_RECONNECT_MS = 1_000;
const NEEDS_OWN_SERVER = "ca, tls_names and client_certificate of a trunk need Trunkline's SIP server";
/** The SIP server sends nothing now, for another host may have taken the call. */
const MAY_BE_ELSEWHERE = /another cell may have the dialog/;
/** Errors of the package for a request that did not leave. */
const UNSENT = new Set<unknown>(['EINVALIDSOCKET', 'ESOCKETDESTROYED', 'EDRACHTIO', 'ENODIALOG']);

type Listener = (...args: never[]) => void;
type OnAnswer = Parameters<SrfApp['request']>[2];

interface RawMessage extends SrfMessage {
  readonly status: number;
  readonly body?: string;
  readonly raw?: string;
  readonly source_address?: string;
  readonly stackDialogId?: string;
}

/** The callback gets the ACK as the SIP server sent it. */
type Acknowledge = (options: object, callback: (error: unknown, sent?: { readonly raw?: string }) => void) => void;

interface RawRequest extends SrfMessage {
  readonly raw?: string;
  cancel(options: object, callback: (error: unknown) => void): void;
  on(event: 'response', listener: (response: RawMessage, acknowledge: Acknowledge) => void): void;
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
  _dialogs: object;
  /** What waits on each connection, in maps. */
  readonly _app: { readonly client: RawClient };
}

interface RawClient {
  /** By connection. */
  readonly mapServer: ReadonlyMap<ControlSocket, Record<string, unknown>>;
  readonly wp: RawWire;
  on(event: 'ping', sent: SentPing): void;
}

interface SentPing {
  readonly msgId: string;
  readonly socket: ControlSocket;
}

/** A connection to the control port. */
interface ControlSocket {
  destroy(error: Error): void;
}

/** The package's reader and writer of control connections. */
interface RawWire {
  on(event: 'ping', listener: (sent: SentPing) => void): void;
  _onData(socket: ControlSocket, bytes: Buffer): void;
  readonly mapIncomingMsg: Map<ControlSocket, { readonly incomingMsg: Buffer }>;
}

interface RawDialog extends SrfDialog {
  readonly type: 'uas' | 'uac';
  req: { readonly method: string; readonly socket: object };
  res: { readonly stackDialogId: string; readonly raw?: string };
}

interface RawStatics {
  readonly Dialog: new (srf: RawSrf, type: 'uas' | 'uac', parts: { req: object; res: object; sent?: object }) => RawDialog;
  readonly SipMessage: new (text: string) => object;
}

const { Dialog, SipMessage } = Srf as unknown as RawStatics;
// The package puts each message through JSON.stringify for a debug line that is off: a third of what an answer costs.
Object.defineProperty(SipMessage.prototype, 'toJSON', { value: () => '[SipMessage]' });

/** More than any frame: what waits for its end beyond this has lost its beginning. */
const MAX_UNREAD_BYTES = 1 << 20;

// The package throws at a frame that has no length, from the socket's event: nobody could catch it, and the process would end. drachtio-server
// interleaves frames when the gateway reads slowly. A new connection begins with a whole frame.
const { prototype: wire } = WireProtocol as { readonly prototype: RawWire };
// Called with the object that has it.
const readFrames: (this: RawWire, socket: ControlSocket, bytes: Buffer) => void = Reflect.get(wire, '_onData');
wire._onData = function (this: RawWire, socket, bytes) {
  try {
    readFrames.call(this, socket, bytes);
  } catch (error) {
    if (!errorText(error).startsWith('invalid message')) throw error;
    this.mapIncomingMsg.delete(socket);
    socket.destroy(unreadable(bytes));
    return;
  }
  const { length = 0 } = this.mapIncomingMsg.get(socket)?.incomingMsg ?? {};
  if (length > MAX_UNREAD_BYTES) socket.destroy(unreadable(bytes));
};

const SHOWN_BYTES = 80;

function unreadable(bytes: Buffer): Error {
  const shown = bytes.toString('latin1', 0, SHOWN_BYTES).replace(/[^\x20-\x7e]/g, '.');
  return new Error(`the control connection cannot be read any more; it went on with ${JSON.stringify(shown)}`);
}

const PING_INTERVAL_MS = 5_000;
/** Pings that may be unanswered: a server that does not read, or whose buffer for us is stuck, answers no later one either. */
const MAX_UNANSWERED = 2;

/** Rejects unless all servers of the URI are at public addresses. */
type AssertPublic = (uri: string) => Promise<void>;

const knowsNone: AssertPublic = () => Promise.reject(new Error('which trunks are at public addresses is not known'));

export function createSrfApp(assertPublic = knowsNone): SrfApp {
  // The package reads a variable for each header of each message, and Node.js asks the system each time: a copy is ten times as fast.
  process.env = { ...process.env };
  const srf = new Srf() as unknown as RawSrf & Record<string, ((handler: SrfHandler) => void) | undefined>;
  srf._dialogs = new PassingMap();
  srf.on('connect', () => {
    for (const connection of srf._app.client.mapServer.values())
      for (const [name, waiting] of Object.entries(connection)) if (waiting instanceof Map) connection[name] = new PassingMap(waiting);
  });
  const requests = new OwnRequests(srf, assertPublic);
  const gathered = new WeakSet<CorkedStream>();
  // The package would use one system call per message.
  const gather = (socket: CorkedStream): void => {
    if (gathered.has(socket)) return;
    gathered.add(socket);
    gatherWrites(socket);
  };
  return {
    invite: (handler) =>
      srf.invite((request, response) => {
        gather((request as SrfRequest & { readonly socket: CorkedStream }).socket);
        Object.assign(request, INDEXED);
        handler(request, response);
      }),
    handle: (method, handler) => srf[method]?.(handler),
    use: (handler) => srf.use(handler),
    createUAS: (request, response, options, callback) => {
      srf.createUAS(request, response, { localSdp: options.localSdp, headers: { ...options.headers } }, (error, dialog) => {
        if (dialog !== undefined) forgetInvite(dialog as RawDialog);
        callback(error, dialog);
      });
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
    place: (invite, listener) => requests.place(invite, listener),
    register: (request, onAnswer) => requests.ask('REGISTER', request, onAnswer),
    options: (request, onAnswer) => requests.ask('OPTIONS', request, onAnswer),
    snapshot: (dialog, invite) => {
      const { type, res } = dialog as RawDialog;
      const kept = { id: dialog.id, invite, localTag: dialog.sip.localTag, contact: dialog.local.contact };
      return type === 'uac' ? { ...kept, answer: res.raw ?? '' } : kept;
    },
    restore: (kept) => restoreDialog(srf, kept),
    // The pauses between attempts would grow without limit.
    connect: ({ host, port, secret, tags }) => {
      const ping = { enablePing: true, pingInterval: PING_INTERVAL_MS };
      srf.connect({ host, port, secret, tags: [...tags], ...ping, reconnect: { retryMaxDelay: MAX_RECONNECT_MS } });
      dropUnanswered(srf);
    },
    disconnect: () => srf.disconnect(),
    withdraw: (methods) => {
      for (const method of methods) srf.unregisterForMessages(method);
    },
  };
}

/** Ends a connection whose pings stay unanswered: the gateway takes no calls then, says so in /readyz, and connects again. */
function dropUnanswered({ _app: { client } }: RawSrf): void {
  client.wp.on('ping', (ping) => {
    const { socket } = ping;
    const { pendingPingRequests: waiting } = client.mapServer.get(socket) ?? {};
    // The package takes an answered ping off this set, and leaves it to others to put a ping into it.
    client.on('ping', ping);
    if (waiting instanceof Set && waiting.size >= MAX_UNANSWERED)
      socket.destroy(new Error(`the SIP server has answered no ping for ${String((waiting.size * PING_INTERVAL_MS) / 1_000)} s`));
  });
}

/** The package would keep INVITE and 200 as long as the call: its dialog needs no more of them than this. */
function forgetInvite(dialog: RawDialog): void {
  const { method, socket } = dialog.req;
  dialog.req = { method, socket };
  dialog.res = { stackDialogId: dialog.id };
}

/** The INVITE that was asked last. */
let indexed: { readonly request: SrfRequest; readonly headers: ReadonlyMap<string, string> } | null = null;

/** The package goes through all names for each header that is asked for, thirty of an INVITE in one turn. */
function headersOf(request: SrfRequest): ReadonlyMap<string, string> {
  if (indexed?.request !== request)
    indexed = { request, headers: new Map(Object.entries(request.msg.headers).map(([name, value]) => [name.toLowerCase(), value])) };
  return indexed.headers;
}

const INDEXED = {
  get(this: SrfRequest, name: string) {
    return headersOf(this).get(name.toLowerCase());
  },
  has(this: SrfRequest, name: string) {
    return headersOf(this).has(name.toLowerCase());
  },
};

/** Our requests without a final response. The package forgets them when the connection breaks. */
class OwnRequests {
  /** Connected to Trunkline's SIP server, which takes the settings of a trunk's connection off. */
  #isOwnServer = false;
  /** Each ends with an error what waits. */
  readonly #waiting = new PassingMap<number, (error: unknown) => void>();
  #count = 0;
  /** BYEs to send again. Otherwise a carrier would stay in an ended call, which the SIP server returns with the connection. */
  readonly #unsaidByes = new Map<string, RequestInDialog>();

  constructor(
    private readonly srf: RawSrf,
    private readonly assertPublic: AssertPublic,
  ) {
    srf.on('close', () => {
      const lost = new ConnectionLostError('the connection to the SIP server was lost');
      for (const fail of [...this.#waiting.values()]) fail(lost);
    });
    srf.on('connect', (error: unknown, _hostPorts: string | undefined, version: string | undefined) => {
      this.#isOwnServer = isOwnServer(version ?? '');
      if (error === null || error === undefined) this.#sendByes();
    });
  }

  send(dialogId: string, given: RequestInDialog, onAnswer: OnAnswer, onUpdate?: SrfHandler, onMessage?: OnMessage): void {
    const request = this.#isOwnServer ? given : { ...given, headers: withoutOwn(given.headers ?? {}) };
    const settle: OnAnswer = (error, answer) => {
      if (!this.#waiting.delete(id)) return;
      const isLost =
        error instanceof ConnectionLostError || MAY_BE_ELSEWHERE.test(errorText(error)) || codeOf(error) === 'ESOCKETDESTROYED';
      if (isLost && request.method === 'BYE') this.#unsaidByes.set(dialogId, request);
      onAnswer(isLost ? new ConnectionLostError(errorText(error)) : error, answer);
    };
    const id = this.#wait(settle);
    try {
      requestInDialog(this.srf, dialogId, request, settle, onUpdate, onMessage);
    } catch (error) {
      // Without a connection the package throws.
      settle(new ConnectionLostError(errorText(error)));
    }
  }

  place({ uri, headers, body }: SrfInvite, listener: InviteListener): void {
    const fail = (error: unknown): void => {
      if (this.#waiting.delete(id)) listener.onFailed(error);
    };
    const id = this.#wait(fail);
    this.#admit(id, { uri, headers }, fail, (admitted) => {
      this.srf.request(uri, { method: 'INVITE', headers: admitted, body }, (error, sent) => {
        if (sent === undefined) return fail(UNSENT.has(codeOf(error)) ? error : new ConnectionLostError(errorText(error)));
        listener.onSent({
          raw: sent.raw,
          get: (name) => sent.get(name),
          cancel: (given) => cancelInvite(sent, given),
        });
        sent.on('update', listener.onUpdate);
        sent.on('response', (response, acknowledge) => {
          if (response.status >= 200) this.#waiting.delete(id);
          listener.onResponse(inviteResponse(this.srf, sent, this.#isOwnServer ? response : inDoubt(response), acknowledge));
        });
      });
    });
  }

  ask(method: 'REGISTER' | 'OPTIONS', { uri, headers }: Omit<SrfInvite, 'body'>, onAnswer: Parameters<SrfApp['register']>[1]): void {
    let isAnswered = false;
    const settle: typeof onAnswer = (error, answer) => {
      this.#waiting.delete(id);
      if (!isAnswered) onAnswer(error, answer);
      isAnswered = true;
    };
    const fail = (error: unknown): void => settle(error);
    const id = this.#wait(fail);
    this.#admit(id, { uri, headers }, fail, (admitted) => {
      this.srf.request(uri, { method, headers: admitted }, (error, sent) => {
        if (sent === undefined) return fail(error ?? new Error('the SIP server did not return the request that it sent'));
        sent.on('response', (response) => {
          const { status, raw = '' } = response;
          if (status >= 200) settle(null, { status, body: '', raw, unanswered: unansweredBy(response) });
        });
      });
    });
  }

  #wait(fail: (error: unknown) => void): number {
    this.#count += 1;
    this.#waiting.set(this.#count, fail);
    return this.#count;
  }

  /** Sends a request outside dialogs as the SIP server may have it, while it waits. */
  #admit(
    id: number,
    { uri, headers }: Omit<SrfInvite, 'body'>,
    fail: (error: unknown) => void,
    send: (headers: Record<string, string>) => void,
  ): void {
    const attempt = (admitted: SrfHeaders): void => {
      if (!this.#waiting.has(id)) return;
      try {
        send({ ...admitted });
      } catch (error) {
        // Without a connection the package throws: the request did not leave.
        fail(error);
      }
    };
    if (this.#isOwnServer) return attempt(headers);
    if (headers[TRUNK_TLS_HEADER] !== undefined) return fail(new Error(NEEDS_OWN_SERVER));
    if (headers[PUBLIC_ONLY_HEADER] === undefined) return attempt(headers);
    this.assertPublic(uri).then(() => attempt(withoutOwn(headers)), fail);
  }

  #sendByes(): void {
    for (const [dialogId, bye] of [...this.#unsaidByes]) {
      this.#unsaidByes.delete(dialogId);
      this.send(dialogId, bye, () => undefined);
    }
  }
}

/** Any other server would send them to the carrier, the key of the trunk among them. */
function withoutOwn(headers: SrfHeaders): SrfHeaders {
  return Object.fromEntries(Object.entries(headers).filter(([name]) => name !== TRUNK_TLS_HEADER && name !== PUBLIC_ONLY_HEADER));
}

// `Dialog.request` and `destroy` use the call's original connection, which may be closed, and hide the request, which we need to answer
// an UPDATE that crosses it.
function requestInDialog(
  srf: RawSrf,
  dialogId: string,
  { method, headers = {}, body }: RequestInDialog,
  onAnswer: OnAnswer,
  onUpdate: SrfHandler | undefined,
  onMessage: OnMessage | undefined,
): void {
  const options = { method, stackDialogId: dialogId, headers: { ...headers }, ...(body === undefined ? {} : { body }) };
  // The object-only form of `request` throws. The dialog's target replaces the URI.
  srf.request('sip:placeholder', options, (error, sent) => {
    if (error !== null && error !== undefined) return onAnswer(error);
    if (sent === undefined) return onAnswer(new Error('the SIP server did not return the request that it sent'));
    onMessage?.('out', sent.raw, method);
    if (onUpdate !== undefined) sent.on('update', onUpdate);
    sent.on('response', (response, acknowledge) => {
      const unanswered = unansweredBy(response);
      if (unanswered === null) onMessage?.('in', response.raw, `SIP/2.0 ${String(response.status)}`);
      else onMessage?.(null, response.raw, `no response to ${method}: ${unanswered}`);
      if (response.status < 200) return;
      if (method === 'INVITE') {
        const onAck = (ack?: { readonly raw?: string }): void => onMessage?.('out', ack?.raw, 'ACK');
        // RFC 3261 §17.1.1.3: the SIP server acknowledges a refusal by itself, without notifying us.
        if (response.status < 300) acknowledge({ headers: credentialsOf(headers) }, (_error, ack) => onAck(ack));
        else onAck();
      }
      onAnswer(null, { status: response.status, body: response.body ?? '', raw: response.raw ?? '', unanswered });
    });
  });
}

function codeOf(error: unknown): unknown {
  return (error as { code?: unknown } | null | undefined)?.code;
}

/** RFC 3261 §13.2.2.4: the ACK to a 2xx has the credentials of its INVITE. */
function credentialsOf(headers: SrfHeaders): SrfHeaders {
  return Object.fromEntries(Object.entries(headers).filter(([name]) => /^(?:proxy-)?authorization$/i.test(name)));
}

function cancelInvite(sent: RawRequest, headers: SrfHeaders): void {
  try {
    // A final response that crossed it: the SIP server knows the transaction no more.
    sent.cancel({ headers: { ...headers } }, () => undefined);
  } catch {
    // Without a connection the SIP server has cancelled it by itself.
  }
}

/**
 * drachtio-server answers 503 itself where it had no connection, and where one broke under the INVITE, which the trunk may have taken: as
 * Trunkline's SIP server says of the latter alone, nobody answered.
 */
function inDoubt(response: RawMessage): RawMessage {
  return unansweredBy(response) !== null && response.status === 503
    ? (Object.create(response, { status: { value: 408 } }) as RawMessage)
    : response;
}

/** Trunkline's SIP server says why in the Warning of its own response; drachtio-server does not. */
function unansweredBy(response: RawMessage): string | null {
  if ((response.source_address ?? '') !== '') return null;
  return /^399 \S+ "(.*)"$/.exec(response.get('Warning') ?? '')?.[1] ?? `the SIP server answered ${String(response.status)} itself`;
}

function inviteResponse(srf: RawSrf, sent: RawRequest, response: RawMessage, acknowledge: Acknowledge): InviteResponse {
  return {
    status: response.status,
    body: response.body ?? '',
    raw: response.raw,
    get: (name) => response.get(name),
    unanswered: unansweredBy(response),
    dialogId: response.stackDialogId ?? '',
    dialog: () => {
      const dialog = new Dialog(srf, 'uac', { req: sent, res: response });
      srf.addDialog(dialog);
      return dialog;
    },
    acknowledge: (headers, onSent) => {
      try {
        acknowledge({ headers: { ...headers } }, (_error, ack) => onSent(ack?.raw));
      } catch {
        // Without a connection the package throws; the SIP server ends what nobody acknowledges.
        onSent(undefined);
      }
    },
  };
}

/** The package builds dialogs from their first messages: the stored INVITE, and the 200 or the fields of it that it reads. */
function restoreDialog(srf: RawSrf, kept: DialogSnapshot): SrfDialog {
  const invite = new SipMessage(kept.invite) as SrfMessage & object;
  if (kept.answer !== undefined) {
    const answer = Object.assign(new SipMessage(kept.answer), { stackDialogId: kept.id });
    const own = new Dialog(srf, 'uac', { req: invite, res: answer });
    srf.addDialog(own);
    return own;
  }
  const to = (invite.get('to') ?? '').replace(/;\s*tag=[^;>]*$/i, '');
  const head = ['from', 'call-id', 'cseq'].map((name) => `${name}: ${invite.get(name) ?? ''}\r\n`).join('');
  const sent = new SipMessage(
    `SIP/2.0 200 OK\r\n${head}to: ${to};tag=${kept.localTag}\r\ncontact: ${kept.contact}\r\ncontent-length: 0\r\n\r\n`,
  );
  const response = Object.assign(sent, { stackDialogId: kept.id });
  const dialog = new Dialog(srf, 'uas', { req: invite, res: response, sent });
  srf.addDialog(dialog);
  return dialog;
}

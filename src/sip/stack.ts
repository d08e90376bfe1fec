import type { Clock } from '../lib/clock.js';
import type { Log } from '../lib/log.js';
import { PassingMap } from '../lib/passing-map.js';
import { err, ok, type Result } from '../lib/result.js';
import { TimerQueue } from '../lib/timers.js';
import type { Admission } from './admission.js';
import { branchOf } from './user-agent/compose.js';
import { newTag } from '../lib/ids.js';
import { readCoreHeaders, type CoreHeaders, clientTransactionKey, serverTransactionKey } from './message/core-headers.js';
import {
  changed,
  getHeader,
  getHeaders,
  header,
  type Header,
  type SipMessage,
  type SipRequest,
  type SipResponse,
  serialize,
} from './message/message.js';
import { hasTag } from './message/uri.js';
import { parseFast } from './message/fast-path-parser.js';
import { parseMessage, type MessageLimits, type ParseError } from './message/parse.js';
import { received, stampTopVia, type OwnHeaders, type Reception } from './message/reception.js';
import {
  ClientTransaction,
  ServerTransaction,
  type ClientTransactionOwner,
  type TransactionHost,
} from './transaction/transaction-runner.js';
import { defaultPort } from './transport/service-location.js';
import { FlowTransactions } from './transaction/flow-transactions.js';
import type { TimerSettings, TransactionContext } from './transaction/timers.js';
import type { Flow, FlowListener, Target } from './transport/flow.js';
import type { OpenTransactions } from './transport/retirement.js';

export interface StackLimits extends MessageLimits {
  /** Server and client transactions together; above it new requests get 503. */
  readonly maxTransactions: number;
}

/** The transaction user (RFC 3261 §5). */
export interface TransactionUser {
  /** A new request, except CANCEL and ACK. The one who takes it becomes the transaction's owner. */
  onRequest(transaction: ServerTransaction): void;
  /** The ACK to a 2xx. */
  onAck(ack: SipRequest, core: CoreHeaders, flow: Flow): void;
  /** A 2xx to an INVITE without a transaction: the ACK was lost, or nobody waits for it (RFC 3261 §13.2.2.4). */
  onStrayResponse(response: SipResponse, core: CoreHeaders, flow: Flow): void;
}

export interface StackOptions {
  readonly clock: Clock;
  readonly timers: TimerSettings;
  readonly limits: StackLimits;
  readonly log: Log;
  readonly ownHeaders?: OwnHeaders;
  /** Opens a connection for responses whose own closed; unset: the transaction fails. */
  readonly reopen?: (target: Target) => Flow | undefined;
  /** A peer with a verified certificate lets us use its connection (RFC 5923); unset: it is not used. */
  readonly alias?: (flow: Flow, sentBy: { readonly host: string; readonly port: number | null }) => void;
  /** Unset: no limits. */
  readonly admission?: Admission;
}

const NO_OWN_HEADERS: OwnHeaders = { ids: new Set(), of: () => [] };
/** Requests in dialogs, and CANCEL, may exceed the limit of transactions by this factor. */
const ROOM_IN_DIALOGS = 1.1;

/** A Call-ID of any length may come. */
const MAX_CALL_ID_LOGGED = 128;

/** Sockets → messages → transactions → the user, and back. */
export class SipStack implements FlowListener, TransactionHost {
  readonly timerSettings: TimerSettings;
  readonly timers: TimerQueue;
  readonly clock: Clock;
  readonly reliableContext: TransactionContext;
  readonly unreliableContext: TransactionContext;
  readonly #limits: StackLimits;
  readonly #log: Log;
  readonly #reception: Reception;
  readonly #admission: Admission | undefined;
  readonly #reopen: StackOptions['reopen'];
  readonly #alias: StackOptions['alias'];
  readonly #server = new PassingMap<string, ServerTransaction>();
  readonly #client = new PassingMap<string, ClientTransaction>();
  readonly #byFlow = new Map<Flow, FlowTransactions<ClientTransaction | ServerTransaction>>();
  #user: TransactionUser | undefined;
  #taken = 0;
  #malformed = 0;

  constructor(options: StackOptions) {
    this.timerSettings = options.timers;
    this.reliableContext = { ...options.timers, reliable: true };
    this.unreliableContext = { ...options.timers, reliable: false };
    this.clock = options.clock;
    this.timers = new TimerQueue(options.clock);
    this.#limits = options.limits;
    this.#log = options.log;
    this.#reception = { limits: options.limits, own: options.ownHeaders ?? NO_OWN_HEADERS };
    this.#admission = options.admission;
    this.#reopen = options.reopen;
    this.#alias = options.alias;
  }

  /** Call it once, before the first message. */
  attach(user: TransactionUser): void {
    this.#user = user;
  }

  /** Messages received since the start, valid and malformed. */
  get messageTotals(): { readonly taken: number; readonly malformed: number } {
    return { taken: this.#taken - this.#malformed, malformed: this.#malformed };
  }

  get transactionCount(): number {
    return this.#server.size + this.#client.size;
  }

  /** Transactions without a final response: on this connection, or all. */
  open(flow?: Flow): OpenTransactions {
    const all = flow === undefined ? [...this.#server.values(), ...this.#client.values()] : (this.#byFlow.get(flow)?.all() ?? []);
    const unanswered = all.filter(({ isUnanswered }) => isUnanswered);
    const client = unanswered.filter((transaction) => transaction instanceof ClientTransaction).length;
    return { client, server: unanswered.length - client };
  }

  /** Drops every transaction and timer; sends nothing. */
  close(): void {
    this.timers.clear();
    this.#server.clear();
    this.#client.clear();
    this.#byFlow.clear();
  }

  onMessage(flow: Flow, text: string): void {
    if (flow.isAdmitted !== true && this.#admission?.isFlood(flow.remote.address) === true) return;
    this.#taken += 1;
    const parsed = parseFast(text, flow, this.#reception);
    if (parsed === undefined) return this.#onSlowPath(flow, text);
    const { message, core } = parsed;
    if (this.#admission?.isScanner(message) === true) return this.#turnAway(flow, message);
    if (message.kind === 'response') this.#onResponse(flow, message, core);
    else this.#onRequest(flow, message, core);
  }

  /** A message in unusual spelling, or a malformed one. */
  #onSlowPath(flow: Flow, text: string): void {
    const parsed = parseMessage(text, this.#limits);
    const read = parsed.ok ? parsed.value : parsed.error.partial;
    if (read !== null && this.#admission?.isScanner(read) === true) return this.#turnAway(flow, read);
    if (!parsed.ok) return this.#refuseMalformed(flow, parsed.error);
    const sized = flow.reliable ? parsed : cutDatagram(parsed.value);
    if (!sized.ok) return this.#refuseMalformed(flow, sized.error);
    const message = sized.value;
    const core = readCoreHeaders(message);
    if (message.kind === 'response') {
      if (core.ok) this.#onResponse(flow, message, core.value);
      else this.#log.debug({ peer: flow.remote.address, error: core.error }, 'sip.response.malformed');
      return;
    }
    if (!core.ok) return this.#refuseMalformed(flow, { status: 400, reason: core.error, partial: message });
    this.#onRequest(flow, received(message, flow, core.value, this.#reception.own), core.value);
  }

  onSpoiled(flow: Flow, problem: { readonly status: number; readonly reason: string; readonly head: string | null }): void {
    this.#taken += 1;
    this.#malformed += 1;
    this.#log.info({ peer: flow.remote.address, error: problem.reason }, 'sip.stream.spoiled');
    if (problem.head === null) return;
    const parsed = parseMessage(problem.head, this.#limits);
    this.#answerMalformed(flow, { ...problem, partial: parsed.ok ? parsed.value : parsed.error.partial });
  }

  /** Whether a request outside dialogs repeats one that has a transaction here. */
  isKnown(text: string): boolean {
    const parsed = parseMessage(text, this.#limits);
    if (!parsed.ok || parsed.value.kind !== 'request') return false;
    const core = readCoreHeaders(parsed.value);
    return core.ok && this.#server.has(serverTransactionKey(core.value, parsed.value.method, parsed.value.uri));
  }

  /** Answers a request that nobody takes, by its text. */
  turnDown(flow: Flow, text: string, status: number, reason: string, extra: readonly Header[]): void {
    const parsed = parseMessage(text, this.#limits);
    if (parsed.ok && parsed.value.kind === 'request') this.#answerStateless(flow, stampTopVia(parsed.value, flow), status, reason, extra);
  }

  onClose(flow: Flow): void {
    const transactions = this.#byFlow.get(flow);
    this.#byFlow.delete(flow);
    if (transactions === undefined) return;
    for (const transaction of transactions.all()) if (!this.#reroute(transaction)) transaction.onFlowClosed();
  }

  /**
   * RFC 3261 §18.2.2: if the connection of a request closes, the response needs a new one, to the source address and the port of sent-by.
   * It opens immediately, so that the stack detects a lost caller early.
   */
  #reroute(transaction: ClientTransaction | ServerTransaction): boolean {
    if (!(transaction instanceof ServerTransaction) || transaction.isRerouted || !transaction.isUnanswered) return false;
    const { flow, core } = transaction;
    if (!flow.reliable) return false;
    const { host, port } = core.topVia;
    const address = flow.remote.address;
    const next = this.#reopen?.({ transport: flow.transport, host, port: port ?? defaultPort(flow.transport), address });
    if (next?.isOpen !== true) return false;
    transaction.reroute(next);
    this.#track(next, transaction);
    return true;
  }

  /** Creates a client transaction for a request and its wire text. Call `start` to send it. */
  sendRequest(request: SipRequest, text: string, flow: Flow, owner: ClientTransactionOwner): ClientTransaction {
    const key = `${branchOf(request)}|${request.method}`;
    const transaction = new ClientTransaction(this, key, request, text, flow, owner);
    this.#client.add(key, transaction);
    this.#track(flow, transaction);
    return transaction;
  }

  /** Passes a response to the request's transaction. */
  respond(transaction: ServerTransaction, response: SipResponse): void {
    transaction.respond(response.status, serialize(response));
  }

  /** The user sent the 2xx of an INVITE: shrinks what the transaction keeps for 64·T1 (RFC 6026). */
  accepted(transaction: ServerTransaction): void {
    transaction.release();
    // Its connection no longer matters (RFC 6026 §8.7).
    this.#untrack(transaction.flow, transaction);
  }

  ended(transaction: ServerTransaction | ClientTransaction): void {
    if (transaction instanceof ServerTransaction) this.#server.delete(transaction.key);
    else this.#client.delete(transaction.key);
    this.#untrack(transaction.flow, transaction);
  }

  #onRequest(flow: Flow, request: SipRequest, core: CoreHeaders): void {
    if (request.method === 'ACK') return this.#onAck(flow, request, core);
    const key = serverTransactionKey(core, request.method, request.uri);
    const known = this.#server.get(key);
    if (known !== undefined) return known.retransmitted();
    const overload = this.#overload(flow, request, core);
    if (overload !== null) {
      const { retryAfter, why } = overload;
      const headers = [header('Retry-After', String(retryAfter)), header('Warning', `399 sip-server "OVERLOADED: ${why}"`)];
      return this.#answerStateless(flow, request, 503, 'Service Unavailable', headers);
    }
    const transaction = new ServerTransaction(this, key, request, core, flow, newTag());
    this.#server.add(key, transaction);
    this.#track(flow, transaction);
    if ((flow.tlsIdentity ?? '') !== '' && core.topVia.params.has('alias')) this.#alias?.(flow, core.topVia);
    if (request.method === 'CANCEL') return this.#onCancel(transaction);
    this.#user?.onRequest(transaction);
  }

  /** Why a request cannot be served, and for how many seconds; `null`: serve it. Existing calls go first. */
  #overload(flow: Flow, request: SipRequest, core: CoreHeaders): { readonly retryAfter: number; readonly why: string } | null {
    const isNew = core.toTag === undefined && request.method !== 'CANCEL';
    const limit = this.#limits.maxTransactions * (isNew ? 1 : ROOM_IN_DIALOGS);
    if (this.transactionCount >= limit)
      return { retryAfter: 5, why: `transactions in progress: ${String(this.transactionCount)}, limit ${String(limit)}` };
    if (!isNew || this.#admission === undefined) return null;
    if (this.#admission.isOverRate(flow.remote.address, flow.isAdmitted === true))
      return { retryAfter: 1, why: `more than ${String(this.#admission.requestsPerSecond)} new requests a second of this source` };
    const why = request.method === 'INVITE' ? this.#admission.lackOf(flow.remote.address, request.uri) : null;
    return why === null ? null : { retryAfter: 5, why };
  }

  #onAck(flow: Flow, request: SipRequest, core: CoreHeaders): void {
    const invite = this.#server.get(serverTransactionKey(core, 'INVITE', request.uri));
    // The ACK to a final error has the INVITE's branch and goes to the transaction; that to a 2xx goes to the dialog.
    if (invite?.isErrorAwaitingAck === true) return invite.acknowledged();
    this.#user?.onAck(request, core, flow);
  }

  #onCancel(cancel: ServerTransaction): void {
    const invite = this.#server.get(serverTransactionKey(cancel.core, 'INVITE', cancel.request.uri));
    // RFC 3261 §9.2: same To-tag as the INVITE's response.
    const tag = invite?.localTag ?? cancel.localTag;
    this.respond(
      cancel,
      invite === undefined
        ? makeResponse(cancel.request, 481, 'Call/Transaction Does Not Exist', tag)
        : makeResponse(cancel.request, 200, 'OK', tag),
    );
    if (invite?.isUnanswered === true) invite.owner?.onCancel(cancel.request);
  }

  #onResponse(flow: Flow, response: SipResponse, core: CoreHeaders): void {
    const transaction = this.#client.get(clientTransactionKey(core));
    if (transaction !== undefined) return transaction.received(response);
    if (core.cseq.method === 'INVITE' && response.status >= 200 && response.status < 300) this.#user?.onStrayResponse(response, core, flow);
  }

  #refuseMalformed(flow: Flow, error: ParseError): void {
    this.#malformed += 1;
    const callId = error.partial === null ? undefined : getHeader(error.partial, 'call-id')?.slice(0, MAX_CALL_ID_LOGGED);
    this.#log.info({ peer: flow.remote.address, error: error.reason, sip_call_id: callId ?? null }, 'sip.message.malformed');
    this.#answerMalformed(flow, error);
  }

  #answerMalformed(flow: Flow, { status, reason, partial }: Pick<ParseError, 'partial'> & { status: number; reason: string }): void {
    if (partial?.kind !== 'request') return;
    const warning = header('Warning', `399 sip-server "MALFORMED_REQUEST: ${reason}"`);
    this.#answerStateless(flow, stampTopVia(partial, flow), status, reason, [warning]);
  }

  /** Answers statelessly (RFC 3261 §8.2.7) with the headers that the request has. */
  #answerStateless(flow: Flow, request: SipRequest, status: number, reason: string, extra: readonly Header[] = []): void {
    if (request.method === 'ACK' || getHeader(request, 'via') === undefined) return;
    flow.send(serialize(makeResponse(request, status, reason, newTag(), extra)));
  }

  /** A scanner gets 603, or nothing; then a stream is closed too. */
  #turnAway(flow: Flow, message: SipMessage): void {
    if (this.#admission?.declinesScanners !== true) {
      if (flow.reliable) flow.close();
    } else if (message.kind === 'request') this.#answerStateless(flow, stampTopVia(message, flow), 603, 'Decline');
  }

  #track(flow: Flow, transaction: ClientTransaction | ServerTransaction): void {
    const known = this.#byFlow.get(flow);
    const here = known ?? new FlowTransactions<ClientTransaction | ServerTransaction>();
    if (known === undefined) this.#byFlow.set(flow, here);
    here.add(transaction);
  }

  #untrack(flow: Flow, transaction: ClientTransaction | ServerTransaction): void {
    const here = this.#byFlow.get(flow);
    here?.delete(transaction);
    if (here?.size === 0) this.#byFlow.delete(flow);
  }
}

/** A datagram's message ends at its Content-Length: drops the excess; 400 if bytes are missing (RFC 3261 §18.3). */
function cutDatagram(message: SipMessage): Result<SipMessage, ParseError> {
  const stated = getHeader(message, 'content-length');
  if (stated === undefined) return ok(message);
  const length = Number(stated);
  if (!/^\d{1,9}$/.test(stated) || length > message.body.length)
    return err({ status: 400, reason: 'Bad Content-Length', partial: message });
  return ok(length === message.body.length ? message : changed(message, { body: message.body.slice(0, length) }));
}

/** A response with the headers of RFC 3261 §8.2.6.2, a To-tag if missing (except in a 100), then `extra`. */
export function makeResponse(
  request: SipRequest,
  status: number,
  reason: string,
  localTag: string,
  extra: readonly Header[] = [],
  body = '',
): SipResponse {
  const headers: Header[] = getHeaders(request, 'via').map((value) => header('Via', value));
  for (const id of ['from', 'to', 'call-id', 'cseq']) {
    const value = getHeader(request, id);
    if (value === undefined) continue;
    const tagged = id === 'to' && status > 100 && !hasTag(value) ? `${value};tag=${localTag}` : value;
    headers.push(header(id, tagged));
  }
  // RFC 3261 §8.2.6.1: a 100 copies Timestamp, for the sender's round-trip measurement.
  const timestamp = status === 100 ? getHeader(request, 'timestamp') : undefined;
  if (timestamp !== undefined) headers.push(header('Timestamp', timestamp));
  return { kind: 'response', status, reason, headers: [...headers, ...extra], body };
}

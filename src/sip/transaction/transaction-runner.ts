import { NamedTimers, type TimerQueue } from '../../lib/timers.js';
import { cseqNumber, type CoreHeaders, mergeKey } from '../message/core-headers.js';
import { flatten } from '../message/fast-path-parser.js';
import { getHeader, getHeaders, header, type SipRequest, type SipResponse, serialize } from '../message/message.js';
import { inviteClientStart, stepInviteClient, type InviteClientEvent, type InviteClientState } from './invite-client.js';
import { INVITE_SERVER_START, stepInviteServer, type InviteServerEvent, type InviteServerState } from './invite-server.js';
import { nonInviteClientStart, stepNonInviteClient, type NonInviteClientEvent, type NonInviteClientState } from './non-invite-client.js';
import { NON_INVITE_SERVER_START, stepNonInviteServer, type NonInviteServerEvent, type NonInviteServerState } from './non-invite-server.js';
import type { Step, TimerSettings, TransactionContext } from './timers.js';
import type { Flow } from '../transport/flow.js';

/** Owns the transactions: provides timers, receives their outcomes. */
export interface TransactionHost {
  readonly timers: TimerQueue;
  readonly timerSettings: TimerSettings;
  /** Contexts for TCP and TLS, and for UDP. */
  readonly reliableContext: TransactionContext;
  readonly unreliableContext: TransactionContext;
  ended(transaction: ServerTransaction | ClientTransaction): void;
}

/** Answers a request: a user agent or a proxy. */
export interface ServerTransactionOwner {
  /** A CANCEL for the unanswered INVITE; the stack has answered the CANCEL. */
  onCancel(cancel: SipRequest): void;
  /** No ACK to a final error, or the response could not be sent. */
  onFailure(why: 'ack-timeout' | 'transport-error'): void;
}

export interface ClientTransactionOwner {
  onResponse(response: SipResponse): void;
  onFailure(why: 'timeout' | 'transport-error'): void;
  /** The transaction ended; no further callbacks. */
  onEnded(): void;
}

type AnyTimer = string;

/** Runs one state machine: sends, manages timers, notifies the user. Each event's effects finish before the next event. */
abstract class Runner<State extends { readonly name: string }, Event, User> {
  /** Among the transactions of its connection. */
  place = -1;
  protected state: State;
  readonly #timers: NamedTimers<AnyTimer>;

  protected constructor(
    protected readonly host: TransactionHost,
    readonly key: string,
    protected currentFlow: Flow,
    start: State,
  ) {
    this.state = start;
    this.#timers = new NamedTimers(host.timers, (timer) => this.dispatch(this.timerEvent(timer)));
  }

  get flow(): Flow {
    return this.currentFlow;
  }

  protected abstract step(state: State, event: Event, context: TransactionContext): Step<State, AnyTimer, User>;
  protected abstract timerEvent(timer: AnyTimer): Event;
  protected abstract notify(user: User, event: Event): void;
  protected abstract onTerminated(): void;

  protected dispatch(event: Event): void {
    const { reliableContext, unreliableContext } = this.host;
    const { state, effects } = this.step(this.state, event, this.flow.reliable ? reliableContext : unreliableContext);
    this.state = state;
    for (const effect of effects) {
      switch (effect.do) {
        case 'send':
          this.flow.send(effect.text);
          break;
        case 'start':
          this.#timers.start(effect.timer, effect.delayMs);
          break;
        case 'stop':
          this.#timers.stop(effect.timer);
          break;
        case 'notify':
          this.notify(effect.user, event);
          break;
        case 'terminate':
          this.#timers.close();
          this.onTerminated();
          break;
      }
    }
  }
}

type ServerState = InviteServerState | NonInviteServerState;
type ServerEvent = InviteServerEvent | NonInviteServerEvent;
type ServerUser = 'ack' | 'ack-timeout' | 'transport-error';

interface Taken {
  readonly request: SipRequest;
  readonly core: CoreHeaders;
  mergeKey: string;
}

/** A peer's request, and its state machine. */
export class ServerTransaction extends Runner<ServerState, ServerEvent, ServerUser> {
  /** The To-tag of our responses. The user may set its own before the first response with a tag. */
  localTag: string;
  readonly isInvite: boolean;
  /** `null`: the stack answers. */
  owner: ServerTransactionOwner | null = null;
  /** Its connection closed, and the stack opened another for the response. */
  isRerouted = false;
  #taken: Taken | undefined;

  constructor(host: TransactionHost, key: string, request: SipRequest, core: CoreHeaders, flow: Flow, localTag: string) {
    const isInvite = request.method === 'INVITE';
    super(host, key, flow, isInvite ? INVITE_SERVER_START : NON_INVITE_SERVER_START);
    this.#taken = { request, core, mergeKey: '' };
    this.isInvite = isInvite;
    this.localTag = core.toTag ?? localTag;
  }

  get request(): SipRequest {
    return this.#whole.request;
  }

  get core(): CoreHeaders {
    return this.#whole.core;
  }

  /** Equal for copies of one request (RFC 3261 §8.2.2.2). */
  get mergeKey(): string {
    const whole = this.#whole;
    if (whole.mergeKey === '') whole.mergeKey = mergeKey(whole.core);
    return whole.mergeKey;
  }

  /** After the 2xx, only a retransmitted INVITE or a CANCEL can arrive. Neither needs the request's content. */
  release(): void {
    if (this.#taken?.core.toTag !== undefined) this.localTag = flatten(this.localTag);
    this.#taken = undefined;
    this.owner = null;
  }

  get #whole(): Taken {
    if (this.#taken === undefined) throw new Error('the transaction was released');
    return this.#taken;
  }

  /** No final response sent yet. */
  get isUnanswered(): boolean {
    return this.state.name === 'Proceeding' || this.state.name === 'Trying';
  }

  /** We sent a 2xx to the INVITE (RFC 6026). */
  get isAccepted(): boolean {
    return this.state.name === 'Accepted';
  }

  /** We sent a final error; its ACK, or a retransmitted one, may arrive. */
  get isErrorAwaitingAck(): boolean {
    return this.isInvite && (this.state.name === 'Completed' || this.state.name === 'Confirmed');
  }

  retransmitted(): void {
    this.dispatch(this.isInvite ? { type: 'invite' } : { type: 'request' });
  }

  acknowledged(): void {
    this.dispatch({ type: 'ack' });
  }

  respond(status: number, text: string): void {
    this.dispatch({ type: 'respond', status, text });
  }

  /** Ends a request without a response (RFC 4320 §4.2). */
  abandon(): void {
    if (!this.isInvite) this.dispatch({ type: 'abandon' });
  }

  onFlowClosed(): void {
    this.dispatch({ type: 'transport-error' });
  }

  reroute(flow: Flow): void {
    this.isRerouted = true;
    this.currentFlow = flow;
  }

  protected override step(state: ServerState, event: ServerEvent, context: TransactionContext): Step<ServerState, AnyTimer, ServerUser> {
    // The kind never changes, so state and event belong to the same machine.
    return this.isInvite
      ? stepInviteServer(state as InviteServerState, event as InviteServerEvent, context)
      : stepNonInviteServer(state as NonInviteServerState, event as NonInviteServerEvent, context);
  }

  protected override timerEvent(timer: AnyTimer): ServerEvent {
    return { type: 'timer', timer } as ServerEvent;
  }

  protected override notify(user: ServerUser): void {
    // The ACK to a 2xx goes to the dialog, not through the transaction.
    if (user !== 'ack') this.owner?.onFailure(user);
  }

  protected override onTerminated(): void {
    this.host.ended(this);
  }
}

type ClientState = InviteClientState | NonInviteClientState;
type ClientEvent = InviteClientEvent | NonInviteClientEvent;
type ClientUser = 'response' | 'timeout' | 'transport-error';

/** Our request, and its state machine. */
export class ClientTransaction extends Runner<ClientState, ClientEvent, ClientUser> {
  readonly isInvite: boolean;
  #response: SipResponse | undefined;

  constructor(
    host: TransactionHost,
    key: string,
    readonly request: SipRequest,
    text: string,
    flow: Flow,
    private readonly owner: ClientTransactionOwner,
  ) {
    const isInvite = request.method === 'INVITE';
    super(host, key, flow, isInvite ? inviteClientStart(text) : nonInviteClientStart(text));
    this.isInvite = isInvite;
  }

  /** A provisional but no final response arrived: CANCEL is allowed (RFC 3261 §9.1). */
  get isProceeding(): boolean {
    return this.state.name === 'Proceeding';
  }

  get isUnanswered(): boolean {
    return this.state.name === 'Calling' || this.state.name === 'Trying' || this.state.name === 'Proceeding';
  }

  start(): void {
    // It may have failed meanwhile.
    if (!this.isUnanswered) return;
    // A flow closed before the first byte fails like one closed later.
    this.dispatch(this.flow.isOpen ? { type: 'start' } : { type: 'transport-error' });
  }

  /** We sent CANCEL. */
  cancelled(): void {
    if (this.isInvite) this.dispatch({ type: 'cancelled' });
  }

  /** The user abandons it: stops retransmitting an INVITE without any response. */
  abandon(): void {
    if (this.isInvite) this.dispatch({ type: 'abandoned' });
  }

  received(response: SipResponse): void {
    this.#response = response;
    const ack = this.isInvite && response.status >= 300 ? serialize(errorAck(this.request, response)) : '';
    this.dispatch({ type: 'response', status: response.status, ack });
  }

  onFlowClosed(): void {
    this.dispatch({ type: 'transport-error' });
  }

  protected override step(state: ClientState, event: ClientEvent, context: TransactionContext): Step<ClientState, AnyTimer, ClientUser> {
    return this.isInvite
      ? stepInviteClient(state as InviteClientState, event as InviteClientEvent, context)
      : stepNonInviteClient(state as NonInviteClientState, event as NonInviteClientEvent, context);
  }

  protected override timerEvent(timer: AnyTimer): ClientEvent {
    return { type: 'timer', timer } as ClientEvent;
  }

  protected override notify(user: ClientUser): void {
    if (user !== 'response') this.owner.onFailure(user);
    else if (this.#response !== undefined) this.owner.onResponse(this.#response);
  }

  protected override onTerminated(): void {
    this.host.ended(this);
    this.owner.onEnded();
  }
}

/** RFC 3261 §17.1.1.3: the INVITE's Request-URI, top Via, Call-ID, From, Route and CSeq number, and the response's To. */
function errorAck(invite: SipRequest, response: SipResponse): SipRequest {
  const headers = [
    header('Via', getHeader(invite, 'via') ?? ''),
    header('Max-Forwards', '70'),
    header('From', getHeader(invite, 'from') ?? ''),
    header('To', getHeader(response, 'to') ?? ''),
    header('Call-ID', getHeader(invite, 'call-id') ?? ''),
    header('CSeq', `${String(cseqNumber(invite))} ACK`),
    ...getHeaders(invite, 'route').map((value) => header('Route', value)),
  ];
  return { kind: 'request', method: 'ACK', uri: invite.uri, headers, body: '' };
}

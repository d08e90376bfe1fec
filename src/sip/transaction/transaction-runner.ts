import { NamedTimers, type TimerQueue } from '../../lib/timers.js';
import { cseqNumber, type CoreHeaders, mergeKey } from '../message/core-headers.js';
import { getHeader, getHeaders, header, type SipRequest, type SipResponse, serialize } from '../message/message.js';
import { inviteClientStart, stepInviteClient, type InviteClientEvent, type InviteClientState } from './invite-client.js';
import { INVITE_SERVER_START, stepInviteServer, type InviteServerEvent, type InviteServerState } from './invite-server.js';
import { nonInviteClientStart, stepNonInviteClient, type NonInviteClientEvent, type NonInviteClientState } from './non-invite-client.js';
import { NON_INVITE_SERVER_START, stepNonInviteServer, type NonInviteServerEvent, type NonInviteServerState } from './non-invite-server.js';
import type { Step, TimerSettings, TransactionContext } from './timers.js';
import type { Flow } from '../transport/flow.js';

/** Who owns the transactions: gives them timers, and is told what they come to. */
export interface TransactionHost {
  readonly timers: TimerQueue;
  readonly timerSettings: TimerSettings;
  /** What a transaction over TCP or TLS is told, and one over UDP. */
  readonly reliableContext: TransactionContext;
  readonly unreliableContext: TransactionContext;
  ended(transaction: ServerTransaction | ClientTransaction): void;
}

/** Who answers a request: a user agent or a proxy. */
export interface ServerTransactionOwner {
  /** A CANCEL for the unanswered INVITE; the CANCEL has its 200 already. */
  onCancel(cancel: SipRequest): void;
  /** No ACK to a final error, or no way to send the response. */
  onFailure(why: 'ack-timeout' | 'transport-error'): void;
}

/** Who sent a request. */
export interface ClientTransactionOwner {
  onResponse(response: SipResponse): void;
  onFailure(why: 'timeout' | 'transport-error'): void;
  /** Nothing more will come of the transaction. */
  onEnded(): void;
}

type AnyTimer = string;

/** Carries out the effects of one state machine: sends, keeps its timers, tells its user. One event, all its effects, then the next. */
abstract class Runner<State extends { readonly name: string }, Event, User> {
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
  protected abstract tell(user: User, event: Event): void;
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
          this.tell(effect.user, event);
          break;
        case 'terminate':
          this.#timers.stopAll();
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

/** A request from a peer, and the machine that answers it. */
export class ServerTransaction extends Runner<ServerState, ServerEvent, ServerUser> {
  /** The To-tag of our answers. The user may set its own before the first answer that carries one. */
  localTag: string;
  readonly isInvite: boolean;
  /** `null`: the stack itself answers it. */
  owner: ServerTransactionOwner | null = null;
  /** Its own connection closed, and another was opened for the response. */
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

  /** Requests with one key are one request (RFC 3261 §8.2.2.2). */
  get mergeKey(): string {
    const whole = this.#whole;
    if (whole.mergeKey === '') whole.mergeKey = mergeKey(whole.core);
    return whole.mergeKey;
  }

  /** The 2xx is out and what follows is the dialog's: only a copy of the INVITE, or a CANCEL, can still come. Neither needs what it said. */
  release(): void {
    this.#taken = undefined;
    this.owner = null;
  }

  get #whole(): Taken {
    if (this.#taken === undefined) throw new Error('the transaction was released');
    return this.#taken;
  }

  /** No final response was sent yet. */
  get isUnanswered(): boolean {
    return this.state.name === 'Proceeding' || this.state.name === 'Trying';
  }

  /** A 2xx was sent to the INVITE (RFC 6026). */
  get isAccepted(): boolean {
    return this.state.name === 'Accepted';
  }

  /** A final error was sent and its ACK has not come, or came already and is repeated. */
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

  /** Ends a request that gets no answer (RFC 4320 §4.2). */
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
    // The kind never changes, so state and event are of the same machine.
    return this.isInvite
      ? stepInviteServer(state as InviteServerState, event as InviteServerEvent, context)
      : stepNonInviteServer(state as NonInviteServerState, event as NonInviteServerEvent, context);
  }

  protected override timerEvent(timer: AnyTimer): ServerEvent {
    return { type: 'timer', timer } as ServerEvent;
  }

  protected override tell(user: ServerUser): void {
    // The ACK to a 2xx goes to the dialog by its tags, not through the transaction.
    if (user !== 'ack') this.owner?.onFailure(user);
  }

  protected override onTerminated(): void {
    this.host.ended(this);
  }
}

type ClientState = InviteClientState | NonInviteClientState;
type ClientEvent = InviteClientEvent | NonInviteClientEvent;
type ClientUser = 'response' | 'timeout' | 'transport-error';

/** A request of ours, and the machine that sees it answered. */
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

  /** A provisional response came and no final one: a CANCEL may go out (RFC 3261 §9.1). */
  get isProceeding(): boolean {
    return this.state.name === 'Proceeding';
  }

  get isUnanswered(): boolean {
    return this.state.name === 'Calling' || this.state.name === 'Trying' || this.state.name === 'Proceeding';
  }

  start(): void {
    // It may have failed before its turn came.
    if (!this.isUnanswered) return;
    // A flow that closed before the first byte fails like one that closes later.
    this.dispatch(this.flow.isOpen ? { type: 'start' } : { type: 'transport-error' });
  }

  /** The CANCEL went out. */
  cancelled(): void {
    if (this.isInvite) this.dispatch({ type: 'cancelled' });
  }

  /** Nobody wants its answer any more: an INVITE that nobody has answered is not repeated. */
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

  protected override tell(user: ClientUser): void {
    if (user !== 'response') this.owner.onFailure(user);
    else if (this.#response !== undefined) this.owner.onResponse(this.#response);
  }

  protected override onTerminated(): void {
    this.host.ended(this);
    this.owner.onEnded();
  }
}

/** RFC 3261 §17.1.1.3: the ACK to a final error has the INVITE's Request-URI, top Via, Call-ID, From, Route and CSeq number, and the answer's To. */
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

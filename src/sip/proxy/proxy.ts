import { createHmac } from 'node:crypto';
import { NamedTimers } from '../../lib/timers.js';
import { ownTransport, type FlowSource } from '../user-agent/user-agent-context.js';
import { cancelOf, viaOf } from '../user-agent/compose.js';
import { newTag } from '../../lib/ids.js';
import type { CoreHeaders } from '../message/core-headers.js';
import { changed, getHeader, type Header, type SipRequest, type SipResponse, serialize } from '../message/message.js';
import { uriScheme } from '../message/uri.js';
import { resolveTarget } from '../transport/service-location.js';
import { makeResponse, type SipStack } from '../stack.js';
import type {
  ClientTransaction,
  ClientTransactionOwner,
  ServerTransaction,
  ServerTransactionOwner,
} from '../transaction/transaction-runner.js';
import type { Flow } from '../transport/flow.js';
import { forkingStart, stepForking, type ForkingEffect, type ForkingEvent, type ForkingState, type ForkingTimer } from './forking.js';
import {
  forwardRequest,
  forwardResponse,
  namesRoute,
  recordRoutes,
  redirectTargets,
  takeOwnRoutes,
  withoutOwnRoutes,
  type IsSelf,
} from './forward.js';

/** How to proxy a request. */
export interface ProxyOrder {
  readonly targets: readonly string[];
  readonly isSerial: boolean;
  readonly recordRoute: boolean;
  readonly followsRedirects: boolean;
  /** `null`: no limit. */
  readonly provisionalTimeoutMs: number | null;
  /** `null`: timer C of RFC 3261. */
  readonly finalTimeoutMs: number | null;
  readonly headers: readonly Header[];
}

/** Makes a user agent a proxy too. */
export interface ProxyIdentity {
  /** Secret for our Record-Route tokens; keep it across restarts, so that dialogs stay routable. */
  readonly key: string;
  readonly isSelf: IsSelf;
}

/** Reports to the application that requested the proxying. */
export interface ProxyListener {
  /** Called for each final response of a target. */
  onFinal(response: SipResponse, flow: Flow): void;
  onDone(): void;
}

/** RFC 3261 §16.6 step 11: more than three minutes. */
const TIMER_C_MS = 181_000;

/** A stateful proxy (RFC 3261 §16) for the requests that applications forward, and for their dialogs. */
export class Proxy {
  #open = 0;

  constructor(
    private readonly stack: SipStack,
    private readonly flows: FlowSource,
    private readonly identity: ProxyIdentity,
  ) {}

  get openCount(): number {
    return this.#open;
  }

  /** Forwards `request` (the transaction's own except for routes) and takes over the transaction. Returns why not. */
  forward(transaction: ServerTransaction, request: SipRequest, order: ProxyOrder, listener: ProxyListener | null): 'too-many-hops' | null {
    if (/^0+$/.test(getHeader(request, 'max-forwards') ?? '')) {
      this.stack.respond(transaction, makeResponse(transaction.request, 483, 'Too Many Hops', transaction.localTag));
      return 'too-many-hops';
    }
    this.#open += 1;
    const routed = withoutOwnRoutes(request, this.identity.isSelf);
    const context = new ProxyContext(this.stack, this.flows, this.#token(transaction.core), transaction, routed, order, listener, () => {
      this.#open -= 1;
    });
    context.start();
    return null;
  }

  /** Forwards a request of a dialog that we record-routed. */
  takes(transaction: ServerTransaction): boolean {
    const { core, request } = transaction;
    const routed = this.#routed(request, core);
    if (routed === undefined) return false;
    if (request.method === 'INVITE') this.stack.respond(transaction, makeResponse(request, 100, 'Trying', ''));
    const order: ProxyOrder = {
      targets: [routed.uri],
      isSerial: true,
      recordRoute: true,
      followsRedirects: false,
      provisionalTimeoutMs: null,
      finalTimeoutMs: null,
      headers: [],
    };
    this.forward(transaction, routed, order, null);
    return true;
  }

  /** Forwards the ACK to a 2xx without a transaction (RFC 3261 §16.11). */
  takesAck(ack: SipRequest, core: CoreHeaders): boolean {
    const routed = this.#routed(ack, core);
    if (routed === undefined) return false;
    const forward = forwardRequest(routed, routed.uri, []);
    const target = forward.ok ? resolveTarget(forward.value.nextHop) : undefined;
    const flow = target === undefined ? undefined : this.flows.open(target);
    if (!forward.ok || flow === undefined) return true;
    flow.send(serialize(withVia(forward.value.request, this.flows, flow)));
    return true;
  }

  #routed(request: SipRequest, core: CoreHeaders): SipRequest | undefined {
    return namesRoute(request) ? takeOwnRoutes(request, this.#token(core), this.identity.isSelf) : undefined;
  }

  #token(core: CoreHeaders): string {
    return createHmac('sha256', this.identity.key).update(core.callId).digest('hex').slice(0, 24);
  }
}

function withVia(request: SipRequest, flows: FlowSource, flow: Flow): SipRequest {
  return changed(request, { headers: [viaOf(ownTransport(flows, flow)), ...request.headers] });
}

interface Fork {
  readonly transaction: ClientTransaction;
  readonly request: SipRequest;
  readonly flow: Flow;
  readonly timers: NamedTimers<ForkingTimer>;
  response: SipResponse | null;
  cancelState: 'none' | 'wanted' | 'sent';
}

/** One forwarded request and its responses. */
class ProxyContext implements ServerTransactionOwner {
  #state: ForkingState;
  readonly #forks = new Map<number, Fork>();
  /** The response that `forward` refers to in the present step. */
  #current: SipResponse | null = null;

  constructor(
    private readonly stack: SipStack,
    private readonly flows: FlowSource,
    private readonly token: string,
    private readonly transaction: ServerTransaction,
    private readonly request: SipRequest,
    private readonly order: ProxyOrder,
    private readonly listener: ProxyListener | null,
    private readonly onDone: () => void,
  ) {
    transaction.owner = this;
    this.#state = forkingStart({
      isInvite: transaction.isInvite,
      isSerial: order.isSerial,
      followsRedirects: order.followsRedirects,
      targets: order.targets,
    });
  }

  start(): void {
    this.#step({ type: 'start' });
  }

  onCancel(): void {
    this.#step({ type: 'cancel' });
  }

  onFailure(): void {
    this.#step({ type: 'cancel' });
  }

  #step(event: ForkingEvent): void {
    const { state, effects } = stepForking(this.#state, event);
    this.#state = state;
    for (const effect of effects) this.#apply(effect);
  }

  #apply(effect: ForkingEffect): void {
    switch (effect.do) {
      case 'launch':
        this.#launch(effect.branch, effect.target);
        break;
      case 'cancel':
        this.#cancel(effect.branch);
        break;
      case 'restart-final-timer':
        // RFC 3261 §16.7 step 2 restarts timer C; the application's own limit covers the final response, however long it rings.
        if (this.order.finalTimeoutMs === null) this.#forks.get(effect.branch)?.timers.start('final', TIMER_C_MS);
        break;
      case 'stop-provisional-timer':
        this.#forks.get(effect.branch)?.timers.stop('provisional');
        break;
      case 'stop-timers':
        this.#forks.get(effect.branch)?.timers.close();
        break;
      case 'forward':
        this.#forwardBack(this.#current);
        break;
      case 'answer':
        this.#answer(effect.branch, effect.status);
        break;
      case 'done':
        this.listener?.onDone();
        this.onDone();
        break;
    }
  }

  #launch(branch: number, target: string): void {
    const next = forwardRequest(this.request, target, this.order.headers);
    const hop = next.ok ? resolveTarget(next.value.nextHop, this.transaction.flow.transport) : undefined;
    const flow = hop === undefined ? undefined : this.flows.open(hop);
    if (!next.ok || flow === undefined) {
      process.nextTick(() => this.#step({ type: 'failed', branch, status: 503 }));
      return;
    }
    const request = withVia(this.#recordRouted(next.value.request, flow), this.flows, flow);
    const owner: ClientTransactionOwner = {
      onResponse: (response) => this.#onResponse(branch, response),
      onFailure: (why) => this.#step({ type: 'failed', branch, status: why === 'timeout' ? 408 : 503 }),
      onEnded: () => undefined,
    };
    const transaction = this.stack.sendRequest(request, serialize(request), flow, owner);
    const timers = new NamedTimers<ForkingTimer>(this.stack.timers, (timer) => this.#step({ type: 'timer', branch, timer }));
    this.#forks.set(branch, { transaction, request, flow, timers, response: null, cancelState: 'none' });
    if (this.order.provisionalTimeoutMs !== null) timers.start('provisional', this.order.provisionalTimeoutMs);
    if (this.order.finalTimeoutMs !== null) timers.start('final', this.order.finalTimeoutMs);
    process.nextTick(() => transaction.start());
  }

  #recordRouted(request: SipRequest, flow: Flow): SipRequest {
    if (!this.order.recordRoute || (request.method !== 'INVITE' && request.method !== 'SUBSCRIBE')) return request;
    const previous = ownTransport(this.flows, this.transaction.flow);
    const added = recordRoutes(ownTransport(this.flows, flow), previous, uriScheme(request.uri) === 'sips', this.token);
    return changed(request, { headers: [...added, ...request.headers] });
  }

  #onResponse(branch: number, response: SipResponse): void {
    const fork = this.#forks.get(branch);
    if (fork === undefined) return;
    if (response.status === 100) {
      // RFC 3261 §16.7: a 100 is hop by hop; it shows that the target is reachable.
      fork.timers.stop('provisional');
      if (fork.cancelState === 'wanted') this.#sendCancel(fork);
      return;
    }
    if (fork.cancelState === 'wanted' && response.status < 200) this.#sendCancel(fork);
    if (response.status >= 200 && fork.response === null) {
      fork.response = response;
      this.listener?.onFinal(response, fork.flow);
    }
    this.#current = response;
    this.#step({ type: 'response', branch, status: response.status, contacts: redirectTargets(response) });
    this.#current = null;
  }

  #cancel(branch: number): void {
    const fork = this.#forks.get(branch);
    if (fork === undefined || fork.cancelState !== 'none' || !fork.transaction.isUnanswered) return;
    fork.cancelState = 'wanted';
    if (fork.transaction.isProceeding) this.#sendCancel(fork);
    else fork.transaction.abandon();
  }

  #sendCancel(fork: Fork): void {
    fork.cancelState = 'sent';
    const cancel = cancelOf(fork.request, []);
    const nobody: ClientTransactionOwner = { onResponse: () => undefined, onFailure: () => undefined, onEnded: () => undefined };
    this.stack.sendRequest(cancel, serialize(cancel), fork.flow, nobody).start();
    fork.transaction.cancelled();
  }

  #forwardBack(response: SipResponse | null): void {
    const forwarded = response === null ? undefined : forwardResponse(response);
    if (forwarded !== undefined) this.stack.respond(this.transaction, forwarded);
  }

  #answer(branch: number | null, status: number): void {
    // RFC 4320 §4.2: no 408 to a non-INVITE request; its sender's own timer fires.
    if (status === 408 && !this.transaction.isInvite) return this.transaction.abandon();
    const response = branch === null ? null : (this.#forks.get(branch)?.response ?? null);
    const forwarded = response?.status === status ? forwardResponse(response) : undefined;
    const { transaction } = this;
    const own = (): SipResponse => makeResponse(transaction.request, status, OWN_REASONS[status] ?? 'Server Internal Error', newTag());
    this.stack.respond(transaction, forwarded === undefined ? own() : this.#withAllChallenges(forwarded, branch));
  }

  /** RFC 3261 §16.7 step 7: a 401 or 407 carries the challenges of every target. */
  #withAllChallenges(response: SipResponse, branch: number | null): SipResponse {
    if (response.status !== 401 && response.status !== 407) return response;
    const challenges: Header[] = [];
    for (const [id, fork] of this.#forks) {
      if (id === branch || (fork.response?.status !== 401 && fork.response?.status !== 407)) continue;
      challenges.push(...fork.response.headers.filter(({ id: name }) => name === 'www-authenticate' || name === 'proxy-authenticate'));
    }
    return challenges.length === 0 ? response : changed(response, { headers: [...response.headers, ...challenges] });
  }
}

const OWN_REASONS: Readonly<Record<number, string>> = {
  408: 'Request Timeout',
  487: 'Request Terminated',
  500: 'Server Internal Error',
};

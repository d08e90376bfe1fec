import type { DialogRecord } from '../sip/dialog/dialog-record.js';
import type { DialogEntry } from '../sip/dialog/dialog-table.js';
import { getHeader, header, headerId, type SipRequest, type SipResponse, serializeUnfolded } from '../sip/message/message.js';
import type { Flow } from '../sip/transport/flow.js';
import type { OutgoingRequest, IncomingRequest, UserAgentListener } from '../sip/user-agent/user-agent-context.js';
import type { UserAgent } from '../sip/user-agent.js';
import { retryAfter } from '../sip/user-agent/retry-after.js';
import { formatHostPort } from '../lib/address.js';
import { nextSerialId } from '../lib/ids.js';
import type { QueuedTimer } from '../lib/timers.js';
import { PING_HEADER, TAKEN_OVER_REASON } from '../lib/own-headers.js';
import { type AppConnection, ApplicationPing, CdrReporter, Router } from './applications.js';
import { parseAppMessage } from './app-message.js';
import { AppDialogs, type AppDialog, dialogIdOfEntry, gatewayOf, peerOf, readUserData, takenUserData, userDataOf } from './app-dialogs.js';
import type { BrokerOptions } from './broker-options.js';
import { IncomingRequests } from './incoming.js';
import { formatResponseSent, type AppCommand } from './control-protocol.js';
import { APPLICATION_GONE, OutgoingRequests } from './outgoing.js';

const ROUTABLE = new Set(['INVITE', 'REGISTER', 'MESSAGE', 'OPTIONS', 'INFO', 'NOTIFY', 'SUBSCRIBE', 'PUBLISH', 'REFER']);

const WAIT_FOR_APPLICATION_MS = 2_000;
/** New calls wait so long for the successor of the last application; more of them do not. */
const HOLD_MS = 4_000;
const MAX_HELD = 500;
/** Until the calls of a lost host are offered again. */
const OFFER_AGAIN_MS = 1_000;

/** Between the SIP user agent and the applications: routes requests and executes the applications' frames. */
const PING_ID = headerId(PING_HEADER);

export class Broker implements UserAgentListener {
  readonly #router = new Router<AppConnection>();
  readonly #calls: AppDialogs;
  readonly #cdr: CdrReporter;
  readonly #incoming: IncomingRequests;
  readonly #outgoing: OutgoingRequests;
  readonly #pings = new Map<AppConnection, ApplicationPing>();
  /** Requests in calls whose application is away. */
  readonly #waiting = new Map<AppDialog, { readonly requests: IncomingRequest[]; readonly timer: QueuedTimer }>();
  /** Show the application the last ACK that came meanwhile: it may have an answer to our offer. */
  readonly #missedAcks = new WeakMap<AppDialog, () => void>();
  /** New calls that wait for the next application. */
  readonly #held = new Map<IncomingRequest, QueuedTimer>();
  /** Until then the successor of an application that left is expected. */
  #expectedUntilMs = -Infinity;
  /** Calls of lost hosts that an application was told to take, by transaction id of that request. */
  readonly #takeovers = new Map<string, { readonly app: AppConnection; readonly instance: string }>();
  /** As of the last new call. */
  #behind: ReadonlySet<AppConnection> = new Set();

  constructor(
    private readonly userAgent: UserAgent,
    private readonly options: BrokerOptions,
  ) {
    this.#calls = new AppDialogs(
      options.timers,
      options.graceMs,
      ({ entry }) => userAgent.mayEnd(entry),
      (call) => this.#end(call),
    );
    this.#cdr = new CdrReporter(this.#router, options.time);
    this.#incoming = new IncomingRequests(userAgent, this.#calls, this.#cdr, options);
    this.#outgoing = new OutgoingRequests(userAgent, this.#calls, this.#cdr, options);
    userAgent.attach(this);
  }

  /** Items held, for tests and metrics: all zero when idle. */
  get counts(): { pending: number; calls: number; outgoing: number; proxied: number } {
    return {
      pending: this.#incoming.size + this.#held.size,
      calls: this.#calls.size,
      outgoing: this.#outgoing.size,
      proxied: this.userAgent.proxiedCount,
    };
  }

  /**
   * Call it for each new call: how far the applications that take calls are behind, if all of them are, so that the server should refuse it
   * immediately. The figure and its limit, for a person; `null`: one is not behind.
   */
  behind(): string | null {
    const apps = this.#router.of('invite');
    this.#behind = new Set(apps.filter((app) => this.#pings.get(app)?.isBehind() === true));
    const [first] = apps;
    return first !== undefined && apps.every((app) => this.#behind.has(app)) ? (this.#pings.get(first)?.lag ?? null) : null;
  }

  /** Whether a new call would get an application here; another cell takes it otherwise. */
  takesCalls(): boolean {
    // As of the last call: only those that were behind are asked again.
    return this.#router.of('invite').length > 0 && (this.#behind.size === 0 || this.behind() === null);
  }

  /** Tells a gateway of calls that the server refused itself: it counts and records them. @param text of `RefusedCalls` */
  tellRefused(text: string): void {
    const app = this.#router.of('options').find(({ instance }) => instance !== null);
    if (app !== undefined) this.#sendPing(app, nextSerialId(), `refused ${text}`);
  }

  // ---- from the applications

  /** The application authenticated: reassigns its waiting calls, and shows it the requests in them that wait. */
  onAppHere(app: AppConnection): void {
    this.#adopted(app, this.#calls.adopt(app));
  }

  #adopted(app: AppConnection, calls: readonly AppDialog[]): void {
    if (calls.length === 0) return;
    this.options.log.info({ application: app.peer, instance: app.instance, calls: calls.length }, 'sip_server.application.resumed');
    for (const call of calls) {
      this.#missedAcks.get(call)?.();
      this.#missedAcks.delete(call);
      this.#releaseWaiting(call);
    }
  }

  /** Those of an earlier process: new calls wait for them. */
  expectApplications(): void {
    this.#expectedUntilMs = this.options.clock.nowMs() + HOLD_MS;
  }

  /** A dialog of a process that ended so long ago: its application is to come. */
  restore(entry: DialogEntry, awayMs: number): void {
    const { inviteTransactionId, instance } = readUserData(entry.userData ?? '');
    const isLate = awayMs > this.options.parkMs;
    this.#calls.restore({ id: dialogIdOfEntry(entry), entry, app: null, inviteTransactionId, isLate }, instance);
  }

  /** Dialogs of a host that was lost so long ago: our applications are to take their calls. */
  takeOver(records: readonly DialogRecord[], awayMs: number): void {
    for (const record of records) this.restore(this.userAgent.takeOver({ ...record, userData: takenUserData(record.userData) }), awayMs);
    this.#offerTaken();
  }

  /** Another host took the call: the application gets a synthetic BYE. */
  drop(dialog: DialogEntry): void {
    const call = this.#calls.of(dialog);
    this.userAgent.drop(dialog);
    if (call === undefined) return;
    this.#calls.drop(call);
    this.#showBye(call, byeText(dialog));
  }

  /** Each lost gateway's calls go to one application, which says when it has them. */
  #offerTaken(): void {
    const apps = [...new Set(this.#router.of('invite'))].filter(({ instance }) => instance !== null);
    const offered = [...this.#takeovers.values()].map(({ instance }) => instance);
    for (const [index, instance] of this.#calls.takenInstances.filter((one) => !offered.includes(one)).entries()) {
      const app = apps[index % apps.length];
      if (app === undefined) return;
      const transactionId = nextSerialId();
      this.#takeovers.set(transactionId, { app, instance });
      this.#sendPing(app, transactionId, `take ${gatewayOf(instance)}`);
    }
  }

  /** False: the response belongs to another request. */
  #onTaken(transactionId: string, status: number): boolean {
    const takeover = this.#takeovers.get(transactionId);
    if (takeover === undefined) return false;
    this.#takeovers.delete(transactionId);
    const { app, instance } = takeover;
    if (status === 200) {
      const calls = this.#calls.adopt(app, instance);
      for (const { entry, inviteTransactionId } of calls) this.userAgent.assign(entry, userDataOf(app, inviteTransactionId) ?? '');
      this.#adopted(app, calls);
    } else this.options.timers.start(OFFER_AGAIN_MS, () => this.#offerTaken());
    return true;
  }

  onCommand(app: AppConnection, command: AppCommand): void {
    switch (command.verb) {
      case 'ping':
        return app.answer(command.id, 'OK', 'pong');
      case 'route':
        this.#router.add(command.method, app);
        if (command.method === 'options') this.#ping(app);
        if (command.method === 'invite') {
          this.#offerTaken();
          this.#releaseHeld();
        }
        return app.answer(command.id, 'OK');
      case 'remove_route':
        this.#router.remove(command.method, app);
        return app.answer(command.id, 'OK');
      case 'sip':
        return this.#onSip(app, command);
      case 'proxy':
        return this.#incoming.onProxy(app, command);
      case 'invalid':
        return app.refuse(command.id, command.reason);
      case 'authenticate':
        return app.refuse(command.id, 'already authenticated');
    }
  }

  /** The application disconnected: its requests and calls need an end. */
  onAppGone(app: AppConnection): void {
    // One that drained had withdrawn from both.
    const wasServing = ['invite', 'options'].some((method) => this.#router.of(method).includes(app));
    if (app.instance !== null && wasServing) this.expectApplications();
    this.#router.removeAll(app);
    this.#pings.delete(app);
    for (const [transactionId, takeover] of this.#takeovers) if (takeover.app === app) this.#takeovers.delete(transactionId);
    this.#incoming.onAppGone(app);
    this.#outgoing.onAppGone(app);
    this.#calls.orphan(app);
    this.#offerTaken();
  }

  #onSip(app: AppConnection, command: Extract<AppCommand, { verb: 'sip' }>): void {
    const message = parseAppMessage(command.text);
    if (message === undefined) {
      const start = command.text.split('\r\n', 1)[0] ?? '';
      return app.answer(command.id, 'NOK', `invalid request-uri: ${start}`);
    }
    if (message.kind === 'request') return this.#outgoing.onCommand(app, command, message);
    // The protocol closes here: the application's state is inconsistent.
    if (command.transactionId === '') return app.refuse(command.id, 'transaction id missing');
    if (/\sCANCEL$/i.test(getHeader(message, 'cseq') ?? '')) {
      return app.answer(command.id, 'NOK', '200 OK to incoming CANCEL is automatically generated by the stack');
    }
    const { transactionId: answered } = command;
    const ping = this.#pings.get(app);
    if (this.#onTaken(answered, message.status) || ping?.onResponse(answered, message.status, getHeader(message, PING_ID)) === true) {
      const { id, transactionId, text } = command;
      return app.payload(
        formatResponseSent(nextSerialId(), id, { peer: this.#ownPeer(), time: this.options.time(), transactionId, text }, ''),
      );
    }
    this.#incoming.onResponse(app, command.id, command.transactionId, message);
  }

  /** Measures the delay of an application that routes OPTIONS. */
  #ping(app: AppConnection): void {
    const { clock, maxApplicationDelayMs } = this.options;
    const send = (transactionId: string): void => this.#sendPing(app, transactionId, 'overload');
    this.#pings.set(app, new ApplicationPing(clock, maxApplicationDelayMs, send));
  }

  /** @param what the application is asked for */
  #sendPing(app: AppConnection, transactionId: string, what: string): void {
    const peer = this.#ownPeer();
    const text = pingText(formatHostPort(peer.address, peer.port), transactionId, what);
    app.sip({
      source: 'network',
      sizeBytes: text.length,
      peer,
      time: this.options.time(),
      transactionId,
      dialogId: '',
      receivedOn: null,
      text,
    });
  }

  #ownPeer(): { protocol: string; address: string; port: number } {
    return { protocol: 'tcp', ...this.options.advertised('TCP') };
  }

  // ---- from the user agent

  onRequest(request: IncomingRequest): void {
    const { dialog, message } = request;
    if (dialog === null) {
      if (this.#isProbe(message)) return this.#incoming.refuse(request, 200, 'OK');
      const app = this.#choose(request);
      if (app !== undefined) this.#incoming.offer(request, app);
      return;
    }
    const call = this.#calls.of(dialog);
    if (call === undefined) {
      // An early dialog: the application has only the INVITE, and its end (RFC 3261 §15.1.2).
      if (message.method === 'BYE') return this.#incoming.refuse(request, 200, 'OK');
      if (dialog.isConfirmed) return this.#incoming.refuse(request, 481, 'Call/Transaction Does Not Exist');
      // RFC 3311 §5.2: its offer has no answer yet; a 481 would end the call (RFC 5057 §5.1).
      return this.#incoming.refuse(request, 500, 'Server Internal Error', [retryAfter()]);
    }
    if (call.app === null) return this.#wait(request, call);
    this.#deliver(request, call);
  }

  #deliver(request: IncomingRequest, call: AppDialog): void {
    const { message } = request;
    if (message.method === 'BYE') {
      this.#calls.drop(call);
      this.#cdr.stop('network', 'normal-release', message);
    }
    if (call.app !== null) return this.#incoming.offer(request, call.app);
    // BYE ends the call without its application; anything else must be retried.
    if (message.method === 'BYE') this.#incoming.refuse(request, 200, 'OK');
    else this.#incoming.refuse(request, 500, 'Server Internal Error', [retryAfter()]);
  }

  /** The application of the call is away, and may be back in a moment. */
  #wait(request: IncomingRequest, call: AppDialog): void {
    const waiting = this.#waiting.get(call);
    if (waiting !== undefined) return void waiting.requests.push(request);
    const timer = this.options.timers.start(WAIT_FOR_APPLICATION_MS, () => this.#releaseWaiting(call));
    this.#waiting.set(call, { requests: [request], timer });
  }

  #releaseWaiting(call: AppDialog): void {
    const waiting = this.#waiting.get(call);
    if (waiting === undefined) return;
    this.#waiting.delete(call);
    this.options.timers.stop(waiting.timer);
    for (const request of waiting.requests) if (request.transaction.isUnanswered) this.#deliver(request, call);
  }

  onAck(dialog: DialogEntry, ack: SipRequest, flow: Flow): void {
    const call = this.#calls.of(dialog);
    if (call === undefined) return;
    const isInitial = dialog.state.role === 'uas' && !dialog.wasAcknowledged;
    dialog.wasAcknowledged = true;
    const inviteTransactionId = isInitial ? call.inviteTransactionId : nextSerialId();
    if (call.app === null) return void this.#missedAcks.set(call, () => this.#showAck(call, ack, flow, inviteTransactionId));
    this.#showAck(call, ack, flow, inviteTransactionId);
  }

  #showAck(call: AppDialog, ack: SipRequest, flow: Flow, transactionId: string): void {
    const text = serializeUnfolded(ack);
    call.app?.sip({
      source: 'network',
      sizeBytes: text.length,
      peer: peerOf(flow),
      time: this.options.time(),
      transactionId,
      dialogId: call.id,
      receivedOn: null,
      text,
    });
  }

  onResponse(request: OutgoingRequest, response: SipResponse, synthesized: boolean): void {
    this.#outgoing.onResponse(request, response, synthesized);
  }

  onDialogEnded(dialog: DialogEntry, bye: SipRequest | null): void {
    const call = this.#calls.of(dialog);
    if (call === undefined) return;
    this.#calls.drop(call);
    if (bye === null) return;
    const isExpired = (getHeader(bye, 'reason') ?? '').includes('Session timer expired');
    this.#cdr.stop('application', isExpired ? 'session-expired' : 'ackbye', bye);
    this.#showBye(call, serializeUnfolded(bye));
  }

  /** That we ended the call. */
  #showBye(call: AppDialog, text: string): void {
    const { transport } = call.entry.flow;
    call.app?.sip({
      source: 'application',
      sizeBytes: text.length,
      peer: { protocol: transport.toLowerCase(), ...this.options.advertised(transport) },
      time: this.options.time(),
      transactionId: 'unsolicited',
      dialogId: call.id,
      receivedOn: null,
      text,
    });
  }

  // ---- common

  #isProbe(message: SipRequest): boolean {
    return message.method === 'OPTIONS' && this.options.optionsUserAgents.includes(getHeader(message, 'user-agent') ?? '');
  }

  /** The application in turn, or `undefined`: the request is answered, or waits. */
  #choose(request: IncomingRequest): AppConnection | undefined {
    const { method } = request.message;
    // Applications route in lower case; methods are case-sensitive (RFC 3261 §7.1).
    const app = method === method.toUpperCase() ? this.#next(method.toLowerCase()) : undefined;
    if (app !== undefined) return app;
    if (method === 'INVITE' && this.#held.size < MAX_HELD && this.#isExpected()) {
      this.#hold(request);
      return undefined;
    }
    const routed = this.#router.methods();
    const allow = header('Allow', this.options.allow ?? [...routed.map((name) => name.toUpperCase()), 'ACK', 'BYE', 'CANCEL'].join(', '));
    if (!ROUTABLE.has(method)) this.#incoming.refuse(request, 501, 'Not Implemented', [allow]);
    else if (routed.length === 0 || this.#router.isServed(method.toLowerCase())) {
      // No application is connected, or all withdrew: another server, or a later attempt, may succeed.
      this.#incoming.refuse(request, 503, 'Service Unavailable', [retryAfter()]);
    } else this.#incoming.refuse(request, 405, 'Method Not Allowed', [allow]);
    return undefined;
  }

  /** A gateway that withdrew from INVITE alone makes room for its successor; one that left may be back in a moment. */
  #isExpected(): boolean {
    if (this.options.clock.nowMs() < this.#expectedUntilMs) return true;
    return this.#router.of('options').some(({ instance }) => instance !== null);
  }

  #hold(request: IncomingRequest): void {
    const timer = this.options.timers.start(HOLD_MS, () => {
      this.#held.delete(request);
      if (request.transaction.isUnanswered) this.#incoming.refuse(request, 503, 'Service Unavailable', [retryAfter()]);
    });
    this.#held.set(request, timer);
  }

  #releaseHeld(): void {
    for (const [request, timer] of this.#held) {
      this.options.timers.stop(timer);
      this.#held.delete(request);
      const app = request.transaction.isUnanswered ? this.#choose(request) : undefined;
      if (app !== undefined) this.#incoming.offer(request, app);
    }
  }

  /** Round robin; for calls, skips applications that are behind. */
  #next(method: string): AppConnection | undefined {
    let app = this.#router.next(method);
    if (method !== 'invite') return app;
    for (let others = this.#router.of(method).length - 1; others > 0 && app !== undefined && this.#behind.has(app); others -= 1)
      app = this.#router.next(method);
    return app;
  }

  /** A BYE of the application in progress ends the call as well. */
  #end(call: AppDialog): void {
    if (!call.entry.isEnding) this.userAgent.hangUp(call.entry, APPLICATION_GONE);
  }
}

/** An OPTIONS request, as if from a peer. */
function pingText(host: string, id: string, what: string): string {
  return [
    `OPTIONS sip:${host} SIP/2.0`,
    `Via: SIP/2.0/TCP ${host};branch=z9hG4bK${id}`,
    'Max-Forwards: 0',
    `${PING_HEADER}: ${what}`,
    `From: <sip:ping@${host}>;tag=${id}`,
    `To: <sip:${host}>`,
    `Call-ID: ${id}`,
    'CSeq: 1 OPTIONS',
    'Content-Length: 0',
    '',
    '',
  ].join('\r\n');
}

/** As if we had ended the dialog. */
function byeText({ state, flow }: DialogEntry): string {
  return [
    `BYE ${state.remoteTarget} SIP/2.0`,
    `Via: SIP/2.0/${flow.transport} localhost;branch=z9hG4bK${nextSerialId()}`,
    'Max-Forwards: 0',
    `From: ${state.local}`,
    `To: ${state.remote}`,
    `Call-ID: ${state.callId}`,
    `CSeq: ${String(state.localSeq + 1)} BYE`,
    `Reason: ${TAKEN_OVER_REASON}`,
    'Content-Length: 0',
    '',
    '',
  ].join('\r\n');
}

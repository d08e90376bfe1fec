import type {
  UserAgentContext,
  FlowSource,
  RespondProblem,
  ResponseParts,
  SendProblem,
  UserAgentListener,
  IncomingRequest,
  OutgoingRequest,
  RequestToSend,
} from './user-agent/user-agent-context.js';
import type { DialogRecord, DialogStore } from './dialog/dialog-record.js';
import { DialogTable, type DialogEnds, type DialogEntry } from './dialog/dialog-table.js';
import type { CoreHeaders } from './message/core-headers.js';
import { header, type Header, type SipRequest, type SipResponse } from './message/message.js';
import { Proxy, type ProxyIdentity, type ProxyListener, type ProxyOrder } from './proxy/proxy.js';
import { SessionRefresher } from './user-agent/session-refresher.js';
import type { SipStack, TransactionUser } from './stack.js';
import type { ServerTransaction } from './transaction/transaction-runner.js';
import type { Flow } from './transport/flow.js';
import { UserAgentClient } from './user-agent/user-agent-client.js';
import { restoreDialog, UserAgentServer, type SentCallback } from './user-agent/user-agent-server.js';

/** What falls due while another host may have the dialog waits so long. */
export const ASLEEP_MS = 500;

/** The user agent core of RFC 3261: UAC, UAS, and their dialogs. */
export class UserAgent implements TransactionUser {
  readonly #context: UserAgentContext;
  readonly #server: UserAgentServer;
  readonly #client: UserAgentClient;
  readonly #proxy: Proxy | null;
  #isRetiring = false;

  /**
   * @param proxy `null` disables proxying
   * @param store where confirmed dialogs with `userData` outlive the process; `null`: they end with it
   */
  constructor(stack: SipStack, flows: FlowSource, proxy: ProxyIdentity | null = null, store: DialogStore | null = null) {
    const ends: DialogEnds = {
      onAckTimeout: (dialog, mismatch) => {
        const why = mismatch === null ? '' : `: an ACK had CSeq ${String(mismatch.cseq)}, not ${String(mismatch.expected)}`;
        this.#endByOurselves(dialog, `SIP;cause=200;text="ACK timeout${why}"`);
      },
      onSubscriptionExpired: (dialog) => {
        dialogs.forget(dialog);
        this.#context.listener?.onDialogEnded(dialog, null);
      },
    };
    const dialogs = new DialogTable(stack.timers, stack.timerSettings, ends, store);
    const sessions = new SessionRefresher(stack.timers, stack.clock, {
      refresh: (dialog, parts) => {
        const sent = this.sendInDialog(dialog, parts);
        if (typeof sent === 'object') sent.isRefresh = true;
        return typeof sent === 'object';
      },
      mayRefresh: (dialog) => !dialog.isWritten || (dialogs.isOwner && !this.isSuccessors(dialog)),
      acknowledge: (dialog) => void this.sendInDialog(dialog, { method: 'ACK', headers: [], body: '' }),
      expire: (dialog) => this.#endByOurselves(dialog, 'SIP;cause=200;text="Session timer expired"'),
    });
    stack.attach(this);
    this.#context = { stack, flows, dialogs, sessions, earlyNotifies: new Map(), listener: undefined };
    this.#proxy = proxy === null ? null : new Proxy(stack, flows, proxy);
    this.#server = new UserAgentServer(this.#context, (dialog) => this.#acknowledge(dialog));
    this.#client = new UserAgentClient(this.#context, {
      endByOurselves: (dialog, reason) => this.#endByOurselves(dialog, reason),
      takeAgain: (transaction) => this.#server.onRequest(transaction),
    });
  }

  attach(listener: UserAgentListener): void {
    this.#context.listener = listener;
  }

  get dialogCount(): number {
    return this.#context.dialogs.size;
  }

  /** How many 2xx of ours wait for their ACK, by connection. */
  unacknowledged(): ReadonlyMap<Flow, number> {
    return this.#context.dialogs.unacknowledged();
  }

  /** What the store needs to begin anew. */
  records(): DialogRecord[] {
    return this.#context.dialogs.records();
  }

  /** Whether every dialog of an earlier process is restored: until then a request in an unknown dialog gets 500, not 481. */
  set isComplete(isComplete: boolean) {
    this.#context.dialogs.isComplete = isComplete;
  }

  /** Continues a dialog of an earlier process. */
  restore(record: DialogRecord): DialogEntry {
    return restoreDialog(this.#context, record);
  }

  /** Continues a dialog of another host. */
  takeOver(record: DialogRecord): DialogEntry {
    const dialog = this.restore(record);
    this.#context.dialogs.saveWhole(dialog);
    return dialog;
  }

  /** Another host has the dialog: it ends here without a word. */
  drop(dialog: DialogEntry): void {
    this.#context.dialogs.forget(dialog);
  }

  /** The application of the dialog is another one. */
  assign(dialog: DialogEntry, userData: string): void {
    dialog.userData = userData;
    this.#context.dialogs.save(dialog, 'soon');
  }

  /** The process ends, and its connections one by one. */
  retire(): void {
    this.#isRetiring = true;
  }

  /** Whether the next process is to send what is due in this dialog: its connection here has ended. */
  isSuccessors(dialog: DialogEntry): boolean {
    return this.#isRetiring && dialog.isWritten && !dialog.flow.isOpen;
  }

  /** False: this process stood still, and another host may have the dialog. */
  mayEnd(dialog: DialogEntry): boolean {
    return !dialog.isWritten || this.#context.dialogs.isAwake;
  }

  /** Keys of dialogs with a record. */
  writtenKeys(): string[] {
    return this.#context.dialogs.writtenKeys();
  }

  byKey(key: string): DialogEntry | undefined {
    return this.#context.dialogs.byKey(key);
  }

  get proxiedCount(): number {
    return this.#proxy?.openCount ?? 0;
  }

  get registrationCount(): number {
    return this.#client.registered.size;
  }

  /** Sends a response, now or after a pending PRACK; `sent` then gets its wire text. */
  respond(request: IncomingRequest, parts: ResponseParts, sent: SentCallback = () => undefined): RespondProblem | null {
    return this.#server.respond(request, parts, sent);
  }

  /** Sends a request outside dialogs. */
  send(uri: string, parts: RequestToSend, routeUri: string | null): OutgoingRequest | SendProblem {
    return this.#client.send(uri, parts, routeUri);
  }

  /** Sends a request in a dialog; `ACK` without a transaction. */
  sendInDialog(dialog: DialogEntry, parts: RequestToSend): OutgoingRequest | SendProblem {
    return this.#client.sendInDialog(dialog, parts);
  }

  /** Cancels our INVITE. Returns the CANCEL, or `undefined` if it cannot be cancelled. */
  cancel(request: OutgoingRequest, extra: readonly Header[] = []): OutgoingRequest | undefined {
    return this.#client.cancel(request, extra);
  }

  /** Passes an unanswered request to the proxy. On an error, which it returns, the sender is already answered. */
  proxy(request: IncomingRequest, order: ProxyOrder, listener: ProxyListener): 'too-many-hops' | 'no-proxy' | null {
    const { transaction } = request;
    if (this.#proxy === null) return 'no-proxy';
    return this.#proxy.forward(transaction, transaction.request, order, {
      onFinal: (response, flow) => listener.onFinal(response, flow),
      onDone: () => {
        this.#context.dialogs.release(transaction, null);
        listener.onDone();
      },
    });
  }

  /** A request over this connection got a 2xx: later requests to its Contact use this connection until it expires. */
  registered(request: SipRequest, response: SipResponse, flow: Flow): void {
    this.#client.registered.granted(request, response, flow);
  }

  /** Ends and removes a dialog with our BYE. Returns the BYE, or `undefined` if none is possible or due. */
  hangUp(dialog: DialogEntry, reason: string): SipRequest | undefined {
    this.#acknowledge(dialog);
    const sent =
      dialog.isConfirmed && dialog.usage === 'invite' && !dialog.isEnded
        ? this.sendInDialog(dialog, { method: 'BYE', headers: [header('Reason', reason)], body: '' })
        : undefined;
    this.#context.dialogs.forget(dialog);
    return typeof sent === 'object' ? sent.message : undefined;
  }

  // ---- TransactionUser

  onRequest(transaction: ServerTransaction): void {
    if (transaction.core.toTag !== undefined && this.#proxy?.takes(transaction) === true) return;
    this.#server.onRequest(transaction);
  }

  onAck(ack: SipRequest, core: CoreHeaders, flow: Flow): void {
    if (this.#proxy?.takesAck(ack, core) === true) return;
    this.#server.onAck(ack, core, flow);
  }

  onStrayResponse(response: SipResponse, core: CoreHeaders, flow: Flow): void {
    this.#client.onStrayResponse(response, core, flow);
  }

  /** Before the dialog ends without the user's ACK. */
  #acknowledge(dialog: DialogEntry): void {
    if (!dialog.owesFirstAck || dialog.isEnded) return;
    // No other BYE is to follow this ACK.
    dialog.isCancelled = false;
    this.sendInDialog(dialog, { method: 'ACK', headers: [], body: '' });
  }

  /** The user learns of it from the BYE. */
  #endByOurselves(dialog: DialogEntry, reason: string): void {
    if (dialog.isEnded) return;
    if (!this.mayEnd(dialog)) {
      const { timers } = this.#context.stack;
      timers.start(ASLEEP_MS, () => this.#endByOurselves(dialog, reason));
      return;
    }
    const bye = this.hangUp(dialog, reason);
    if (bye !== undefined) this.#context.listener?.onDialogEnded(dialog, bye);
  }
}

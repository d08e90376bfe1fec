import { formatHostPort } from '../../lib/address.js';
import {
  endsSubscription,
  ownTransport,
  setsSession,
  settleSession,
  subscribed,
  type UserAgentContext,
  type RespondProblem,
  type ResponseParts,
  IncomingRequest,
  type IncomingOwner,
} from './user-agent-context.js';
import { contactOf } from './compose.js';
import { retryAfter } from './retry-after.js';
import { refreshTarget, uasDialog, agreedSession } from '../dialog/dialog.js';
import type { DialogRecord } from '../dialog/dialog-record.js';
import type { DialogEntry } from '../dialog/dialog-table.js';
import { topViaOf, type CoreHeaders } from '../message/core-headers.js';
import {
  getHeader,
  getHeaders,
  getList,
  hasHeader,
  header,
  type Header,
  type SipRequest,
  type SipResponse,
  serialize,
} from '../message/message.js';
import { uriScheme } from '../message/uri.js';
import { ReliableProvisionals } from '../dialog/reliable-provisionals.js';
import { makeResponse } from '../stack.js';
import type { ServerTransaction } from '../transaction/transaction-runner.js';
import type { Flow } from '../transport/flow.js';
import { LostFlow } from '../transport/lost-flow.js';
import { defaultPort } from '../transport/service-location.js';

/** The text sent, or `undefined` if the request ended while the response waited. */
export type SentCallback = (text: string | undefined) => void;

/** Per SUBSCRIBE. */
const MAX_EARLY_NOTIFIES = 8;

const REFRESHES_TARGET = new Set(['INVITE', 'UPDATE', 'SUBSCRIBE', 'NOTIFY']);

/** RFC 3261 §8.2: requests from peers, automatic responses, and the user's responses. */
export class UserAgentServer implements IncomingOwner {
  /** @param acknowledge sends the ACK to the 2xx that made this dialog, if that has none yet */
  constructor(
    private readonly context: UserAgentContext,
    private readonly acknowledge: (dialog: DialogEntry) => void,
  ) {}

  onRequest(transaction: ServerTransaction): void {
    const { core, request } = transaction;
    const scheme = uriScheme(request.uri);
    if (scheme !== 'sip' && scheme !== 'sips' && scheme !== 'tel') {
      const { address, port } = ownTransport(this.context.flows, transaction.flow);
      const warning = header('Warning', `399 ${formatHostPort(address, port)} "The Request-URI is neither sip, sips nor tel."`);
      return this.#refuse(transaction, 416, 'Unsupported URI Scheme', [warning]);
    }
    if (core.toTag !== undefined) return this.#onInDialog(transaction);
    if (request.method === 'BYE' || request.method === 'UPDATE' || request.method === 'PRACK') {
      return this.#refuse(transaction, 481, 'Call/Transaction Does Not Exist');
    }
    if (this.#answerAgain(transaction, this.context.dialogs.answerTo(core, transaction.flow))) return;
    // RFC 3261 §8.2.2.2: a merged request.
    if (!this.context.dialogs.claim(transaction)) return this.#refuse(transaction, 482, 'Loop Detected');
    this.#offer(transaction, null);
  }

  onAck(ack: SipRequest, core: CoreHeaders, flow: Flow): void {
    const dialog = this.context.dialogs.of(core);
    if (dialog?.admits(flow) !== true) return;
    dialog.heardBy(flow);
    if (!dialog.acknowledged(core.cseq.number)) return;
    this.context.listener?.onAck(dialog, ack, flow);
    // When the user has it: until then a later process is to ask for it again.
    this.context.dialogs.save(dialog, 'soon');
  }

  /** Sends a response, now or after a pending PRACK. */
  respond(request: IncomingRequest, parts: ResponseParts, sent: SentCallback): RespondProblem | null {
    const { transaction, reliable } = request;
    if (!transaction.isUnanswered) return 'unknown-transaction';
    const isReliable = isReliableProvisional(parts);
    if (isReliable && !supports100rel(request.message)) return 'no-100rel';
    // RFC 4320 §4.1, §4.2.
    if (!transaction.isInvite && (parts.status === 408 || (parts.status > 100 && parts.status < 200))) return 'not-allowed';
    if (reliable?.isWaiting === true && (isReliable || (parts.status >= 200 && parts.status < 300))) {
      // RFC 3262 §3: no second reliable response and no 2xx before the PRACK.
      reliable.afterPrack(() => this.#sendAndNotify(request, parts, isReliable, sent));
      return null;
    }
    this.#sendAndNotify(request, parts, isReliable, sent);
    return null;
  }

  onCancel(request: IncomingRequest, cancel: SipRequest | null): void {
    if (!request.transaction.isUnanswered) return;
    this.#endUnanswered(request, 487, 'Request Terminated', cancel);
  }

  onFailure(request: IncomingRequest, why: 'ack-timeout' | 'transport-error'): void {
    const { transaction, dialog } = request;
    this.context.dialogs.release(transaction, null);
    request.reliable?.end();
    if (dialog?.isEnded === true) this.context.dialogs.erase(dialog);
    if (why !== 'transport-error' || request.isAnswered) return;
    if (!transaction.isInvite) return request.onUnreachable();
    if (dialog !== null && !dialog.isConfirmed) this.context.dialogs.forget(dialog);
    request.onCancelled(null);
  }

  #onInDialog(transaction: ServerTransaction): void {
    const { core, request, flow } = transaction;
    const dialog = this.context.dialogs.of(core);
    if (dialog === undefined) {
      const early = request.method === 'NOTIFY' ? this.context.earlyNotifies.get(`${core.callId}|${core.toTag ?? ''}`) : undefined;
      if (early !== undefined && early.length < MAX_EARLY_NOTIFIES) return void early.push(transaction);
      return this.#refuseUnknown(transaction);
    }
    if (!dialog.admits(flow)) return this.#refuse(transaction, 403, 'Forbidden');
    if (request.method === 'INVITE' && this.#answerAgain(transaction, dialog.answerTo(core, flow))) return dialog.heardBy(flow);
    if (dialog.state.remoteSeq !== null && core.cseq.number <= dialog.state.remoteSeq) {
      return this.#refuse(transaction, 500, 'CSeq Out Of Order');
    }
    // RFC 3261 §14.2, RFC 3311 §5.2: another one before our final response to the first.
    const isSecond = request.method === 'INVITE' ? dialog.invite !== null : request.method === 'UPDATE' && dialog.hasPendingUpdate;
    if (isSecond) return this.#refuse(transaction, 500, 'Server Internal Error', [retryAfter()]);
    if (request.method === 'INVITE' && (dialog.hasOwnInvite || dialog.awaitsAck)) return this.#refuse(transaction, 491, 'Request Pending');
    dialog.state = { ...dialog.state, remoteSeq: core.cseq.number };
    dialog.heardBy(flow);
    const reliable = dialog.invite?.reliable;
    if (request.method === 'PRACK' && reliable?.acknowledge(request) !== true) {
      return this.#refuse(transaction, 481, 'Call/Transaction Does Not Exist');
    }
    if (request.method === 'UPDATE') dialog.hasPendingUpdate = true;
    if (REFRESHES_TARGET.has(request.method)) dialog.state = refreshTarget(dialog.state, request);
    // BYE ends the dialog on receipt: the ACK that the user still owes could not leave any more (RFC 3261 §13.2.2.4).
    if (request.method === 'BYE') {
      this.acknowledge(dialog);
      this.context.dialogs.close(dialog);
    }
    this.#offer(transaction, dialog);
    if (request.method === 'PRACK') reliable?.release();
  }

  /** An INVITE that an earlier process answered, and whose transaction died with it. */
  #answerAgain(transaction: ServerTransaction, text: string | undefined): boolean {
    if (text === undefined) return false;
    transaction.respond(200, text);
    this.context.stack.accepted(transaction);
    return true;
  }

  #refuseUnknown(transaction: ServerTransaction): void {
    const refuse = (isElsewhere: boolean): void => {
      if (!isElsewhere) return this.#refuse(transaction, 481, 'Call/Transaction Does Not Exist');
      this.#refuse(transaction, 500, 'Server Internal Error', [retryAfter()]);
    };
    const { dialogs } = this.context;
    const isElsewhere = !dialogs.isComplete || dialogs.isElsewhere(transaction.core);
    if (typeof isElsewhere === 'boolean') return refuse(isElsewhere);
    void isElsewhere.then((answer) => {
      if (transaction.isUnanswered) refuse(answer);
    });
  }

  #offer(transaction: ServerTransaction, dialog: DialogEntry | null): void {
    const request = new IncomingRequest(transaction, dialog, this);
    if (transaction.isInvite && dialog !== null) dialog.invite = request;
    if (transaction.isInvite) this.context.stack.respond(transaction, makeResponse(transaction.request, 100, 'Trying', ''));
    this.context.listener?.onRequest(request);
  }

  #refuse(transaction: ServerTransaction, status: number, reason: string, extra: readonly Header[] = []): void {
    this.context.stack.respond(transaction, makeResponse(transaction.request, status, reason, transaction.localTag, extra));
  }

  #endUnanswered(request: IncomingRequest, status: number, reason: string, cancel: SipRequest | null): void {
    const { dialog, transaction } = request;
    this.#refuse(transaction, status, reason);
    this.#finished(request, status, '');
    request.reliable?.end();
    request.onCancelled(cancel);
    if (dialog !== null && !dialog.isConfirmed) this.context.dialogs.forget(dialog);
  }

  #sendAndNotify(request: IncomingRequest, parts: ResponseParts, isReliable: boolean, sent: SentCallback): void {
    const { transaction } = request;
    if (!transaction.isUnanswered) return sent(undefined);
    this.#send(request, parts, isReliable, sent);
    if (transaction.isAccepted) this.context.stack.accepted(transaction);
  }

  #send(request: IncomingRequest, parts: ResponseParts, isReliable: boolean, sent: SentCallback): void {
    const { transaction } = request;
    if (!request.isTagged && parts.localTag !== undefined && transaction.core.toTag === undefined) transaction.localTag = parts.localTag;
    if (parts.status > 100) request.isTagged = true;
    const rseq = isReliable ? this.#reliableOf(request).nextRSeq() : null;
    const response = this.#complete(request, parts, rseq);
    const isSuccess = parts.status >= 200 && parts.status < 300;
    if ((transaction.isInvite && parts.status > 100 && parts.status < 300) || (transaction.request.method === 'SUBSCRIBE' && isSuccess)) {
      this.#establish(request);
    }
    const text = serialize(response);
    if (parts.status >= 200) this.#finished(request, parts.status, text);
    const { dialog } = request;
    if (dialog !== null) settleSession(this.context, dialog, transaction.request.method, response, response);
    if (dialog !== null && isSuccess && transaction.request.method === 'SUBSCRIBE') subscribed(dialog, request.message, response);
    if (dialog !== null && parts.status >= 200) this.context.dialogs.save(dialog);
    // First: should this process die in between, the user counts on the 200 that the next one retransmits.
    sent(text);
    transaction.respond(parts.status, text);
    if (parts.status >= 200) request.reliable?.end();
    if (rseq !== null) this.#reliableOf(request).sent(rseq, text);
  }

  #complete(request: IncomingRequest, parts: ResponseParts, rseq: number | null): SipResponse {
    const { transaction } = request;
    const { method } = transaction.request;
    const establishes = (method === 'INVITE' || method === 'SUBSCRIBE') && parts.status > 100 && parts.status < 300;
    // RFC 3261 §12.2.2: a refusal refreshes no target.
    const needsContact =
      establishes &&
      !hasHeader(parts, 'contact') &&
      (parts.status >= 200 || rseq !== null || (request.dialog?.isConfirmed === true && method === 'INVITE'));
    const extra: Header[] = [];
    if (establishes && request.dialog?.isConfirmed !== true) {
      for (const value of getHeaders(transaction.request, 'record-route')) extra.push(header('Record-Route', value));
    }
    if (needsContact) {
      extra.push(header('Contact', contactOf(ownTransport(this.context.flows, transaction.flow), transaction.flow.transport === 'TLS')));
    }
    if (rseq !== null) extra.push(header('RSeq', String(rseq)));
    if (setsSession(method, parts.status) && !hasHeader(parts, 'session-expires')) extra.push(...agreedSession(transaction.request));
    return makeResponse(transaction.request, parts.status, parts.reason, transaction.localTag, [...extra, ...parts.headers], parts.body);
  }

  #reliableOf(request: IncomingRequest): ReliableProvisionals {
    const { stack } = this.context;
    request.reliable ??= new ReliableProvisionals(request.core.cseq.number, request.flow, stack.timers, stack.timerSettings.t1Ms, () =>
      // RFC 3262 §3: the caller does not acknowledge, so the call fails.
      this.#endUnanswered(request, 504, 'Server Time-out', null),
    );
    return request.reliable;
  }

  /** Creates the dialog before its response goes out, so that no reply can miss it. */
  #establish(request: IncomingRequest): void {
    if (request.dialog !== null) return;
    const { transaction } = request;
    request.dialog = this.context.dialogs.add(
      uasDialog(transaction.request, transaction.core, transaction.localTag),
      transaction.flow,
      transaction.isInvite ? 'invite' : 'subscribe',
      transaction.mergeKey,
    );
    request.dialog.userData = request.userData;
    if (transaction.isInvite) request.dialog.invite = request;
    else request.dialog.isConfirmed = true;
  }

  #finished(request: IncomingRequest, status: number, text: string): void {
    const { transaction, dialog } = request;
    const { method } = transaction.request;
    const isSuccess = status >= 200 && status < 300;
    request.isAnswered = true;
    if (dialog !== null) {
      if (transaction.isInvite) dialog.invite = null;
      if (method === 'UPDATE') dialog.hasPendingUpdate = false;
      if (dialog.isEnded) this.context.dialogs.erase(dialog);
      if (transaction.isInvite && isSuccess) {
        dialog.isConfirmed = true;
        const answer = { cseq: transaction.core.cseq.number, text, isInitial: !request.isInDialog };
        dialog.answered(answer, repeater(this.context, dialog, transaction.flow, text));
      } else if (transaction.isInvite && !dialog.isConfirmed) this.context.dialogs.forget(dialog);
      if (endsSubscription(dialog, method, getHeader(transaction.request, 'subscription-state'))) this.context.dialogs.forget(dialog);
    }
    this.context.dialogs.release(transaction, isSuccess ? dialog : null);
  }
}

function isReliableProvisional(parts: ResponseParts): boolean {
  return parts.status > 100 && parts.status < 200 && getList(parts, 'require').some((option) => option.toLowerCase() === '100rel');
}

function supports100rel(invite: SipRequest): boolean {
  if (invite.method !== 'INVITE') return false;
  return [...getList(invite, 'supported'), ...getList(invite, 'require')].some((option) => option.toLowerCase() === '100rel');
}

/**
 * Sends the 2xx to an INVITE again: over the INVITE's connection, else the one that the dialog uses now, else a new one to the source address
 * and the port of sent-by (RFC 3261 §18.2.2).
 */
function repeater({ flows }: UserAgentContext, dialog: DialogEntry, flow: Flow, text: string): () => void {
  const { transport, remote } = flow;
  let opened: Flow | undefined;
  const open = (): Flow | undefined => {
    const via = topViaOf(text);
    if (via === undefined) return undefined;
    const port = via.port ?? defaultPort(transport);
    // RFC 3581 §4: UDP goes back to where it came from.
    if (transport === 'UDP') return flows.open({ transport, host: remote.address, port: via.params.has('rport') ? remote.port : port });
    return flows.open({ transport, host: via.host, port, address: remote.address });
  };
  return () => {
    const known = [flow, dialog.flow, opened].find((one) => one?.isOpen === true);
    if (known === undefined) opened = open();
    (known ?? opened)?.send(text);
  };
}

/** Continues a dialog of an earlier process: its session timer, and the 2xx without an ACK, which gets its full 64·T1 again. */
export function restoreDialog(context: UserAgentContext, record: DialogRecord): DialogEntry {
  const { transport, sourceAddress, sourcePort, unacknowledged } = record;
  const flow = new LostFlow(transport, { address: sourceAddress, port: sourcePort }, context.flows.advertised(transport));
  const dialog = context.dialogs.restore(record, flow);
  context.sessions.resume(dialog, record);
  if (unacknowledged !== null) dialog.answered(unacknowledged, repeater(context, dialog, flow, unacknowledged.text));
  return dialog;
}

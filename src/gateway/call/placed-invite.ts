import { errorText } from '../../lib/result.js';
import type { Log } from '../../lib/log.js';
import type { Reason } from '../model/reasons.js';
import { reasonHeaderOf } from '../model/reasons.js';
import {
  ConnectionLostError,
  type InviteResponse,
  type RequestInDialog,
  type SentInvite,
  type SrfApp,
  type SrfDialog,
  type SrfHandler,
  type SrfHeaders,
} from '../ports/signalling.js';
import type { CallTrace } from './call-trace.js';
import type { TrunkAuthorization } from './trunk-authorization.js';

/** Whom a call that we place is for, and how the trunk is told. */
export interface DialTarget {
  /** Request-URI. */
  readonly uri: string;
  /** From, To, Call-ID, Contact and what we support. */
  readonly headers: SrfHeaders;
  /** Id of the dialog that it makes; `null`: not known before. */
  readonly dialogId: string | null;
  /** No session timer is agreed. */
  readonly noReinvite?: boolean;
  /** Asked right before it leaves; left out: it may. Rejects with `StoreUnavailableError`. */
  readonly confirm?: () => Promise<boolean>;
}

export interface PlacedInviteOwner {
  /** It went out, and its dialog, should there be one, will have this id. */
  onSent(dialogId: string): void;
  /** It does not leave: its turn is over, or `error`. */
  onWithdrawn(error: string | null): void;
  /** A provisional response above 100. @param sdp of its dialog, '' without one */
  onProceeding(status: number, sdp: string): void;
  onAnswered(dialog: SrfDialog, sdp: string, response: InviteResponse): void;
  /**
   * @param unanswered why there is no response: the status is the SIP server's own, or ours; `null`: it is the trunk's
   * @param reason its Reason header
   */
  onRefused(status: number, unanswered: string | null, reason?: string): void;
  /** Sends a request in the early dialog, and answers its challenges. */
  request(dialogId: string, request: RequestInDialog, onAnswer: Parameters<SrfApp['request']>[2]): void;
  readonly onUpdate: SrfHandler;
}

/** Early dialogs whose description is remembered. */
const MAX_FORKS = 8;
/** RFC 4028 §4: recommended; and the longest that a 422 can ask for. Seconds. */
const SESSION_SECONDS = 1_800;
const MAX_MIN_SE_SECONDS = 86_400;
/** A PRACK and its repetitions after challenges. */
const CSEQS_PER_PRACK = 3;
/** In the place of a response that never came. */
const NO_RESPONSE = 408;
const NOT_SENT = 503;

/** Our INVITE: sends it, answers challenges, and hands over the dialog of its 2xx. Decides nothing else. */
export class PlacedInvite {
  #sent: SentInvite | null = null;
  #final: InviteResponse | null = null;
  #isCancelled = false;
  /** By To tag: a 2xx may leave out what its 18x had. */
  readonly #earlySdp = new Map<string, string>();
  /** Of this INVITE, since it was sent last. */
  #pracks = 0;
  /** After a 422: what it asked for. */
  #sessionTimer: SrfHeaders = {};
  readonly #settled: () => void;

  constructor(
    private readonly srf: SrfApp,
    private readonly target: DialTarget,
    private readonly sdp: string,
    private readonly authorization: TrunkAuthorization,
    private readonly owner: PlacedInviteOwner,
    private readonly trace: CallTrace,
    private readonly log: Log,
  ) {
    this.#settled = trace.expect();
  }

  send(): void {
    const { confirm } = this.target;
    if (confirm === undefined) return this.#send({});
    const withdraw = (error: string | null): void => {
      this.#settled();
      this.owner.onWithdrawn(error);
    };
    confirm().then(
      // In the same turn of the event loop: nothing may come in between.
      (isConfirmed) => (isConfirmed && !this.#isCancelled ? this.#send({}) : withdraw(null)),
      (error: unknown) => withdraw(errorText(error)),
    );
  }

  /** The call is over. */
  close(): void {
    this.#isCancelled = true;
  }

  /** As it was sent last. */
  get text(): string {
    return this.#sent?.raw ?? '';
  }

  cancel(reason: Reason): void {
    this.#isCancelled = true;
    if (this.#sent === null && this.target.confirm !== undefined) return;
    this.trace.sip('out', undefined, 'CANCEL');
    this.#sent?.cancel({ Reason: reasonHeaderOf(reason) });
  }

  /** ACK to the 2xx, with the credentials of its INVITE (RFC 3261 §22.1). */
  acknowledge(): void {
    const final = this.#final;
    if (final === null) return;
    this.#final = null;
    final.acknowledge(this.authorization.headers, (raw) => {
      this.trace.sip('out', raw, 'ACK');
      this.#settled();
    });
  }

  /** @param again of the INVITE that was challenged: its tag, and the next CSeq (RFC 3261 §8.1.3.5) */
  #send(again: SrfHeaders): void {
    const { uri, headers } = this.target;
    const invite = { uri, headers: { ...headers, ...again, ...this.#sessionTimer, ...this.authorization.headers }, body: this.sdp };
    this.#pracks = 0;
    this.srf.place(invite, {
      onSent: (sent) => {
        this.#sent = sent;
        this.trace.sip('out', sent.raw, `INVITE ${uri}`);
        this.owner.onSent(`${sent.get('Call-ID') ?? ''};from-tag=${tagOf(sent, 'From')}`);
        if (this.#isCancelled) sent.cancel({});
      },
      onResponse: (response) => this.#onResponse(response),
      onUpdate: this.owner.onUpdate,
      onFailed: (error) => {
        this.log.warn({ error: errorText(error) }, 'call.invite.failed');
        this.#settled();
        this.owner.onRefused(error instanceof ConnectionLostError ? NO_RESPONSE : NOT_SENT, errorText(error));
      },
    });
  }

  #onResponse(response: InviteResponse): void {
    const { status, unanswered } = response;
    if (unanswered === null) this.trace.sip('in', response.raw, `SIP/2.0 ${String(status)}`);
    else this.trace.sip(null, response.raw, `no response to INVITE: ${unanswered}`);
    if (status < 200) return this.#onProvisional(response);
    if (status < 300) return this.#onSuccess(response);
    if (!this.#isCancelled && this.#sendsAgain(response)) return;
    this.#settled();
    this.owner.onRefused(status, unanswered, response.get('Reason'));
  }

  #onProvisional(response: InviteResponse): void {
    const tag = tagOf(response);
    if (response.body !== '' && this.#earlySdp.size < MAX_FORKS) this.#earlySdp.set(tag, response.body);
    this.#acknowledgeProvisional(response);
    this.owner.onProceeding(response.status, response.body);
  }

  /** RFC 3262 §4. The SIP server shows each reliable response once, and in order. */
  #acknowledgeProvisional(response: InviteResponse): void {
    const rseq = response.get('RSeq');
    if (rseq === undefined) return;
    this.#pracks += 1;
    const headers = { RAck: `${rseq.trim()} ${response.get('CSeq') ?? ''}` };
    this.owner.request(response.dialogId, { method: 'PRACK', headers }, (error, answer) => {
      if (answer === undefined || answer.status >= 300) this.log.warn({ error: answer?.status ?? errorText(error) }, 'call.prack.failed');
    });
  }

  #onSuccess(response: InviteResponse): void {
    this.#final = response;
    const sdp = response.body === '' ? (this.#earlySdp.get(tagOf(response)) ?? '') : response.body;
    let dialog: SrfDialog;
    try {
      dialog = response.dialog();
    } catch (error) {
      // Without a Contact: it is ended where the INVITE went.
      this.log.warn({ error: errorText(error) }, 'call.invite.answer_unusable');
      this.acknowledge();
      this.srf.request(response.dialogId, { method: 'BYE' }, () => undefined);
      return this.owner.onRefused(response.status, null);
    }
    this.owner.onAnswered(dialog, sdp, response);
  }

  /** After a challenge that can be answered, or a session interval that is too small. */
  #sendsAgain(response: InviteResponse): boolean {
    const { status, raw = '' } = response;
    if (!this.#lengthensSession(response) && !this.authorization.answers({ method: 'INVITE', uri: this.target.uri }, status, raw))
      return false;
    const cseq = Number.parseInt(this.#sent?.get('CSeq') ?? '', 10) + 1 + CSEQS_PER_PRACK * this.#pracks;
    this.#send({ From: this.#sent?.get('From') ?? '', CSeq: `${String(cseq)} INVITE` });
    return true;
  }

  /** RFC 4028 §7.3, once: a proxy had set an interval that the next one refused. */
  #lengthensSession(response: InviteResponse): boolean {
    const least = /^\s*(\d{1,6})\s*(?:;|$)/.exec(response.get('Min-SE') ?? '')?.[1];
    if (response.status !== 422 || least === undefined || Number(least) > MAX_MIN_SE_SECONDS) return false;
    if (this.#sessionTimer['Min-SE'] !== undefined || this.target.noReinvite === true) return false;
    this.#sessionTimer = { 'Session-Expires': String(Math.max(SESSION_SECONDS, Number(least))), 'Min-SE': least };
    return true;
  }
}

function tagOf(message: Pick<InviteResponse, 'get'>, header: 'From' | 'To' = 'To'): string {
  return /;\s*tag\s*=\s*([^;\s]+)/i.exec(message.get(header) ?? '')?.[1] ?? '';
}

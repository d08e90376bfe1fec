import { errorText } from '../../lib/result.js';
import type { Log } from '../../lib/log.js';
import type { Reason } from '../model/reasons.js';
import { reasonHeaderOf } from '../model/reasons.js';
import {
  ConnectionLostError,
  type InviteResponse,
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
}

export interface PlacedInviteOwner {
  /** A provisional response above 100. */
  onProceeding(status: number): void;
  onAnswered(dialog: SrfDialog, sdp: string): void;
  /** @param isLocal the SIP server's own status, in place of a response */
  onRefused(status: number, isLocal: boolean): void;
  readonly onUpdate: SrfHandler;
}

/** Early dialogs whose description is remembered. */
const MAX_FORKS = 8;
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
    this.#send({});
  }

  /** As it was sent last. */
  get text(): string {
    return this.#sent?.raw ?? '';
  }

  cancel(reason: Reason): void {
    this.#isCancelled = true;
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
    const invite = { uri, headers: { ...headers, ...again, ...this.authorization.headers }, body: this.sdp };
    this.srf.place(invite, {
      onSent: (sent) => {
        this.#sent = sent;
        this.trace.sip('out', sent.raw, `INVITE ${uri}`);
        if (this.#isCancelled) sent.cancel({});
      },
      onResponse: (response) => this.#onResponse(response),
      onUpdate: this.owner.onUpdate,
      onFailed: (error) => {
        this.log.warn({ error: errorText(error) }, 'call.invite.failed');
        this.#settled();
        this.owner.onRefused(error instanceof ConnectionLostError && this.#sent !== null ? NO_RESPONSE : NOT_SENT, true);
      },
    });
  }

  #onResponse(response: InviteResponse): void {
    const { status, isLocal } = response;
    this.trace.sip('in', response.raw, `SIP/2.0 ${String(status)}`);
    if (status < 200) return this.#onProvisional(response);
    if (status < 300) return this.#onSuccess(response);
    if (!this.#isCancelled && this.#sendsAgain(response)) return;
    this.#settled();
    this.owner.onRefused(status, isLocal);
  }

  #onProvisional(response: InviteResponse): void {
    const tag = tagOf(response);
    if (response.body !== '' && this.#earlySdp.size < MAX_FORKS) this.#earlySdp.set(tag, response.body);
    this.owner.onProceeding(response.status);
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
      return this.owner.onRefused(response.status, false);
    }
    this.owner.onAnswered(dialog, sdp);
  }

  /** After a challenge that can be answered. */
  #sendsAgain({ status, raw = '' }: InviteResponse): boolean {
    if (!this.authorization.answers({ method: 'INVITE', uri: this.target.uri }, status, raw)) return false;
    const cseq = Number.parseInt(this.#sent?.get('CSeq') ?? '', 10);
    this.#send({ From: this.#sent?.get('From') ?? '', CSeq: `${String(cseq + 1)} INVITE` });
    return true;
  }
}

function tagOf(response: InviteResponse): string {
  return /;\s*tag\s*=\s*([^;\s]+)/i.exec(response.get('To') ?? '')?.[1] ?? '';
}

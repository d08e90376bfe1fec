import { chooseChallenge, digestAnswer, type DigestCredentials } from '../../lib/digest-access.js';
import { newToken } from '../../lib/ids.js';
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

/** Whom a call that we place is for, and how the trunk is told. */
export interface DialTarget {
  /** Request-URI. */
  readonly uri: string;
  /** From, To, Call-ID, Contact and what we support. */
  readonly headers: SrfHeaders;
  /** `null`: a challenge is a refusal. */
  readonly credentials: TrunkCredentials | null;
}

export interface TrunkCredentials extends DigestCredentials {
  /** Only a challenge of this realm is answered; `null`: any. */
  readonly realm: string | null;
}

export interface PlacedInviteOwner {
  /** A provisional response above 100. */
  onProceeding(status: number): void;
  onAnswered(dialog: SrfDialog, sdp: string): void;
  /** @param isLocal the SIP server's own status, in place of a response */
  onRefused(status: number, isLocal: boolean): void;
  readonly onUpdate: SrfHandler;
}

/** INVITEs with credentials that follow a challenge: a second one when only the nonce was too old, or another realm asks. */
const MAX_AUTHORIZED = 2;
/** Early dialogs whose description is remembered. */
const MAX_FORKS = 8;
/** In the place of a response that never came. */
const NO_RESPONSE = 408;
const NOT_SENT = 503;

interface Authorization {
  readonly header: 'Authorization' | 'Proxy-Authorization';
  readonly realm: string;
  readonly value: string;
}

/** Our INVITE: sends it, answers challenges, and hands over the dialog of its 2xx. Decides nothing else. */
export class PlacedInvite {
  #sent: SentInvite | null = null;
  #final: InviteResponse | null = null;
  #isCancelled = false;
  #authorizedCount = 0;
  #authorizations: readonly Authorization[] = [];
  /** By To tag: a 2xx may leave out what its 18x had. */
  readonly #earlySdp = new Map<string, string>();
  readonly #settled: () => void;

  constructor(
    private readonly srf: SrfApp,
    private readonly target: DialTarget,
    private readonly sdp: string,
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
    final.acknowledge(this.#credentials(), (raw) => {
      this.trace.sip('out', raw, 'ACK');
      this.#settled();
    });
  }

  /** @param again of the INVITE that was challenged: its tag, and the next CSeq (RFC 3261 §8.1.3.5) */
  #send(again: SrfHeaders): void {
    const { uri, headers } = this.target;
    const invite = { uri, headers: { ...headers, ...again, ...this.#credentials() }, body: this.sdp };
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
    if (!this.#isCancelled && (status === 401 || status === 407) && this.#authorize(response)) return;
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

  /** Sends the INVITE again with credentials; false: the challenge cannot be answered, or was answered already. */
  #authorize(response: InviteResponse): boolean {
    const { credentials, uri } = this.target;
    const header = response.status === 401 ? 'Authorization' : 'Proxy-Authorization';
    const challenges = headerValues(response.raw ?? '', response.status === 401 ? 'www-authenticate' : 'proxy-authenticate');
    const challenge = credentials === null ? undefined : chooseChallenge(challenges, credentials.realm);
    if (credentials === null || challenge === undefined || this.#authorizedCount >= MAX_AUTHORIZED) return false;
    const { realm, isStale } = challenge;
    const others = this.#authorizations.filter((one) => one.header !== header || one.realm !== realm);
    if (others.length < this.#authorizations.length && !isStale) return false;
    this.#authorizedCount += 1;
    const value = digestAnswer(challenge, credentials, { method: 'INVITE', uri, count: 1, cnonce: newToken(22) });
    this.#authorizations = [...others, { header, realm, value }];
    const cseq = Number.parseInt(this.#sent?.get('CSeq') ?? '', 10);
    this.#send({ From: this.#sent?.get('From') ?? '', CSeq: `${String(cseq + 1)} INVITE` });
    return true;
  }

  /** One header of each kind: of two realms in one, the later. */
  #credentials(): SrfHeaders {
    return Object.fromEntries(this.#authorizations.map(({ header, value }) => [header, value]));
  }
}

function tagOf(response: InviteResponse): string {
  return /;\s*tag\s*=\s*([^;\s]+)/i.exec(response.get('To') ?? '')?.[1] ?? '';
}

/** All values of a header of a message, in order: drachtio-srf keeps one of them. */
export function headerValues(text: string, name: string): string[] {
  const head = text.split('\r\n\r\n', 1)[0]?.replace(/\r\n[ \t]+/g, ' ') ?? '';
  return head.split('\r\n').flatMap((line) => {
    const colon = line.indexOf(':');
    return colon > 0 && line.slice(0, colon).trim().toLowerCase() === name ? [line.slice(colon + 1).trim()] : [];
  });
}

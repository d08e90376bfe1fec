import { randomInt } from 'node:crypto';
import { newTag, newUuid } from '../../lib/ids.js';
import { errorText } from '../../lib/result.js';
import type { CancelTimer, Clock } from '../../lib/clock.js';
import type { Log } from '../../lib/log.js';
import { headerValues, TrunkAuthorization, trunkCredentials } from '../call/trunk-authorization.js';
import { trunkHeaders } from '../call/trunk-tls.js';
import type { NumberRecord, OutboundTrunk, TrunkRegistration } from '../model/records.js';
import { accountOf, oneOfEach } from '../model/trunk-account.js';
import type { RegistrationStore } from '../ports/registrations.js';
import type { SrfAnswer, SrfApp } from '../ports/signalling.js';
import { serverUri } from './outbound.js';

export interface RegistrarServices {
  readonly registrations: RegistrationStore;
  readonly srf: Pick<SrfApp, 'register'>;
  /** Whether the organization may use the trunk: a sentence when not. */
  readonly refusal: (number: NumberRecord) => Promise<string | null>;
  /** Our Contact with this user; `null`: the SIP server is not connected. */
  readonly contact: (user: string) => string | null;
  /** Registrars are at public addresses alone. */
  readonly trunksArePublic: boolean;
  readonly clock: Clock;
  readonly log: Log;
}

/** What this gateway registers. */
interface Registration {
  readonly account: string;
  number: NumberRecord;
  readonly trunk: OutboundTrunk;
  /** RFC 3261 §10.2: one for all REGISTERs of a user agent. */
  readonly callId: string;
  readonly tag: string;
  cseq: number;
  dueMs: number;
  expiresSeconds: number;
  failures: number;
  isBusy: boolean;
  isRegistered: boolean;
}

const TICK_MS = 2_000;
/** Several ticks: another gateway takes over when this one is gone that long. */
const CLAIM_MS = 15_000;
const EXPIRES_SECONDS = 600;
const MAX_EXPIRES_SECONDS = 86_400;
/** Refreshes come this share of the lifetime before its end. */
const REFRESH_AT = 0.75;
/**
 * But at most after so long: a registrar forgets us with a connection that breaks, and the control protocol does not report that. The next
 * REGISTER opens another one.
 */
const MOST_REFRESH_MS = 120_000;
/** A shorter lifetime ends before the refresh, which waits for a tick; 0 is no registration at all. */
const LEAST_GRANTED_SECONDS = 10;
/** RFC 5626 §4.5: the wait doubles with each failure. */
const RETRY_MS = 30_000;
const MAX_RETRY_MS = 1_800_000;
const STOP_LIMIT_MS = 1_000;

/** Registers trunks that want it (RFC 3261 §10.2), each by one gateway of all, and refreshes before it expires. */
export class TrunkRegistrar {
  readonly #own = new Map<string, Registration>();
  #cancel: CancelTimer | undefined;
  #ticking: Promise<void> = Promise.resolve();
  #isClosed = false;

  constructor(private readonly services: RegistrarServices) {}

  start(): void {
    this.#cancel = this.services.clock.setTimer(TICK_MS, () => {
      this.#ticking = this.#tick()
        .catch((error: unknown) => this.services.log.warn({ error: errorText(error) }, 'trunk.registrations.unknown'))
        .then(() => {
          if (!this.#isClosed) this.start();
        });
    });
  }

  /** The SIP server is another one, and its connections are gone. */
  refresh(): void {
    for (const own of this.#own.values()) if (own.isRegistered) own.dueMs = 0;
  }

  /** @param isOver nobody goes on with this gateway's registrations: they are taken back */
  async stop(isOver: boolean): Promise<void> {
    this.#isClosed = true;
    this.#cancel?.();
    await this.#ticking;
    if (isOver) await Promise.all([...this.#own.values()].map((own) => this.#give(own).catch(() => undefined)));
    this.#own.clear();
  }

  async #tick(): Promise<void> {
    const { registrations, refusal } = this.services;
    const accounts = await oneOfEach(await registrations.registering(), accountOf, refusal);
    for (const own of [...this.#own.values()]) if (!accounts.has(own.account)) await this.#give(own);
    for (const [account, number] of accounts) {
      if (await registrations.claim(account, CLAIM_MS)) this.#keep(account, number);
      else this.#own.delete(account);
    }
  }

  #keep(account: string, number: NumberRecord): void {
    const trunk = number.outbound;
    if (trunk === null) return;
    const known = this.#own.get(account);
    const isSame =
      known !== undefined && JSON.stringify([known.trunk, known.number.phone_number]) === JSON.stringify([trunk, number.phone_number]);
    const fresh = { callId: newUuid(), tag: newTag(), cseq: randomInt(1, 2 ** 30), failures: 0, isBusy: false, isRegistered: false };
    // The customer saved the trunk again: the registrar may have been mended.
    if (isSame && known.failures > 0 && known.number.updated_at !== number.updated_at)
      Object.assign(known, { dueMs: 0, failures: 0, number });
    const own = isSame ? known : { ...fresh, ...known, account, number, trunk, dueMs: 0, failures: 0, expiresSeconds: EXPIRES_SECONDS };
    this.#own.set(account, own);
    if (!own.isBusy && this.services.clock.nowMs() >= own.dueMs) this.#register(own);
  }

  #register(own: Registration): void {
    own.isBusy = true;
    this.#send(own, own.expiresSeconds, (error, answer) => {
      own.isBusy = false;
      this.#settled(own, error, answer);
    });
  }

  /** Answers challenges. */
  #send(own: Registration, expiresSeconds: number, onAnswer: Parameters<SrfApp['register']>[1]): void {
    const { srf, contact, trunksArePublic } = this.services;
    const { trunk, number } = own;
    const { registrar = '', username = '' } = trunk;
    const ownContact = contact(number.phone_number);
    if (ownContact === null) return onAnswer(new Error('the SIP server is not connected'));
    const { uri, host } = serverUri(registrar);
    const user = `<sip:${encodeURIComponent(username)}@${host}>`;
    const credentials = trunkCredentials(trunk);
    const authorization = new TrunkAuthorization(credentials);
    const send = (): void => {
      own.cseq += 1;
      const headers = {
        From: `${user};tag=${own.tag}`,
        To: user,
        'Call-ID': own.callId,
        CSeq: `${String(own.cseq)} REGISTER`,
        Contact: ownContact,
        Expires: String(expiresSeconds),
        ...authorization.headers,
        ...trunkHeaders(trunk, trunksArePublic),
      };
      srf.register({ uri, headers }, (error, answer) => {
        const isChallenge = answer !== undefined && authorization.answers({ method: 'REGISTER', uri }, answer.status, answer.raw);
        if (isChallenge) send();
        else onAnswer(error, answer);
      });
    };
    send();
  }

  #settled(own: Registration, error: unknown, answer: SrfAnswer | undefined): void {
    const { clock, log } = this.services;
    const nowMs = clock.nowMs();
    const least = answer?.status === 423 ? secondsOf(headerValues(answer.raw, 'min-expires')[0]) : null;
    if (least !== null && least > own.expiresSeconds && least <= MAX_EXPIRES_SECONDS) {
      own.expiresSeconds = least;
      own.dueMs = nowMs;
      return;
    }
    const isTaken = answer !== undefined && answer.status < 300;
    const ownContact = this.services.contact(own.number.phone_number) ?? '';
    const granted = isTaken ? grantedSeconds(answer.raw, ownContact, own.expiresSeconds) : 0;
    own.isRegistered = granted >= LEAST_GRANTED_SECONDS;
    own.failures = own.isRegistered ? 0 : own.failures + 1;
    const grantedMs = 1_000 * granted;
    if (own.isRegistered) own.dueMs = nowMs + Math.min(REFRESH_AT * grantedMs, MOST_REFRESH_MS);
    else own.dueMs = nowMs + Math.max(backOffMs(own.failures), askedToWaitMs(answer));
    const isReached = answer?.unanswered === null;
    const wallMs = clock.wallMs();
    this.#note(own, {
      state: own.isRegistered ? 'registered' : isReached ? 'refused' : 'unreachable',
      status: isReached ? answer.status : null,
      expires_at: own.isRegistered ? new Date(wallMs + grantedMs).toISOString() : null,
      changed_at: new Date(wallMs).toISOString(),
    });
    if (own.isRegistered) return;
    const { org_id: orgId } = own.number;
    const why = isTaken ? `granted ${String(granted)} s` : (answer?.unanswered ?? answer?.status ?? errorText(error));
    log.warn({ org_id: orgId, error: why, attempts: own.failures }, 'trunk.not_registered');
  }

  #note(own: Registration, registration: TrunkRegistration): void {
    this.services.registrations
      .note(own.account, registration)
      .catch((error: unknown) => this.services.log.warn({ error: errorText(error) }, 'trunk.registrations.unknown'));
  }

  /** RFC 3261 §10.2.2: takes the binding back, and leaves the account to others. */
  async #give(own: Registration): Promise<void> {
    this.#own.delete(own.account);
    if (own.isRegistered) {
      await new Promise<void>((resolve) => {
        this.services.clock.setTimer(STOP_LIMIT_MS, resolve);
        this.#send(own, 0, () => resolve());
      });
    }
    await this.services.registrations.release(own.account);
  }
}

/** How long our binding lasts, of all that a 200 lists (RFC 3261 §10.2.4): by itself, by the header, or as asked for. @param contact as sent */
function grantedSeconds(text: string, contact: string, asked: number): number {
  const bindings = [...headerValues(text, 'contact'), ...headerValues(text, 'm')].flatMap((value) =>
    value.split(/,(?=\s*(?:"|<|sips?:))/i),
  );
  const own = bindings.find((binding) => binding.toLowerCase().includes(contact.toLowerCase()));
  const ofBinding = /;\s*expires\s*=\s*(\d{1,9})/i.exec(own ?? '')?.[1];
  const granted = secondsOf(ofBinding) ?? secondsOf(headerValues(text, 'expires')[0]) ?? asked;
  return Math.min(granted, asked);
}

function backOffMs(failures: number): number {
  return Math.min(MAX_RETRY_MS, RETRY_MS * 2 ** (failures - 1)) * (randomInt(50, 101) / 100);
}

/** RFC 3261 §20.33, up to a day. */
function askedToWaitMs(answer: SrfAnswer | undefined): number {
  const seconds = /^\d{1,9}/.exec(headerValues(answer?.raw ?? '', 'retry-after')[0]?.trim() ?? '')?.[0];
  return 1_000 * Math.min(Number(seconds ?? 0), MAX_EXPIRES_SECONDS);
}

function secondsOf(text: string | undefined): number | null {
  return text !== undefined && /^\d{1,9}$/.test(text) ? Number(text) : null;
}

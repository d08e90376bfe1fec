import { newTag, newUuid } from '../../lib/ids.js';
import { errorText } from '../../lib/result.js';
import type { CancelTimer, Clock } from '../../lib/clock.js';
import type { Log } from '../../lib/log.js';
import { trunkHeaders } from '../call/trunk-tls.js';
import type { NumberRecord, TrunkState } from '../model/records.js';
import { oneOfEach, watchedTrunkOf } from '../model/trunk-account.js';
import type { RegistrationStore } from '../ports/registrations.js';
import type { SrfAnswer, SrfApp } from '../ports/signalling.js';
import { serverUri } from './outbound.js';

export interface TrunkWatchServices {
  readonly trunks: Pick<RegistrationStore, 'watching' | 'claim' | 'noteTrunk' | 'trunkStates'>;
  readonly srf: Pick<SrfApp, 'options'>;
  /** Whether the organization may use the trunk: a sentence when not. */
  readonly refusal: (number: NumberRecord) => Promise<string | null>;
  /** Trunks are at public addresses alone. */
  readonly trunksArePublic: boolean;
  readonly clock: Clock;
  readonly log: Log;
}

/** What this gateway asks. */
interface Watched {
  dueMs: number;
  failures: number;
  isBusy: boolean;
}

const TICK_MS = 2_000;
/** Several ticks: another gateway takes over when this one is gone that long. */
const CLAIM_MS = 15_000;
/** One OPTIONS may be lost with its connection; it is asked again at the next tick. */
const FAILURES_UNTIL_DOWN = 2;
/** Asked more often than that, so that calls go out again soon. */
const DOWN_INTERVAL_MS = 10_000;
/** A state expires after this number of intervals without a gateway that asks. */
const KEPT_INTERVALS = 4;
/** With these a server says itself that it is down (RFC 3261 §21.4.9, §21.5.4). Any other status is an answer. */
const DOWN_STATUSES: ReadonlySet<number> = new Set([408, 503]);

/** Sends OPTIONS to trunks that want it (RFC 3261 §11), each by one gateway of all, and knows which answer. */
export class TrunkWatch {
  readonly #own = new Map<string, Watched>();
  #states: ReadonlyMap<string, TrunkState> = new Map();
  #contact: (user: string) => string | null = () => null;
  #cancel: CancelTimer | undefined;
  #isClosed = false;

  constructor(private readonly services: TrunkWatchServices) {}

  /** @param contact ours with this user; `null`: the SIP server is not connected */
  start(contact: (user: string) => string | null): void {
    this.#contact = contact;
    this.#cancel = this.services.clock.setTimer(TICK_MS, () => {
      void this.#tick()
        .catch((error: unknown) => this.services.log.warn({ error: errorText(error) }, 'trunk.states.unknown'))
        .then(() => {
          if (!this.#isClosed) this.start(contact);
        });
    });
  }

  stop(): void {
    this.#isClosed = true;
    this.#cancel?.();
  }

  /** Why the trunk takes no calls, for a person; `null`: it does, as far as is known. */
  downReason(number: Pick<NumberRecord, 'org_id' | 'outbound'>): string | null {
    const trunk = watchedTrunkOf(number);
    const state = trunk === null ? undefined : this.#states.get(trunk);
    return state?.state === 'down' ? `the trunk has not answered OPTIONS since ${state.changed_at}: ${state.error ?? ''}` : null;
  }

  /** Over all gateways. */
  count(state: TrunkState['state']): number {
    return [...this.#states.values()].filter((one) => one.state === state).length;
  }

  async #tick(): Promise<void> {
    const { trunks, refusal } = this.services;
    const watched = await oneOfEach(await trunks.watching(), watchedTrunkOf, refusal);
    for (const trunk of [...this.#own.keys()]) if (!watched.has(trunk)) this.#own.delete(trunk);
    for (const [trunk, number] of watched) {
      if (await trunks.claim(trunk, CLAIM_MS)) this.#ask(trunk, number);
      else this.#own.delete(trunk);
    }
    const names = [...watched.keys()];
    const states = names.length === 0 ? [] : await trunks.trunkStates(names);
    this.#states = new Map(names.flatMap((name, index) => (states[index] == null ? [] : [[name, states[index]]])));
  }

  #ask(trunk: string, { phone_number: phone, org_id: orgId, outbound }: NumberRecord): void {
    const { clock, srf, trunksArePublic } = this.services;
    const own = this.#own.get(trunk) ?? { dueMs: 0, failures: 0, isBusy: false };
    this.#own.set(trunk, own);
    const contact = this.#contact(phone);
    if (outbound === null || contact === null || own.isBusy || clock.nowMs() < own.dueMs) return;
    const intervalMs = 1_000 * (outbound.options_interval_s ?? 0);
    own.isBusy = true;
    const { uri } = serverUri(outbound.sip_endpoint);
    const headers = {
      From: `${contact};tag=${newTag()}`,
      To: `<${uri}>`,
      'Call-ID': newUuid(),
      Contact: contact,
      Accept: 'application/sdp',
      ...trunkHeaders(outbound, trunksArePublic),
    };
    srf.options({ uri, headers }, (error, answer) => {
      own.isBusy = false;
      const problem = problemOf(error, answer);
      own.failures = problem === null ? 0 : own.failures + 1;
      const isDown = own.failures >= FAILURES_UNTIL_DOWN;
      own.dueMs = clock.nowMs() + (problem === null ? intervalMs : isDown ? Math.min(intervalMs, DOWN_INTERVAL_MS) : 0);
      if (problem !== null && !isDown) return;
      this.#note(trunk, orgId, problem, KEPT_INTERVALS * intervalMs);
    });
  }

  #note(trunk: string, orgId: string, problem: string | null, forMs: number): void {
    const { clock, log, trunks } = this.services;
    const before = this.#states.get(trunk);
    const state = problem === null ? 'up' : 'down';
    const changedAt = before?.state === state ? before.changed_at : new Date(clock.wallMs()).toISOString();
    const now: TrunkState = { state, error: problem, changed_at: changedAt };
    this.#states = new Map(this.#states).set(trunk, now);
    if (before?.state !== state && (before !== undefined || state === 'down'))
      log.warn({ org_id: orgId, state, error: problem }, 'trunk.state_changed');
    trunks.noteTrunk(trunk, now, forMs).catch((error: unknown) => log.warn({ error: errorText(error) }, 'trunk.states.unknown'));
  }
}

function problemOf(error: unknown, answer: SrfAnswer | undefined): string | null {
  if (answer === undefined) return errorText(error);
  if (answer.unanswered !== null) return answer.unanswered;
  return DOWN_STATUSES.has(answer.status) ? `it answered ${String(answer.status)}` : null;
}

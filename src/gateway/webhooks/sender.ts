import type { CompletionPayload } from '../model/completion.js';
import type { Delivery } from '../model/delivery.js';
import type { OrgRecord } from '../model/records.js';
import type { CancelTimer, Clock } from '../../lib/clock.js';
import { errorText } from '../../lib/result.js';
import type { Log } from '../../lib/log.js';
import { publish } from '../ports/events.js';
import { OUTBOX_LANES, outboxLane, type CallLog, type FoundAnalysis, type OrgStore, type Outbox } from '../ports/stores.js';
import type { Analyst, Findings } from './analyst.js';
import type { Attempt } from './post.js';
import { nextAttemptInMs, type RetrySchedule } from './retry-schedule.js';
import { signedHeaders } from './signature.js';

export interface WebhookSenderParts {
  readonly outbox: Pick<Outbox, 'dueLanes' | 'claim' | 'settle' | 'defer' | 'bury'>;
  readonly orgs: Pick<OrgStore, 'get'>;
  readonly calls: Pick<CallLog, 'addAnalysis'>;
  readonly analyst: Pick<Analyst, 'find'>;
  readonly post: (url: string, body: string, headers: Readonly<Record<string, string>>, aborted: AbortSignal) => Promise<Attempt>;
  readonly schedule: RetrySchedule;
  readonly clock: Clock;
  readonly log: Log;
  /** Longer than any attempt: what a gateway that died had under way is sent again after it. */
  readonly claimMs: number;
  /** 0 to 1. */
  readonly chance: () => number;
}

const POLL_MS = 1_000;
/** How often one of the lanes is looked at whatever the index tells. */
const SWEEP_MS = 10_000;
const MAX_UNDER_WAY = 128;
const MAX_UNDER_WAY_OF_LANE = 32;
const CLOSE_LIMIT_MS = 2_000;
/** After the end of the call. The webhook goes without an analysis then. */
const ANALYSIS_LIMIT_MS = 30_000;
/** One attempt. */
export const ANALYSIS_TIMEOUT_MS = 20_000;
const ANALYSIS_RETRY_MS = 2_000;

/** One lane of the outbox, as this process sees it. */
interface Lane {
  readonly number: number;
  underWay: number;
  isClaiming: boolean;
  /** Something became due while it was claimed. */
  isKicked: boolean;
}

/** Delivers what is due in the outbox, beside the senders of other gateways. */
export class WebhookSender {
  readonly #lanes = Array.from({ length: OUTBOX_LANES }, (_, number): Lane => ({
    number,
    underWay: 0,
    isClaiming: false,
    isKicked: false,
  }));
  readonly #work = new Set<Promise<void>>();
  readonly #aborted = new AbortController();
  #underWay = 0;
  #cancelPoll: CancelTimer | undefined;
  #cancelSweep: CancelTimer | undefined;
  #isClosed = false;
  #isReported = false;

  constructor(private readonly parts: WebhookSenderParts) {}

  /** From now on, beginning with all lanes: an earlier process may have died while it wrote. */
  start(): void {
    if (this.#isClosed) return;
    for (const lane of this.#lanes) this.#look(lane);
    this.#poll();
    this.#sweep(Math.floor(this.parts.chance() * OUTBOX_LANES));
  }

  /** Something of this organization may be due. */
  kick(orgId: string): void {
    const lane = this.#lanes[outboxLane(orgId)];
    if (lane !== undefined) this.#look(lane);
  }

  /** Takes no more, waits shortly for what is under way and breaks the rest off: it is sent again. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#cancelPoll?.();
    this.#cancelSweep?.();
    const cancel = this.parts.clock.setTimer(CLOSE_LIMIT_MS, () => this.#aborted.abort());
    while (this.#work.size > 0) await Promise.all(this.#work);
    cancel();
  }

  #poll(): void {
    this.#cancelPoll = this.parts.clock.setTimer(POLL_MS, () => {
      this.#track(this.#lookAtDueLanes());
      this.#poll();
    });
  }

  #sweep(next: number): void {
    this.#cancelSweep = this.parts.clock.setTimer(SWEEP_MS, () => {
      const lane = this.#lanes[next % OUTBOX_LANES];
      if (lane !== undefined) this.#look(lane);
      this.#sweep((next + 1) % OUTBOX_LANES);
    });
  }

  async #lookAtDueLanes(): Promise<void> {
    try {
      const due = await this.parts.outbox.dueLanes();
      this.#isReported = false;
      for (const number of due) {
        const lane = this.#lanes[number];
        if (lane !== undefined) this.#look(lane);
      }
    } catch (error) {
      this.#reportAway(error);
    }
  }

  #look(lane: Lane): void {
    if (this.#isClosed) return;
    if (lane.isClaiming) {
      lane.isKicked = true;
      return;
    }
    const room = Math.min(MAX_UNDER_WAY_OF_LANE - lane.underWay, MAX_UNDER_WAY - this.#underWay);
    if (room <= 0) return;
    lane.isClaiming = true;
    this.#track(
      this.#claim(lane, room).then((isMore) => {
        lane.isClaiming = false;
        const isAgain = isMore || lane.isKicked;
        lane.isKicked = false;
        if (isAgain) this.#look(lane);
      }),
    );
  }

  /** True: there may be more. */
  async #claim(lane: Lane, room: number): Promise<boolean> {
    try {
      const claimed = await this.parts.outbox.claim(lane.number, room, this.parts.claimMs);
      this.#isReported = false;
      for (const delivery of claimed) this.#take(lane, delivery);
      return claimed.length === room;
    } catch (error) {
      this.#reportAway(error);
      return false;
    }
  }

  #reportAway(error: unknown): void {
    if (!this.#isReported) this.parts.log.warn({ error: errorText(error) }, 'webhook.outbox.away');
    this.#isReported = true;
  }

  #take(lane: Lane, delivery: Delivery): void {
    lane.underWay += 1;
    this.#underWay += 1;
    const work = this.#deliver(delivery).catch((error: unknown) => {
      // Its claim ends, and it is sent again.
      this.parts.log.warn({ ...factsOf(delivery), error: errorText(error) }, 'webhook.not_settled');
    });
    this.#track(
      work.then(() => {
        lane.underWay -= 1;
        this.#underWay -= 1;
        this.#look(lane);
      }),
    );
  }

  #track(work: Promise<void>): void {
    this.#work.add(work);
    void work.finally(() => this.#work.delete(work));
  }

  async #deliver(delivery: Delivery): Promise<void> {
    const { outbox, orgs, post, clock, log } = this.parts;
    const org = await orgs.get(delivery.org_id);
    if (org === null) return this.#bury(delivery, null, 'the organization is gone');
    if (delivery.analysis_schema !== undefined) return this.#analyse(delivery, delivery.analysis_schema, org);
    // The analysis alone was due.
    if (delivery.url === null) return outbox.settle(delivery);
    const headers = signedHeaders(org.webhook_secret, delivery.delivery_id, delivery.body, clock.wallMs());
    const [startedMs, startedWallMs] = [clock.nowMs(), clock.wallMs()];
    const attempt = await post(delivery.url, delivery.body, headers, this.#aborted.signal);
    publish('webhook.attempt', {
      callId: delivery.delivery_id,
      attempt: delivery.attempts + 1,
      outcome: attempt.kind,
      status: 'status' in attempt ? (attempt.status ?? null) : null,
      startedMs: startedWallMs,
      tookMs: clock.nowMs() - startedMs,
    });
    switch (attempt.kind) {
      case 'delivered':
        await outbox.settle(delivery);
        log.info({ ...factsOf(delivery), took_ms: Math.round(clock.nowMs() - startedMs) }, 'webhook.delivered');
        return;
      case 'aborted':
        return outbox.defer(delivery, 0);
      case 'refused':
        return this.#bury(delivery, org, attempt.error);
      case 'failed':
        return this.#failed(delivery, org, attempt);
    }
  }

  /** The webhook goes once the record has the analysis, or says why it has none. */
  async #analyse(delivery: Delivery, schema: Readonly<Record<string, string>>, org: OrgRecord): Promise<void> {
    const { outbox, calls, analyst, clock, log } = this.parts;
    const { analysis_schema: _schema, ...rest } = delivery;
    const payload = JSON.parse(delivery.body) as CompletionPayload;
    const leftMs = Date.parse(delivery.created_at) + ANALYSIS_LIMIT_MS - clock.wallMs();
    const question = { org, transcript: payload.transcript, schema, timeoutMs: Math.min(leftMs, ANALYSIS_TIMEOUT_MS) };
    const findings: Findings =
      leftMs > 0
        ? await analyst.find(question, this.#aborted.signal)
        : { kind: 'failed', error: 'The text model did not answer in time.', mayRetry: false };
    const isAgain = findings.kind === 'failed' && findings.mayRetry && leftMs > ANALYSIS_RETRY_MS;
    if (isAgain) return outbox.defer(delivery, this.#isClosed ? 0 : ANALYSIS_RETRY_MS);
    const found: FoundAnalysis =
      findings.kind === 'found'
        ? { analysis: findings.kept, analysis_error: null, analysis_rejected: isEmpty(findings.wrong) ? null : findings.wrong }
        : { analysis: null, analysis_error: findings.error, analysis_rejected: null };
    // The record is written after the delivery.
    if (!(await calls.addAnalysis(delivery.org_id, delivery.delivery_id, found)) && leftMs > ANALYSIS_RETRY_MS)
      return outbox.defer(delivery, ANALYSIS_RETRY_MS);
    const { analysis, analysis_error: error } = found;
    await outbox.defer(
      { ...rest, body: JSON.stringify({ ...payload, analysis, ...(error === null ? {} : { analysis_error: error }) }) },
      0,
    );
    const facts = factsOf(delivery);
    if (findings.kind === 'found') log.info({ ...facts, points: Object.keys(findings.kept).length }, 'analysis.made');
    else log.warn({ ...facts, error: findings.error }, 'analysis.failed');
  }

  async #failed(delivery: Delivery, org: OrgRecord, { error, retryAfterMs }: Extract<Attempt, { kind: 'failed' }>): Promise<void> {
    const { outbox, schedule, clock, log, chance } = this.parts;
    const attempts = delivery.attempts + 1;
    const ageMs = clock.wallMs() - Date.parse(delivery.created_at);
    const delayMs = nextAttemptInMs(schedule, { attempts, ageMs, askedMs: retryAfterMs, chance: chance() });
    if (delayMs === null) return this.#bury(delivery, org, error);
    await outbox.defer({ ...delivery, attempts, last_error: error }, delayMs);
    log.warn({ ...factsOf(delivery), error, retry_in_ms: delayMs }, 'webhook.failed');
  }

  /** A dead letter has no end: where transcripts have one, it is kept without. */
  async #bury({ url, ...rest }: Delivery, org: OrgRecord | null, error: string): Promise<void> {
    if (url === null) return this.parts.outbox.settle({ ...rest, url });
    const keepsAll = org !== null && org.transcript_days === null;
    const delivery = { ...rest, url, ...(keepsAll ? {} : { body: withoutTranscript(rest.body) }) };
    await this.parts.outbox.bury({ ...delivery, attempts: delivery.attempts + 1, last_error: error });
    publish('webhook.dead_letter', { deliveryId: delivery.delivery_id });
    this.parts.log.error({ ...factsOf(delivery), error }, 'webhook.given_up');
  }
}

function withoutTranscript(body: string): string {
  return JSON.stringify({ ...(JSON.parse(body) as CompletionPayload), transcript: [] });
}

/** Without the URL, which may hold a secret. */
function factsOf({ delivery_id: callId, org_id: orgId, attempts }: Delivery): Readonly<Record<string, unknown>> {
  return { call_id: callId, org_id: orgId, attempt: attempts + 1 };
}

function isEmpty(fields: Readonly<Record<string, unknown>>): boolean {
  return Object.keys(fields).length === 0;
}

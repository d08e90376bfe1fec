import { mayDialFrom, mayLeave } from '../admission/dial-guard.js';
import { agentOfCall } from '../model/call-agent-settings.js';
import {
  completeEvent,
  dayOf,
  endOf,
  FINAL_STATES,
  isAbandoned,
  isAbandonedTooOften,
  lifecycleEvent,
  longestCallMinutes,
  MOST_ABANDONED,
  outcomeOf,
  type BatchAttempt,
  type BatchNumber,
  type BatchPlan,
  type BatchState,
  type EndOfCall,
} from '../model/batch.js';
import { nextCallableMs, type CallingHours } from '../model/calling-hours.js';
import { dialPermit, type Dialling } from '../model/dialling.js';
import { parseE164 } from '../model/e164.js';
import { zonesOf } from '../model/number-zones.js';
import type { NumberRecord, OrgRecord } from '../model/records.js';
import type { BatchRun, BatchWork, DialAllowance, DoNotCallList, DueNumber, NumberStep } from '../ports/batches.js';
import type { PlaceCall } from '../ports/place-call.js';
import type { EndedCall } from '../ports/ports.js';
import type { AgentStore, CallLog, LiveCallLog, NumberStore, OrgStore } from '../ports/stores.js';
import type { CancelTimer, Clock } from '../../lib/clock.js';
import { newUuid } from '../../lib/ids.js';
import { errorText } from '../../lib/result.js';
import type { Log } from '../../lib/log.js';

export interface BatchServices {
  readonly work: BatchWork;
  readonly allowance: DialAllowance;
  readonly doNotCall: DoNotCallList;
  readonly orgs: Pick<OrgStore, 'get'>;
  readonly numbers: Pick<NumberStore, 'get'>;
  readonly agents: Pick<AgentStore, 'get'>;
  readonly calls: Pick<CallLog, 'get'>;
  readonly live: Pick<LiveCallLog, 'get' | 'ending'>;
  readonly placeCall: PlaceCall;
  /** Whether this gateway has the call. */
  readonly isHere: (callId: string) => boolean;
  /** This gateway, as it stands in its attempts. */
  readonly instance: string;
  /** The longest that any call may last. */
  readonly longestMinutes: number;
  readonly clock: Clock;
  readonly log: Log;
}

/** What one round may dial of a batch. */
interface DialTerms {
  readonly run: BatchRun;
  readonly org: OrgRecord;
  readonly number: NumberRecord;
  /** Calls. */
  readonly most: number;
  /** What they may cost, in millionths. */
  readonly micros: number;
  /** The longest that a call may last. */
  readonly minutes: number;
}

/** An attempt of this gateway. */
interface OwnAttempt {
  readonly run: BatchRun;
  readonly attempt: BatchAttempt;
  readonly entry: BatchNumber;
  /** Left out: its call is not over. */
  readonly end?: EndOfCall;
}

const TICK_MS = 200;
const IDLE_MS = 1_000;
const SWEEP_MS = 5_000;
/** Longer than it takes from the attempt to the list of calls in progress. */
const GRACE_MS = 10_000;
/** An INVITE leaves so long after its attempt was written, or confirmed, at most: before others settle it, even if clocks differ. */
const LATEST_MS = 5_000;
/** A batch whose numbers stop coming is given up after so long: the gateway that read them is gone. */
const VALIDATING_MS = 60_000;
/** A batch that nobody starts makes room for others after a day. */
const UNSTARTED_MS = 86_400_000;
const DUE_AT_ONCE = 100;
const HOUR_MS = 3_600_000;
const MINUTE_MS = 60_000;

/** Dials the numbers of all batches together with the other gateways: an attempt stands in the store before its INVITE leaves, and is settled once. */
export class BatchDialler {
  /** By call id. */
  readonly #own = new Map<string, OwnAttempt>();
  readonly #hours = new OpeningTimes();
  readonly #sweptMs = new Map<string, number>();
  #lastTickMs = -Infinity;
  #isClosed = false;
  #cancel: CancelTimer | undefined;
  #ticking: Promise<void> = Promise.resolve();

  constructor(private readonly services: BatchServices) {}

  start(): void {
    this.#schedule(IDLE_MS);
  }

  /** Dials no more. Calls in progress are still settled as they end. */
  async stop(): Promise<void> {
    this.#isClosed = true;
    this.#cancel?.();
    await this.#ticking;
  }

  /** What can be settled is settled. */
  async close(): Promise<void> {
    await this.stop();
    await this.#settleEnded().catch(() => undefined);
  }

  /** A call of this gateway is over. */
  onEnded({ record, placed }: Pick<EndedCall, 'record' | 'placed'>): void {
    const own = this.#own.get(record.call_id);
    if (own === undefined) return;
    this.#own.set(record.call_id, { ...own, end: endOf(record, placed) });
    this.#settleEnded().catch((error: unknown) => this.#warn(error));
  }

  /** A person who presses the batch's digit is not called again. */
  onDigit(callId: string, digit: string): void {
    const own = this.#own.get(callId);
    if (own?.run.plan.do_not_call_digit !== digit) return;
    this.services.doNotCall.add(own.run.orgId, [own.attempt.number]).catch((error: unknown) => this.#warn(error));
  }

  /** One round over all batches; whether there are any. */
  async tick(): Promise<boolean> {
    const { work, log } = this.services;
    await this.#settleEnded();
    const ids = await work.running();
    const runs = await work.read(null, ids);
    const tickMs = this.services.clock.nowMs();
    for (const [index, id] of ids.entries()) {
      const run = runs[index] ?? null;
      try {
        if (run === null) await this.#forget(id);
        else await this.#advance(run, tickMs - this.#lastTickMs);
      } catch (error) {
        log.warn({ batch_id: id, error: errorText(error) }, 'batch.not_advanced');
      }
    }
    this.#lastTickMs = tickMs;
    return ids.length > 0;
  }

  #schedule(delayMs: number): void {
    if (this.#isClosed) return;
    this.#cancel = this.services.clock.setTimer(delayMs, () => {
      this.#ticking = this.tick()
        .catch((error: unknown) => {
          this.#warn(error);
          return false;
        })
        .then((isBusy) => this.#schedule(isBusy ? TICK_MS : IDLE_MS));
    });
  }

  async #forget(batchId: string): Promise<void> {
    this.#sweptMs.delete(batchId);
    await this.services.work.forget(batchId);
  }

  async #advance(run: BatchRun, sinceMs: number): Promise<void> {
    const { work, clock } = this.services;
    const { batchId, state, counts, sinceResumed } = run;
    if (counts.dialling > 0) await this.#sweep(run);
    if (FINAL_STATES.includes(state)) {
      if (counts.dialling > 0) return;
      await work.move(batchId, { from: [state], whenDone: 'calls', isEnd: true, events: [completeEvent(counts)] });
      return this.#forget(batchId);
    }
    if (state === 'validating' && clock.wallMs() - run.changedMs > VALIDATING_MS)
      return this.#move(run, 'failed', 'the numbers could not be read');
    if (state === 'ready' && clock.wallMs() - run.changedMs > UNSTARTED_MS) return this.#move(run, 'stopped', 'nobody started it');
    if (state !== 'in_progress') return;
    if (isAbandonedTooOften(sinceResumed)) {
      const share = `${String(sinceResumed.abandoned)} of ${String(sinceResumed.answered)} calls answered today were abandoned`;
      return this.#move(run, 'paused', `${share}, more than ${String(MOST_ABANDONED * 100)} %: no agent spoke within 2 s`);
    }
    if (counts.waiting > 0) return this.#dial(run, sinceMs);
    if (counts.dialling > 0) return;
    const events = [lifecycleEvent(run, 'completed'), completeEvent(counts)];
    if (await work.move(batchId, { to: 'completed', from: ['in_progress'], whenDone: 'all', isEnd: true, events }))
      await this.#forget(batchId);
  }

  async #move(run: BatchRun, to: BatchState, why: string): Promise<void> {
    await this.services.work.move(run.batchId, { to, from: [run.state], events: [lifecycleEvent(run, to, why)] });
  }

  async #dial(run: BatchRun, sinceMs: number): Promise<void> {
    const { work, clock, orgs, numbers, agents, allowance, longestMinutes } = this.services;
    const { batchId, orgId, plan, counts } = run;
    const from = parseE164(plan.from);
    const [org, number, agent] = await Promise.all([
      orgs.get(orgId),
      from === undefined ? null : numbers.get(orgId, from),
      plan.agent_id === null ? null : agents.get(orgId, plan.agent_id),
    ]);
    if (org === null || number === null) return this.#move(run, 'paused', `${plan.from} is not a number of the organization`);
    const allowed = mayDialFrom({ org, number });
    if (!allowed.ok) return this.#move(run, 'paused', allowed.error);
    if (plan.agent_id !== null && agent === null) return this.#move(run, 'paused', 'the agent was deleted');
    const { outbound: trunk } = number;
    const pace = paceOf(plan, allowed.value);
    if (trunk === null) return;
    const headroom = await allowance.headroom(orgId, allowed.value, trunk.sip_endpoint);
    // Spread over the second, however many ticks it has.
    const share = Math.max(1, Math.ceil((pace.callsPerSecond * Math.min(sinceMs, 1_000)) / 1_000));
    const most = Math.min(share, pace.maxConcurrentCalls - counts.dialling, headroom.calls);
    if (most <= 0) return;
    const minutes = longestCallMinutes(plan, agent, longestMinutes);
    const due = await work.due(batchId, clock.wallMs(), DUE_AT_ONCE);
    const steps = await this.#stepsOf(due, { run, org, number, most, micros: headroom.micros, minutes });
    if (this.#isClosed) return;
    for (const attempt of await work.take(batchId, steps, pace)) {
      const entry = due.find((one) => one.entry.number === attempt.number)?.entry ?? { number: attempt.number };
      const { max_duration, webhook } = plan;
      const metadata = plan.metadata === null && entry.metadata === undefined ? null : { ...plan.metadata, ...entry.metadata };
      const settings = agentOfCall(agent, orgId, { metadata, max_duration, webhook }, { clock, longestMinutes });
      this.#own.set(attempt.callId, { run, attempt, entry });
      const call = { callId: attempt.callId, sipCallId: attempt.sipCallId, orgId, from: number.phone_number, to: attempt.number, trunk };
      if (
        this.services.placeCall.place({
          ...call,
          agent: settings,
          ringTimeoutMs: plan.ring_timeout * 1_000,
          detectAnswerer: plan.detect_answerer,
          confirm: () => this.#confirm(batchId, attempt),
        }).ok
      )
        continue;
      this.#own.delete(attempt.callId);
      await work.release(batchId, attempt);
    }
  }

  /**
   * Whether the INVITE of an attempt may leave. One that is late, of a process that stood still say, does not: other gateways may have called
   * the attempt ambiguous, and its hours may be over.
   */
  async #confirm(batchId: string, attempt: BatchAttempt): Promise<boolean> {
    const { work, clock } = this.services;
    const askedMs = clock.nowMs();
    if (clock.wallMs() - attempt.atMs > LATEST_MS) return false;
    return (await work.confirm(batchId, attempt)) && clock.nowMs() - askedMs <= LATEST_MS;
  }

  /** What is to happen with the numbers that are due; nothing while this gateway places no calls. */
  async #stepsOf(due: readonly DueNumber[], given: DialTerms): Promise<readonly NumberStep[]> {
    const { doNotCall, placeCall, clock } = this.services;
    const { run, org, number } = given;
    const nowMs = clock.wallMs();
    const listed = await doNotCall.find(
      run.orgId,
      due.map(({ entry }) => entry.number),
    );
    const steps: NumberStep[] = [];
    let { most, micros } = given;
    for (const one of due) {
      const { number: to, zone } = one.entry;
      if (listed.has(to)) {
        steps.push({ ...one, do: 'refuse', reason: 'DO_NOT_CALL' });
        continue;
      }
      const openMs = this.#hours.nextMs(zone === undefined ? zonesOf(to) : [zone], run.plan.hours, nowMs);
      if (openMs === null) steps.push({ ...one, do: 'refuse', reason: 'OUTSIDE_HOURS' });
      else if (openMs > nowMs) steps.push({ ...one, do: 'defer', untilMs: openMs });
      else {
        const grant = mayLeave({ kind: 'number', number: to }, { door: 'placed-call', from: { org, number } });
        const cost =
          grant.ok && grant.value.by === 'price' ? dialPermit(grant.value.price, given.minutes * MINUTE_MS, nowMs).reservedMicros : 0;
        if (!grant.ok) steps.push({ ...one, do: 'refuse', reason: 'DIAL_NOT_ALLOWED' });
        else if (most > 0 && cost <= micros) {
          const refusal = placeCall.refusal({ org, number, to });
          if (refusal?.code === 'DIAL_NOT_ALLOWED') await this.#move(run, 'paused', refusal.message);
          if (refusal !== null) return [];
          micros -= cost;
          most -= 1;
          steps.push({ ...one, do: 'dial', callId: newUuid(), sipCallId: newUuid() });
        }
      }
    }
    return steps;
  }

  /** Settles what other gateways, or earlier processes, left: their record says how they ended; of a call that left nothing it is not known. */
  async #sweep(run: BatchRun): Promise<void> {
    const { work, live, calls, clock, isHere, instance } = this.services;
    const { batchId, orgId } = run;
    if (clock.nowMs() - (this.#sweptMs.get(batchId) ?? -Infinity) < SWEEP_MS) return;
    this.#sweptMs.set(batchId, clock.nowMs());
    for (const attempt of await work.attempts(batchId)) {
      const { callId, number } = attempt;
      if (clock.wallMs() - attempt.atMs < GRACE_MS || (this.#own.has(callId) && isHere(callId))) continue;
      const entry = (await work.entry(batchId, number)) ?? { number };
      // In the order in which a call goes from one to the next.
      const isLive = (await live.get(orgId, callId)) !== null;
      if (isLive && attempt.gateway === instance) this.#own.set(callId, { run, attempt, entry });
      if (isLive || (await live.ending(orgId, callId)) !== null) continue;
      const record = await calls.get(orgId, callId);
      if (record !== null) await this.#settle({ run, attempt, entry }, endOf(record));
      else await work.settle(batchId, attempt, { outcome: { kind: 'ambiguous' } });
      this.#own.delete(callId);
    }
  }

  /** Outcomes that the store has not taken yet come again. */
  async #settleEnded(): Promise<void> {
    for (const [callId, own] of this.#own) {
      if (own.end === undefined) continue;
      await this.#settle(own, own.end);
      this.#own.delete(callId);
    }
  }

  async #settle({ run, attempt, entry }: OwnAttempt, end: EndOfCall): Promise<void> {
    const { work, clock } = this.services;
    const nowMs = clock.wallMs();
    const outcome = outcomeOf(end, entry, run.plan, nowMs);
    // Machines would dilute the share of people who waited.
    const answered = end.isAnswered && !end.isMachine ? { answered: { day: dayOf(nowMs), isAbandoned: isAbandoned(end) } } : {};
    await work.settle(run.batchId, attempt, { outcome, ...answered });
  }

  #warn(error: unknown): void {
    this.services.log.warn({ error: errorText(error) }, 'batch.round.failed');
  }
}

/** The batch's limits, and those of its organization and of each of its trunks. */
function paceOf({ calls_per_second: rate, max_concurrent_calls: calls }: BatchPlan, dialling: Dialling) {
  const { max_calls_per_second: trunkRate = Infinity, max_concurrent_calls: trunkCalls = Infinity } = dialling.per_trunk ?? {};
  return {
    callsPerSecond: Math.min(rate, dialling.max_calls_per_second, trunkRate),
    maxConcurrentCalls: Math.min(calls, dialling.max_concurrent_calls, trunkCalls),
  };
}

/** When people in some zones may be called, remembered for a while: many numbers have the same. */
class OpeningTimes {
  #untilMs = -Infinity;
  readonly #known = new Map<string, number | null>();

  nextMs(zones: readonly string[], hours: CallingHours, nowMs: number): number | null {
    if (nowMs >= this.#untilMs) {
      this.#known.clear();
      this.#untilMs = nowMs + HOUR_MS;
    }
    const key = `${zones.join(' ')} ${JSON.stringify(hours)}`;
    const known = this.#known.get(key);
    // Open times end: only what is closed is remembered.
    if (known !== undefined && (known === null || known > nowMs)) return known;
    const nextMs = nextCallableMs(zones, hours, nowMs);
    this.#known.set(key, nextMs);
    return nextMs;
  }
}

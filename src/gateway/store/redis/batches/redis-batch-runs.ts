import { Cluster } from 'ioredis';
import type { BatchAttempt, BatchCounts, BatchNumber, BatchPlan, BatchState } from '../../../model/batch.js';
import { dayOf } from '../../../model/batch.js';
import type { BatchPreview } from '../../../model/batch-preview.js';
import type { BatchEvent, BatchRecord } from '../../../model/batch-log.js';
import type { E164 } from '../../../model/e164.js';
import type { BatchMove, BatchPace, BatchRun, BatchRuns, BatchWork, DueNumber, NumberStep, Settlement } from '../../../ports/batches.js';
import type { BatchRetention, Scope } from '../../../ports/stores.js';
import type { Clock } from '../../../../lib/clock.js';
import type { Log } from '../../../../lib/log.js';
import {
  batchAttemptsKey,
  batchDueKey,
  batchKey,
  batchLogKey,
  batchNumbersKey,
  batchOutcomesKey,
  batchRecentKey,
  batchRunKey,
  RUNNING_BATCHES_KEY,
} from '../keys.js';
import { decodeRecord, RedisScript, type RedisCommand, type RedisConnection } from '../redis.js';
import { newBatchEntry } from './batch-entry.js';

const ADD = new RedisScript('batches/add-numbers');
const TAKE = new RedisScript('batches/take-numbers');
const CONFIRM = new RedisScript('batches/confirm-attempt');
const SETTLE = new RedisScript('batches/settle-attempt');
const MOVE = new RedisScript('batches/move');

/** Less than a command may take. */
const CONFIRM_LIMIT_MS = 300;
const READ_PER_BATCH = 3;

export interface BatchRunParts {
  readonly redis: RedisConnection;
  /** Names the gateway in its attempts. */
  readonly instance: string;
  readonly retention: BatchRetention;
  /** Replicas that must have an attempt before its INVITE leaves; 0: the primary is enough. */
  readonly confirmedBy: number;
  readonly clock: Clock;
  readonly log: Log;
}

/** Numbers, attempts and counts of batches that dial: one hash slot a batch, so that each step is one script. */
export class RedisBatchRuns implements BatchRuns, BatchWork {
  constructor(private readonly parts: BatchRunParts) {}

  async begin(orgId: string, batchId: string, plan: BatchPlan, requested: number): Promise<void> {
    const { redis, clock, retention } = this.parts;
    const fields = { org_id: orgId, state: 'validating', plan: JSON.stringify(plan), requested, changed_ms: clock.wallMs() };
    await redis.run((client) => client.hset(batchRunKey(batchId), fields));
    await redis.run((client) => client.expire(batchRunKey(batchId), retention.days * 86_400));
    // The set last: an id in it without a batch is forgotten.
    await redis.run((client) => client.sadd(RUNNING_BATCHES_KEY, batchId));
  }

  async add(batchId: string, numbers: readonly BatchNumber[], firstPlace: number): Promise<number> {
    const { redis, clock } = this.parts;
    const keys = [batchKey(batchId), batchRunKey(batchId), batchNumbersKey(batchId), batchDueKey(batchId)];
    const args = numbers.flatMap((entry, index) => [firstPlace + index, entry.number, JSON.stringify(entry)]);
    return Number(await redis.script(ADD, keys, [clock.wallMs(), ...args]));
  }

  async show(batchId: string, preview: BatchPreview): Promise<void> {
    await this.parts.redis.run((client) => client.hset(batchRunKey(batchId), 'preview', JSON.stringify(preview)));
  }

  async read(scope: Scope, batchIds: readonly string[]): Promise<readonly (BatchRun | null)[]> {
    const answers = await this.parts.redis.pipeline(
      batchIds.flatMap((id): RedisCommand[] => [
        ['hgetall', batchRunKey(id)],
        ['zcard', batchDueKey(id)],
        ['hlen', batchAttemptsKey(id)],
      ]),
    );
    return batchIds.map((batchId, index) => {
      const [fields, waiting, dialling] = answers.slice(index * READ_PER_BATCH, (index + 1) * READ_PER_BATCH);
      const run = this.#runOf(batchId, fieldsOf(fields), Number(waiting), Number(dialling));
      return run !== null && (scope === null || run.orgId === scope) ? run : null;
    });
  }

  async move(batchId: string, { to, from, whenDone, isEnd, events }: BatchMove): Promise<boolean> {
    const { redis, retention, clock } = this.parts;
    const batch = await this.#batch(batchId);
    if (batch === null) return false;
    const keys = [batchKey(batchId), batchRunKey(batchId), batchDueKey(batchId), batchAttemptsKey(batchId), batchLogKey(batchId)];
    const nowMs = clock.wallMs();
    const args = [retention.maxEntries, nowMs, to ?? '', `,${from.join(',')},`, whenDone ?? '', isEnd === true ? '1' : '', dayOf(nowMs)];
    return (await redis.script(MOVE, keys, [...args, ...events.map((event) => this.#entry(batch, event))])) === 1;
  }

  running(): Promise<readonly string[]> {
    return this.parts.redis.run((client) => client.smembers(RUNNING_BATCHES_KEY));
  }

  async forget(batchId: string): Promise<void> {
    await this.parts.redis.run((client) => client.srem(RUNNING_BATCHES_KEY, batchId));
  }

  async due(batchId: string, nowMs: number, limit: number): Promise<readonly DueNumber[]> {
    const { redis } = this.parts;
    const found = await redis.run((client) => client.zrangebyscore(batchDueKey(batchId), '-inf', nowMs, 'WITHSCORES', 'LIMIT', 0, limit));
    const numbers = found.filter((_text, index) => index % 2 === 0);
    if (numbers.length === 0) return [];
    const texts = await redis.run((client) => client.hmget(batchNumbersKey(batchId), ...numbers));
    return texts.flatMap((text, index) =>
      text === null ? [] : [{ entry: JSON.parse(text) as BatchNumber, dueMs: Number(found[2 * index + 1]) }],
    );
  }

  async take(batchId: string, steps: readonly NumberStep[], pace: BatchPace): Promise<readonly BatchAttempt[]> {
    const { redis, instance, clock } = this.parts;
    const batch = await this.#batch(batchId);
    if (batch === null || steps.length === 0) return [];
    const atMs = clock.wallMs();
    const words = steps.flatMap((step) => {
      const { entry, dueMs } = step;
      switch (step.do) {
        case 'dial': {
          const { callId, sipCallId } = step;
          return [
            entry.number,
            dueMs,
            'dial',
            callId,
            JSON.stringify({ callId, sipCallId, number: entry.number, gateway: instance, atMs }),
          ];
        }
        case 'defer':
          return [entry.number, dueMs, 'defer', step.untilMs, ''];
        default: {
          const payload = { phone_number: entry.number, reason: step.reason };
          return [entry.number, dueMs, 'refuse', '', this.#entry(batch, { event_type: 'refused', payload })];
        }
      }
    });
    const args = [pace.callsPerSecond, pace.maxConcurrentCalls, ...words];
    const tokens = (await redis.script(TAKE, this.#keys(batchId), args)) as readonly number[];
    const taken = steps.flatMap((step, index) => {
      const token = tokens[index] ?? 0;
      if (step.do !== 'dial' || token === 0) return [];
      const { callId, sipCallId } = step;
      return [{ callId, sipCallId, number: step.entry.number, token, gateway: instance, atMs }];
    });
    if (taken.length === 0 || (await this.#isConfirmed(batchId))) return taken;
    this.parts.log.warn({ batch_id: batchId, calls: taken.length }, 'batch.attempts.not_confirmed');
    for (const attempt of taken) await this.release(batchId, attempt);
    return [];
  }

  async confirm(batchId: string, { token, ...attempt }: BatchAttempt): Promise<boolean> {
    const { redis, clock } = this.parts;
    const text = JSON.stringify({ ...attempt, atMs: clock.wallMs() });
    return (await redis.script(CONFIRM, [batchAttemptsKey(batchId)], [attempt.callId, token, text])) === 1;
  }

  async settle(batchId: string, attempt: BatchAttempt, { outcome, answered }: Settlement): Promise<boolean> {
    const batch = await this.#batch(batchId);
    if (batch === null) return false;
    const { callId, sipCallId, number, gateway } = attempt;
    const call = { phone_number: number, call_id: callId, sip_call_id: sipCallId };
    const message = `Whether ${number} was called is not known: it is not dialled again`;
    const entry =
      outcome.kind === 'ambiguous' ? this.#entry(batch, { event_type: 'ambiguous', payload: { message, ...call, gateway } }) : '';
    const [dueMs, text] = outcome.kind === 'again' ? [outcome.dueMs, JSON.stringify(outcome.entry)] : [0, ''];
    const [day, abandoned] = answered === undefined ? ['', 0] : [answered.day, answered.isAbandoned ? 1 : 0];
    return this.#settle(batchId, attempt, [outcome.kind, dueMs, text, entry, day, abandoned]);
  }

  async release(batchId: string, attempt: BatchAttempt): Promise<void> {
    await this.#settle(batchId, attempt, ['release', this.parts.clock.wallMs(), '', '', '', 0]);
  }

  async attempts(batchId: string): Promise<readonly BatchAttempt[]> {
    const texts = await this.parts.redis.run((client) => client.hvals(batchAttemptsKey(batchId)));
    return texts.map((text) => {
      const end = text.indexOf(' ');
      return { ...(JSON.parse(text.slice(end)) as Omit<BatchAttempt, 'token'>), token: Number(text.slice(0, end)) };
    });
  }

  async entry(batchId: string, number: E164): Promise<BatchNumber | null> {
    const text = await this.parts.redis.run((client) => client.hget(batchNumbersKey(batchId), number));
    return text === null ? null : (JSON.parse(text) as BatchNumber);
  }

  async #settle(batchId: string, { callId, token, number }: BatchAttempt, words: readonly (string | number)[]): Promise<boolean> {
    return (await this.parts.redis.script(SETTLE, this.#keys(batchId), [callId, token, number, ...words])) === 1;
  }

  #keys(batchId: string): readonly string[] {
    return [
      ...[batchKey(batchId), batchRunKey(batchId), batchNumbersKey(batchId), batchDueKey(batchId)],
      ...[batchAttemptsKey(batchId), batchRecentKey(batchId), batchOutcomesKey(batchId)],
    ];
  }

  async #batch(batchId: string): Promise<BatchRecord | null> {
    return decodeRecord('batch', await this.parts.redis.run((client) => client.get(batchKey(batchId))));
  }

  #entry(batch: BatchRecord, event: BatchEvent): string {
    return JSON.stringify(newBatchEntry(batch, event, this.parts.clock));
  }

  /** Whether as many replicas as the operator wants have what was written last. */
  async #isConfirmed(batchId: string): Promise<boolean> {
    const { redis, confirmedBy } = this.parts;
    if (confirmedBy === 0) return true;
    const asked = redis.run(async (client) => {
      if (!(client instanceof Cluster)) return client.wait(confirmedBy, CONFIRM_LIMIT_MS);
      const slot = await client.cluster('KEYSLOT', batchRunKey(batchId));
      const [primary] = client.slots[slot] ?? [];
      const node = client.nodes('master').find(({ options: { host, port } }) => `${host ?? ''}:${String(port)}` === primary);
      return node === undefined ? 0 : node.wait(confirmedBy, CONFIRM_LIMIT_MS);
    });
    return asked.then(
      (count) => count >= confirmedBy,
      () => false,
    );
  }

  #runOf(batchId: string, fields: ReadonlyMap<string, string>, waiting: number, dialling: number): BatchRun | null {
    const plan = fields.get('plan');
    if (plan === undefined) return null;
    const number = (name: string): number => Number(fields.get(name) ?? 0);
    const day = dayOf(this.parts.clock.wallMs());
    const counts: BatchCounts = {
      requested: number('requested'),
      validated: number('validated'),
      waiting,
      dialling,
      dispatched: number('dispatched'),
      successful: number('successful'),
      failed: number('failed'),
      ambiguous: number('ambiguous'),
      answered_today: number(`answered:${day}`),
      abandoned_today: number(`abandoned:${day}`),
    };
    const state = fields.get('state') as BatchState;
    const preview = fields.get('preview');
    return {
      batchId,
      orgId: fields.get('org_id') ?? '',
      state,
      plan: JSON.parse(plan) as BatchPlan,
      counts,
      preview: preview === undefined ? null : (JSON.parse(preview) as BatchPreview),
      sinceResumed: {
        answered: counts.answered_today - number(`resumed_answered:${day}`),
        abandoned: counts.abandoned_today - number(`resumed_abandoned:${day}`),
      },
      changedMs: number('changed_ms'),
    };
  }
}

/** HGETALL in a pipeline: pairs, or an object. */
function fieldsOf(answer: unknown): ReadonlyMap<string, string> {
  if (!Array.isArray(answer)) return new Map(Object.entries((answer ?? {}) as Record<string, string>));
  const words = answer as readonly string[];
  return new Map(words.flatMap((word, index) => (index % 2 === 0 ? [[word, words[index + 1] ?? ''] as const] : [])));
}

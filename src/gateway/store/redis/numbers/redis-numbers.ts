import { parseE164, type E164 } from '../../../model/e164.js';
import type { NumberRecord } from '../../../model/records.js';
import type { Clock } from '../../../../lib/clock.js';
import type { Log } from '../../../../lib/log.js';
import type { Result } from '../../../../lib/result.js';
import { StoreUnavailableError } from '../../../ports/ports.js';
import { agentNumbersKey, inboundIdKey, numberKey, orgNumbersKey, REGISTERING_KEY, WATCHED_KEY } from '../keys.js';
import { newInboundId } from '../../new-records.js';
import type { RecordRefusal } from '../../../model/agent-update.js';
import type { IfMatch } from '../../../model/revision.js';
import { decideAttach, decideDetach, decideUpdate, type UpdateTerms } from './number-update.js';
import { updateRecord } from '../optimistic-update.js';
import { sweepNumbers } from './number-sweep-schedule.js';
import { decodeRecord, type RedisConnection } from '../redis.js';
import {
  isOf,
  type AttachChange,
  type DirectionType,
  type NumberStore,
  type Page,
  type Scope,
  type SweepReport,
  type UpdateChange,
} from '../../../ports/stores.js';
import { findUsers, settleUsers } from '../users-index.js';

const MAX_INDEX_ROUNDS = 5;
/** An inbound_id whose record was never written is forgotten after this time, in seconds. */
const UNCLAIMED_INBOUND_ID_S = 86_400;

type Written = { readonly record: NumberRecord | null; readonly previous: NumberRecord | null };

/** Numbers in Redis: the record in one key, written by compare-and-set; the indexes after it. */
export class RedisNumberStore implements NumberStore {
  constructor(
    private readonly redis: RedisConnection,
    private readonly clock: Clock,
    private readonly log: Log,
  ) {}

  async attach(orgId: string, number: E164, change: AttachChange, ifMatch?: IfMatch): Promise<Result<NumberRecord, 'taken' | 'mismatch'>> {
    const request = { orgId, number, change, inboundId: newInboundId() };
    return this.#change(number, (current) => decideAttach(current, request, this.#terms(ifMatch)));
  }

  async update(orgId: string, number: E164, change: UpdateChange, ifMatch?: IfMatch): Promise<Result<NumberRecord, RecordRefusal>> {
    return this.#change(number, (current) => decideUpdate(current, orgId, change, this.#terms(ifMatch)));
  }

  async detach(
    orgId: string,
    number: E164,
    directions: readonly DirectionType[],
    ifMatch?: IfMatch,
  ): Promise<Result<NumberRecord | null, RecordRefusal>> {
    return this.#change(number, (current) => decideDetach(current, orgId, directions, this.#terms(ifMatch)));
  }

  async get(scope: Scope, number: E164): Promise<NumberRecord | null> {
    const indexedBy = (orgId: string): Promise<string | null> => this.redis.run((client) => client.zscore(orgNumbersKey(orgId), number));
    const [record, early] = await Promise.all([this.#read(number), scope === null ? null : indexedBy(scope)]);
    if (!isOf(scope, record)) return null;
    // Redis went away between the record and its indexes: this one is written last.
    if (early === null && (await indexedBy(record.org_id)) === null) await this.#settleIndexes({ record, previous: null });
    return record;
  }

  async getByInboundId(scope: Scope, inboundId: string): Promise<NumberRecord | null> {
    const text = await this.redis.run((client) => client.get(inboundIdKey(inboundId)));
    const number = text === null ? undefined : parseE164(text);
    const record = number === undefined ? null : await this.#read(number);
    return isOf(scope, record) && record.inbound_id === inboundId ? record : null;
  }

  async list(orgId: string, page: Page): Promise<readonly NumberRecord[]> {
    for (;;) {
      const { records, stale } = await this.#readPage(orgId, page);
      if (stale.length === 0) return records;
      // Entries that name nothing shift the page: drop them and read it again. Each round removes at least one.
      for (const number of stale) await this.#settleNumber(number, orgId);
    }
  }

  async findByAgent(orgId: string, agentId: string): Promise<E164 | null> {
    const [number = null] = await findUsers(this.redis, agentNumbersKey(agentId), 1, async (numbers) => {
      const records = await this.#readAll(numbers as E164[]);
      return records.map((record) => record?.org_id === orgId && agentsOf(record).includes(agentId));
    });
    return number as E164 | null;
  }

  count(orgId: string): Promise<number> {
    return this.redis.run((client) => client.zcard(orgNumbersKey(orgId)));
  }

  sweep(): Promise<SweepReport> {
    return sweepNumbers(this.redis);
  }

  #terms(ifMatch: IfMatch): UpdateTerms {
    return { nowMs: this.clock.wallMs(), ifMatch };
  }

  async #readPage(orgId: string, page: Page): Promise<{ records: NumberRecord[]; stale: E164[] }> {
    const members = await this.redis.run((client) => client.zrange(orgNumbersKey(orgId), '-', '+', 'BYLEX', 'LIMIT', page.skip, page.take));
    const numbers = members.map((member) => member as E164);
    const found = await this.#readAll(numbers);
    const records: NumberRecord[] = [];
    const stale: E164[] = [];
    numbers.forEach((number, index) => {
      const record = found[index];
      if (record?.org_id === orgId) records.push(record);
      else stale.push(number);
    });
    return { records, stale };
  }

  async #readAll(numbers: readonly E164[]): Promise<readonly (NumberRecord | null)[]> {
    const texts = await this.redis.getMany(numbers.map(numberKey));
    return texts.map((text) => decodeRecord('number', text));
  }

  async #read(number: E164): Promise<NumberRecord | null> {
    return decodeRecord('number', await this.redis.run((client) => client.get(numberKey(number))));
  }

  async #change<V extends NumberRecord | null, F>(
    number: E164,
    decide: (current: NumberRecord | null) => Result<V, F>,
  ): Promise<Result<V, F>> {
    let previous: NumberRecord | null = null;
    const written = await updateRecord(this.redis, 'number', numberKey(number), async (current) => {
      previous = current;
      const decided = decide(current);
      if (current === null && decided.ok && decided.value !== null) await this.#claimInboundId(decided.value);
      return decided;
    });
    if (written.ok) await this.#settleIndexes({ record: written.value, previous });
    return written;
  }

  /** Before the record, so that a record can always be found by its id; it expires when no record follows. */
  async #claimInboundId(record: NumberRecord): Promise<void> {
    await this.redis.run((client) => client.set(inboundIdKey(record.inbound_id), record.phone_number, 'EX', UNCLAIMED_INBOUND_ID_S));
  }

  /** The record is written and true whatever happens here: reads and the sweep repair what fails. */
  async #settleIndexes({ record, previous }: Written): Promise<void> {
    try {
      await this.#settleUse(record ?? previous, previous, agentNumbersKey, agentsOf);
      await this.#settleUse(record ?? previous, previous, () => REGISTERING_KEY, registrarsOf);
      await this.#settleUse(record ?? previous, previous, () => WATCHED_KEY, watchedOf);
      if (record !== null) {
        await this.redis.run((client) => client.set(inboundIdKey(record.inbound_id), record.phone_number));
        await this.#settleNumber(record.phone_number, record.org_id);
      } else if (previous !== null) {
        await this.redis.run((client) => client.del(inboundIdKey(previous.inbound_id)));
        await this.#settleNumber(previous.phone_number, previous.org_id);
      }
    } catch (error) {
      if (!(error instanceof StoreUnavailableError)) throw error;
      this.log.warn({ error: error.message, hint: 'the hourly sweep repairs it' }, 'numbers.index.not_written');
    }
  }

  /** @param namedIn what a record names */
  async #settleUse(
    written: NumberRecord | null,
    previous: NumberRecord | null,
    keyOf: (id: string) => string,
    namedIn: (record: NumberRecord | null) => readonly string[],
  ): Promise<void> {
    if (written === null) return;
    const number = written.phone_number;
    const read = async (): Promise<readonly string[]> => namedIn(await this.#read(number));
    await settleUsers(this.redis, { user: number, keyOf, read }, namedIn(previous));
  }

  /**
   * Makes the organization's index agree with the record of one number. Reads the record again after the write: a writer that
   * changed it in between writes the index after that, so the last one to write the index has seen the last record.
   */
  async #settleNumber(number: E164, orgId: string): Promise<void> {
    let isOwned = (await this.#read(number))?.org_id === orgId;
    for (let round = 0; round < MAX_INDEX_ROUNDS; round += 1) {
      const wasOwned = isOwned;
      await this.redis.run((client) =>
        wasOwned ? client.zadd(orgNumbersKey(orgId), 0, number) : client.zrem(orgNumbersKey(orgId), number),
      );
      isOwned = (await this.#read(number))?.org_id === orgId;
      if (isOwned === wasOwned) return;
    }
  }
}

/** Whether its trunk has a registrar: there is one index of all. */
function registrarsOf(record: NumberRecord | null): readonly string[] {
  return record?.outbound?.registrar === undefined ? [] : ['registrar'];
}

/** Whether its trunk gets OPTIONS: the same. */
function watchedOf(record: NumberRecord | null): readonly string[] {
  return (record?.outbound?.options_interval_s ?? 0) === 0 ? [] : ['watched'];
}

/** The agent that takes the calls of a number, if there is one. */
function agentsOf(record: NumberRecord | null): readonly string[] {
  const agentId = record?.inbound?.agent_id ?? null;
  return agentId === null ? [] : [agentId];
}

import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { Cluster, type Redis } from 'ioredis';
import type { BatchRecord } from '../../model/batch-log.js';
import { NO_TUNING } from '../../model/provider.js';
import { NO_OUTCOME, type CallRecord } from '../../model/call-record.js';
import { DEFAULT_AGENT_SETTINGS, type AgentRecord, type ToolRecord } from '../../model/agent-record.js';
import type { NumberRecord, OrgRecord } from '../../model/records.js';
import { publish } from '../../ports/events.js';
import { StoreUnavailableError } from '../../ports/ports.js';
import { CHANGES_CHANNEL } from './keys.js';
import { fullest, memoryOf, type RedisHealth, type RedisMemory } from './redis-health.js';
import { clusterClient, singleClient, type RedisAddress } from './redis-clients.js';
import { within, type Clock } from '../../../lib/clock.js';
import { systemClock } from '../../../lib/system-clock.js';
import type { Log } from '../../../lib/log.js';
import { errorText } from '../../../lib/result.js';

export interface RedisOptions extends RedisAddress {
  readonly clock: Clock;
  readonly log: Log;
  /** Longest wait for answers, in milliseconds: a call waits for them, so it is short. */
  readonly commandTimeoutMs?: number;
  /** The script that runs in place of another: tests give one whose `now_ms` is another. */
  readonly inTime?: (script: RedisScript) => RedisScript;
}

const COMMAND_TIMEOUT_MS = 500;
/** A connection is given up when an answer is overdue for four times the longest wait of a command, and never sooner than this. */
const DEAD_AFTER_MS = 2_000;
const COMMANDS_UNTIL_DEAD = 4;

/** Records that are read in one round trip: Redis serves others between two. */
const READ_AT_ONCE = 50;

/** Until a connection that ioredis has given up is begun again. */
const BEGIN_AGAIN_MS = 200;

const PROBE_KEY = 'trunkline:probe';
const PROBE_KEPT_MS = 60_000;

// Answers by which Redis says that it cannot serve now; any other error answer is a fault of ours.
const UNAVAILABLE =
  /^(?:LOADING|READONLY|MASTERDOWN|CLUSTERDOWN|TRYAGAIN|BUSY|OOM|NOREPLICAS|MISCONF|NOAUTH|WRONGPASS|ERR max number of clients)/;

const readLua = (name: string): string => readFileSync(new URL(`./${name}.lua`, import.meta.url), 'utf8');

const NOW_MS = readLua('now-ms');

/** A script beside the file that uses it. One that calls `now_ms()` begins with that function. */
export class RedisScript {
  readonly source: string;
  readonly sha1: string;

  /**
   * @param name its path from this folder, without `.lua`
   * @param nowMs Lua of `now_ms`; tests give another
   */
  constructor(
    readonly name: string,
    nowMs = NOW_MS,
  ) {
    const own = readLua(name);
    this.source = own.includes('now_ms()') ? nowMs + own : own;
    this.sha1 = createHash('sha1').update(this.source).digest('hex');
  }
}

const COMPARE_AND_SET = new RedisScript('compare-and-set');

/** A command and its arguments. None is a buffer: ioredis takes twice as long for a command that has one. */
export type RedisCommand = readonly [name: string, ...args: readonly (string | number)[]];

/** A connection, or those to a cluster, that never makes a caller wait for a Redis that is away, and comes back by itself. */
export class RedisConnection {
  readonly client: Redis | Cluster;
  readonly isCluster: boolean;
  /** After a record was changed over this connection: resolves when no gateway uses the one of before. */
  onChanged: ((key: string) => Promise<void>) | undefined;
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #timeoutMs: number;
  readonly #inTime: (script: RedisScript) => RedisScript;
  #reportedDown = false;
  #isClosed = false;
  #connects = 0;
  #asked: Promise<RedisHealth> | undefined;

  constructor(options: RedisOptions) {
    this.#clock = options.clock;
    this.#log = options.log;
    this.#timeoutMs = options.commandTimeoutMs ?? COMMAND_TIMEOUT_MS;
    this.#inTime = options.inTime ?? ((script) => script);
    const deadAfterMs = Math.max(DEAD_AFTER_MS, COMMANDS_UNTIL_DEAD * this.#timeoutMs);
    this.client = options.cluster === true ? clusterClient(options, deadAfterMs) : singleClient(options, deadAfterMs);
    this.isCluster = options.cluster === true;
    this.client.on('error', (error: Error) => this.#reportDown(error));
    this.client.on('ready', () => this.#reportUp());
    this.client.on('end', () => this.#beginAgain());
  }

  /** When the Sentinels announce a failover while ioredis is connecting anyway, it gives up for good: only `close` may end it. */
  #beginAgain(): void {
    if (this.#isClosed) return;
    this.#clock.setTimer(BEGIN_AGAIN_MS, () => {
      // A failure ends it once more, and is told as an error.
      if (!this.#isClosed) this.client.connect().catch(() => undefined);
    });
  }

  get isUp(): boolean {
    return this.client.status === 'ready';
  }

  /** Times that it became usable. */
  get connects(): number {
    return this.#connects;
  }

  /** Resolves when the connection is usable; rejects with `StoreUnavailableError` when it is not within `limitMs`. */
  async ready(limitMs: number): Promise<void> {
    if (this.client.status === 'ready') return;
    await new Promise<void>((resolve, reject) => {
      const onReady = (): void => {
        cancel();
        resolve();
      };
      const cancel = this.#clock.setTimer(limitMs, () => {
        this.client.off('ready', onReady);
        reject(new StoreUnavailableError(`Redis did not answer within ${limitMs} ms`));
      });
      this.client.once('ready', onReady);
    });
  }

  /** Runs one or more commands; every way in which Redis can be away becomes `StoreUnavailableError`. */
  async run<T>(commands: (client: Redis | Cluster) => Promise<T>): Promise<T> {
    const startedMs = this.#clock.nowMs();
    try {
      const answered = commands(this.client);
      // Redis takes real time, whatever clock the calls have.
      if (!(await within(systemClock, this.#timeoutMs, answered))) throw new Error(`no answer within ${this.#timeoutMs} ms`);
      const answer = await answered;
      publish('redis.command', { tookMs: this.#clock.nowMs() - startedMs, isAnswered: true });
      return answer;
    } catch (error) {
      publish('redis.command', { tookMs: this.#clock.nowMs() - startedMs, isAnswered: false });
      throw asStoreError(error);
    }
  }

  /** Asks and writes: a Redis that is full or read-only answers PING. Never rejects; who asks meanwhile gets the same answer. */
  health(): Promise<RedisHealth> {
    this.#asked ??= this.#health().finally(() => (this.#asked = undefined));
    return this.#asked;
  }

  async #health(): Promise<RedisHealth> {
    const startedMs = this.#clock.nowMs();
    const [write, memory] = await Promise.all([
      this.#writes()
        .then(
          () => null,
          (error: unknown) => errorText(error),
        )
        .then((refusal) => ({ refusal, tookMs: this.#clock.nowMs() - startedMs })),
      this.#memory().catch(() => fullest([])),
    ]);
    return { ...write, ...memory };
  }

  async #writes(): Promise<void> {
    await this.ping();
    await this.run((client) => client.set(PROBE_KEY, '1', 'PX', PROBE_KEPT_MS));
  }

  /** An operator may not allow INFO. */
  async #memory(): Promise<RedisMemory> {
    return this.run(async (client) => {
      const nodes = client instanceof Cluster ? client.nodes('master') : [client];
      return fullest(await Promise.all(nodes.map(async (node) => memoryOf(await node.info('memory')))));
    });
  }

  /** Resolves when Redis answers, of a cluster every node that has slots. */
  async ping(): Promise<void> {
    await this.run(async (client) => {
      if (!(client instanceof Cluster)) {
        await client.ping();
        return;
      }
      const info = await client.cluster('INFO');
      const nodes = client.nodes('master');
      await Promise.all(nodes.map((node) => node.ping()));
      // Those that are away are not among the nodes.
      const isWhole = info.includes('cluster_state:ok') && nodes.length >= Number(/cluster_size:(\d+)/.exec(info)?.[1] ?? Infinity);
      if (!isWhole) throw new StoreUnavailableError('a part of the Redis Cluster is unavailable');
    });
  }

  /** Runs commands in one round trip, of a cluster one to each node. Rejects with the first error among the answers. */
  async pipeline(commands: readonly RedisCommand[]): Promise<readonly unknown[]> {
    return this.run(async (client) => {
      if (client instanceof Cluster) return Promise.all(commands.map(([name, ...args]) => client.call(name, ...args)));
      const answers = (await client.pipeline(commands.map((command) => [...command])).exec()) ?? [];
      return answers.map(([error, value]) => {
        if (error !== null) throw error;
        return value;
      });
    });
  }

  /** The texts of these keys, wherever they are, in order; `null`: no such key. A few at a time, so that nobody else waits long. */
  async getMany(keys: readonly string[], atOnce = READ_AT_ONCE): Promise<readonly (string | null)[]> {
    const texts: (string | null)[] = [];
    for (let start = 0; start < keys.length; start += atOnce) {
      const found = await this.pipeline(keys.slice(start, start + atOnce).map((key) => ['get', key]));
      texts.push(...(found as (string | null)[]));
    }
    return texts;
  }

  /** Runs a script that touches `keys`, all of one hash slot. */
  async script(script: RedisScript, keys: readonly string[], args: readonly (string | number)[]): Promise<unknown> {
    const { sha1, source } = this.#inTime(script);
    return this.run(async (client) => {
      try {
        return await client.evalsha(sha1, keys.length, ...keys, ...args);
      } catch (error) {
        // First use on this server, or it was restarted.
        if (!isMissingScript(error)) throw error;
        return client.eval(source, keys.length, ...keys, ...args);
      }
    });
  }

  /** A script as a command of a pipeline. It has the whole source: a script that Redis does not know would fail there. */
  scriptCommand(script: RedisScript, keys: readonly string[], args: readonly (string | number)[]): RedisCommand {
    return ['eval', this.#inTime(script).source, keys.length, ...keys, ...args];
  }

  /**
   * Writes `next` (`null`: deletes) if the key still holds `expected` (`null`: does not exist), and tells all gateways of it.
   * Returns what the key holds now when it does not, and `undefined` when it was written.
   */
  async compareAndSet(key: string, expected: string | null, next: string | null): Promise<string | null | undefined> {
    const answer = await this.script(COMPARE_AND_SET, [key], [expected ?? '', next ?? '', CHANGES_CHANNEL]);
    if (!Array.isArray(answer)) throw new Error('compare-and-set.lua answered no array');
    if (answer[0] === 1) {
      // Nobody remembers what did not exist.
      if (expected !== null) await this.onChanged?.(key);
      return undefined;
    }
    const current: unknown = answer[1];
    return typeof current === 'string' && current !== '' ? current : null;
  }

  /** The keys that match, a page at a time. Takes a scan of the whole key space. */
  async *scan(pattern: string, pageSize: number): AsyncGenerator<string[]> {
    const nodes = this.client instanceof Cluster ? this.client.nodes('master') : [this.client];
    for (const node of nodes) {
      let cursor = '0';
      do {
        const at = cursor;
        const [next, keys] = await this.run(() => node.scan(at, 'MATCH', pattern, 'COUNT', pageSize));
        cursor = next;
        yield keys;
      } while (cursor !== '0');
    }
  }

  /** Ends the connection; what is under way fails. */
  async close(): Promise<void> {
    const { client } = this;
    this.#isClosed = true;
    // Between two attempts to connect there is nothing that could end: ioredis says no 'end' then.
    const isConnected = client instanceof Cluster ? client.nodes().length > 0 : client.status !== 'end' && client.status !== 'reconnecting';
    const ended = new Promise<void>((resolve) => client.once('end', resolve));
    client.disconnect();
    if (isConnected) await ended;
  }

  #reportDown(error: Error): void {
    if (this.#reportedDown) return;
    this.#reportedDown = true;
    this.#log.warn({ error: error.message }, 'redis.connection.lost');
  }

  #reportUp(): void {
    this.#connects += 1;
    if (this.#reportedDown) this.#log.info({}, 'redis.connection.back');
    this.#reportedDown = false;
  }
}

/** The server does not have the script: it is new, or was restarted. */
export function isMissingScript(error: unknown): boolean {
  return error instanceof Error && error.message.includes('NOSCRIPT');
}

function asStoreError(error: unknown): unknown {
  if (!(error instanceof Error) || error instanceof StoreUnavailableError) return error;
  // ioredis gives timeouts and lost connections as plain errors, and answers of the server as ReplyError.
  if (error.name === 'ReplyError') return storeError(error.message);
  if (error instanceof TypeError || error instanceof RangeError || error instanceof SyntaxError) return error;
  return new StoreUnavailableError(`Redis is not available: ${error.message}`);
}

/** What an error answer of the server means. */
export function storeError(answer: string): Error {
  return UNAVAILABLE.test(answer)
    ? new StoreUnavailableError(`Redis is not available: ${answer}`, answer)
    : new Error(`Redis refused a command: ${answer}`);
}

export interface RecordTypes {
  readonly number: NumberRecord;
  readonly org: OrgRecord;
  readonly agent: AgentRecord;
  readonly tool: ToolRecord;
  readonly batch: BatchRecord;
  readonly call: CallRecord;
}

/** What records that were stored by an earlier version lack. */
const LATER_FIELDS: { readonly [K in keyof RecordTypes]?: Partial<RecordTypes[K]> } = {
  org: {
    max_calls_per_second: null,
    max_provider_sessions: null,
    max_provider_minutes_per_day: null,
    max_provider_tokens_per_day: null,
    allowed_sources: [],
    provider_keys: {},
    operator_keys: false,
    pathway_url: null,
    pathway_token: null,
    transcript_days: null,
    dialling: null,
  },
  agent: DEFAULT_AGENT_SETTINGS,
  call: { ...NO_OUTCOME, direction: 'inbound', parent_call_id: null, transcript: [], samples: [], analysis_rejected: null },
};

/** Reads a value that this product wrote itself; `null` stays `null`. Throws on anything that is not JSON. */
export function decodeRecord<K extends keyof RecordTypes>(kind: K, text: string | null | undefined): RecordTypes[K] | null {
  if (text === null || text === undefined) return null;
  try {
    const record = { ...LATER_FIELDS[kind], ...(JSON.parse(text) as RecordTypes[K]) };
    return 'provider' in record && record.provider !== null ? { ...record, provider: { ...NO_TUNING, ...record.provider } } : record;
  } catch {
    // Without the text, which may hold a phone number.
    throw new Error(`a stored ${kind} record is not JSON`);
  }
}

import type { Clock } from '../../../../lib/clock.js';
import type { Log } from '../../../../lib/log.js';
import { cellDialogsKey, CELLS_KEY, GATEWAYS_KEY } from '../keys.js';
import type { RedisAddress } from '../redis-clients.js';
import { RedisConnection, RedisScript } from '../redis.js';

const BEAT = new RedisScript('cells/beat');
const WRITE = new RedisScript('cells/write');
const TAKE = new RedisScript('cells/take');
const HAS = new RedisScript('cells/has');
const IS_ANY_ALIVE = new RedisScript('cells/is-any-alive');
/** As `CLIENT LIST` shows it. */
const CONNECTION = 'trunkline:dialogs';
/** Longer than the longest call; what a cell left that nobody took over goes then. */
const KEPT_S = 2 * 86_400;

/** How Redis answers a beat. */
export interface BeatAnswer {
  readonly epoch: number;
  /** The cell that took this one's calls over; '': none. */
  readonly taker: string;
  /** Redis did not know this cell: it has none of its dialogs. */
  readonly isNew: boolean;
  /** By name: `<epoch>|<beat>|<gateways>|<time of the beat>`, or `<epoch>||<taker>`. */
  readonly cells: ReadonlyMap<string, string>;
  /** Redis' time, in s. */
  readonly atS: number;
}

/** A dialog's key, and its record as JSON; '': it has ended. */
export type StoredDialog = readonly [key: string, record: string];

/** The dialogs of all cells on one Redis, each cell's its own as long as nobody took them over. Everything rejects while Redis is away. */
export class RedisCells {
  readonly #redis: RedisConnection;

  constructor(address: RedisAddress, clock: Clock, log: Log) {
    this.#redis = new RedisConnection({ ...address, connectionName: CONNECTION, clock, log });
  }

  /** @param epoch 0: the cell does not know it */
  async beat(cell: string, epoch: number, text: string): Promise<BeatAnswer> {
    const answer = await this.#redis.script(BEAT, [CELLS_KEY], [cell, epoch, text]);
    const [now, taker, isNew, cells, atS] = answer as [number, string, number, string[], number];
    return { epoch: now, taker, isNew: isNew === 1, cells: new Map(pairs(cells)), atS };
  }

  /** False: the cell has another epoch, and nothing is written. */
  async write(cell: string, epoch: number, dialogs: readonly StoredDialog[]): Promise<boolean> {
    const answer = await this.#redis.script(WRITE, [CELLS_KEY, cellDialogsKey(cell)], [cell, epoch, KEPT_S, ...dialogs.flat()]);
    return answer === 1;
  }

  /** The dialogs of a lost cell, which are `cell`'s from now on; `null`: one of the two is another one than it seemed. */
  async take(lost: string, seen: string, cell: string, epoch: number): Promise<readonly StoredDialog[] | null> {
    const keys = [CELLS_KEY, cellDialogsKey(lost), cellDialogsKey(cell)];
    const answer = await this.#redis.script(TAKE, keys, [lost, seen, cell, epoch, KEPT_S]);
    return Array.isArray(answer) ? pairs(answer as string[]) : null;
  }

  async dialogs(cell: string): Promise<readonly StoredDialog[]> {
    return Object.entries(await this.#redis.run((client) => client.hgetall(cellDialogsKey(cell))));
  }

  /** Whether another cell than this has the dialog. */
  async isElsewhere(cell: string, key: string): Promise<boolean> {
    return (await this.#redis.script(HAS, [CELLS_KEY], [cell, cellDialogsKey(''), key])) === 1;
  }

  /** Whether one of these gateways has a heartbeat: it comes by another connection of another process. */
  async isAnyAlive(gateways: readonly string[]): Promise<boolean> {
    if (gateways.length === 0) return false;
    return (await this.#redis.script(IS_ANY_ALIVE, [GATEWAYS_KEY], gateways)) === 1;
  }

  close(): Promise<void> {
    return this.#redis.close();
  }
}

function pairs(flat: readonly string[]): StoredDialog[] {
  return Array.from({ length: flat.length / 2 }, (_, index) => [flat[2 * index] ?? '', flat[2 * index + 1] ?? '']);
}

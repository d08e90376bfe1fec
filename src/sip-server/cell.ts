import type { CancelTimer, Clock } from '../lib/clock.js';
import type { Log } from '../lib/log.js';
import { errorText } from '../lib/result.js';
import { Standstill } from '../lib/standstill.js';
import type { DialogRecord } from '../sip/dialog/dialog-record.js';

/** A dialog's key, and its record as JSON; '': it has ended. */
type StoredDialog = readonly [key: string, record: string];

/** Where all cells keep their dialogs: `RedisCells`, which explains the texts. Everything rejects while it is away. */
export interface CellStore {
  beat(
    cell: string,
    epoch: number,
    text: string,
  ): Promise<{
    readonly epoch: number;
    readonly taker: string;
    readonly isNew: boolean;
    readonly cells: ReadonlyMap<string, string>;
    readonly atS: number;
  }>;
  write(cell: string, epoch: number, dialogs: readonly StoredDialog[]): Promise<boolean>;
  take(lost: string, seen: string, cell: string, epoch: number): Promise<readonly StoredDialog[] | null>;
  dialogs(cell: string): Promise<readonly StoredDialog[]>;
  isElsewhere(cell: string, key: string): Promise<boolean>;
  isAnyAlive(gateways: readonly string[]): Promise<boolean>;
  close(): Promise<void>;
}

/** The SIP server, as its cell sees it. */
export interface CellDialogs {
  /** `undefined`: it has ended. */
  record(key: string): DialogRecord | undefined;
  keys(): readonly string[];
  /** Names of the gateways that are connected. */
  gateways(): readonly string[];
  /** Dialogs of a cell that was lost so long ago go on here. */
  takeOver(records: readonly DialogRecord[], awayMs: number): void;
  /** Another cell has them: they end here without a word. */
  drop(keys: readonly string[]): void;
}

const BEAT_MS = 250;
/** A cell whose beat stays the same this long has lost its calls. */
const LEASE_MS = 2_000;
/** The owner counts from before its beat, and stops earlier: two clocks may differ in speed. */
const OWNED_MS = LEASE_MS - 200;
/** A watcher that paused this long begins anew. */
const UNWATCHED_MS = 1_000;
/** Changes of so long are written together. */
const GATHER_MS = 20;
const WRITTEN_AT_ONCE = 500;
/** Above any number that the last owner may have used after its last write. */
const SEQ_AHEAD = 10_000;

/**
 * The SIP server's place among the cells of one Redis: its dialogs go there soon after each change, under a lease that it renews. Whose
 * lease runs out is taken over by another cell, which gives the dialogs the next epoch; no clock but that of the watcher decides it.
 */
export class Cell {
  /** 0: not known yet. */
  #epoch = 0;
  #beats = 0;
  /** When the last beat was sent that came back. */
  #renewedMs = -Infinity;
  #watchedMs = -Infinity;
  /** Each other cell's last text, and since when it is the same. */
  readonly #seen = new Map<string, { readonly text: string; readonly sinceMs: number }>();
  /** Keys of dialogs to write, or to remove. */
  readonly #changed = new Set<string>();
  /** Those that the store has, as far as is known. */
  readonly #stored = new Set<string>();
  #writing = false;
  /** A takeover whose answer is unknown. */
  #isUnsure = false;
  #wasAway = false;
  #isClosed = false;
  readonly #standstill: Standstill;
  #dialogs: CellDialogs | undefined;
  #cancelBeat: CancelTimer | undefined;
  #cancelWrite: CancelTimer | undefined;

  constructor(
    private readonly name: string,
    private readonly store: CellStore,
    private readonly clock: Clock,
    private readonly log: Log,
    /** Whether the calls of a lost cell are for this one, and not for another of this host. */
    private readonly isFor: (lost: string) => boolean = () => true,
  ) {
    this.#standstill = new Standstill(clock);
  }

  /** Begins to beat. The dialogs of an earlier process are restored by then. */
  open(dialogs: CellDialogs): void {
    this.#dialogs = dialogs;
    for (const key of dialogs.keys()) {
      this.#stored.add(key);
      this.#changed.add(key);
    }
    void this.#beat();
  }

  /** Nobody else may have the dialogs now. Otherwise no request of ours but BYE goes out. */
  get isOwner(): boolean {
    return this.clock.nowMs() - this.#renewedMs < OWNED_MS;
  }

  /** False after a standstill, until Redis answers that nobody took the dialogs. */
  get isAwake(): boolean {
    return this.#standstill.wokeMs === null;
  }

  write(key: string): void {
    this.#changed.add(key);
    this.#writeSoon();
  }

  end(key: string): void {
    this.write(key);
  }

  /** Whether another host may have the dialog, which we do not know. */
  async isElsewhere(key: string): Promise<boolean> {
    if (this.#isUnsure) return true;
    return this.store.isElsewhere(this.name, key).catch(() => true);
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#standstill.close();
    this.#cancelBeat?.();
    this.#cancelWrite?.();
    await this.store.close();
  }

  /** One that is not answered is not followed by more. */
  async #beat(): Promise<void> {
    const dialogs = this.#dialogs;
    if (dialogs === undefined) return;
    const sentMs = this.clock.nowMs();
    this.#beats += 1;
    let isKnown = true;
    try {
      const answer = await this.store.beat(this.name, this.#epoch, `${String(this.#beats)}|${dialogs.gateways().join(',')}`);
      isKnown = answer.cells.size > 0;
      if (isKnown) {
        this.#epoch = answer.epoch;
        this.#renewedMs = sentMs;
        this.#standstill.confirm(sentMs);
        if (answer.isNew) for (const key of dialogs.keys()) this.#changed.add(key);
        this.#writeSoon();
        await this.#watch(dialogs, answer.cells, answer.atS);
      } else await this.#learn(dialogs, answer);
      if (this.#wasAway) this.log.info({}, 'sip_server.cell.back');
      this.#wasAway = false;
    } catch (error) {
      // While the store is away nobody is lost.
      this.#seen.clear();
      if (!this.#wasAway) this.log.warn({ error: errorText(error) }, 'sip_server.cell.away');
      this.#wasAway = true;
    }
    if (!this.#isClosed) this.#cancelBeat = this.clock.setTimer(isKnown ? BEAT_MS : 0, () => void this.#beat());
  }

  /** The cell begins, or another one took its calls over. */
  async #learn(dialogs: CellDialogs, { epoch, taker }: { readonly epoch: number; readonly taker: string }): Promise<void> {
    if (taker !== '') {
      const theirs = new Set((await this.store.dialogs(taker)).map(([key]) => key));
      const dropped = dialogs.keys().filter((key) => this.#stored.has(key) || theirs.has(key));
      this.log.warn({ calls: dropped.length, taker }, 'sip_server.cell.taken');
      dialogs.drop(dropped);
      this.#stored.clear();
      for (const key of dialogs.keys()) this.#changed.add(key);
    }
    this.#epoch = epoch;
  }

  async #watch(dialogs: CellDialogs, cells: ReadonlyMap<string, string>, atS: number): Promise<void> {
    const nowMs = this.clock.nowMs();
    // Who stood still saw nothing meanwhile.
    if (nowMs - this.#watchedMs > UNWATCHED_MS) this.#seen.clear();
    this.#watchedMs = nowMs;
    if (this.#isUnsure) await this.#findTaken(dialogs);
    for (const [name, text] of cells) {
      if (name === this.name || isTaken(text) || !this.isFor(name)) continue;
      const seen = this.#seen.get(name);
      if (seen?.text !== text) this.#seen.set(name, { text, sinceMs: nowMs });
      else if (nowMs - seen.sinceMs >= LEASE_MS) await this.#take(dialogs, name, text, 1_000 * (atS - Number(text.split('|')[3] ?? atS)));
    }
  }

  async #take(dialogs: CellDialogs, lost: string, text: string, awayMs: number): Promise<void> {
    const gateways = (text.split('|')[2] ?? '').split(',').filter((name) => name !== '');
    // Its SIP server alone is away.
    if (await this.store.isAnyAlive(gateways)) return;
    this.#isUnsure = true;
    const taken = await this.store.take(lost, text, this.name, this.#epoch);
    this.#isUnsure = false;
    this.#seen.delete(lost);
    if (taken === null || taken.length === 0) return;
    this.log.warn({ cell: lost, calls: taken.length, away_ms: awayMs }, 'sip_server.cell.took_over');
    this.#restore(dialogs, taken, awayMs);
  }

  /** The store may have given us dialogs although its answer was lost. */
  async #findTaken(dialogs: CellDialogs): Promise<void> {
    const stored = await this.store.dialogs(this.name);
    this.#isUnsure = false;
    this.#restore(
      dialogs,
      stored.filter(([key]) => dialogs.record(key) === undefined && !this.#changed.has(key)),
      0,
    );
  }

  #restore(dialogs: CellDialogs, stored: readonly StoredDialog[], awayMs: number): void {
    for (const [key] of stored) this.#stored.add(key);
    dialogs.takeOver(
      stored.map(([, text]) => {
        const record = JSON.parse(text) as DialogRecord;
        return { ...record, reservedSeq: record.reservedSeq + SEQ_AHEAD };
      }),
      awayMs,
    );
  }

  #writeSoon(): void {
    if (this.#changed.size === 0 || this.#writing || this.#isClosed) return;
    this.#writing = true;
    this.#cancelWrite = this.clock.setTimer(GATHER_MS, () => void this.#write().finally(() => (this.#writing = false)));
  }

  /** Whatever fails is written after the next beat. */
  async #write(): Promise<void> {
    while (this.#changed.size > 0 && this.#epoch > 0) {
      const batch = [...this.#changed].slice(0, WRITTEN_AT_ONCE);
      const dialogs = batch.map((key): StoredDialog => {
        const record = this.#dialogs?.record(key);
        this.#changed.delete(key);
        return [key, record === undefined ? '' : JSON.stringify(record)];
      });
      const isWritten = await this.store.write(this.name, this.#epoch, dialogs).catch(() => false);
      for (const [key, text] of dialogs) {
        if (!isWritten) this.#changed.add(key);
        else if (text === '') this.#stored.delete(key);
        else this.#stored.add(key);
      }
      if (!isWritten) return;
    }
  }
}

/** Its calls were taken over, and it has not shown itself since. */
function isTaken(text: string): boolean {
  return text.split('|')[1] === '';
}

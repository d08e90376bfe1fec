export interface StreamId {
  readonly ms: number;
  readonly sequence: number;
}

export interface StreamEntry {
  readonly id: StreamId;
  /** Names and values in turn. */
  readonly fields: readonly string[];
}

/** Entries in the order of their ids, which only grow. */
export class Stream {
  entries: StreamEntry[] = [];
  lastId: StreamId = { ms: 0, sequence: 0 };

  add(entry: StreamEntry): void {
    this.entries.push(entry);
    this.lastId = entry.id;
  }

  /** Drops the oldest. */
  trim(maxEntries: number): number {
    const dropped = Math.max(0, this.entries.length - maxEntries);
    this.entries.splice(0, dropped);
    return dropped;
  }
}

export const idText = ({ ms, sequence }: StreamId): string => `${ms}-${sequence}`;

/** Below 0: the first is older. */
export function compareIds(one: StreamId, other: StreamId): number {
  return one.ms - other.ms || one.sequence - other.sequence;
}

// A record's `updated_at` is its version: no two of one record are the same, so that a caller can say which one a change is meant for.

interface Revised {
  readonly updated_at: string;
}

/** The versions that a change is meant for; `*`: whichever there is. `undefined`: nothing was said. */
export type IfMatch = readonly string[] | '*' | undefined;

/** Whether a change that was meant for `ifMatch` may be made to the record that is there, or to none. */
export function isMeant(record: Revised | null, ifMatch: IfMatch): boolean {
  if (ifMatch === undefined) return true;
  return record !== null && (ifMatch === '*' || ifMatch.includes(record.updated_at));
}

/** When a change is made, ISO 8601: now, but always after the one before. */
export function revisedAt(nowMs: number, before: Revised): string {
  const beforeMs = Date.parse(before.updated_at);
  return new Date(Number.isNaN(beforeMs) ? nowMs : Math.max(nowMs, beforeMs + 1)).toISOString();
}

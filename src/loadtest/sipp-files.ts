// What SIPp writes while it runs. Seen with 3.6.1 and 3.7: the formats are not documented.

/** A line of the `<log>` action of a 200: INVITE sent and 200 received, seconds and microseconds of the wall clock each. */
export interface AnsweredLine {
  readonly kind: 'answered';
  readonly atMs: number;
  readonly latencyMs: number;
  readonly media: MediaStart | null;
}

/** Where the media of a call goes. */
export interface MediaStart {
  readonly slot: number;
  readonly address: string;
  readonly port: number;
  /** Base64. */
  readonly key: string;
  readonly payloadType: number;
  /** null: the answer has no telephone-event. */
  readonly eventsType: number | null;
}

/** A call with media is about to end. */
export interface EndingLine {
  readonly kind: 'ending';
  readonly slot: number;
}

const ANSWERED = /^answered (\d+)(?:\.\d+)? (\d+)(?:\.\d+)? (\d+)(?:\.\d+)? (\d+)(?:\.\d+)?(?: (.*))?$/;
const MEDIA = /^slot=(\d+) to=([0-9.]+|[0-9A-Fa-f:]+)\|(\d+) key=([A-Za-z0-9+/]+=*) payload=(\d+) events=(\d*)$/;

/** null: another line. */
export function parseCallLine(line: string): AnsweredLine | EndingLine | null {
  const ending = /^ending slot=(\d+)$/.exec(line);
  if (ending !== null) return { kind: 'ending', slot: Number(ending[1]) };
  const match = ANSWERED.exec(line);
  if (match === null) return null;
  const [sentS, sentUs, receivedS, receivedUs] = match.slice(1, 5).map(Number) as [number, number, number, number];
  const latencyMs = (receivedS - sentS) * 1_000 + (receivedUs - sentUs) / 1_000;
  return { kind: 'answered', atMs: receivedS * 1_000 + receivedUs / 1_000, latencyMs, media: mediaOf(match[5] ?? '') };
}

function mediaOf(text: string): MediaStart | null {
  const match = MEDIA.exec(text);
  if (match === null) return null;
  const [, slot, address = '', port, key = '', payloadType, events] = match;
  return {
    slot: Number(slot),
    address,
    port: Number(port),
    key,
    payloadType: Number(payloadType),
    eventsType: events === '' ? null : Number(events),
  };
}

/** A line of `-trace_rtt`, `Date_ms;response_time_ms;rtd_no`: milliseconds; null: the header. SIPp's clock has steps of 4 ms. */
export function parseRttLine(line: string): number | null {
  const match = /^[\d.]+;(\d+(?:\.\d+)?);/.exec(line);
  return match === null ? null : Number(match[1]);
}

/** Cumulative counters of one SIPp process. */
export interface SippCounters {
  readonly atMs: number;
  readonly created: number;
  readonly current: number;
  readonly successful: number;
  readonly failed: number;
}

/** Reads the lines of `-trace_stat`, of which the first names the columns. */
export class StatLines {
  #columns: readonly string[] | undefined;

  /** null: the header, or a line that was cut off. */
  read(line: string): SippCounters | null {
    const cells = line.split(';');
    if (this.#columns === undefined) {
      this.#columns = cells;
      return null;
    }
    const columns = this.#columns;
    const cell = (name: string): string => cells[columns.indexOf(name)] ?? '';
    const at = /(\d+\.\d+)$/.exec(cell('CurrentTime'));
    const [created, current, successful, failed] = ['TotalCallCreated', 'CurrentCall', 'SuccessfulCall(C)', 'FailedCall(C)'].map((name) =>
      cell(name) === '' ? Number.NaN : Number(cell(name)),
    ) as [number, number, number, number];
    if (at === null || ![created, current, successful, failed].every(Number.isFinite)) return null;
    return { atMs: Number(at[1]) * 1_000, created, current, successful, failed };
  }
}

/** How a call failed, from SIPp's error log. */
export interface CallError {
  readonly atMs: number;
  readonly code: string;
  readonly reason: string | null;
}

const ENTRY = /(?=\d{4}-\d{2}-\d{2}\t\d{2}:\d{2}:\d{2}\.\d{6}\t\d+\.\d+: )/;
const ENTRY_TIME = /^\d{4}-\d{2}-\d{2}\t\S+\t(\d+\.\d+): /;
const MAX_ENTRY = 1 << 20;

/** Cuts the error log, in which entries follow each other without a line between, into its entries. */
export class ErrorLog {
  #rest = '';

  read(text: string): CallError[] {
    const entries = (this.#rest + text).split(ENTRY);
    // The last one may go on.
    this.#rest = (entries.pop() ?? '').slice(-MAX_ENTRY);
    return entries.map(callErrorOf).filter((one) => one !== null);
  }

  end(): CallError[] {
    const last = callErrorOf(this.#rest);
    this.#rest = '';
    return last === null ? [] : [last];
  }
}

/** null: an entry that ends no call. */
function callErrorOf(entry: string): CallError | null {
  const time = ENTRY_TIME.exec(entry);
  if (time === null) return null;
  const text = entry.slice(time[0].length);
  const at = { atMs: Number(time[1]) * 1_000 };
  if (text.startsWith('Aborted call with Call-ID')) return { ...at, code: 'interrupted', reason: null };
  if (/receive timeout on message/.test(text)) return { ...at, code: 'timeout', reason: null };
  if (/^(Aborting call on unexpected message|Unexpected message)/.test(text)) {
    const received = /received '(?:SIP\/2\.0 (\d{3})|([A-Z]+) )/.exec(text);
    return { ...at, code: received?.[1] ?? received?.[2] ?? 'other', reason: reasonOf(text) };
  }
  return /^(Failed regexp|Call-Id: .*(Failed|failed))/.test(text) ? { ...at, code: 'other', reason: 'UNEXPECTED_CONTENT' } : null;
}

/** The gateway's own code: `Reason: Q.850;cause=1;text="CODE"`, else `Warning: 399 host "CODE: sentence"`. */
export function reasonOf(message: string): string | null {
  const found =
    /^Reason:[^\r\n]*text="([A-Z][A-Z0-9_]{2,63})"/m.exec(message) ?? /^Warning:[^\r\n]*"([A-Z][A-Z0-9_]{2,63}):/m.exec(message);
  return found?.[1] ?? null;
}

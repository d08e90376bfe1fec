import type { CallRecord } from '../../src/gateway/model/call-record.js';
import { percentile } from '../../src/loadtest/percentiles.js';
import { LongCalls, type LongCallFate } from './long-calls.js';
import { filesOf, leftOvers, LogReader, ReadyWatch } from './measure.js';
import { ShortCalls, type ShortCall } from './short-calls.js';
import type { World, WorldName } from './world.js';

/** One thing that goes wrong, and how it is made right again. */
export interface Fault {
  /** For `--only`. */
  readonly name: string;
  /** In the report. */
  readonly title: string;
  readonly world: WorldName;
  readonly settings?: Readonly<Record<string, string>>;
  /** The instance is not the same afterwards: the next fault has another one. */
  readonly isAlone?: boolean;
  /** The calls with audio are heard only by the agent's echo of what their carriers say, and the carriers send sender reports. */
  readonly isBothWays?: boolean;
  /** Calls with audio: of more, one process of carriers would hear late what both sides say. */
  readonly mostCalls?: number;
  /** What carriers trust, where it is not the instance's own CA. */
  readonly ca?: string;
  /** How long the cause lasts; 0: it is a blow, and what follows is the product's own doing. */
  readonly lastsMs: number;
  /** @param long the calls with audio */
  inject(world: World, long: LongCalls): void | Promise<void>;
  /** What the kernel, the operator or the network does in its time; not what the product does by itself. */
  heal?(world: World): void | Promise<void>;
  /** In place of the load and the expectations of calls that come in. */
  readonly run?: (world: World) => Promise<DialReport>;
  /** What of the general expectations does not hold for it, and why. */
  readonly excused?: Partial<Readonly<Record<Expectation, string>>>;
}

export type Expectation =
  | 'every call has an answer'
  | 'no call is stuck'
  | 'back within 5 s'
  | 'nothing leaks'
  | 'every call has its record'
  | 'no number is called twice, none forgotten';

/** Of calls that are placed. */
export type DialReport = Pick<FaultReport, 'long' | 'short' | 'reasons' | 'backMs' | 'broken'>;

export interface FaultReport {
  readonly fault: Fault;
  readonly short: Readonly<Record<string, number>>;
  readonly longestAnswerMs: number;
  readonly long: Readonly<Record<string, number>>;
  /** Calls that a host answered in its last 100 ms, which may not have reached Redis. */
  readonly late?: Readonly<Record<string, number>>;
  /** Among the calls that continued. */
  readonly longestSilenceMs: number;
  /** Half of them, and 99 of 100, had no longer one. */
  readonly silenceP50Ms: number;
  readonly silenceP99Ms: number;
  readonly reasons: Readonly<Record<string, number>>;
  /** From when the cause was gone until calls were answered again; null: not measured. */
  readonly backMs: number | null;
  readonly readyz: readonly string[];
  readonly events: Readonly<Record<string, number>>;
  /** What was logged of calls without an answer. */
  readonly traces: readonly string[];
  /** What does not hold, in words. */
  readonly broken: readonly { readonly expectation: Expectation; readonly what: string }[];
}

export interface Load {
  readonly rate: number;
  readonly longCalls: number;
}

const BEFORE_MS = 1_500;
/** Calls a second that a host gets before it dies. */
const ARRIVING = 30;
const LATE_MS = 100;
const CLEAN_MS = 3_000;
const WATCHED_MS = 25_000;
const BACK_WITHIN_MS = 5_000;
/** A gateway that was killed has places under limits for 30 s. */
const SETTLED_WITHIN_MS = 35_000;
const MORE_FILES = 12;
/** A record is written a moment after the call; with Redis away when it is back, tried every second. */
const RECORDED_WITHIN_MS = 10_000;

export async function runFault(fault: Fault, world: World, load: Load, files: Readonly<Record<string, number>>): Promise<FaultReport> {
  if (fault.run !== undefined) return runDialFault(fault, world, fault.run);
  const sinceMs = Date.now();
  const { trunk, otherHost, listener } = world;
  const carriers = { kind: otherHost === null ? 'mixed' : 'accepting', listener } as const;
  const longTrunk = otherHost === null ? trunk : { ...otherHost.trunk, number: trunk.number };
  const long = await LongCalls.begin(
    longTrunk,
    Math.min(load.longCalls, fault.mostCalls ?? Infinity),
    world.isEcho || fault.isBothWays === true,
    carriers,
  );
  if (fault.isBothWays === true) await long.areEchoed();
  const short = new ShortCalls(trunk, load.rate);
  const arrived = otherHost === null ? undefined : long.arrive(ARRIVING, listener);
  await pause(BEFORE_MS);
  const log = new LogReader(world);
  const ready = new ReadyWatch(world.gateway.ready.http);
  const atMs = performance.now();
  const lateMs = otherHost === null ? Infinity : atMs - LATE_MS;
  await fault.inject(world, long);
  arrived?.();
  await pause(fault.lastsMs);
  await fault.heal?.(world);
  const goneMs = fault.lastsMs === 0 ? atMs : performance.now();
  await untilClean(
    short,
    goneMs,
    () =>
      fault.excused?.['no call is stuck'] !== undefined ||
      long.fates(atMs).every(({ fate, answeredMs }) => fate !== 'silent' || answeredMs > lateMs),
  );
  await short.stop();
  const all = long.fates(atMs);
  const late = all.filter(({ answeredMs }) => answeredMs > lateMs);
  const fates = all.filter((one) => !late.includes(one));
  const ids = fates.map(({ sipCallId }) => sipCallId);
  const notEnded = await long.hangUp(lateMs);
  const left = await settled(world);
  const answered = short.all.filter(({ outcome }) => outcome === 'answered').map(({ sipCallId }) => sipCallId);
  const records = await recordsOf(world, sinceMs, [...ids, ...answered]);
  ready.stop();
  const after = filesOf(world);
  const toldEnds = log.toldEnds();
  // Only some of thousands of refusals have a record; each has a log line.
  const untold = short.all.filter((call) => call.endedMs >= atMs && isRefusedWithReason(call) && !toldEnds.has(call.sipCallId)).length;
  const during = short.all.filter(({ endedMs }) => endedMs >= atMs);
  const backMs = Math.max(0, Math.round((short.lastFailureMs(goneMs) ?? goneMs) - goneMs));
  const silences = fates.flatMap(({ fate, silenceMs }) => (fate === 'goes on' ? [silenceMs] : []));
  const report = {
    fault,
    short: tally(during.map(({ outcome }) => outcome)),
    longestAnswerMs: Math.max(0, ...during.map(({ answerMs }) => answerMs ?? 0)),
    long: tally(fates.map(({ fate }) => fate)),
    ...(otherHost === null ? {} : { late: tally(late.map(({ fate }) => fate)) }),
    longestSilenceMs: Math.max(0, ...silences),
    silenceP50Ms: percentile(silences, 0.5) ?? 0,
    silenceP99Ms: percentile(silences, 0.99) ?? 0,
    reasons: tally([...records.found.values()].filter(({ sip_call_id: id }) => ids.includes(id)).map(({ reason }) => reason)),
    backMs,
    readyz: [...ready.seen],
    events: log.events(),
  };
  return {
    ...report,
    broken: broken({ fates, notEnded, during, backMs, left, grown: grown(files, after), missing: records.missing.length, untold }),
    traces: log.of([...during.filter(({ outcome }) => outcome === 'no answer').map(({ sipCallId }) => sipCallId), ...records.missing]),
  };
}

/** Calls that are placed. */
async function runDialFault(fault: Fault, world: World, run: NonNullable<Fault['run']>): Promise<FaultReport> {
  const log = new LogReader(world);
  const ready = new ReadyWatch(world.gateway.ready.http);
  const report = await run(world);
  ready.stop();
  const left = await settled(world);
  const leaks = left.map((what) => ({ expectation: 'nothing leaks' as const, what }));
  return {
    ...report,
    fault,
    longestAnswerMs: 0,
    longestSilenceMs: 0,
    silenceP50Ms: 0,
    silenceP99Ms: 0,
    traces: [],
    readyz: [...ready.seen],
    events: log.events(),
    broken: [...report.broken, ...leaks],
  };
}

/** New calls are answered for a while, and those in progress are heard or ended; or it is given up. */
async function untilClean(short: ShortCalls, goneMs: number, areHeard: () => boolean): Promise<void> {
  for (;;) {
    await pause(200);
    const nowMs = performance.now();
    if (nowMs - goneMs > WATCHED_MS) return;
    if (nowMs - (short.lastFailureMs(goneMs) ?? goneMs) < CLEAN_MS || !short.hasAnsweredSince(nowMs - 1_000)) continue;
    if (areHeard()) return;
  }
}

async function settled(world: World): Promise<string[]> {
  const endMs = performance.now() + SETTLED_WITHIN_MS;
  for (;;) {
    const left = await leftOvers(world).catch((error: unknown) => [`not known: ${(error as Error).message}`]);
    if (left.length === 0 || performance.now() > endMs) return left;
    await pause(250);
  }
}

/** By the gateway, not by the SIP server. */
function isRefusedWithReason({ outcome }: ShortCall): boolean {
  return / [A-Z_]+$/.test(outcome);
}

async function recordsOf(
  { stores, orgId }: World,
  sinceMs: number,
  wanted: readonly string[],
): Promise<{ readonly found: ReadonlyMap<string, CallRecord>; readonly missing: readonly string[] }> {
  const endMs = performance.now() + RECORDED_WITHIN_MS;
  for (;;) {
    const found = new Map<string, CallRecord>();
    let before: string | undefined;
    do {
      const page = await stores.calls.list(orgId, { limit: 500, ...(before === undefined ? {} : { before }) });
      for (const record of page.calls) found.set(record.sip_call_id, record);
      before = page.calls.some(({ started_at: at }) => Date.parse(at) >= sinceMs - 2 * 3_600_000) ? (page.next ?? undefined) : undefined;
    } while (before !== undefined);
    const missing = wanted.filter((id) => !found.has(id));
    if (missing.length === 0 || performance.now() > endMs) return { found, missing };
    await pause(250);
  }
}

function grown(before: Readonly<Record<string, number>>, after: Readonly<Record<string, number>>): string[] {
  return Object.entries(after)
    .filter(([name, files]) => files > (before[name] ?? 0) + MORE_FILES)
    .map(([name, files]) => `${name} has ${String(files)} open files, ${String(before[name] ?? 0)} before`);
}

interface Findings {
  readonly fates: readonly LongCallFate[];
  readonly notEnded: number;
  readonly during: readonly ShortCall[];
  readonly backMs: number;
  readonly left: readonly string[];
  readonly grown: readonly string[];
  readonly missing: number;
  readonly untold: number;
}

function broken({ fates, notEnded, during, backMs, left, grown, missing, untold }: Findings): FaultReport['broken'] {
  const unanswered = during.filter(({ outcome }) => outcome === 'no answer').length;
  const silent = fates.filter(({ fate }) => fate === 'silent').length;
  const all: [boolean, Expectation, string][] = [
    [unanswered > 0, 'every call has an answer', `${String(unanswered)} calls had none within 10 s`],
    [silent > 0, 'no call is stuck', `${String(silent)} calls had neither audio nor a BYE`],
    [notEnded > 0, 'no call is stuck', `${String(notEnded)} calls could not be hung up`],
    [backMs > BACK_WITHIN_MS, 'back within 5 s', `calls were refused for ${String(backMs)} ms`],
    [left.length > 0, 'nothing leaks', left.join(', ')],
    [grown.length > 0, 'nothing leaks', grown.join(', ')],
    [missing > 0, 'every call has its record', `${String(missing)} calls have none`],
    [untold > 0, 'every call has its record', `${String(untold)} refused calls are not in the log`],
  ];
  return all.filter(([isBroken]) => isBroken).map(([, expectation, what]) => ({ expectation, what }));
}

export function tally(names: readonly string[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const name of names) counts[name] = (counts[name] ?? 0) + 1;
  return counts;
}

export function pause(forMs: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, forMs));
}

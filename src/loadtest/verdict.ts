import type { Failure, Limit, MediaFigures, ProcessFigures, StageFigures, Verdict } from './figures.js';

// Whether a stage was as it should be, and what limited it when not.

export interface Thresholds {
  /** Failed calls that are let pass. */
  readonly maxFailures: number;
  /** Milliseconds from INVITE to 200; null: any. */
  readonly maxP99: number | null;
  /** Lost packets, percent of those expected. */
  readonly maxLossPercent: number;
  /** Whether what is said must come back: false of agents that do not echo. */
  readonly echoes: boolean;
}

export interface StageFacts extends Pick<
  StageFigures,
  'plan' | 'started' | 'failed' | 'failures' | 'latency' | 'behind' | 'media' | 'processes' | 'machine'
> {
  readonly interrupted: boolean;
  /** Why a load generator broke off; null: none did. */
  readonly problem: string | null;
}

export function verdictOf(facts: StageFacts, thresholds: Thresholds): Verdict {
  const faults = faultsOf(facts, thresholds);
  return { passed: faults.length === 0 && !facts.interrupted, faults, limit: faults.length === 0 ? null : limitOf(facts) };
}

const BEHIND_SECONDS = 0.25;

/** SIPp starts calls in bunches; more than a quarter of a second's calls late is a load that was not placed. */
function isBehind({ behind, plan }: Pick<StageFacts, 'behind' | 'plan'>): boolean {
  return behind > Math.max(2, plan.cps * BEHIND_SECONDS);
}

function faultsOf(facts: StageFacts, { maxFailures, maxP99, maxLossPercent, echoes }: Thresholds): string[] {
  const { plan, started, failed, latency, media, behind, interrupted, problem } = facts;
  const faults: string[] = [];
  if (problem !== null) faults.push(problem);
  if (started < plan.calls && !interrupted) faults.push(`${String(plan.calls - started)} of ${calls(plan.calls)} were not placed`);
  if (failed > maxFailures) faults.push(`${calls(failed)} failed`);
  if (latency === null) faults.push('no call was answered');
  else if (maxP99 !== null && latency.p99 > maxP99) faults.push(`p99 is ${latency.p99.toFixed(1)} ms, over ${String(maxP99)} ms`);
  if (isBehind(facts)) faults.push(`the load generator was ${String(behind)} calls behind its schedule`);
  return media === null ? faults : [...faults, ...mediaFaults(media, maxLossPercent, echoes)];
}

function mediaFaults(media: MediaFigures, maxLossPercent: number, echoes: boolean): string[] {
  const { tone, digits, packets, unchecked } = media;
  const loss = lossPercent(packets);
  return [
    ...(unchecked > 0 ? [`the media of ${calls(unchecked)} could not be checked`] : []),
    ...(tone.wrong > 0 ? [`${calls(tone.wrong)} heard another call's audio`] : []),
    ...(echoes && tone.silent > 0 ? [`${calls(tone.silent)} did not hear their own tone come back`] : []),
    ...(echoes && digits.answered < digits.pressed
      ? [`${String(digits.pressed - digits.answered)} of ${String(digits.pressed)} keys were not read back`]
      : []),
    ...(loss > maxLossPercent ? [`${loss.toFixed(2)} % of the packets were lost`] : []),
    ...(packets.rejected > 0 ? [`${String(packets.rejected)} packets failed their SRTP check`] : []),
  ];
}

const calls = (count: number): string => `${String(count)} ${count === 1 ? 'call' : 'calls'}`;

export function lossPercent({ lost, expected }: { readonly lost: number; readonly expected: number }): number {
  return expected === 0 ? 0 : (100 * lost) / expected;
}

/** What to change when the gateway refused calls, by its reason. A limit of one source throttles a load test first. */
const SETTINGS: Readonly<Record<string, readonly string[]>> = {
  OVERLOADED: [
    'admission.max_calls',
    'admission.max_calls_per_second',
    'admission.max_event_loop_delay_ms',
    'admission.max_media_delay_ms',
    'admission.max_cpu_percent',
    'rtpengine.port_min, rtpengine.port_max (4 ports a call)',
    'media.port_min, media.port_max',
  ],
  MEDIA_UNAVAILABLE: ['rtpengine.port_min, rtpengine.port_max (4 ports a call)', 'rtpengine.timeout_ms', 'the limit on open files'],
  NUMBER_CALL_LIMIT: ["max_concurrent_calls of the number's options"],
  NUMBER_RATE_LIMIT: ["max_calls_per_second of the number's options"],
  ORG_CALL_LIMIT: ['trunkline org set-limits --max-concurrent-calls'],
  ORG_RATE_LIMIT: ['trunkline org set-limits --max-calls-per-second'],
  ORG_SESSION_LIMIT: ['trunkline org set-limits --max-provider-sessions'],
  ORG_MINUTE_LIMIT: ['trunkline org set-limits --max-provider-minutes-per-day'],
  ORG_TOKEN_LIMIT: ['trunkline org set-limits --max-provider-tokens-per-day'],
  SOURCE_NOT_ALLOWED: ['admission.allowed_sources', 'allowed_sources of the number and the organization'],
  MEDIA_TIMEOUT: ['media.timeout_ms: calls without media are ended when no audio comes; --direction inactive keeps them'],
  MAX_DURATION: ['calls.max_duration_minutes'],
};
/** 503 with Retry-After and no reason comes from the SIP server, which has its own limits. */
const SIP_SERVER_LIMITS = ['sip.max_requests_per_second_per_source', 'sip.max_dialogs', 'sip.max_transactions', 'sip.max_memory_mb'];
const DROPS = ['sip.drop_above_factor × sip.max_requests_per_second_per_source: more of one address is dropped without an answer'];

/** Settings that a failure names; empty: it names none. */
export function settingsOf({ code, reason }: Pick<Failure, 'code' | 'reason'>): readonly string[] {
  if (reason !== null) return SETTINGS[reason] ?? [];
  return code === '503' ? SIP_SERVER_LIMITS : [];
}

const CORE_FULL = 85;
const MACHINE_FULL = 90;
const FILES_FULL = 0.95;
const MEMORY_LOW_MB = 200;

/** By what is most certain first: what the gateway said, then what the processes show. */
export function limitOf(facts: Omit<StageFacts, 'latency' | 'media' | 'started' | 'failed' | 'problem'>): Limit {
  return refusal(facts) ?? exhausted(facts) ?? loadGenerator(facts) ?? processor(facts) ?? unknown(facts);
}

type Facts = Parameters<typeof limitOf>[0];

/** What names a setting first; a refusal that names none is a limit all the same: of the number, not of the machine. */
function refusal({ failures, processes, machine }: Facts): Limit | null {
  const answered = failures.filter(({ code, reason }) => reason !== null || /^[3-6]\d\d$/.test(code));
  const named = answered.filter((one) => settingsOf(one).length > 0);
  const [most] = (named.length > 0 ? named : answered).sort((one, other) => other.count - one.count);
  if (most === undefined) return null;
  const why = most.reason ?? 'without a reason';
  const busy = busiest(processes);
  const also = busy === undefined || most.reason !== 'OVERLOADED' ? '' : `; the busiest process was ${shareText(busy)} of a core`;
  const isFull = named.length > 0 && machine.busyPercent !== null && machine.busyPercent >= MACHINE_FULL;
  const full = isFull ? `; the cores of this machine were ${machine.busyPercent.toFixed(0)} % busy` : '';
  return {
    kind: 'refused',
    who: 'gateway',
    text: `the gateway refused or ended ${calls(most.count)}: ${most.code} ${why}${also}${full}`,
    settings: [...new Set(named.flatMap(settingsOf))],
  };
}

function exhausted({ processes, machine }: Facts): Limit | null {
  const files = processes.find(({ openFiles, maxOpenFiles }) => maxOpenFiles !== null && openFiles >= FILES_FULL * maxOpenFiles);
  if (files !== undefined) {
    const text = `${files.name} had ${String(files.openFiles)} files open, of ${String(files.maxOpenFiles)}`;
    return { kind: 'open-files', who: files.name, text, settings: ['ulimit -n'] };
  }
  if (machine.memoryFreeMb >= MEMORY_LOW_MB) return null;
  const largest = processes.reduce<ProcessFigures | undefined>(
    (most, one) => (most === undefined || one.memoryMb > most.memoryMb ? one : most),
    undefined,
  );
  const who = largest?.name ?? 'machine';
  return { kind: 'memory', who, text: `the machine had ${machine.memoryFreeMb.toFixed(0)} MB free; most memory has ${who}`, settings: [] };
}

/** A load generator that is itself at its limit says nothing about the gateway. */
function loadGenerator(facts: Facts): Limit | null {
  const { processes, behind } = facts;
  const full = processes.find(({ side, threadBusy }) => side === 'load' && threadBusy >= CORE_FULL);
  if (full === undefined && !isBehind(facts)) return null;
  const busy = full ?? busiest(processes.filter(({ side }) => side === 'load'));
  const what = full === undefined ? `calls were started late (${String(behind)} behind)` : `${shareText(full)} of a core`;
  return {
    kind: 'load-generator',
    who: busy?.name ?? 'sipp',
    text: `the load generator limits, not the gateway: ${what}`,
    settings: ['--connections', 'run the load test on another machine (--target)'],
  };
}

function processor({ processes, machine }: Facts): Limit | null {
  const busy = busiest(processes);
  if (busy === undefined) return null;
  if (busy.threadBusy >= CORE_FULL)
    return {
      kind: 'cpu',
      who: busy.name,
      text: `CPU: a thread of ${busy.name} used ${busy.threadBusy.toFixed(0)} % of a core`,
      settings: [],
    };
  if (machine.busyPercent === null || machine.busyPercent < MACHINE_FULL) return null;
  const ascending = [...processes].sort((one, other) => other.cpuMean - one.cpuMean);
  const [most = busy] = ascending;
  const sum = (some: readonly ProcessFigures[]): number => some.reduce((all, { cpuMean }) => all + cpuMean, 0);
  const load = sum(processes.filter(({ side }) => side === 'load'));
  const others = Math.max(0, machine.busyPercent * machine.cores - sum(processes));
  return {
    kind: 'machine',
    who: most.name,
    text:
      `CPU: the ${String(machine.cores)} cores of this machine were ${machine.busyPercent.toFixed(0)} % busy: ${most.name} used ${most.cpuMean.toFixed(0)} % ` +
      `of a core, the load generator itself ${load.toFixed(0)} %, processes of neither ${others.toFixed(0)} %`,
    settings: [],
  };
}

function unknown({ processes, failures }: Facts): Limit {
  const busy = busiest(processes);
  const settings = failures.some(({ code }) => code === 'timeout') ? DROPS : [];
  const text =
    busy === undefined
      ? 'not known: no process could be measured'
      : `no process was at its limit; the busiest was ${shareText(busy)} of a core`;
  return { kind: 'unknown', who: busy?.name ?? 'unknown', text, settings };
}

function busiest(processes: readonly ProcessFigures[]): ProcessFigures | undefined {
  return [...processes].sort((one, other) => other.threadBusy - one.threadBusy)[0];
}

const shareText = ({ name, threadBusy }: ProcessFigures): string => `${name} with ${threadBusy.toFixed(0)} %`;

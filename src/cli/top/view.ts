import { growth, quantile, type Samples } from './samples.js';

/** What `trunkline top` shows. Rates are of the time since the scrape before. */
export interface TopView {
  readonly calls: { readonly live: number; readonly room: number; readonly begunPerS: number; readonly begun: number };
  /** For calls since the previous scrape; `null`: none. */
  readonly answer: { readonly p50Ms: number | null; readonly p99Ms: number | null };
  /** Since the start, the most frequent first. */
  readonly reasons: readonly Outcome[];
  /** Failures that came since top was started, the newest first. */
  readonly newest: readonly Failure[];
  readonly relays: readonly { readonly node: string; readonly isUp: boolean; readonly sessions: number; readonly p99Ms: number | null }[];
  readonly media: {
    readonly legs: number;
    readonly inPerS: number;
    readonly outPerS: number;
    readonly lossPercent: number;
    readonly late: number;
    readonly srtpFailures: number;
    readonly kernelDrops: number;
    readonly delayMs: number;
  };
  readonly agents: { readonly connected: number; readonly failed: number; readonly reconnects: number; readonly droppedS: number };
  readonly processes: readonly ProcessView[];
  readonly isRedisUp: boolean;
  readonly isTakingCalls: boolean;
  readonly webhooksWaiting: number;
}

export interface Outcome {
  readonly reason: string;
  readonly fault: string;
  readonly kind: 'ended' | 'refused';
  readonly count: number;
  readonly perS: number;
}

export interface Failure {
  readonly atMs: number;
  readonly text: string;
}

export interface ProcessView {
  readonly name: string;
  readonly isUp: boolean;
  readonly cpuPercent: number;
  readonly memoryMb: number;
  readonly loopP99Ms: number;
  readonly files: number;
}

const MAX_NEWEST = 20;

/** Two scrapes, or one, and what was shown before. */
export function topView(now: Samples, before: Samples | null, shown: readonly Failure[]): TopView {
  const seconds = before === null ? 0 : Math.max(0.001, (now.atMs - before.atMs) / 1_000);
  const rate = (name: string, labels: Readonly<Record<string, string>> = {}): number =>
    before === null ? 0 : Math.max(0, now.sum(name, labels) - before.sum(name, labels)) / seconds;
  const buckets = 'trunkline_call_answer_seconds_bucket';
  const answers = growth(now.by('le', buckets), before?.by('le', buckets));
  const inPerS = rate('trunkline_media_packets_received_total');
  const lostPerS = rate('trunkline_media_packets_lost_total');
  const reasons = outcomes(now, before, seconds);
  return {
    calls: {
      live: now.sum('trunkline_calls_in_progress'),
      room: now.sum('trunkline_call_room'),
      begunPerS: rate('trunkline_calls_begun_total'),
      begun: now.sum('trunkline_calls_begun_total'),
    },
    answer: { p50Ms: inMs(quantile(answers, 0.5)), p99Ms: inMs(quantile(answers, 0.99)) },
    reasons,
    newest: before === null ? [] : [...newFailures(reasons, now.atMs, seconds), ...shown].slice(0, MAX_NEWEST),
    relays: relays(now),
    media: {
      legs: now.sum('trunkline_media_legs'),
      inPerS,
      outPerS: rate('trunkline_media_packets_sent_total'),
      lossPercent: lostPerS === 0 ? 0 : (100 * lostPerS) / (inPerS + lostPerS),
      late: now.sum('trunkline_media_packets_late_total'),
      srtpFailures: now.sum('trunkline_media_srtp_failures_total'),
      kernelDrops: now.sum('trunkline_media_kernel_drops_total'),
      delayMs: 1_000 * Math.max(0, ...now.by('process', 'trunkline_media_delay_seconds').values()),
    },
    agents: {
      connected: now.sum('trunkline_agent_connects_total', { outcome: 'connected' }),
      failed: now.sum('trunkline_agent_connects_total', { outcome: 'failed' }),
      reconnects: now.sum('trunkline_agent_reconnects_total'),
      droppedS: now.sum('trunkline_agent_dropped_audio_seconds_total'),
    },
    processes: processes(now, before, seconds),
    isRedisUp: allSet(now, 'trunkline_redis_up'),
    isTakingCalls: allSet(now, 'trunkline_taking_calls'),
    webhooksWaiting: now.sum('trunkline_webhooks_waiting'),
  };
}

function outcomes(now: Samples, before: Samples | null, seconds: number): Outcome[] {
  const all = (['ended', 'refused'] as const).flatMap((kind) => {
    const name = `trunkline_calls_${kind}_total`;
    const earlier = before?.by('reason', name);
    return [...now.by('reason', name)].map(([reason, count]): Outcome => {
      const [fault = ''] = now.by('fault', name, { reason }).keys();
      return { reason, fault, kind, count, perS: seconds === 0 ? 0 : Math.max(0, count - (earlier?.get(reason) ?? 0)) / seconds };
    });
  });
  return all.sort((a, b) => b.count - a.count);
}

/** A caller who hangs up is none. */
function newFailures(reasons: readonly Outcome[], atMs: number, seconds: number): Failure[] {
  return reasons
    .filter(({ kind, fault, perS }) => perS > 0 && (kind === 'refused' || (fault !== 'nobody' && fault !== 'caller')))
    .map(({ reason, fault, kind, perS }) => ({ atMs, text: `${String(Math.round(perS * seconds))} × ${reason}, ${kind} (${fault})` }));
}

function relays(now: Samples): TopView['relays'] {
  return [...now.by('node', 'trunkline_relay_up')].map(([node, up]) => ({
    node,
    // Each gateway process says for itself.
    isUp: up > 0,
    sessions: now.sum('trunkline_relay_sessions', { node }),
    p99Ms: inMs(quantile(now.by('le', 'trunkline_relay_command_seconds_bucket', { node }), 0.99)),
  }));
}

function processes(now: Samples, before: Samples | null, seconds: number): ProcessView[] {
  return [...now.by('process', 'trunkline_process_up')].map(([name, up]) => {
    const of = { process: name };
    const cpu = (samples: Samples): number => samples.sum('trunkline_process_cpu_seconds_total', of);
    const earlier = before === null ? 0 : cpu(before);
    return {
      name,
      isUp: up > 0,
      cpuPercent: seconds === 0 || earlier === 0 ? 0 : Math.max(0, (100 * (cpu(now) - earlier)) / seconds),
      memoryMb: now.sum('trunkline_process_resident_bytes', of) / 1_048_576,
      loopP99Ms: 1_000 * now.sum('trunkline_event_loop_delay_seconds', { ...of, percentile: '99' }),
      files: now.sum('trunkline_process_open_files', of),
    };
  });
}

function allSet(now: Samples, name: string): boolean {
  const flags = [...now.by('process', name).values()];
  return flags.length > 0 && flags.every((flag) => flag === 1);
}

function inMs(seconds: number | null): number | null {
  return seconds === null ? null : seconds * 1_000;
}

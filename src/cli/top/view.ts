import { toned, type Tone } from '../tone.js';

/** What `trunkline top` shows. */
export type TopView = ReturnType<typeof topView>;

export interface Failure {
  readonly atMs: number;
  readonly text: string;
}

const MAX_NEWEST = 20;

/** Of two scrapes, or one, and what was shown before. Rates are of the time between the two. */
export function topView(now: Samples, before: Samples | null, shown: readonly Failure[]) {
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
      headroom: now.sum('trunkline_call_room'),
      begunPerS: rate('trunkline_calls_begun_total'),
      begun: now.sum('trunkline_calls_begun_total'),
    },
    // Calls since the previous scrape; null: none.
    answer: { p50Ms: inMs(quantile(answers, 0.5)), p99Ms: inMs(quantile(answers, 0.99)) },
    // Since the start, the most frequent first.
    reasons,
    // Since top was started, the newest first.
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

function outcomes(now: Samples, before: Samples | null, seconds: number) {
  const all = (['ended', 'refused'] as const).flatMap((kind) => {
    const name = `trunkline_calls_${kind}_total`;
    const earlier = before?.by('reason', name);
    return [...now.by('reason', name)].map(([reason, count]) => {
      const [fault = ''] = now.by('fault', name, { reason }).keys();
      return { reason, fault, kind, count, perS: seconds === 0 ? 0 : Math.max(0, count - (earlier?.get(reason) ?? 0)) / seconds };
    });
  });
  // The gateway exports every reason from its start, most of them with 0.
  return all.filter(({ count }) => count > 0).sort((a, b) => b.count - a.count);
}

/** A caller who hangs up is none. */
function newFailures(reasons: ReturnType<typeof outcomes>, atMs: number, seconds: number): Failure[] {
  return reasons
    .filter(({ kind, fault, perS }) => perS > 0 && (kind === 'refused' || (fault !== 'nobody' && fault !== 'caller')))
    .map(({ reason, fault, kind, perS }) => ({ atMs, text: `${String(Math.round(perS * seconds))} × ${reason}, ${kind} (${fault})` }));
}

function relays(now: Samples) {
  return [...now.by('node', 'trunkline_relay_up')].map(([node, up]) => ({
    node,
    // Each gateway process says for itself.
    isUp: up > 0,
    sessions: now.sum('trunkline_relay_sessions', { node }),
    p99Ms: inMs(quantile(now.by('le', 'trunkline_relay_command_seconds_bucket', { node }), 0.99)),
  }));
}

function processes(now: Samples, before: Samples | null, seconds: number) {
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

/** One line of what a gateway serves at /metrics. */
interface Sample {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

/** A scrape, to be asked for sums. Lines that are no samples are left out. */
export class Samples {
  readonly #byName = new Map<string, Sample[]>();

  constructor(
    text: string,
    readonly atMs: number,
  ) {
    for (const line of text.split('\n')) {
      const [, name, labels = '', value] = /^([a-z_]+)(?:\{(.*)\})? (\S+)$/.exec(line) ?? [];
      if (name === undefined) continue;
      const sample = { name, labels: readLabels(labels), value: Number(value?.replace('Inf', 'Infinity')) };
      const known = this.#byName.get(name);
      if (known === undefined) this.#byName.set(name, [sample]);
      else known.push(sample);
    }
  }

  /** 0 when there is none. */
  sum(name: string, labels: Readonly<Record<string, string>> = {}): number {
    return this.#of(name, labels).reduce((all, { value }) => all + value, 0);
  }

  /** Sums by the values of one label, in their order. */
  by(label: string, name: string, labels: Readonly<Record<string, string>> = {}): ReadonlyMap<string, number> {
    const sums = new Map<string, number>();
    for (const sample of this.#of(name, labels)) {
      const key = sample.labels[label] ?? '';
      sums.set(key, (sums.get(key) ?? 0) + sample.value);
    }
    return new Map([...sums].sort(([a], [b]) => (a < b ? -1 : 1)));
  }

  #of(name: string, labels: Readonly<Record<string, string>>): readonly Sample[] {
    const wanted = Object.entries(labels);
    return (this.#byName.get(name) ?? []).filter((sample) => wanted.every(([label, value]) => sample.labels[label] === value));
  }
}

/** How a counter grew between two scrapes; what it stands at when there is no earlier one, or its process was started anew. */
export function growth(now: ReadonlyMap<string, number>, before: ReadonlyMap<string, number> | undefined): ReadonlyMap<string, number> {
  return new Map([...now].map(([key, value]) => [key, value >= (before?.get(key) ?? 0) ? value - (before?.get(key) ?? 0) : value]));
}

/** A quantile of a histogram (`le` → count), interpolated within its bucket; `null`: no observation. */
export function quantile(buckets: ReadonlyMap<string, number>, share: number): number | null {
  const sorted = [...buckets].map(([le, count]) => [le === '+Inf' ? Infinity : Number(le), count] as const).sort(([a], [b]) => a - b);
  const all = sorted.at(-1)?.[1] ?? 0;
  if (all === 0) return null;
  const rank = share * all;
  let [from, below] = [0, 0];
  for (const [le, count] of sorted) {
    if (count >= rank) return le === Infinity ? from : from + ((le - from) * (rank - below)) / Math.max(1, count - below);
    [from, below] = [le, count];
  }
  return from;
}

function readLabels(text: string): Record<string, string> {
  const labels: Record<string, string> = {};
  for (const [, name = '', value = ''] of text.matchAll(/([a-z_]+)="((?:[^"\\]|\\.)*)"/g)) labels[name] = value;
  return labels;
}

export interface Screen {
  readonly columns: number;
  readonly rows: number;
  readonly isColoured: boolean;
}

/** A line in pieces, so that it is cut by what is seen and not by its escape sequences. */
type Line = readonly (readonly [tone: Tone, text: string])[];

const RELAYS = 4;
const PROCESSES = 6;

/** The screen as lines, none wider and not more of them than there is room for. */
export function renderTop(view: TopView, screen: Screen, title: string): string[] {
  const head: Line[] = [
    [
      ['bold', 'trunkline top'],
      ['dim', `  ${title}`],
    ],
    statusLine(view),
    [],
    ...callLines(view),
    [],
    ...mediaLines(view),
    [],
    ...relayLines(view),
    [],
    ...processLines(view),
    [],
  ];
  // What is left of the screen is for reasons and failures, side by side.
  const left = Math.max(2, screen.rows - head.length);
  return [...head, ...outcomeLines(view, left, Math.floor(screen.columns / 2))].slice(0, screen.rows).map((line) => coloured(line, screen));
}

function statusLine({ isTakingCalls, isRedisUp, processes, webhooksWaiting }: TopView): Line {
  const down = processes.filter(({ isUp }) => !isUp).map(({ name }) => name);
  return [
    isTakingCalls ? ['good', 'taking calls'] : ['bad', 'TAKES NO CALLS'],
    ['plain', '   '],
    isRedisUp ? ['good', 'Redis up'] : ['bad', 'REDIS AWAY'],
    ['plain', '   '],
    down.length === 0 ? ['good', `${String(processes.length)} processes up`] : ['bad', `DOWN: ${down.join(', ')}`],
    ['plain', `   webhooks waiting ${String(webhooksWaiting)}`],
  ];
}

function callLines({ calls, answer, agents }: TopView): Line[] {
  return [
    [
      field('calls', String(calls.live), 7),
      field('begun/s', calls.begunPerS.toFixed(1), 7),
      field('headroom', String(calls.headroom), 7),
      field('begun', String(calls.begun), 10),
    ],
    [
      field('answer p50', ms(answer.p50Ms), 9),
      field('p99', ms(answer.p99Ms), 9),
      field('agents', String(agents.connected), 8),
      field('failed', String(agents.failed), 5, agents.failed > 0),
      field('reconnects', String(agents.reconnects), 4),
    ],
  ];
}

function mediaLines({ media, agents }: TopView): Line[] {
  return [
    [
      field('media legs', String(media.legs), 6),
      field('in/s', media.inPerS.toFixed(0), 7),
      field('out/s', media.outPerS.toFixed(0), 7),
      field('lost', `${media.lossPercent.toFixed(2)} %`, 8, media.lossPercent >= 1),
      field('late', String(media.late), 7),
    ],
    [
      field('SRTP failures', String(media.srtpFailures), 7, media.srtpFailures > 0),
      field('kernel drops', String(media.kernelDrops), 7, media.kernelDrops > 0),
      field('delay', ms(media.delayMs), 8),
      field('speech dropped', `${agents.droppedS.toFixed(1)} s`, 9),
    ],
  ];
}

function relayLines({ relays }: TopView): Line[] {
  const shown = relays
    .slice(0, RELAYS)
    .map(({ node, isUp, sessions, p99Ms }): Line => [
      ['plain', cut(node, 28)],
      isUp ? ['good', 'up    '] : ['bad', 'DOWN  '],
      ['plain', `${String(sessions).padStart(8)}  ${ms(p99Ms).padStart(9)}`],
    ]);
  return [[['dim', `${cut('rtpengine', 28)}state  sessions  command p99`]], ...shown, ...more(relays.length - RELAYS)];
}

function processLines({ processes }: TopView): Line[] {
  const shown = processes
    .slice(0, PROCESSES)
    .map(({ name, isUp, cpuPercent, memoryMb, loopP99Ms, files }): Line => [
      [isUp ? 'plain' : 'bad', cut(name, 14)],
      isUp
        ? [
            'plain',
            `${cpuPercent.toFixed(0).padStart(5)} %  ${memoryMb.toFixed(0).padStart(6)} MB  ${loopP99Ms.toFixed(1).padStart(7)} ms  ${String(files).padStart(6)}`,
          ]
        : ['bad', '  does not answer'],
    ]);
  return [[['dim', `${cut('process', 14)}    CPU     memory   loop p99   files`]], ...shown, ...more(processes.length - PROCESSES)];
}

function outcomeLines({ reasons, newest }: TopView, rows: number, width: number): Line[] {
  const lines: Line[] = [[['dim', `${cut('calls by reason', width)}newest failures`]]];
  for (let index = 0; index < rows - 1; index += 1) {
    const [outcome, failure] = [reasons[index], newest[index]];
    if (outcome === undefined && failure === undefined) break;
    const left = outcome === undefined ? '' : `${String(outcome.count).padStart(8)}  ${outcome.reason}`;
    const tone: Tone = outcome !== undefined && (outcome.fault === 'gateway' || outcome.fault === 'agent') ? 'bad' : 'plain';
    const right = failure === undefined ? '' : `${new Date(failure.atMs).toISOString().slice(11, 19)}  ${failure.text}`;
    lines.push([
      [tone, cut(left, width)],
      ['plain', right],
    ]);
  }
  return lines;
}

function more(count: number): Line[] {
  return count > 0 ? [[['dim', `and ${String(count)} more`]]] : [];
}

function field(name: string, value: string, width: number, isBad = false): Line[number] {
  return [isBad ? 'bad' : 'plain', `${name} ${value.padEnd(width)}`];
}

/** To exactly this width. */
function cut(text: string, width: number): string {
  return text.length < width ? text.padEnd(width) : `${text.slice(0, Math.max(0, width - 2))}… `;
}

function ms(value: number | null): string {
  if (value === null) return '-';
  return value < 10 ? `${value.toFixed(1)} ms` : `${value.toFixed(0)} ms`;
}

function coloured(line: Line, { columns, isColoured }: Screen): string {
  let room = columns;
  let text = '';
  for (const [tone, piece] of line) {
    const shown = piece.slice(0, room);
    room -= shown.length;
    text += toned(shown, tone, isColoured);
  }
  return isColoured ? text : text.trimEnd();
}

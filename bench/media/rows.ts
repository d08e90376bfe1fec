import { median } from '../support/process-figures.js';
import type { BridgeKind } from './bridges.js';
import { measured, ownCpu, type MeasurementSettings, type Outcome } from './measurement.js';
import type { NativePrograms } from './native.js';
import type { BotKind } from './traffic.js';

// The rows by which a change of the voice path is judged: this checkout, the bare bridge, the C floor and another checkout in one run, each
// plan by all of them in turn, and the median of the rounds.

/** Who is measured: this checkout, the bare bridge, the floor, the other checkout. */
const SUBJECTS = ['ours', 'bare', 'floor', 'other'] as const;
type Subject = (typeof SUBJECTS)[number];

interface Plan {
  readonly bots: BotKind;
  readonly calls: number;
  /** By rtpengine and SRTP. */
  readonly isRelayed: boolean;
  readonly subjects: readonly Subject[];
  /** Those that take figures from it. */
  readonly rows: readonly number[];
}

/** One after the other, each by all of its subjects in turn. */
const PLANS = {
  ordinary: { bots: 'echo', calls: 100, isRelayed: false, subjects: SUBJECTS, rows: [2, 3, 4] },
  busy: { bots: 'echo', calls: 200, isRelayed: false, subjects: SUBJECTS, rows: [3, 8] },
  least: { bots: 'echo', calls: 25, isRelayed: false, subjects: SUBJECTS, rows: [8] },
  few: { bots: 'echo', calls: 20, isRelayed: false, subjects: ['ours', 'other'], rows: [5] },
  paced: { bots: 'paced', calls: 100, isRelayed: false, subjects: SUBJECTS, rows: [1] },
  relayed: { bots: 'echo', calls: 100, isRelayed: true, subjects: ['ours', 'other'], rows: [4] },
} as const satisfies Record<string, Plan>;

type PlanName = keyof typeof PLANS;

/** What one round found. */
class Round {
  readonly #outcomes = new Map<string, Outcome>();
  readonly #most = new Map<Subject, number>();

  add(plan: PlanName, subject: Subject, outcome: Outcome): void {
    this.#outcomes.set(`${plan} ${subject}`, outcome);
  }

  addMost(subject: Subject, calls: number): void {
    this.#most.set(subject, calls);
  }

  /** NaN: it was not measured. */
  figure(plan: PlanName, subject: Subject, of: (outcome: Outcome) => number): number {
    const outcome = this.#outcomes.get(`${plan} ${subject}`);
    return outcome === undefined ? Number.NaN : of(outcome);
  }

  most(subject: Subject): number {
    return this.#most.get(subject) ?? Number.NaN;
  }
}

interface Line {
  readonly row: number;
  readonly title: string;
  readonly digits: number;
  readonly of: (round: Round, subject: Subject) => number;
}

function line(row: number, title: string, digits: number, plan: PlanName, of: (outcome: Outcome) => number): Line {
  return { row, title, digits, of: (round, subject) => round.figure(plan, subject, of) };
}

/** CPU time a call, to that of another subject in the same plan or in another one. */
function ratio(row: number, title: string, plan: PlanName, base: Subject, basePlan: PlanName = plan): Line {
  return {
    row,
    title,
    digits: 2,
    of: (round, subject) => round.figure(plan, subject, ownCpu) / round.figure(basePlan, base, ownCpu),
  };
}

/** What 200 calls take more than 25: the first ones load code and fill pools. */
function memoryACall(round: Round, subject: Subject): number {
  const of = (plan: PlanName): number => round.figure(plan, subject, ({ memory }) => memory.bridge ?? Number.NaN);
  return (of('busy') - of('least')) / (PLANS.busy.calls - PLANS.least.calls);
}

const LINES: readonly Line[] = [
  line(1, 'heard after, fixed 40 ms: mean ms', 1, 'paced', ({ traffic }) => traffic.fixed.meanMs),
  line(1, '  late packets, per 1,000', 2, 'paced', ({ traffic }) => (1_000 * traffic.fixed.late) / traffic.sent),
  line(1, 'heard after, adaptive: mean ms', 1, 'paced', ({ traffic }) => traffic.adaptive.meanMs),
  line(1, '  late packets, per 1,000', 2, 'paced', ({ traffic }) => (1_000 * traffic.adaptive.late) / traffic.sent),
  line(2, 'frame to datagram, 100 calls: p50 ms', 1, 'ordinary', ({ traffic }) => traffic.down.p50),
  line(2, '  p99 ms', 1, 'ordinary', ({ traffic }) => traffic.down.p99),
  line(2, '  frames sent late, per 1,000', 2, 'ordinary', ({ traffic }) => (1_000 * traffic.sentLate) / traffic.sent),
  line(2, '  replaced by silence, per 1,000', 2, 'ordinary', ({ traffic }) => (1_000 * traffic.silenced) / traffic.sent),
  line(2, '  lost, packets', 0, 'ordinary', ({ traffic }) => traffic.lost),
  line(3, 'CPU a call, 100 calls: % of a core', 3, 'ordinary', ownCpu),
  ratio(3, '  to the bridge', 'ordinary', 'bare'),
  ratio(3, '  to the floor', 'ordinary', 'floor'),
  line(3, 'CPU a call, 200 calls: % of a core', 3, 'busy', ownCpu),
  ratio(3, '  to the bridge', 'busy', 'bare'),
  ratio(3, '  to the floor', 'busy', 'floor'),
  line(4, 'with SRTP and rtpengine, 100 calls: CPU, %', 3, 'relayed', ownCpu),
  ratio(4, '  to the bridge with plain RTP', 'relayed', 'bare', 'ordinary'),
  line(4, '  frame to datagram p50 ms', 1, 'relayed', ({ traffic }) => traffic.down.p50),
  line(4, '  p99 ms', 1, 'relayed', ({ traffic }) => traffic.down.p99),
  line(5, 'CPU a call, 20 calls: % of a core', 3, 'few', ownCpu),
  ratio(5, '  to the other checkout', 'few', 'other'),
  { row: 7, title: 'SRTP calls with bots that hold', digits: 0, of: (round, subject) => round.most(subject) },
  { row: 7, title: '  to the other checkout', digits: 2, of: (round, subject) => round.most(subject) / round.most('other') },
  { row: 8, title: 'memory a call of 200: kB', digits: 0, of: (round, subject) => memoryACall(round, subject) },
];

export interface RowsSettings extends Pick<MeasurementSettings, 'seconds' | 'workers' | 'format' | 'profile'> {
  /** The other checkout: a directory with a build. */
  readonly against: string;
  readonly rounds: number;
  /** Row numbers; those of calls that come in are bench:gateway's. */
  readonly rows: readonly number[];
  /** A part of the calls, to try the benchmark itself. */
  readonly share: number;
}

/** Measures the wanted rows and prints their medians, with the figure of each round in brackets. */
export async function compareRows(settings: RowsSettings, programs: NativePrograms): Promise<void> {
  const rounds: Round[] = [];
  for (let number = 1; number <= settings.rounds; number += 1) {
    console.log(`\nRound ${String(number)}`);
    rounds.push(await measuredRound(settings, programs, number));
  }
  console.log('\nThe median of the rounds, and each of them');
  for (const { row, title, digits, of } of LINES) {
    if (!settings.rows.includes(row)) continue;
    const cells = SUBJECTS.map((subject) => cell(subject, rounds, digits, of));
    console.log(`  (${String(row)}) ${title.padEnd(44)} ${cells.filter((text) => text !== '').join('; ')}`);
  }
}

function cell(subject: Subject, rounds: readonly Round[], digits: number, of: Line['of']): string {
  const figures = rounds.map((round) => of(round, subject)).filter((figure) => !Number.isNaN(figure));
  if (figures.length === 0) return '';
  return `${subject} ${median(figures).toFixed(digits)} (${figures.map((figure) => figure.toFixed(digits)).join(', ')})`;
}

/** Who begins changes with each round: the machine changes its speed within minutes. */
async function measuredRound(settings: RowsSettings, programs: NativePrograms, number: number): Promise<Round> {
  const round = new Round();
  const inOrder = <T>(all: readonly T[]): readonly T[] => (number % 2 === 1 ? all : all.toReversed());
  for (const [name, plan] of Object.entries(PLANS) as [PlanName, Plan][]) {
    if (!plan.rows.some((row) => settings.rows.includes(row))) continue;
    for (const subject of inOrder(plan.subjects)) {
      const outcome = await measured(measurementOf(settings, plan, subject), programs);
      round.add(name, subject, outcome);
      report(name, subject, outcome);
    }
  }
  if (settings.rows.includes(7))
    for (const subject of inOrder(['ours', 'other'] as const)) round.addMost(subject, await most(settings, programs, subject));
  return round;
}

function measurementOf(
  settings: RowsSettings,
  { bots, calls, isRelayed }: Omit<Plan, 'rows' | 'subjects'>,
  subject: Subject,
): MeasurementSettings {
  const { against, seconds, workers, format, profile, share } = settings;
  const product: BridgeKind = isRelayed ? 'relayed' : 'endpoint';
  return {
    kind: subject === 'bare' || subject === 'floor' ? subject : product,
    checkout: subject === 'other' ? against : '.',
    ...{ bots, seconds, workers, format, profile },
    calls: Math.max(1, Math.round(calls * share)),
  };
}

function report(name: string, subject: Subject, outcome: Outcome): void {
  const { sent, lost, down, generatorLateMs } = outcome.traffic;
  console.log(
    `  ${name.padEnd(12)} ${subject.padEnd(6)} ${String(lost)} of ${String(sent)} lost, frame to datagram p50 ${down.p50.toFixed(1)}, p99 ${down.p99.toFixed(1)} ms, CPU ${ownCpu(outcome).toFixed(3)} %; generator ${generatorLateMs.toFixed(1)} ms late at worst`,
  );
}

const STEP_CALLS = 100;
const FINE_CALLS = 25;
/** rtpengine's ports bear no more here. */
const MOST_CALLS = 1_000;
const HOLDS_MS = 60;

/** The most SRTP calls of which no packet is lost and the p99 of frame to datagram is at most 60 ms: in steps of 100, then by halves to 25. */
async function most(settings: RowsSettings, programs: NativePrograms, subject: Subject): Promise<number> {
  const holds = async (calls: number): Promise<boolean> => {
    const outcome = await measured(measurementOf(settings, { bots: 'echo', calls, isRelayed: true }, subject), programs);
    report(`${String(calls)} calls`, subject, outcome);
    return outcome.traffic.lost === 0 && outcome.traffic.down.p99 <= HOLDS_MS;
  };
  let held = 0;
  let failed = STEP_CALLS;
  while (failed <= MOST_CALLS && (await holds(failed))) {
    held = failed;
    failed += STEP_CALLS;
  }
  while (failed - held > FINE_CALLS) {
    const middle = (held + failed) / 2;
    if (await holds(middle)) held = middle;
    else failed = middle;
  }
  return held;
}

import { cpus } from 'node:os';
import { resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { errorText } from '../../src/lib/result.js';
import { memoryKb } from '../../test/support/processes.js';
import type { LoadOrder, LoadResult } from '../sip-server/generator.js';
import { ask, started, type Child } from '../support/child.js';
import { cpuMs, spread } from '../support/process-figures.js';
import { kamailioSubject } from '../kamailio/start.js';
import { NativePrograms } from '../media/native.js';
import { numberOf } from '../media/traffic.js';
import type { PlacingOrder } from './carrier.js';
import { placingSettings, productSubject } from './product.js';
import type { Share, Subject } from './subject.js';

// The whole path of a call: TLS, number look-up in Redis, rtpengine (offer, answer, delete), an answer, the record. The load is one
// carrier: INVITE, 200, ACK, BYE, 200. What Trunkline is held against is Kamailio at its best with the same job. Both run at once, and take
// slices of some seconds in turn. A slice in which a call fails is thrown away, and said to be. The product has its default configuration,
// every limit, record, trace and log.

const { values } = parseArgs({
  options: {
    seconds: { type: 'string', default: '9' },
    /** of calls before anything is measured, as many as it takes: V8 compiles for some 60 s what runs often */
    warm: { type: 'string', default: '60' },
    rounds: { type: 'string', default: '3' },
    concurrency: { type: 'string', default: '40' },
    held: { type: 'string', default: '4000' },
    connections: { type: 'string', default: '4' },
    /** most; half and quarter of Trunkline's most; overload, held */
    only: { type: 'string', default: 'most,half,quarter,overload,held' },
    /** trunkline, kamailio */
    subjects: { type: 'string', default: 'trunkline,kamailio' },
    /** another checkout of Trunkline with its build, in Kamailio's place */
    against: { type: 'string' },
    /** Trunkline alone: calls that it places to those that come in */
    outbound: { type: 'boolean', default: false },
    /** INVITE to 200 of calls whose agent is a WebSocket bot; with `against` of both checkouts */
    bots: { type: 'boolean', default: false },
    /** calls a second with bots */
    rate: { type: 'string', default: '100' },
    /** Trunkline alone: so many cells to one */
    cells: { type: 'string', default: '1' },
    profile: { type: 'boolean', default: false },
    /** memory of held calls is looked at after a full garbage collection */
    collect: { type: 'boolean', default: false },
    /** NAME=value, an environment variable of the gateway's */
    set: { type: 'string', multiple: true, default: [] },
  },
});

const connections = Number(values.connections);
const seconds = Number(values.seconds);
const subjects = values.subjects.split(',');
const isOfBoth = subjects.length === 2;
const isOfCells = Number(values.cells) > 1;
const wants = (name: string): boolean => (isOfCells ? ['most', 'quarter', 'eighth'] : values.only.split(',')).includes(name);

interface Figures {
  readonly result: LoadResult;
  /** Milliseconds of CPU a call, by process name. */
  readonly cpu: Readonly<Record<string, number>>;
  readonly own: number;
}

function totals(subject: Subject, of: (pid: number) => number): Record<string, number> {
  const sums: Record<string, number> = {};
  for (const { name, pid } of subject.processes()) sums[name] = (sums[name] ?? 0) + of(pid);
  return sums;
}

async function measured(generator: Child, subject: Subject, what: LoadOrder | PlacingOrder): Promise<Figures> {
  const spentMs = (): Record<string, number> => ({ ...totals(subject, cpuMs), generator: cpuMs(generator.pid) });
  const before = spentMs();
  const result = await ask<LoadResult>(generator, what);
  const cpu = Object.fromEntries(Object.entries(spentMs()).map(([name, ms]) => [name, (ms - (before[name] ?? 0)) / result.completed]));
  return { result, cpu, own: subject.own.reduce((sum, name) => sum + (cpu[name] ?? 0), 0) };
}

function describe(title: string, { result, cpu, own }: Figures): void {
  const { latencyMs: latency } = result;
  const perSecond = (result.completed / result.seconds).toFixed(0);
  console.log(`  ${title}`);
  console.log(
    `    calls           ${String(result.completed)} completed, ${String(result.failed)} failed, ${perSecond} calls/s for ${result.seconds.toFixed(0)} s`,
  );
  console.log(
    `    INVITE to 200   p50 ${latency.p50.toFixed(2)} ms, p99 ${latency.p99.toFixed(2)} ms, p99.9 ${latency.p999.toFixed(2)} ms; generator ${result.maxLateMs.toFixed(1)} ms late at worst`,
  );
  const each = Object.entries(cpu).map(([name, ms]) => `${name} ${ms.toFixed(3)} ms`);
  console.log(`    CPU a call      ${each.join(', ')}; its own processes ${own.toFixed(3)} ms`);
}

/** Parts of Trunkline's most, at which both are measured. */
const PARTS = { half: 0.5, quarter: 0.25, eighth: 0.125 } as const;

type Load = keyof typeof PARTS | 'most';

type Outcome = Partial<Record<Load, Figures>>;

/** A subject that runs, and who calls it. */
class Contender {
  private constructor(
    readonly name: string,
    private readonly start: () => Promise<Subject>,
    public subject: Subject,
    public generator: Child,
  ) {}

  static async started(name: string, start: () => Promise<Subject>): Promise<Contender> {
    const subject = await start();
    try {
      return new Contender(name, start, subject, await started('bench/sip-server/generator.ts'));
    } catch (error) {
      await subject.close();
      throw error;
    }
  }

  async startAgain(): Promise<void> {
    await this.close();
    const { subject, generator } = await Contender.started(this.name, this.start);
    this.subject = subject;
    this.generator = generator;
  }

  async close(): Promise<void> {
    this.generator.child.kill();
    await this.subject.close();
  }
}

/** So many slices in which calls fail, one after the other, and the run is given up: a subject that fails proves nothing. */
const TRIES = 3;

/** Kamailio may end while connections come. */
async function warmUp(one: Contender): Promise<void> {
  for (let tried = 1; ; tried += 1) {
    try {
      await ask(one.generator, mostOrder(one.subject, Number(values.warm)));
      return;
    } catch (error) {
      console.log(`  ${one.name}: started again: ${errorText(error)}`);
      if (tried === TRIES) throw error;
      await one.startAgain();
    }
  }
}

/** A subject of which a call fails starts again. */
async function slice(one: Contender, title: string, order: (subject: Subject) => LoadOrder, mayRefuse = false): Promise<Figures> {
  for (let tried = 1; tried <= TRIES; tried += 1) {
    try {
      const figures = await measured(one.generator, one.subject, order(one.subject));
      describe(`${one.name}: ${title}`, figures);
      if (mayRefuse || figures.result.failed === 0) return figures;
      console.log(`    thrown away: ${String(figures.result.failed)} calls failed`);
    } catch (error) {
      console.log(`  ${one.name}: thrown away: ${errorText(error)}`);
    }
    if (tried === TRIES) break;
    await one.startAgain();
    await warmUp(one);
  }
  throw new Error(`${one.name}: calls failed in ${String(TRIES)} slices`);
}

const MOST = `as many as it takes (${values.concurrency} calls at once)`;

function mostSlice(one: Contender, mayRefuse = false): Promise<Figures> {
  return slice(one, MOST, (subject) => mostOrder(subject, seconds), mayRefuse);
}

/** Times the most calls a second. */
const OVERLOAD = 3;

function mostOrder({ target }: Subject, seconds: number): LoadOrder {
  return { type: 'closed', target, concurrency: Number(values.concurrency), seconds, connections };
}

function openOrder({ target }: Subject, rate: number): LoadOrder {
  return { type: 'open', target, rate: Math.round(rate), seconds, connections };
}

/** More than Trunkline bears, alone, each time right after its most: Kamailio has no overload control here, and drops its connections. */
async function overload(start: () => Promise<Contender>): Promise<void> {
  const one = await start();
  const parts: number[] = [];
  const delays: number[] = [];
  try {
    await warmUp(one);
    for (let round = 1; round <= Number(values.rounds); round += 1) {
      const most = perSecond(await mostSlice(one));
      const order = (subject: Subject): LoadOrder => openOrder(subject, OVERLOAD * most);
      const figures = await slice(one, `${String(OVERLOAD)} times the most`, order, true);
      const { result } = figures;
      parts.push(goodput(figures) / most);
      delays.push(result.latencyMs.p99 / 500);
      console.log(
        `    overload        ${String(result.refused)} got 503, p99 after ${result.refusalMs.toFixed(0)} ms; ${String(result.failed - result.refused)} failed otherwise`,
      );
    }
  } finally {
    await one.close();
  }
  console.log('\nTrunkline alone');
  console.log(`  goodput at three times the most, to the most (goal 0.8) ratio ${spread(parts)}`);
  console.log(`  p99 INVITE to 200 then, to 0.5 s (goal 1) ratio ${spread(delays)}`);
}

/**
 * One round: a slice of each in turn, at the most of each, then at the same rates, which are parts of the most of the first. Who begins
 * changes with each round.
 *
 * @param mayRefuse the others at their most: they do not slow their callers down, and refuse what is too much
 */
async function inTurn(contenders: readonly [Contender, ...Contender[]], round: number, mayRefuse: boolean): Promise<Outcome[]> {
  const [first] = contenders;
  const order = round % 2 === 1 ? contenders : contenders.toReversed();
  const found = new Map<Contender, Outcome>(contenders.map((one) => [one, {}]));
  const each = async (name: Load, of: (one: Contender) => Promise<Figures>): Promise<void> => {
    for (const one of order) found.set(one, { ...found.get(one), [name]: await of(one) });
  };
  await each('most', (one) => mostSlice(one, mayRefuse && one !== first));
  const mostOfFirst = found.get(first)?.most;
  const peak = mostOfFirst === undefined ? 0 : perSecond(mostOfFirst);
  for (const part of ['half', 'quarter', 'eighth'] as const) {
    if (!wants(part)) continue;
    const rate = PARTS[part] * peak;
    const title = `${rate.toFixed(0)} calls a second, ${part} of ${first.name}’s most`;
    await each(part, (one) => slice(one, title, (subject) => openOrder(subject, rate)));
  }
  return contenders.map((one) => found.get(one) ?? {});
}

/** All of them run at once, so that a slice of one comes right after the other's: the machine changes its speed within minutes. */
async function rounds(
  starts: readonly [() => Promise<Contender>, ...(() => Promise<Contender>)[]],
  mayRefuse = false,
): Promise<readonly Round[]> {
  const contenders: [Contender, ...Contender[]] = [await starts[0]()];
  try {
    for (const start of starts.slice(1)) contenders.push(await start());
    for (const one of contenders) await warmUp(one);
    const outcomes: Round[] = [];
    for (let round = 1; round <= Number(values.rounds); round += 1) {
      console.log(`\nRound ${String(round)}`);
      outcomes.push(await inTurn(contenders, round, mayRefuse));
    }
    return outcomes;
  } finally {
    await Promise.all(contenders.map((one) => one.close()));
  }
}

/** Resident memory of each process in kB, of ours after a full collection. */
async function memoryAtRest(subject: Subject): Promise<Record<string, number>> {
  for (const { name, pid } of subject.processes()) if (subject.own.includes(name) && values.collect) process.kill(pid, 'SIGWINCH');
  await new Promise((done) => setTimeout(done, 3_000));
  return totals(subject, memoryKb);
}

async function held(start: () => Promise<Contender>): Promise<void> {
  const one = await start();
  const { name, generator, subject } = one;
  console.log(`\n${name}`);
  try {
    await ask(generator, { type: 'closed', target: subject.target, concurrency: 10, seconds: 10, connections } satisfies LoadOrder);
    await memory(generator, subject);
  } finally {
    await one.close();
  }
}

/** CPU of each process in percent of a core, while nothing is asked of it: over a minute, in which each held call is asked once whether it is there. */
async function cpuAtRest(subject: Subject): Promise<Record<string, number>> {
  const before = totals(subject, cpuMs);
  await new Promise((done) => setTimeout(done, 60_000));
  return Object.fromEntries(Object.entries(totals(subject, cpuMs)).map(([name, ms]) => [name, (ms - (before[name] ?? 0)) / 600]));
}

async function memory(generator: Child, subject: Subject): Promise<void> {
  // After a minute of rest: until then V8 has not given back what the calls before left.
  const idle = await cpuAtRest(subject);
  const empty = await memoryAtRest(subject);
  const count = Number(values.held);
  await ask(generator, { type: 'hold', target: { ...subject.target, direction: 'inactive' }, count } satisfies LoadOrder);
  // RFC 6026: what is kept of each answered INVITE for 64·T1 is gone then.
  await new Promise((done) => setTimeout(done, 33_000));
  const busy = await cpuAtRest(subject);
  const full = await memoryAtRest(subject);
  const kb = (name: string): number => ((full[name] ?? 0) - (empty[name] ?? 0)) / count;
  const own = subject.own.reduce((sum, name) => sum + kb(name), 0);
  console.log(`  ${String(count)} calls on hold (a=inactive)`);
  // A call that had ended by itself answers its BYE with 481.
  const { completed, failed } = await ask<LoadResult>(generator, { type: 'release' } satisfies LoadOrder);
  console.log(
    `    calls           ${String(completed)} were there to the end, ${String(count - completed)} were not, ${String(failed)} failed`,
  );
  console.log(
    `    memory a call   ${Object.keys(full)
      .map((name) => `${name} ${kb(name).toFixed(1)} kB`)
      .join(', ')}; its own processes ${own.toFixed(1)} kB (goal 40)`,
  );
  const shown = Object.entries(busy).map(([name, percent]) => `${name} ${percent.toFixed(1)} % (${(idle[name] ?? 0).toFixed(1)} % idle)`);
  console.log(`    CPU of a core   ${shown.join(', ')} (goal: 1 % idle; 2 % more with 1,000 calls, 8 % with 4,000)`);
}

function settings(): Record<string, string> {
  const given = Object.fromEntries(values.set.map((one) => [one.slice(0, one.indexOf('=')), one.slice(one.indexOf('=') + 1)]));
  if (values.collect) return { ...given, NODE_OPTIONS: `--require ${resolve('bench/support/gc-on-signal.cjs')}` };
  if (!values.profile) return given;
  const options = `--require ${resolve('bench/support/profile-until-exit.cjs')}`;
  return { ...given, NODE_OPTIONS: options, PROFILE_DIRECTORY: resolve('test-results/profiles') };
}

const goodput = ({ result }: Figures): number => result.completed / result.wholeSeconds;
const perSecond = ({ result }: Figures): number => result.completed / result.seconds;

/** Of one round, in the order in which the contenders were given. */
type Round = readonly Outcome[];

function ratios(title: string, of: (ours: Outcome, theirs: Outcome) => number | undefined, all: readonly Round[]): void {
  const found = all.map(([ours = {}, theirs = {}]) => of(ours, theirs)).filter((ratio) => ratio !== undefined);
  if (found.length > 0) console.log(`  ${title} ratio ${spread(found)}`);
}

/** Calls that come in and as many at once that are placed, by one product: slices of both in turn. */
async function compareWays(): Promise<void> {
  const product = await productSubject({ ...(await placingSettings()), ...settings() });
  const [caller, carrier] = [await started('bench/sip-server/generator.ts'), await started('bench/gateway/carrier.ts')];
  try {
    const concurrency = Number(values.concurrency);
    const placing: PlacingOrder = { type: 'place', ...(await product.placing(carrier.ready.port ?? 0)), concurrency, seconds };
    const calling: LoadOrder = { type: 'closed', target: product.target, concurrency, seconds, connections };
    await ask(caller, { ...calling, seconds: Number(values.warm) });
    await ask(carrier, { ...placing, seconds: Number(values.warm) });
    const all: Round[] = [];
    for (let round = 1; round <= Number(values.rounds); round += 1) {
      console.log(`\nRound ${String(round)}`);
      const inbound = await measured(caller, product, calling);
      describe(`calls that come in (${values.concurrency} at once)`, inbound);
      const outbound = await measured(carrier, product, placing);
      describe(`calls that are placed (${values.concurrency} at once); INVITE to 200: request to ACK`, outbound);
      const failures = inbound.result.failed + outbound.result.failed;
      if (failures > 0) throw new Error(`${String(failures)} calls failed`);
      all.push([{ most: outbound }, { most: inbound }]);
    }
    console.log('\nPlaced calls to those that come in: the median of the rounds, and each of them');
    const both = (of: (figures: Figures) => number) => (placed: Outcome, taken: Outcome) =>
      placed.most === undefined || taken.most === undefined ? undefined : of(placed.most) / of(taken.most);
    ratios('calls a second (goal 0.8)    ', both(perSecond), all);
    ratios(
      'CPU a call (goal 1.2)        ',
      both(({ own }) => own),
      all,
    );
  } finally {
    for (const { child } of [caller, carrier]) child.kill();
    await product.close();
  }
}

/** Several cells and one, at the same rates: a quarter of one's most over two cells is an eighth of it for each. */
async function compareCells(): Promise<void> {
  const ofCells = (count: string, share: Share) => () =>
    Contender.started(`${count} cell${count === '1' ? '' : 's'}`, () =>
      productSubject({ ...settings(), TRUNKLINE_GATEWAY_WORKERS: count }, { share }),
    );
  const all = await rounds([ofCells('1', 'first'), ofCells(values.cells, 'second')], true);
  console.log(`\n${values.cells} cells to one: the median of the rounds, and each of them`);
  const both =
    (of: (figures: Figures) => number, name: Load, nameOfOne = name) =>
    (one: Outcome, several: Outcome) => {
      const [a, b] = [several[name], one[nameOfOne]];
      return a === undefined || b === undefined ? undefined : of(a) / of(b);
    };
  const own = ({ own: ms }: Figures): number => ms;
  ratios('calls a second, all on these cores            ', both(perSecond, 'most'), all);
  ratios('CPU a call at the most of each                ', both(own, 'most'), all);
  ratios('CPU a call at a quarter of one’s most         ', both(own, 'quarter'), all);
  if (values.cells === '2') ratios('CPU a call at the same rate for each (goal 1) ', both(own, 'quarter', 'eighth'), all);
}

/** INVITE to 200 of calls that a bot answers, the row of bench/media/run.ts that needs signalling. */
async function compareBots(): Promise<void> {
  const programs = await NativePrograms.compiled();
  const bots = await programs.started('bot', 'echo');
  const contenders: Contender[] = [];
  try {
    const own = { TRUNKLINE_AGENTS_URL: `ws://127.0.0.1:${bots.ready[0] ?? ''}/`, TRUNKLINE_AGENTS_ALLOW_PRIVATE: 'true' };
    const start = (name: string, share: Share, checkout: string): Promise<Contender> =>
      Contender.started(name, () => productSubject({ ...settings(), ...own }, { share, checkout }));
    contenders.push(await start('Trunkline', 'first', '.'));
    if (values.against !== undefined) contenders.push(await start(values.against, 'second', values.against));
    for (const one of contenders) await warmUp(one);
    const found = new Map<Contender, LoadResult[]>(contenders.map((one) => [one, []]));
    for (let round = 1; round <= Number(values.rounds); round += 1) {
      console.log(`\nRound ${String(round)}`);
      for (const one of round % 2 === 1 ? contenders : contenders.toReversed()) {
        const title = `${values.rate} calls a second, each with a bot`;
        const opened = async (): Promise<number> => numberOf(await bots.ask('figures'), 'opened');
        const before = await opened();
        const { result } = await slice(one, title, (subject) => openOrder(subject, Number(values.rate)));
        const withBot = (await opened()) - before;
        if (withBot < result.completed) throw new Error(`${String(result.completed - withBot)} calls had no bot`);
        found.get(one)?.push(result);
      }
    }
    console.log(`\n(6) INVITE to 200 with a bot at ${values.rate} calls a second, ms: the median of the rounds, and each of them`);
    for (const [{ name }, results] of found) {
      console.log(`  ${name}: p50 ${spread(results.map(({ latencyMs }) => latencyMs.p50))}`);
      console.log(`  ${name}: p99 ${spread(results.map(({ latencyMs }) => latencyMs.p99))}`);
    }
  } finally {
    await Promise.all(contenders.map((one) => one.close()));
    bots.kill();
    await programs.remove();
  }
}

function compare(all: readonly Round[]): void {
  if (isOfBoth) console.log(`\nTrunkline to ${values.against ?? 'Kamailio'}: the median of the rounds, and each of them`);
  const both = (name: Load, of: (figures: Figures) => number) => (ours: Outcome, theirs: Outcome) => {
    const [a, b] = [ours[name], theirs[name]];
    return a === undefined || b === undefined ? undefined : of(a) / of(b);
  };
  const own = ({ own: ms }: Figures): number => ms;
  ratios('calls a second (goal 1.2)    ', both('most', perSecond), all);
  ratios('CPU a call (goal 0.9)        ', both('most', own), all);
  ratios(
    'p99 INVITE to 200 (goal 3)   ',
    both('half', ({ result }) => result.latencyMs.p99),
    all,
  );
  if (!subjects.includes('trunkline')) return;
  console.log('Trunkline alone');
  ratios(
    'CPU a call at a quarter of the most to that at the most (goal 1.5)',
    ({ most, quarter }) => (most === undefined || quarter === undefined ? undefined : quarter.own / most.own),
    all,
  );
}

console.log(`${String(cpus().length)} cores, ${cpus()[0]?.model ?? ''}, Node ${process.version}; ${values.connections} TLS connections`);
if (values.outbound) {
  await compareWays();
  process.exit();
}
if (values.bots) {
  await compareBots();
  process.exit();
}
if (isOfCells) {
  await compareCells();
  process.exit();
}
const trunkline = (share: Share) => () => Contender.started('Trunkline', () => productSubject(settings(), { share }));
const kamailio = (share: Share) => () => Contender.started('Kamailio', () => kamailioSubject(share));
const other = (checkout: string) => () => Contender.started(checkout, () => productSubject(settings(), { share: 'second', checkout }));
if (wants('most')) {
  const alone = subjects.includes('kamailio') ? kamailio('all') : trunkline('all');
  const second = values.against === undefined ? kamailio('second') : other(values.against);
  compare(await rounds(isOfBoth ? [trunkline('first'), second] : [alone]));
}
if (wants('overload') && subjects.includes('trunkline')) await overload(trunkline('all'));
if (wants('held')) {
  if (subjects.includes('trunkline')) await held(trunkline('all'));
  if (subjects.includes('kamailio')) await held(kamailio('all'));
}

import { parseArgs } from 'node:util';
import { AnswererDetector, type Answerer, type AnswererEvent } from '../../src/rtp/answerer/answerer-detector.js';
import { corpusOf, type Part, type Sample } from './corpus.js';

// How often the detector is right about who answered, on a synthetic corpus, with 95 % confidence intervals (Wilson).

const { values } = parseArgs({ options: { size: { type: 'string', default: '300' }, wrong: { type: 'boolean', default: false } } });
const FRAME_SAMPLES = 160;
const FRAME_MS = 20;

interface Outcome {
  readonly sample: Sample;
  readonly verdict: Answerer;
  readonly verdictMs: number;
  readonly guess: string | null;
  readonly beepAfterMs: number | null;
}

function judged(sample: Sample): Outcome {
  const detector = new AnswererDetector();
  const events: (AnswererEvent & { readonly atMs: number })[] = [];
  for (let at = 0; at + FRAME_SAMPLES <= sample.samples.length && !detector.isDone; at += FRAME_SAMPLES) {
    const event = detector.take(sample.samples.subarray(at, at + FRAME_SAMPLES));
    if (event !== null) events.push({ ...event, atMs: (at / FRAME_SAMPLES + 1) * FRAME_MS });
  }
  const verdict = events.find((event) => event.type === 'verdict');
  const guess = events.find((event) => event.type === 'guess');
  const end = events.find((event) => event.type === 'greeting-ended');
  return {
    sample,
    verdict: verdict?.answerer ?? 'unknown',
    verdictMs: verdict?.atMs ?? Infinity,
    guess: guess?.answerer ?? null,
    beepAfterMs: sample.beepEndMs === null || end?.by !== 'beep' ? null : end.atMs - sample.beepEndMs,
  };
}

/** 95 %, as percentages. */
function wilson(hits: number, all: number): string {
  if (all === 0) return '–';
  const z = 1.96;
  const share = hits / all;
  const middle = (share + (z * z) / (2 * all)) / (1 + (z * z) / all);
  const half = (z / (1 + (z * z) / all)) * Math.sqrt((share * (1 - share)) / all + (z * z) / (4 * all * all));
  const percent = (value: number): string => (100 * value).toFixed(1);
  return `${percent(share)} % (${percent(middle - half)} to ${percent(middle + half)}), ${String(hits)} of ${String(all)}`;
}

const at = (sorted: readonly number[], share: number): string => String(Math.round(sorted[Math.floor((sorted.length - 1) * share)] ?? NaN));

for (const part of ['tuning', 'held-back'] satisfies Part[]) {
  const outcomes: Outcome[] = [];
  for await (const sample of corpusOf(part, Number(values.size))) outcomes.push(judged(sample));
  const share = (of: (outcome: Outcome) => boolean, among: (outcome: Outcome) => boolean = () => true): string => {
    const all = outcomes.filter(among);
    return wilson(all.filter(of).length, all.length);
  };
  const isRight = ({ verdict, sample }: Outcome): boolean => verdict === sample.answerer;
  const times = outcomes.map(({ verdictMs }) => verdictMs).sort((one, other) => one - other);
  const beeps = outcomes.flatMap(({ beepAfterMs }) => beepAfterMs ?? []).sort((one, other) => one - other);
  console.log(`\n${part} (synthetic)`);
  console.log(`  right                     ${share(isRight)}`);
  for (const kind of ['person', 'machine', 'fax', 'unknown'] as const)
    console.log(`  ${kind.padEnd(10)} right          ${share(isRight, ({ sample }) => sample.answerer === kind)}`);
  console.log(
    `  people called machines    ${share(
      ({ verdict }) => verdict === 'machine' || verdict === 'fax',
      ({ sample }) => sample.answerer === 'person',
    )}`,
  );
  console.log(
    `  first guess right         ${share(
      ({ guess, sample }) => guess === sample.answerer,
      ({ guess }) => guess !== null,
    )}`,
  );
  console.log(`  verdict after             p50 ${at(times, 0.5)} ms, p95 ${at(times, 0.95)} ms, at most ${at(times, 1)} ms`);
  console.log(
    `  beep noticed              ${share(
      ({ beepAfterMs }) => beepAfterMs !== null && beepAfterMs > -FRAME_MS,
      ({ sample }) => sample.beepEndMs !== null,
    )}`,
  );
  console.log(`  beep's end noticed after  p50 ${at(beeps, 0.5)} ms, p95 ${at(beeps, 0.95)} ms`);
  if (values.wrong)
    for (const { sample, verdict, verdictMs } of outcomes.filter((outcome) => !isRight(outcome)))
      console.log(`    ${sample.answerer} called ${verdict} after ${String(verdictMs)} ms: ${sample.name}`);
}

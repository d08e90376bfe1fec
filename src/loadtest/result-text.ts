import type { Failure, MediaFigures, ProcessFigures, RunFigures, StageFigures } from './figures.js';
import type { StageRecorder } from './recorder.js';
import { lossPercent, settingsOf } from './verdict.js';

// What the command prints.

const ms = (value: number | null | undefined): string => (value == null ? '-' : `${value.toFixed(1)} ms`);
export const failureName = ({ code, reason }: Pick<Failure, 'code' | 'reason'>): string => (reason === null ? code : `${code} ${reason}`);

/** One line of a run in progress. */
export function progressLine(recorder: StageRecorder, elapsedMs: number, stage: string): string {
  const failures = recorder.failures.map((one) => `${failureName(one)} × ${String(one.count)}`).join(', ');
  const seconds = recorder.seconds();
  const whole = seconds.at(-2);
  const lost = seconds.reduce((sum, { media }) => sum + (media?.lost ?? 0), 0);
  const parts = [
    `${stage}${(elapsedMs / 1_000).toFixed(0)} s`,
    `${String(whole?.started ?? 0)} calls/s`,
    `${String(recorder.inProgress)} in progress`,
    `${String(recorder.answeredCount)}/${String(recorder.plan.calls)} answered`,
    `p50 ${ms(whole?.p50)} p99 ${ms(whole?.p99)}`,
    ...(recorder.plan.mediaCalls > 0 ? [`${String(lost)} packets lost`] : []),
    failures === '' ? '0 failed' : `failed: ${failures}`,
  ];
  return parts.join('  ');
}

/** The final table. */
export function resultText(figures: RunFigures): string {
  const last = figures.stages.at(-1);
  const lines = [
    '',
    `Load test of ${figures.target}, number ${figures.number} (${figures.scenario} scenario, SIPp ${figures.sipp})`,
    '',
    ...(figures.stages.length > 1 ? stageTable(figures.stages) : last === undefined ? [] : stageLines(last, figures.measured)),
    ...figures.ramps.flatMap(rampLines),
    '',
    ...figures.notes.map((note) => `Note: ${note}`),
    ...(figures.interrupted ? ['Interrupted: calls in progress were ended, the figures are of what was until then.'] : []),
    figures.passed ? 'Passed.' : 'FAILED.',
  ];
  return lines.join('\n');
}

function stageLines(stage: StageFigures, measured: RunFigures['measured']): string[] {
  const { plan, latency, verdict, media } = stage;
  const interrupted = stage.interrupted === 0 ? '' : `, ${String(stage.interrupted)} ended early`;
  const rows: [string, string][] = [
    [
      'calls',
      `${String(stage.started)} started of ${String(plan.calls)}, ${String(stage.answered)} answered, ${String(stage.failed)} failed${interrupted}`,
    ],
    ['rate', `${stage.callsPerSecond.toFixed(1)} calls/s of ${String(plan.cps)} wanted, at most ${String(stage.behind)} behind schedule`],
    ['in progress', `${String(stage.peakInProgress)} at most, held ${(plan.holdMs / 1_000).toFixed(1)} s each`],
    [
      measured,
      latency === null
        ? 'no call was answered'
        : `p50 ${ms(latency.p50)}  p90 ${ms(latency.p90)}  p99 ${ms(latency.p99)}  max ${ms(latency.max)}`,
    ],
    ...stage.failures.map((one): [string, string] => [`failed`, failureLine(one)]),
    ...(media === null ? [] : mediaRows(media)),
    ['limited', limitText(stage)],
  ];
  return [
    ...rows.map(([name, value]) => `  ${name.padEnd(14)}  ${value}`),
    '',
    ...processTable(stage.processes),
    ...verdict.faults.map((fault) => `  fault: ${fault}`),
  ];
}

function failureLine(failure: Failure): string {
  const settings = settingsOf(failure);
  return `${String(failure.count)} × ${failureName(failure)}${settings.length === 0 ? '' : `  → ${settings.join('; ')}`}`;
}

/** Also when nothing did: a limiter that throttles the load generator would make the figures worth nothing. */
export function limitText({ verdict, failures }: StageFigures): string {
  if (verdict.limit !== null) {
    const { text, settings } = verdict.limit;
    return `${text}${settings.length === 0 ? '' : ` → ${settings.join('; ')}`}`;
  }
  const throttled = failures.filter((one) => settingsOf(one).length > 0);
  return throttled.length === 0 ? 'nothing: no limit of the gateway refused a call' : throttled.map(failureLine).join('; ');
}

function mediaRows(media: MediaFigures): [string, string][] {
  const { tone, digits, packets, delayMs, mos } = media;
  const delay =
    delayMs === null ? 'no stamp came back' : `delay there and back p50 ${ms(delayMs.p50)}  p99 ${ms(delayMs.p99)}  max ${ms(delayMs.max)}`;
  return [
    [
      'media',
      `${String(media.calls)} calls: own tone heard in ${String(tone.heard)}, silent ${String(tone.silent)}, another's ${String(tone.wrong)}; ` +
        `keys read back ${String(digits.answered)} of ${String(digits.pressed)}${media.unchecked > 0 ? `; ${String(media.unchecked)} not checked` : ''}`,
    ],
    [
      'packets',
      `${String(packets.sent)} sent, ${String(packets.received)} received, ${String(packets.lost)} lost (${lossPercent(packets).toFixed(3)} %), ` +
        `${String(packets.outOfOrder)} out of order, ${String(packets.duplicates)} twice, ${String(packets.rejected)} failed their SRTP check`,
    ],
    [
      '',
      `${delay}, jitter ${ms(media.jitterMs)} at worst${mos === null ? '' : `, MOS ${mos.mean.toFixed(2)} (least ${mos.least.toFixed(2)})`}`,
    ],
    ['', `the generator itself was ${ms(media.lateMs)} late at worst`],
  ];
}

/** CPU of one core. */
export function processTable(processes: readonly ProcessFigures[]): string[] {
  if (processes.length === 0) return [];
  const rows = [...processes]
    .sort((one, other) => one.side.localeCompare(other.side) || other.cpuMean - one.cpuMean)
    .map((one) => [
      one.name,
      one.side === 'gateway' ? 'gateway' : 'load test',
      `${one.cpuMean.toFixed(0)} %`,
      `${one.threadBusy.toFixed(0)} %`,
      one.cpuMsPerCall === null ? '-' : one.cpuMsPerCall.toFixed(2),
      `${one.memoryMb.toFixed(0)} MB`,
      one.maxOpenFiles === null ? String(one.openFiles) : `${String(one.openFiles)} of ${String(one.maxOpenFiles)}`,
    ]);
  return aligned(['process', 'of', 'CPU', 'thread', 'ms/call', 'memory', 'files'], rows);
}

function stageTable(stages: readonly StageFigures[]): string[] {
  return aligned(['stage', 'wanted/s', 'calls/s', 'held', 'well', 'failed', 'p50 ms', 'p99 ms', ''], stages.map(stageCells));
}

/** A stage as a row of a table. */
export function stageCells(
  { plan, callsPerSecond, peakInProgress, successful, failed, latency, verdict }: StageFigures,
  index: number,
): string[] {
  return [
    String(index + 1),
    String(plan.cps),
    callsPerSecond.toFixed(1),
    String(peakInProgress),
    String(successful),
    String(failed),
    latency?.p50.toFixed(1) ?? '-',
    latency?.p99.toFixed(1) ?? '-',
    verdict.passed ? 'passed' : `failed: ${verdict.faults.join('; ')}`,
  ];
}

function rampLines(ramp: RunFigures['ramps'][number]): string[] {
  const what = ramp.kind === 'rate' ? 'calls a second' : 'calls held';
  const failed = ramp.lowestFailed === null ? 'nothing higher was tried' : `${String(ramp.lowestFailed)} failed`;
  const limit =
    ramp.limit === null
      ? []
      : [`  limited by      ${ramp.limit.text}`, ...ramp.limit.settings.map((setting) => `                  → ${setting}`)];
  return ['', `Highest: ${String(ramp.highest)} ${what} (${failed})`, ...limit];
}

function aligned(header: readonly string[], rows: readonly (readonly string[])[]): string[] {
  const widths = header.map((name, column) => Math.max(name.length, ...rows.map((row) => row[column]?.length ?? 0)));
  return [header, ...rows].map((row) => `  ${row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join('  ')}`.trimEnd());
}

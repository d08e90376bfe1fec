import { FRAME_MS } from '../../rtp/codec/g711.js';
import type { Clock } from '../../lib/clock.js';
import { errorText } from '../../lib/result.js';
import { percentile } from '../percentiles.js';
import type { CallerLine, LineReport } from './caller-line.js';
import type { CallerReport, ScriptedCaller } from './scripted-caller.js';

export interface SimulatedCallReport extends Omit<CallerReport, 'errors'>, Omit<LineReport, 'sipCallId' | 'errors'> {
  readonly ok: boolean;
  readonly connected: boolean;
  readonly connectMs: number;
  /** `null`: the caller hung up. */
  readonly hungUpByAgentMs: number | null;
  readonly errors: readonly string[];
}

/** Over all callers. Delays in milliseconds; `null`: there was nothing to measure. */
export interface SimulationSummary {
  readonly calls: number;
  readonly ok: number;
  readonly turns: { readonly count: number; readonly p50Ms: number | null; readonly p95Ms: number | null; readonly talkedOver: number };
  readonly interruptions: { readonly made: number; readonly taken: number; readonly p50Ms: number | null; readonly p95Ms: number | null };
  readonly silences: { readonly kept: number; readonly prompted: number };
}

/** One caller follows its script on its line, until the script, the agent or the time ends the call. Never rejects. */
export async function simulateCall(
  line: CallerLine,
  caller: ScriptedCaller,
  durationMs: number,
  clock: Clock,
): Promise<SimulatedCallReport> {
  const dialledMs = clock.nowMs();
  let failure: string | null = null;
  try {
    await line.connect();
  } catch (error) {
    failure = errorText(error);
  }
  const connectMs = Math.round(clock.nowMs() - dialledMs);
  if (failure !== null) {
    await line.close();
    return reportOf(line, caller, { connectMs, hungUpByAgentMs: null, failure, late: [] });
  }
  const startedMs = clock.nowMs();
  let atMs = 0;
  let isDone = false;
  for (; !line.isOver && atMs < durationMs; atMs += FRAME_MS) {
    await until(clock, startedMs + atMs);
    const action = caller.frame(atMs, FRAME_MS, line.exchange(atMs));
    isDone = action?.do === 'hang-up';
    if (isDone) break;
    if (action?.do === 'play') line.play(action.samples);
    if (action?.do === 'press') line.press(action.event);
  }
  const hungUpByAgentMs = line.isOver ? atMs : null;
  await line.close();
  const late = isDone || hungUpByAgentMs !== null ? [] : [`the script was not finished after ${String(durationMs / 1_000)} s`];
  return reportOf(line, caller, { connectMs, hungUpByAgentMs, failure, late });
}

interface CallEnd extends Pick<SimulatedCallReport, 'connectMs' | 'hungUpByAgentMs'> {
  /** Why the call did not connect. */
  readonly failure: string | null;
  readonly late: readonly string[];
}

function reportOf(line: CallerLine, caller: ScriptedCaller, { connectMs, hungUpByAgentMs, failure, late }: CallEnd): SimulatedCallReport {
  const heard = caller.report();
  const { bot, transcript, errors: lineErrors } = line.report();
  const notConnected = lineErrors.length > 0 ? lineErrors : [failure ?? ''];
  const isSilent = heard.firstAudioMs === null;
  const errors = failure === null ? [...lineErrors, ...heard.errors, ...(isSilent ? [] : late)] : notConnected;
  return { ...heard, bot, transcript, ok: errors.length === 0, connected: failure === null, connectMs, hungUpByAgentMs, errors };
}

export function summaryOf(reports: readonly SimulatedCallReport[]): SimulationSummary {
  const turns = reports.flatMap(({ turnMs }) => turnMs);
  const interruptions = reports.flatMap((report) => report.interruptions);
  const delays = interruptions.flatMap(({ silentAfterMs }) => silentAfterMs ?? []);
  const silences = reports.flatMap((report) => report.silences);
  return {
    calls: reports.length,
    ok: reports.filter(({ ok }) => ok).length,
    turns: {
      count: turns.length,
      p50Ms: percentile(turns, 0.5),
      p95Ms: percentile(turns, 0.95),
      talkedOver: reports.reduce((sum, { talkedOver }) => sum + talkedOver, 0),
    },
    interruptions: {
      made: interruptions.length,
      taken: delays.length,
      p50Ms: percentile(delays, 0.5),
      p95Ms: percentile(delays, 0.95),
    },
    silences: { kept: silences.length, prompted: silences.filter(({ promptedAfterMs }) => promptedAfterMs !== null).length },
  };
}

function until(clock: Clock, dueMs: number): Promise<void> {
  return new Promise((resolve) => clock.setTimer(Math.max(0, dueMs - clock.nowMs()), resolve));
}

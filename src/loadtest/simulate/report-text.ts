import type { SimulatedCallReport, SimulationSummary } from './simulated-call.js';

const ms = (value: number | null): string => (value === null ? '–' : `${String(Math.round(value))} ms`);

/** For a person at a terminal: each call, then all of them. */
export function reportText(summary: SimulationSummary, calls: readonly SimulatedCallReport[]): string {
  const { turns, interruptions, silences } = summary;
  const rows: [string, string][] = [
    ['Calls', `${String(summary.calls)}, ${String(summary.ok)} ok`],
    ['Turns', `${String(turns.count)}, p50 ${ms(turns.p50Ms)}, p95 ${ms(turns.p95Ms)}; talked over ${String(turns.talkedOver)}`],
    ...(interruptions.made === 0
      ? []
      : [
          row(
            'Interruptions',
            `${String(interruptions.taken)} of ${String(interruptions.made)} taken, silent after p50 ${ms(interruptions.p50Ms)}, p95 ${ms(interruptions.p95Ms)}`,
          ),
        ]),
    ...(silences.kept === 0 ? [] : [row('Silences', `${String(silences.kept)}, the agent spoke in ${String(silences.prompted)}`)]),
  ];
  const callTexts = calls.map((call, at) => callText(call, calls.length === 1 ? '' : `Call ${String(at + 1)}`));
  return [...callTexts, lines(rows), summary.ok === summary.calls ? 'ok' : 'FAILED'].join('\n\n');
}

function callText(call: SimulatedCallReport, title: string): string {
  const { connected, connectMs, firstAudioMs, audioMs, bot, hungUpByAgentMs, turnMs, interruptions, silences } = call;
  const rows: [string, string][] = [
    ...(title === '' ? [] : [row(title, '')]),
    ['Connected', connected ? `after ${String(connectMs)} ms` : 'no'],
    ['First audio', firstAudioMs === null ? 'none' : `${String(firstAudioMs)} ms after start`],
    ['Audio', `${String(audioMs)} ms heard`],
    ...(turnMs.length === 0 ? [] : [row('Turns', turnMs.map((delay) => ms(delay)).join(', '))]),
    ...interruptions.map(({ silentAfterMs }) =>
      row('Interrupted', silentAfterMs === null ? 'the agent went on' : `silent after ${ms(silentAfterMs)}`),
    ),
    ...silences.map((silence) =>
      row(
        'Silent',
        `${ms(silence.ms)}: ${silence.promptedAfterMs === null ? 'the agent waited' : `the agent spoke after ${ms(silence.promptedAfterMs)}`}`,
      ),
    ),
    ...(bot === null
      ? []
      : [
          row('Marks', `${String(bot.marksSet)} set, ${String(bot.marksEchoed)} echoed`),
          row('Digits', bot.digits === '' ? 'none sent by the bot' : bot.digits),
          row('Requests', bot.requests.length === 0 ? 'none' : bot.requests.join(', ')),
        ]),
    ...call.transcript.map(({ speaker, text }) => row(speaker === 'agent' ? 'Agent said' : 'Caller said', text)),
    ['Hung up by', !connected ? 'nobody' : hungUpByAgentMs === null ? 'the caller' : `the agent, after ${String(hungUpByAgentMs)} ms`],
    ...call.errors.map((text): [string, string] => ['Error', text]),
  ];
  return lines(rows);
}

const row = (name: string, value: string): [string, string] => [name, value];

const lines = (rows: readonly (readonly [string, string])[]): string =>
  rows.map(([name, value]) => `${name.padEnd(14)}${value}`.trimEnd()).join('\n');

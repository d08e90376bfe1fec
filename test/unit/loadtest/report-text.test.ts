import { expect, it } from 'vitest';
import { reportText } from '../../../src/loadtest/simulate/report-text.js';
import type { SimulatedCallReport, SimulationSummary } from '../../../src/loadtest/simulate/simulated-call.js';

const SUMMARY: SimulationSummary = {
  calls: 1,
  ok: 1,
  turns: { count: 2, p50Ms: 410.4, p95Ms: 900, talkedOver: 1 },
  interruptions: { made: 2, taken: 1, p50Ms: 120, p95Ms: 120 },
  silences: { kept: 1, prompted: 0 },
};
const CALL: SimulatedCallReport = {
  ok: true,
  connected: true,
  connectMs: 12,
  firstAudioMs: 300,
  audioMs: 2_500,
  turnMs: [410.4, 900],
  talkedOver: 1,
  interruptions: [{ silentAfterMs: 120 }, { silentAfterMs: null }],
  silences: [{ ms: 3_000, promptedAfterMs: null }],
  bot: { marksSet: 2, marksEchoed: 1, clears: 0, digits: '', requests: ['transfer'] },
  transcript: [
    { speaker: 'agent', text: 'Good day.' },
    { speaker: 'caller', text: 'Hello.' },
  ],
  hungUpByAgentMs: 9_000,
  errors: [],
};

it('the report has turns, interruptions, silences and transcript of a call, then of all of them', () => {
  expect(reportText(SUMMARY, [CALL]).split('\n')).toEqual([
    'Connected     after 12 ms',
    'First audio   300 ms after start',
    'Audio         2500 ms heard',
    'Turns         410 ms, 900 ms',
    'Interrupted   silent after 120 ms',
    'Interrupted   the agent went on',
    'Silent        3000 ms: the agent waited',
    'Marks         2 set, 1 echoed',
    'Digits        none sent by the bot',
    'Requests      transfer',
    'Agent said    Good day.',
    'Caller said   Hello.',
    'Hung up by    the agent, after 9000 ms',
    '',
    'Calls         1, 1 ok',
    'Turns         2, p50 410 ms, p95 900 ms; talked over 1',
    'Interruptions 1 of 2 taken, silent after p50 120 ms, p95 120 ms',
    'Silences      1, the agent spoke in 0',
    '',
    'ok',
  ]);
});

it('the report numbers several calls, and names one that failed', () => {
  const none: SimulationSummary = {
    calls: 2,
    ok: 1,
    turns: { count: 0, p50Ms: null, p95Ms: null, talkedOver: 0 },
    interruptions: { made: 0, taken: 0, p50Ms: null, p95Ms: null },
    silences: { kept: 0, prompted: 0 },
  };
  const silent = { firstAudioMs: null, audioMs: 0, turnMs: [], interruptions: [], silences: [], transcript: [], hungUpByAgentMs: null };
  const failed = { ...CALL, ...silent, ok: false, connected: false, bot: null, errors: ['refused: 486'] };
  const text = reportText(none, [CALL, failed]);
  expect(text).toContain(
    '\n\nCall 2\nConnected     no\nFirst audio   none\nAudio         0 ms heard\nHung up by    nobody\nError         refused: 486\n',
  );
  expect(text).toContain('Turns         0, p50 –, p95 –; talked over 0\n');
  expect(text).not.toContain('Interruptions');
  expect(text.endsWith('\n\nFAILED')).toBe(true);
});

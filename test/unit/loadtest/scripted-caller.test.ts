import { describe, expect, it } from 'vitest';
import { parseScript, type ScriptStep } from '../../../src/loadtest/simulate/script.js';
import { ScriptedCaller, type CallerAction, type CallerReport } from '../../../src/loadtest/simulate/scripted-caller.js';

const FRAME_MS = 20;
const ANSWER_WITHIN_MS = 2_000;
/** 200 ms of quiet, 600 ms of voice, 200 ms of quiet. */
const PHRASE = Int16Array.from({ length: 8_000 }, (_, n) => (n < 1_600 || n >= 6_400 ? 0 : n % 2 === 0 ? 8_000 : -8_000));
const VOICE_MS = { start: 200, end: 800 };

type Span = readonly [fromMs: number, toMs: number];

/** Runs a script against an agent that is audible in these spans, or as `react` says once the caller did something. */
function run(
  script: readonly ScriptStep[],
  spans: readonly Span[],
  react: (action: CallerAction, atMs: number, spans: Span[]) => void = () => undefined,
): { readonly report: CallerReport; readonly actions: readonly [number, CallerAction['do']][] } {
  const agent = [...spans];
  const phrases = new Map(
    script.flatMap((step) => ('say' in step ? [step.say] : 'interrupt' in step ? [step.interrupt] : [])).map((text) => [text, PHRASE]),
  );
  const caller = new ScriptedCaller(script, phrases, ANSWER_WITHIN_MS);
  const actions: [number, CallerAction['do']][] = [];
  for (let atMs = 0; atMs < 60_000; atMs += FRAME_MS) {
    const action = caller.frame(
      atMs,
      FRAME_MS,
      agent.some(([from, to]) => atMs >= from && atMs < to),
    );
    if (action === null) continue;
    actions.push([atMs, action.do]);
    if (action.do === 'hang-up') break;
    react(action, atMs, agent);
  }
  return { report: caller.report(), actions };
}

describe('a scripted caller', () => {
  it('speaks when the greeting is over, measures from the end of its own voice, and hangs up after the answer', () => {
    const { report, actions } = run([{ say: 'hello' }], [[100, 1_100]], (action, atMs, agent) => {
      if (action.do === 'play') agent.push([atMs + VOICE_MS.end + 340, atMs + 2_500]);
    });
    expect(report).toMatchObject({ firstAudioMs: 100, turnMs: [340], talkedOver: 0, errors: [] });
    expect(actions.map(([, what]) => what)).toEqual(['play', 'hang-up']);
    // 700 ms after the agent's last sound, which ended at 1,100.
    expect(actions[0]?.[0]).toBe(1_780);
  });

  it('interrupts, and reports when the agent stopped', () => {
    const { report } = run([{ interrupt: 'stop', after: 1 }], [[0, 1_000 + VOICE_MS.start + 160]], (action, atMs, agent) => {
      if (action.do === 'play') agent.push([atMs + 1_500, atMs + 2_000]);
    });
    expect(report).toMatchObject({ interruptions: [{ silentAfterMs: 160 }], turnMs: [700], errors: [] });
  });

  it('reports an agent that continues when it is interrupted', () => {
    const { report } = run([{ interrupt: 'stop', after: 1 }], [[0, 8_000]]);
    expect(report.interruptions).toEqual([{ silentAfterMs: null }]);
  });

  it('cannot interrupt an agent that has finished, or does not speak', () => {
    const late = run(
      [{ interrupt: 'stop', after: 3 }],
      [
        [0, 1_000],
        [3_500, 4_500],
      ],
    );
    expect(late.report.errors).toEqual(['step 1: nothing to interrupt, the agent had ended before']);
    const silent = run([{ say: 'hello' }, { interrupt: 'stop', after: 1 }], [[0, 1_000]]);
    expect(silent.report.errors[0]).toBe('step 2: nothing to interrupt, the agent did not speak within 2000 ms');
  });

  it('keeps silent, and reports whether the agent asks', () => {
    const script = [{ silent: 5 }, { silent: 1 }];
    const { report, actions } = run(script, [[2_000, 3_000]]);
    expect(report.silences).toEqual([
      { ms: 5_000, promptedAfterMs: 2_000 },
      { ms: 1_000, promptedAfterMs: null },
    ]);
    expect(actions).toEqual([[6_000, 'hang-up']]);
  });

  it('sends digits half a second apart, and requires no answer to them', () => {
    const { report, actions } = run([{ press: '12#' }], [[0, 500]]);
    expect(actions.map(([atMs, what]) => [what, atMs - (actions[0]?.[0] ?? 0)])).toEqual([
      ['press', 0],
      ['press', 500],
      ['press', 1_000],
      ['hang-up', 1_500 + ANSWER_WITHIN_MS],
    ]);
    expect(report.errors).toEqual([]);
  });

  it('counts an agent that begins before the caller has ended', () => {
    const { report } = run([{ say: 'hello' }], [[0, 500]], (action, atMs, agent) => {
      if (action.do === 'play') agent.push([atMs + 400, atMs + 3_000]);
    });
    expect(report).toMatchObject({ turnMs: [], talkedOver: 1, errors: [] });
  });

  it('reports which step had no answer, and of an agent that never spoke only that', () => {
    expect(run([{ say: 'a' }, { say: 'b' }], [[0, 500]]).report.errors).toEqual([
      'step 2: the agent did not speak within 2000 ms',
      'end: the agent did not speak within 2000 ms',
    ]);
    expect(run([{ say: 'a' }], []).report.errors).toEqual(['the agent said nothing']);
  });
});

describe('a script of the caller', () => {
  it('is a YAML list of steps', () => {
    expect(parseScript('- say: Hello\n- interrupt: Stop\n- interrupt: Stop\n  after: 2.5\n- press: "1#"\n- silent: 3\n')).toEqual({
      ok: true,
      value: [{ say: 'Hello' }, { interrupt: 'Stop', after: 1 }, { interrupt: 'Stop', after: 2.5 }, { press: '1#' }, { silent: 3 }],
    });
  });

  it.each([
    ['not a list', 'say: hello', 'expected a list of 1 to 100 steps'],
    ['an empty file', '', 'expected a list of 1 to 100 steps'],
    ['an unknown step', '- say: a\n- sing: b', 'step 2: expected { say: text }'],
    ['a digit that does not exist', '- press: 12x', 'step 1: expected { say: text }'],
    ['not YAML', '- say: "a', 'no YAML:'],
  ])('is refused when it is %s', (_name, source, error) => {
    expect(parseScript(source)).toMatchObject({ ok: false, error: expect.stringContaining(error) as string });
  });
});

import { voicedSegments } from '../test-caller/energy.js';
import { eventsOf, type ScriptStep } from './script.js';

/** What the caller does next. */
export type CallerAction =
  /** 16-bit samples at 8 kHz. */
  { readonly do: 'play'; readonly samples: Int16Array } | { readonly do: 'press'; readonly event: number } | { readonly do: 'hang-up' };

/** What the caller noticed. Times are milliseconds after the start. */
export interface CallerReport {
  /** `null`: the agent said nothing. */
  readonly firstAudioMs: number | null;
  /** How long the agent was audible. */
  readonly audioMs: number;
  /** For each turn of the caller, from the end of the speech to the agent's first sound. */
  readonly turnMs: readonly number[];
  /** Turns in which the agent began to speak before the caller had ended. */
  readonly talkedOver: number;
  readonly interruptions: readonly {
    /** From the caller's first sound to the agent's last one; `null`: it went on speaking. */
    readonly silentAfterMs: number | null;
  }[];
  readonly silences: readonly {
    readonly ms: number;
    /** When the agent spoke within it; `null`: it waited. */
    readonly promptedAfterMs: number | null;
  }[];
  readonly errors: readonly string[];
}

/** The agent's turn is over after this much quiet. */
const TURN_END_MS = 700;
/** Quiet before a sound that counts as a beginning. */
const ONSET_QUIET_MS = 200;
/** Quiet that counts as the end of what was interrupted. */
const INTERRUPTED_QUIET_MS = 300;
/** An agent that speaks longer than this was not interrupted. */
const INTERRUPTED_WITHIN_MS = 2_000;
const DIGIT_PAUSE_MS = 500;
const SAMPLES_PER_MS = 8;

/** Follows a script, 20 ms at a time, and measures the agent. Pure: the owner gives the time and what is audible. */
export class ScriptedCaller {
  readonly #turnMs: number[] = [];
  readonly #interruptions: { silentAfterMs: number | null }[] = [];
  readonly #silences: { ms: number; promptedAfterMs: number | null }[] = [];
  readonly #errors: string[] = [];
  #talkedOver = 0;
  #firstAudioMs: number | null = null;
  #audioMs = 0;
  #lastHeardMs = -Infinity;
  /** `null`: the agent is quiet. */
  #turnStartedMs: number | null = null;
  /** Since the caller did something. */
  #hadTurn = false;
  #at = 0;
  /** The script waits since then. */
  #waitsSinceMs = 0;
  /** The caller speaks, presses, or is silent until then. */
  #busyUntilMs = 0;
  /** Where the caller's own voice is. */
  #voice: { readonly startMs: number; readonly endMs: number } | null = null;
  /** The agent has not answered yet. */
  #isTurnOpen = false;
  /** What was interrupted and still speaks; since when. */
  #interruptedMs: number | null = null;
  #silenceFromMs: number | null = null;
  readonly #digits: { readonly event: number; readonly atMs: number }[] = [];

  /**
   * @param phrases what each text of the script sounds like
   * @param answerWithinMs longest wait for the agent
   */
  constructor(
    private readonly script: readonly ScriptStep[],
    private readonly phrases: ReadonlyMap<string, Int16Array>,
    private readonly answerWithinMs: number,
  ) {}

  /** @param isHeard the agent is audible in these 20 ms */
  frame(atMs: number, frameMs: number, isHeard: boolean): CallerAction | null {
    this.#listen(atMs, frameMs, isHeard);
    if (atMs < this.#busyUntilMs) return this.#press(atMs);
    this.#silenceFromMs = null;
    return this.#next(atMs);
  }

  report(): CallerReport {
    return {
      firstAudioMs: this.#firstAudioMs,
      audioMs: this.#audioMs,
      turnMs: this.#turnMs,
      talkedOver: this.#talkedOver,
      interruptions: this.#interruptions,
      silences: this.#silences,
      errors: this.#firstAudioMs === null ? ['the agent said nothing'] : this.#errors,
    };
  }

  #listen(atMs: number, frameMs: number, isHeard: boolean): void {
    if (isHeard) {
      if (atMs - this.#lastHeardMs > ONSET_QUIET_MS) this.#onOnset(atMs);
      this.#firstAudioMs ??= atMs;
      this.#audioMs += frameMs;
      this.#turnStartedMs ??= atMs;
      this.#lastHeardMs = atMs;
    } else if (this.#turnStartedMs !== null && atMs - this.#lastHeardMs >= TURN_END_MS) {
      this.#turnStartedMs = null;
      // What ended while the caller spoke was no answer.
      this.#hadTurn ||= this.#lastHeardMs >= this.#busyUntilMs;
    }
    if (this.#interruptedMs === null) return;
    const isQuiet = atMs - this.#lastHeardMs >= INTERRUPTED_QUIET_MS;
    if (!isQuiet && atMs - this.#interruptedMs < INTERRUPTED_WITHIN_MS) return;
    const silentAfterMs = isQuiet ? Math.max(0, this.#lastHeardMs + frameMs - this.#interruptedMs) : null;
    this.#interruptions.push({ silentAfterMs });
    this.#interruptedMs = null;
  }

  #onOnset(atMs: number): void {
    const silence = this.#silences.at(-1);
    if (this.#silenceFromMs !== null && silence?.promptedAfterMs === null) silence.promptedAfterMs = atMs - this.#silenceFromMs;
    if (!this.#isTurnOpen || this.#voice === null || atMs < this.#voice.startMs || this.#interruptedMs !== null) return;
    this.#isTurnOpen = false;
    if (atMs < this.#voice.endMs) this.#talkedOver += 1;
    else this.#turnMs.push(atMs - this.#voice.endMs);
  }

  #next(atMs: number): CallerAction | null {
    const step = this.script[this.#at];
    if (step === undefined) {
      return this.#mayGoOn(atMs) ? { do: 'hang-up' } : null;
    }
    if ('silent' in step) {
      this.#at += 1;
      this.#silences.push({ ms: step.silent * 1_000, promptedAfterMs: null });
      this.#silenceFromMs = atMs;
      this.#busyUntilMs = atMs + step.silent * 1_000;
      return null;
    }
    if ('interrupt' in step) {
      if (!this.#isToBeInterrupted(atMs, step.after * 1_000)) return null;
      const action = this.#speak(atMs, step.interrupt);
      if (this.#turnStartedMs !== null) this.#interruptedMs = this.#voice?.startMs ?? atMs;
      return action;
    }
    if (!this.#mayGoOn(atMs)) return null;
    if ('say' in step) return this.#speak(atMs, step.say);
    const events = eventsOf(step.press);
    this.#digits.push(...events.map((event, at) => ({ event, atMs: atMs + at * DIGIT_PAUSE_MS })));
    this.#done(atMs + events.length * DIGIT_PAUSE_MS);
    return this.#press(atMs);
  }

  /** The next digit, when it is time. */
  #press(atMs: number): CallerAction | null {
    const [digit] = this.#digits;
    if (digit === undefined || atMs < digit.atMs) return null;
    this.#digits.shift();
    return { do: 'press', event: digit.event };
  }

  /** The agent has had its turn, or lets us wait too long; who was silent goes on when the silence is over. */
  #mayGoOn(atMs: number): boolean {
    const before = this.script[this.#at - 1];
    if (before !== undefined && 'silent' in before) return true;
    if (this.#hadTurn && this.#turnStartedMs === null) return true;
    if (this.#turnStartedMs !== null || atMs - this.#waitsSinceMs < this.answerWithinMs) return false;
    // An agent need not say anything to a key.
    if (before === undefined || !('press' in before)) this.#errors.push(`${this.#stepName()}: ${this.#tooLate()}`);
    return true;
  }

  #tooLate(): string {
    return `the agent did not speak within ${String(this.answerWithinMs)} ms`;
  }

  #isToBeInterrupted(atMs: number, afterMs: number): boolean {
    if (this.#turnStartedMs !== null) return atMs - this.#turnStartedMs >= afterMs;
    if (!this.#hadTurn && atMs - this.#waitsSinceMs < this.answerWithinMs) return false;
    const why = this.#hadTurn ? 'the agent had ended before' : this.#tooLate();
    this.#errors.push(`${this.#stepName()}: nothing to interrupt, ${why}`);
    return true;
  }

  #stepName(): string {
    return this.#at < this.script.length ? `step ${String(this.#at + 1)}` : 'end';
  }

  #speak(atMs: number, text: string): CallerAction {
    const samples = this.phrases.get(text) ?? new Int16Array(0);
    const voiced = voicedSegments(samples);
    const startMs = atMs + (voiced[0]?.start ?? 0) / SAMPLES_PER_MS;
    const endMs = atMs + (voiced.at(-1)?.end ?? 0) / SAMPLES_PER_MS;
    this.#voice = { startMs, endMs };
    this.#done(endMs);
    this.#isTurnOpen = true;
    return { do: 'play', samples };
  }

  /** The step is over then, and the agent has its turn. */
  #done(untilMs: number): void {
    this.#at += 1;
    this.#hadTurn = false;
    this.#waitsSinceMs = untilMs;
    this.#busyUntilMs = untilMs;
  }
}

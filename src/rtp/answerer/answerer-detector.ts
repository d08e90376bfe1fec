import { levelDbfs } from '../codec/level.js';
import { frameTone } from './tone.js';

/** Who or what answered a call that we placed. */
export type Answerer = 'person' | 'machine' | 'fax' | 'unknown';

export type AnswererEvent =
  /** 1.5 s after speech began; the verdict follows. */
  | { readonly type: 'guess'; readonly answerer: 'person' | 'machine' }
  | { readonly type: 'verdict'; readonly answerer: Answerer }
  /** The machine's greeting is over: with a beep, or because nothing more came. */
  | { readonly type: 'greeting-ended'; readonly by: 'beep' | 'silence' };

const FRAME_MS = 20;
const frames = (ms: number): number => ms / FRAME_MS;

/** At the end of this time the verdict is given with what was heard. */
const VERDICT_LIMIT = frames(5_000);
const GUESS_AFTER = frames(1_500);
/** A person says a word or a sentence, and waits. */
const PERSON_PAUSE = frames(700);
/** Who speaks for longer without such a pause reads a greeting. */
const MACHINE_SPEECH = frames(2_800);
/** The guess, and the verdict at the limit, while speech goes on. */
const SPEAKING_PAUSE = frames(300);
/** Shorter sounds are clicks. */
const LEAST_VOICE = frames(80);
/** A tone keeps its frequency for this long. */
const LEAST_TONE = frames(160);
const TONE_DRIFT = 0.03;
/** Two tones together fade for a moment at each beat. */
const TONE_GAP = 3;
const BEEP = { least: frames(160), leastHertz: 350, mostHertz: 2_600 };
const GREETING_SILENCE = frames(2_000);
const GREETING_LIMIT = frames(60_000);
/** ITU-T T.30: CED of the answering fax, CNG of a calling one. */
const FAX = [
  { hertz: 2_100, frames: frames(400) },
  { hertz: 1_100, frames: frames(400) },
];
const FAX_WITHIN_HERTZ = 40;
/** ITU-T E.180: the special information tone before an announcement. */
const SIT = [950, 1_400, 1_800];
const SIT_WITHIN_HERTZ = 70;

/** Speech is this much louder than the line's noise, and at most so much below the loudest moment of late, in dB. */
const ABOVE_FLOOR = 10;
const BELOW_PEAK = 12;
const PEAK_FALL_PER_FRAME = 0.06;
const FLOOR = { least: -75, most: -32, risePerFrame: 0.06 };
const LEAST_SPEECH_DBFS = -48;

/**
 * Listens to the first seconds of a call, 20 ms at a time, and finds out who answered from energy, cadence and tones. Pure: time is the count
 * of frames, each of 160 samples (16 bits, 8 kHz).
 */
export class AnswererDetector {
  #at = 0;
  #floor: number = FLOOR.most;
  #peak = -100;
  /** `null`: nobody has spoken. Frames of speech, counted from the first one. */
  #speech: { readonly from: number; voiced: number; last: number; loudest: number } | null = null;
  /** Frames of the last tone; it goes on while `until` is now. */
  #tone: { readonly hertz: number; readonly from: number; length: number; until: number } | null = null;
  readonly #tones: number[] = [];
  #verdict: Answerer | null = null;
  #hasGuessed = false;
  #isDone = false;

  /** Nothing more will be found: frames need not be given any more. */
  get isDone(): boolean {
    return this.#isDone;
  }

  take(samples: Int16Array): AnswererEvent | null {
    if (this.#isDone) return null;
    this.#hear(samples);
    this.#at += 1;
    return this.#verdict === null ? this.#judge() : this.#awaitEnd();
  }

  #hear(samples: Int16Array): void {
    const level = levelDbfs(samples);
    this.#floor = Math.min(FLOOR.most, Math.max(FLOOR.least, Math.min(level, this.#floor + FLOOR.risePerFrame)));
    this.#peak = Math.max(level, this.#peak - PEAK_FALL_PER_FRAME);
    if (level < Math.max(LEAST_SPEECH_DBFS, this.#floor + ABOVE_FLOOR, this.#peak - BELOW_PEAK)) return;
    const hertz = frameTone(samples);
    if (hertz !== null) this.#hearTone(hertz);
    // Until a tone has lasted, it may be a vowel; a frame in which it begins or ends is no tone.
    if (this.#tone !== null && this.#tone.length >= LEAST_TONE && this.#at - this.#tone.until <= TONE_GAP) return;
    // What was so much quieter was the background.
    if (this.#speech === null || level > this.#speech.loudest + BELOW_PEAK)
      this.#speech = { from: this.#at, voiced: 0, last: this.#at, loudest: level };
    this.#speech.voiced += 1;
    this.#speech.last = this.#at;
    this.#speech.loudest = Math.max(this.#speech.loudest, level);
  }

  #hearTone(hertz: number): void {
    const tone = this.#tone;
    if (tone === null || this.#at - tone.until > TONE_GAP || Math.abs(hertz - tone.hertz) > TONE_DRIFT * tone.hertz) {
      this.#tone = { hertz, from: this.#at, length: 1, until: this.#at };
      return;
    }
    tone.length += 1;
    tone.until = this.#at;
    if (tone.length !== LEAST_TONE) return;
    this.#tones.push(tone.hertz);
    this.#forgetSpeechSince(tone.from - TONE_GAP);
  }

  /** The beginning of a tone was taken for speech. */
  #forgetSpeechSince(frame: number): void {
    const speech = this.#speech;
    if (speech === null) return;
    if (speech.from >= frame) this.#speech = null;
    else {
      speech.voiced = Math.min(speech.voiced, frame - speech.from);
      speech.last = Math.min(speech.last, frame);
    }
  }

  #judge(): AnswererEvent | null {
    const speech = this.#speech;
    const tone = this.#tone;
    const open = tone !== null && tone.length < LEAST_TONE && this.#at - tone.until <= TONE_GAP ? tone.length : 0;
    const hasSpoken = speech !== null && speech.voiced - open >= LEAST_VOICE;
    if (!hasSpoken && tone !== null && FAX.some((fax) => near(tone.hertz, fax.hertz, FAX_WITHIN_HERTZ) && tone.length >= fax.frames))
      return this.#decide('fax');
    if (isSit(this.#tones)) return this.#decide('machine');
    if (hasSpoken) {
      const pause = this.#at - 1 - speech.last;
      const span = speech.last + 1 - speech.from;
      if (span >= MACHINE_SPEECH) return this.#decide('machine');
      if (pause >= PERSON_PAUSE) return this.#decide('person');
      const isSpeaking = pause < SPEAKING_PAUSE && span > GUESS_AFTER - SPEAKING_PAUSE;
      if (this.#at >= VERDICT_LIMIT) return this.#decide(isSpeaking ? 'machine' : 'person');
      if (!this.#hasGuessed && this.#at - speech.from >= GUESS_AFTER) {
        this.#hasGuessed = true;
        return { type: 'guess', answerer: isSpeaking ? 'machine' : 'person' };
      }
      return null;
    }
    // A click.
    if (speech !== null && this.#at - 1 - speech.last >= PERSON_PAUSE) this.#speech = null;
    return this.#at >= VERDICT_LIMIT ? this.#decide('unknown') : null;
  }

  #decide(answerer: Answerer): AnswererEvent {
    this.#verdict = answerer;
    this.#isDone = answerer !== 'machine';
    this.#tone = null;
    return { type: 'verdict', answerer };
  }

  #awaitEnd(): AnswererEvent | null {
    const tone = this.#tone;
    const last = Math.max(this.#speech?.last ?? 0, tone?.until ?? 0);
    const isBeep = tone !== null && tone.length >= BEEP.least && tone.hertz >= BEEP.leastHertz && tone.hertz <= BEEP.mostHertz;
    if (isBeep && this.#at - 1 - tone.until > TONE_GAP) return this.#end('beep');
    if (this.#at - 1 - last >= GREETING_SILENCE || this.#at >= GREETING_LIMIT) return this.#end('silence');
    return null;
  }

  #end(by: 'beep' | 'silence'): AnswererEvent {
    this.#isDone = true;
    return { type: 'greeting-ended', by };
  }
}

const near = (hertz: number, wanted: number, within: number): boolean => Math.abs(hertz - wanted) <= within;

/** The last three tones are those of E.180. */
function isSit(tones: readonly number[]): boolean {
  const last = tones.slice(-3);
  return last.length === 3 && last.every((hertz, at) => near(hertz, SIT[at] ?? 0, SIT_WITHIN_HERTZ));
}

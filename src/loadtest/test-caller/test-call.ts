import { builtInGreeting, digitPhrase, figuresIntroduction, type SpokenText } from '../../gateway/agents/languages.js';
import { EspeakSpeech, type Speech } from '../../gateway/agents/speech.js';
import { type AudioCodec, throughG711 } from '../../rtp/codec/g711.js';
import type { Clock } from '../../lib/clock.js';
import { PhraseSearch } from './correlation.js';
import { voicedSegments } from './energy.js';
import { levelDbfs } from '../../rtp/codec/level.js';
import { eventOfDigit } from '../../rtp/dtmf/telephone-event.js';
import { endFault, type CallReport, type DigitReport } from './call-report.js';
import { CarrierCall, SUITE } from './carrier-call.js';
import type { CarrierMediaLeg } from './media-leg.js';
import type { CarrierTarget } from './sip-client.js';

export interface TestCallOptions {
  readonly target: CarrierTarget;
  readonly called: string;
  readonly caller: string;
  /**
   * Keys to press; `#` is pressed last of all, because the test line then hangs up. `null`: those that the test line is tried with, none for
   * a bot.
   */
  readonly digits: string | null;
  /** The longest that the call may take. */
  readonly seconds: number;
  /** Language of the test line, for the expected phrases; of what is said to a bot. */
  readonly language: string;
  /**
   * Somebody else's agent answers: it is spoken to and listened to until the time is over, and nothing of the test line is expected.
   * `null`: what answers is recognised by its greeting, or by what it says to a key.
   */
  readonly isBot: boolean | null;
  /** In order of preference. */
  readonly codecs: readonly AudioCodec[];
}

const RATE_HZ = 8_000;
/** Measured over all pairs of keys in English: a wrong key's phrase scores 0.66 at most (the first words are the same), the right one 1. */
const SCORE_THRESHOLD = 0.85;
const TONE_HZ = 1_004;
const TONE_SAMPLES = RATE_HZ / 2;
/** Anything that makes a bot answer. */
const WORDS_FOR_A_BOT = 'Hello. This is a test call. Can you hear me?';
/** The beginning of the test line's greeting that it is recognised by. */
const GREETING_SAMPLES = RATE_HZ;
/** Until the greeting has begun, or the answer to a key was said. */
const RECOGNISED_WITHIN_MS = 4_000;
const KEY_TO_RECOGNISE = '1';
const KEYS_FOR_THE_LINE = '123#';
const GREETING = 'greeting';
const POLL_MS = 100;

/** Calls the gateway as a carrier would, with real SRTP audio, and reports what it saw. Never rejects: what went wrong is in the report. */
export async function placeTestCall(options: TestCallOptions, clock: Clock): Promise<CallReport> {
  const call = new TestCall(options, clock);
  try {
    await call.run();
  } catch (error) {
    call.fail((error as Error).message);
  } finally {
    call.close();
  }
  return call.report();
}

class TestCall {
  readonly #call: CarrierCall;
  readonly #speech: Speech = new EspeakSpeech();
  readonly #startedMs: number;
  /** Keys for the test line. */
  readonly #keys: string;
  #digits: DigitReport[] = [];
  #echoHeard: boolean | null = null;
  #hungUpBy: CallReport['hung_up_by'] = null;
  #isBot: boolean;
  #failure: string | undefined;
  #closedAtMs = 0;

  constructor(
    private readonly options: TestCallOptions,
    private readonly clock: Clock,
  ) {
    this.#startedMs = clock.nowMs();
    this.#isBot = options.isBot === true;
    this.#keys = options.digits ?? (options.isBot === true ? '' : KEYS_FOR_THE_LINE);
    this.#call = new CarrierCall(options.target, options.codecs, clock);
  }

  async run(): Promise<void> {
    // Before the call, so that synthesis takes no time of it.
    const phrases = await this.#expectedPhrases();
    const leg = await this.#call.place(this.options.called, this.options.caller);
    await this.#talk(leg, this.#call.answer?.codec ?? 'PCMU', phrases);
  }

  fail(why: string): void {
    this.#failure ??= why;
  }

  close(): void {
    this.#closedAtMs = this.clock.nowMs();
    this.#call.close();
  }

  async #talk(leg: CarrierMediaLeg, codec: AudioCodec, phrases: ReadonlyMap<string, Int16Array>): Promise<void> {
    if (this.options.isBot === null) this.#isBot = !(await this.#isTestLine(leg, codec, phrases));
    if (this.#isBot) return this.#talkToBot(leg);
    await this.#until(() => voicedSegments(leg.recording()).length > 0);
    const pressed = this.#readBackDigits().map((digit) => ({
      digit,
      search: new PhraseSearch(throughG711(codec, phrases.get(digit) ?? new Int16Array(0))),
    }));
    const at = leg.recording().length;
    for (const { digit } of pressed) leg.press(eventOfDigit(digit) ?? 0);
    await this.#until(() => this.#scoreDigits(pressed, leg.recording().subarray(at)));
    await this.#listenForEcho(leg);
    if (this.#keys.includes('#')) {
      leg.press(eventOfDigit('#') ?? 11);
      await this.#until(() => this.#call.isEnded);
    }
    // One report each way at least.
    await this.#until(() => leg.figures().rtcpReceived > 0 && leg.figures().rtcpSent > 0);
    this.#hungUpBy = this.#call.isEnded ? 'gateway' : 'carrier';
    await this.#call.hangUp();
  }

  /** An agent of the built-in line may have a first sentence of its own: that one is recognised by reading a key back. */
  async #isTestLine(leg: CarrierMediaLeg, codec: AudioCodec, phrases: ReadonlyMap<string, Int16Array>): Promise<boolean> {
    const isHeard = async (phrase: string, from: number): Promise<boolean> => {
      const search = new PhraseSearch(throughG711(codec, (phrases.get(phrase) ?? new Int16Array(0)).subarray(0, GREETING_SAMPLES)));
      let found = false;
      await this.#until(() => {
        found = search.look(leg.recording().subarray(from)) >= SCORE_THRESHOLD;
        return found;
      }, RECOGNISED_WITHIN_MS);
      return found;
    };
    if (await isHeard(GREETING, 0)) return true;
    const at = leg.recording().length;
    leg.press(eventOfDigit(KEY_TO_RECOGNISE) ?? 0);
    return isHeard(KEY_TO_RECOGNISE, at);
  }

  async #talkToBot(leg: CarrierMediaLeg): Promise<void> {
    leg.play(await this.#speech.synthesize({ text: WORDS_FOR_A_BOT, language: this.options.language }, []));
    // Keys that nobody named are meant for the test line: they mean nothing to a bot, or something else.
    for (const digit of this.options.digits ?? '') leg.press(eventOfDigit(digit) ?? 0);
    await this.#until(() => false);
    this.#hungUpBy = this.#call.isEnded ? 'gateway' : 'carrier';
    await this.#call.hangUp();
  }

  /** Scores every digit's phrase in what was heard since the keys were pressed; true when all were read back. */
  #scoreDigits(pressed: readonly { readonly digit: string; readonly search: PhraseSearch }[], heard: Int16Array): boolean {
    this.#digits = pressed.map(({ digit, search }) => {
      const score = search.look(heard);
      const phrase = this.#answerTo(digit).text;
      return { digit, phrase, score: Math.round(score * 1_000) / 1_000, threshold: SCORE_THRESHOLD, heard: score >= SCORE_THRESHOLD };
    });
    return this.#digits.every(({ heard: isHeard }) => isHeard);
  }

  /** Every key but `#`, which the line answers by hanging up. */
  #readBackDigits(): string[] {
    return this.#keys.replaceAll('#', '').match(/./g) ?? [];
  }

  async #listenForEcho(leg: CarrierMediaLeg): Promise<void> {
    // The read-back has ended when nothing was heard for a moment.
    await this.#until(() => levelDbfs(leg.recording().slice(-RATE_HZ / 2)) < -50);
    const at = leg.recording().length;
    leg.play(tone());
    this.#echoHeard = false;
    const search = new PhraseSearch(tone().subarray(0, TONE_SAMPLES / 2));
    await this.#until(() => {
      this.#echoHeard = search.look(leg.recording().subarray(at)) > SCORE_THRESHOLD;
      return this.#echoHeard;
    });
  }

  /** Looks again every 100 ms until it holds, the gateway hangs up, or the time is over: that of the call, or one that is given. */
  async #until(holds: () => boolean, withinMs = Infinity): Promise<void> {
    const endMs = Math.min(this.#startedMs + this.options.seconds * 1_000, this.clock.nowMs() + withinMs);
    while (!holds() && !this.#call.isEnded && this.clock.nowMs() < endMs) {
      await new Promise<void>((resolve) => void this.clock.setTimer(POLL_MS, resolve));
    }
  }

  async #expectedPhrases(): Promise<Map<string, Int16Array>> {
    const phrases = new Map<string, Int16Array>();
    const mayBeBot = this.options.isBot === null;
    if (mayBeBot) phrases.set(GREETING, await this.#speech.synthesize(builtInGreeting(this.options.language), []));
    for (const digit of new Set(this.#keys + (mayBeBot ? KEY_TO_RECOGNISE : ''))) {
      if (eventOfDigit(digit) === undefined) throw new Error(`${JSON.stringify(digit)} is not a DTMF digit: use 0-9, *, #, A-D`);
      phrases.set(digit, await this.#speech.synthesize(this.#answerTo(digit), []));
    }
    return phrases;
  }

  /** What the line says when a key is pressed; of the figures of the call, which differ each time, what they begin with. */
  #answerTo(digit: string): SpokenText {
    const { language } = this.options;
    return digit === '*' ? figuresIntroduction(language) : digitPhrase(eventOfDigit(digit) ?? 0, language);
  }

  #testLineChecks(): Readonly<Record<string, boolean>> {
    return {
      digits_read_back: this.#digits.every(({ heard }) => heard) && this.#digits.length === this.#readBackDigits().length,
      echo_heard: this.#echoHeard === true,
      hung_up_as_expected: this.#hungUpBy === (this.#keys.includes('#') ? 'gateway' : 'carrier'),
    };
  }

  report(): CallReport {
    const { leg, tls, outcome, answer, answerMs, endReason, sipCallId } = this.#call;
    const fault = endFault(endReason);
    const media = leg?.figures() ?? null;
    const recording = leg?.recording() ?? new Int16Array(0);
    const first = voicedSegments(recording)[0];
    const level = first === undefined ? null : levelDbfs(recording.subarray(first.start, first.end));
    const checks = {
      tls_1_2_or_higher: tls?.version === 'TLSv1.2' || tls?.version === 'TLSv1.3',
      answered: outcome?.status === 200,
      srtp_aes_cm_128_hmac_sha1_80: answer?.suite === SUITE,
      rtcp_on_rtp_plus_1: answer !== undefined && answer.rtcpPort === answer.rtpPort + 1 && !answer.hasMux,
      rtp_received: (media?.packetsReceived ?? 0) > 0,
      rtp_lossless: media !== null && media.packetsLost === 0 && (media.remoteLost ?? 0) <= 0 && media.packetsBad === 0,
      rtcp_received: (media?.rtcpReceived ?? 0) > 0,
      agent_audio_heard: first !== undefined,
      ...(this.#isBot ? {} : this.#testLineChecks()),
      ended_without_fault: fault === null,
      bye_answered: this.#call.isEnded,
    };
    const ok = this.#failure === undefined && Object.values(checks).every(Boolean);
    return {
      ok,
      outcome:
        this.#failure ??
        (ok ? 'answered, heard, and ended as expected' : fault === null ? 'a check failed' : `the gateway ended the call: ${fault}`),
      called: this.options.called,
      sip_call_id: sipCallId,
      answered_by: answer === undefined ? null : this.#isBot ? 'bot' : 'test line',
      checks,
      tls,
      sip: this.#call.events,
      final_status: outcome?.status ?? null,
      warning: outcome?.warning ?? null,
      codec: answer?.codec ?? null,
      crypto: answer === undefined ? null : { tag: answer.tag, suite: answer.suite },
      answer_ms: answerMs,
      media,
      agent_audio: { heard: first !== undefined, level_dbfs: level === null ? null : Math.round(level * 10) / 10 },
      digits: this.#digits,
      echo_heard: this.#echoHeard,
      hung_up_by: this.#hungUpBy,
      duration_ms: Math.round(this.#closedAtMs - this.#startedMs),
    };
  }
}

function tone(): Int16Array {
  return Int16Array.from({ length: TONE_SAMPLES }, (_, n) => Math.round(8_000 * Math.sin((2 * Math.PI * TONE_HZ * n) / RATE_HZ)));
}

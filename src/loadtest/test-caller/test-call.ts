import { randomBytes } from 'node:crypto';
import { builtInGreeting, digitPhrase, figuresIntroduction, type SpokenText } from '../../gateway/agents/languages.js';
import { EspeakSpeech, type Speech } from '../../gateway/agents/speech.js';
import { type AudioCodec, throughG711 } from '../../rtp/codec/g711.js';
import type { Clock } from '../../lib/clock.js';
import { PhraseSearch } from './correlation.js';
import { levelDbfs, voicedSegments } from './energy.js';
import { eventOfDigit } from '../../rtp/dtmf/telephone-event.js';
import { formatInlineKey, generateSrtpKey, parseInlineKey } from '../../srtp/srtp.js';
import type { CallReport, DigitReport } from './call-report.js';
import { CarrierMediaLeg } from './media-leg.js';
import { CarrierClient, type CallOutcome, type CarrierTarget } from './sip-client.js';

export interface TestCallOptions {
  readonly target: CarrierTarget;
  readonly called: string;
  readonly caller: string;
  /** Keys to press; `#` is pressed last of all, because the test line then hangs up. */
  readonly digits: string;
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

const SUITE = 'AES_CM_128_HMAC_SHA1_80';
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
const GREETING = 'greeting';
const POLL_MS = 100;
const BYE_LIMIT_MS = 3_000;

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

interface Answer {
  readonly codec: AudioCodec;
  readonly tag: string;
  readonly suite: string;
  readonly key: Uint8Array;
  readonly address: string;
  readonly rtpPort: number;
  readonly rtcpPort: number;
  readonly telephoneEvent: number | null;
  readonly hasMux: boolean;
}

class TestCall {
  readonly #client: CarrierClient;
  readonly #speech: Speech = new EspeakSpeech();
  readonly #sendKey = generateSrtpKey();
  readonly #startedMs: number;
  #leg: CarrierMediaLeg | undefined;
  #tls: CallReport['tls'] = null;
  #outcome: CallOutcome | undefined;
  #answer: Answer | undefined;
  #answerMs: number | null = null;
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
    this.#client = new CarrierClient(options.target, clock);
  }

  async run(): Promise<void> {
    // Before the call, so that synthesis takes no time of it.
    const phrases = await this.#expectedPhrases();
    this.#tls = await this.#client.connect();
    this.#leg = await CarrierMediaLeg.open(this.#client.localAddress, this.clock);
    const outcome = await this.#client.invite(this.options.called, this.options.caller, this.#offer(this.#leg.port));
    this.#outcome = outcome;
    this.#answerMs = Math.round(this.clock.nowMs() - this.#startedMs);
    if (outcome.status >= 300) {
      this.fail(`refused with ${String(outcome.status)} ${outcome.reason}`);
      return;
    }
    this.#answer = readAnswer(outcome.sdp);
    if (this.#answer === undefined) {
      await this.#hangUp();
      this.fail('the answer has no PCMU or PCMA audio with one usable key');
      return;
    }
    await this.#talk(this.#leg, this.#answer, phrases);
  }

  fail(why: string): void {
    this.#failure ??= why;
  }

  close(): void {
    this.#closedAtMs = this.clock.nowMs();
    this.#client.close();
    this.#leg?.close();
  }

  async #talk(leg: CarrierMediaLeg, answer: Answer, phrases: ReadonlyMap<string, Int16Array>): Promise<void> {
    const { rtpPort, rtcpPort, address, codec, telephoneEvent } = answer;
    leg.start({
      remote: { address, rtpPort, rtcpPort },
      codec,
      telephoneEventPayloadType: telephoneEvent,
      keys: { send: this.#sendKey, receive: answer.key },
    });
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
    if (this.options.digits.includes('#')) {
      leg.press(eventOfDigit('#') ?? 11);
      await this.#until(() => this.#client.isEnded);
    }
    // One report each way at least.
    await this.#until(() => leg.figures().rtcpReceived > 0 && leg.figures().rtcpSent > 0);
    this.#hungUpBy = this.#client.isEnded ? 'gateway' : 'carrier';
    await this.#hangUp();
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
    // Keys that are meant for the test line mean nothing to a bot, or something else.
    for (const digit of this.options.isBot === null ? '' : this.options.digits) leg.press(eventOfDigit(digit) ?? 0);
    await this.#until(() => false);
    this.#hungUpBy = this.#client.isEnded ? 'gateway' : 'carrier';
    await this.#hangUp();
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

  /** The gateway has a few seconds to answer the BYE. */
  async #hangUp(): Promise<void> {
    const limit = new Promise<void>((resolve) => void this.clock.setTimer(BYE_LIMIT_MS, resolve));
    await Promise.race([this.#client.hangUp(), limit]);
  }

  /** Every key but `#`, which the line answers by hanging up. */
  #readBackDigits(): string[] {
    return this.options.digits.replaceAll('#', '').match(/./g) ?? [];
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
    while (!holds() && !this.#client.isEnded && this.clock.nowMs() < endMs) {
      await new Promise<void>((resolve) => void this.clock.setTimer(POLL_MS, resolve));
    }
  }

  async #expectedPhrases(): Promise<Map<string, Int16Array>> {
    const phrases = new Map<string, Int16Array>();
    const mayBeBot = this.options.isBot === null;
    if (mayBeBot) phrases.set(GREETING, await this.#speech.synthesize(builtInGreeting(this.options.language), []));
    for (const digit of new Set(this.options.digits + (mayBeBot ? KEY_TO_RECOGNISE : ''))) {
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

  #offer(port: number): string {
    const address = this.#client.localAddress;
    const family = address.includes(':') ? 'IP6' : 'IP4';
    const types = this.options.codecs.map((codec) => (codec === 'PCMU' ? 0 : 8));
    return [
      'v=0',
      `o=carrier ${String(randomBytes(4).readUInt32BE())} 1 IN ${family} ${address}`,
      's=-',
      `c=IN ${family} ${address}`,
      't=0 0',
      `m=audio ${String(port)} RTP/SAVP ${types.join(' ')} 101`,
      ...this.options.codecs.map((codec) => `a=rtpmap:${codec === 'PCMU' ? '0' : '8'} ${codec}/8000`),
      'a=rtpmap:101 telephone-event/8000',
      'a=fmtp:101 0-15',
      `a=crypto:1 ${SUITE} ${formatInlineKey(this.#sendKey)}`,
      'a=ptime:20',
      'a=sendrecv',
      '',
    ].join('\r\n');
  }

  #testLineChecks(): Readonly<Record<string, boolean>> {
    return {
      digits_read_back: this.#digits.every(({ heard }) => heard) && this.#digits.length === this.#readBackDigits().length,
      echo_heard: this.#echoHeard === true,
      hung_up_as_expected: this.#hungUpBy === (this.options.digits.includes('#') ? 'gateway' : 'carrier'),
    };
  }

  report(): CallReport {
    const media = this.#leg?.figures() ?? null;
    const voiced = this.#leg === undefined ? [] : voicedSegments(this.#leg.recording());
    const first = voiced[0];
    const level = first === undefined || this.#leg === undefined ? null : levelDbfs(this.#leg.recording().subarray(first.start, first.end));
    const checks = {
      tls_1_2_or_higher: this.#tls?.version === 'TLSv1.2' || this.#tls?.version === 'TLSv1.3',
      answered: this.#outcome?.status === 200,
      srtp_aes_cm_128_hmac_sha1_80: this.#answer?.suite === SUITE,
      rtcp_on_rtp_plus_1: this.#answer !== undefined && this.#answer.rtcpPort === this.#answer.rtpPort + 1 && !this.#answer.hasMux,
      rtp_received: (media?.packetsReceived ?? 0) > 0,
      rtp_lossless: media !== null && media.packetsLost === 0 && (media.remoteLost ?? 0) <= 0 && media.packetsBad === 0,
      rtcp_received: (media?.rtcpReceived ?? 0) > 0,
      agent_audio_heard: first !== undefined,
      ...(this.#isBot ? {} : this.#testLineChecks()),
      bye_answered: this.#client.isEnded,
    };
    const ok = this.#failure === undefined && Object.values(checks).every(Boolean);
    return {
      ok,
      outcome: this.#failure ?? (ok ? 'answered, heard, and ended as expected' : 'a check failed'),
      called: this.options.called,
      answered_by: this.#answer === undefined ? null : this.#isBot ? 'bot' : 'test line',
      checks,
      tls: this.#tls,
      sip: this.#client.events,
      final_status: this.#outcome?.status ?? null,
      warning: this.#outcome?.warning ?? null,
      codec: this.#answer?.codec ?? null,
      crypto: this.#answer === undefined ? null : { tag: this.#answer.tag, suite: this.#answer.suite },
      answer_ms: this.#answerMs,
      media,
      agent_audio: { heard: first !== undefined, level_dbfs: level === null ? null : Math.round(level * 10) / 10 },
      digits: this.#digits,
      echo_heard: this.#echoHeard,
      hung_up_by: this.#hungUpBy,
      duration_ms: Math.round(this.#closedAtMs - this.#startedMs),
    };
  }
}

/** Reads the gateway's answer strictly, with nothing of the gateway's own code. */
function readAnswer(sdp: string): Answer | undefined {
  const all = (pattern: RegExp): RegExpMatchArray[] => [...sdp.matchAll(pattern)];
  const media = all(/^m=audio (\d+) RTP\/SAVP ([\d ]+)\r$/gm);
  const keys = all(/^a=crypto:(\d+) (\S+) (\S+)\r$/gm);
  const address = /^c=IN IP[46] (\S+)\r$/m.exec(sdp)?.[1];
  const [line] = media;
  const [key] = keys;
  if (media.length !== 1 || keys.length !== 1 || line === undefined || key === undefined || address === undefined) return undefined;
  const inline = parseInlineKey(key[3] ?? '');
  const codec = (['PCMU', 'PCMA'] as const)[[0, 8].indexOf(Number((line[2] ?? '').split(' ')[0]))];
  if (!inline.ok || codec === undefined) return undefined;
  const rtpPort = Number(line[1]);
  const telephoneEvent = /^a=rtpmap:(\d+) telephone-event\/8000\r$/m.exec(sdp)?.[1];
  return {
    codec,
    tag: key[1] ?? '',
    suite: key[2] ?? '',
    key: inline.value,
    address,
    rtpPort,
    rtcpPort: Number(/^a=rtcp:(\d+)/m.exec(sdp)?.[1] ?? rtpPort + 1),
    telephoneEvent: telephoneEvent === undefined ? null : Number(telephoneEvent),
    hasMux: /^a=rtcp-mux/m.test(sdp),
  };
}

function tone(): Int16Array {
  return Int16Array.from({ length: TONE_SAMPLES }, (_, n) => Math.round(8_000 * Math.sin((2 * Math.PI * TONE_HZ * n) / RATE_HZ)));
}

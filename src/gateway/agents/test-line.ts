import { FRAME_MS } from '../../rtp/codec/g711.js';
import type { TestLineSettings } from '../model/agent.js';
import type { Clock } from '../../lib/clock.js';
import type { Log } from '../../lib/log.js';
import { digitOfEvent } from '../../rtp/dtmf/telephone-event.js';
import type { AgentHost, LegView } from '../media/leg-agent.js';
import type { SampleAgent } from '../media/sample-leg-agent.js';
import { meanOpinionScore } from '../../rtp/quality.js';
import { isSupportedVoice } from '../model/espeak-voices.js';
import { textOf, type CallFigures, type SpokenText } from './languages.js';
import { INITIAL_SESSION, step, type Phrase, type SessionEffect, type SessionEvent, type SessionState } from './session.js';
import { SpeechError, type Speech } from './speech.js';

/** 200 ms of silence between goodbye and hanging up: what is still in jitter buffers on the way is heard too. */
const FAREWELL_FRAMES = 10;
/** 0 to 9: what `*` and `#` lead to is no fixed phrase, and the goodbye. */
const PREPARED_DIGITS = 10;
/** After half a second: until then the greeting comes first, and a call that ends at once costs nothing. */
const PREPARED_AT_FRAME = 25;

interface Playing {
  readonly text: string;
  /** Empty until the speech is ready. */
  samples: Int16Array;
  isReady: boolean;
  position: number;
  silentFrames: number;
}

/** The built-in test line on one leg: carries out the session's effects. Without speech it echoes only. */
export class TestLine implements SampleAgent {
  /** `undefined`: each language's own. */
  readonly #voice: string | undefined;
  readonly #echoDelay = new EchoDelay();
  readonly #bufferedMs = (): number | undefined => this.host.view()?.bufferedMs;
  #startedMs: number | undefined;
  #state: SessionState = INITIAL_SESSION;
  #playing: Playing | undefined;
  #isClosed = false;
  #hasWarned = false;
  #frames = 0;

  constructor(
    private readonly settings: TestLineSettings,
    private readonly speech: Speech,
    private readonly host: AgentHost,
    private readonly log: Log,
    private readonly clock: Pick<Clock, 'nowMs'>,
  ) {
    const { voice } = settings;
    if (voice !== null && !isSupportedVoice(voice)) log.warn({ voice, hint: "the language's own voice speaks" }, 'agent.voice.unknown');
    this.#voice = voice !== null && isSupportedVoice(voice) ? voice : undefined;
  }

  /** The greeting is synthesized from here on; the call does not wait for it. */
  connect(): Promise<void> {
    this.#prepare({ kind: 'greeting' });
    return Promise.resolve();
  }

  start(): void {
    this.#startedMs = this.clock.nowMs();
    this.#step({ type: 'started' });
  }

  digit(event: number): void {
    this.#transcribe('caller', digitOfEvent(event) ?? '');
    this.#step({ type: 'digit', event });
  }

  frame(heard: Int16Array, spoken: Int16Array): void {
    this.#frames += 1;
    if (this.#frames === PREPARED_AT_FRAME) this.#prepareDigits();
    if (this.#state.phase === 'echo') {
      spoken.set(heard);
      this.#echoDelay.frame(this.#bufferedMs);
      return;
    }
    spoken.fill(0);
    const playing = this.#playing;
    if (playing?.isReady !== true) return;
    if (playing.position === 0 && playing.samples.length > 0) this.#transcribe('agent', playing.text);
    const chunk = playing.samples.subarray(playing.position, playing.position + spoken.length);
    spoken.set(chunk);
    playing.position += chunk.length;
    if (playing.position < playing.samples.length) return;
    if (playing.silentFrames > 0) {
      playing.silentFrames -= 1;
      return;
    }
    this.#playing = undefined;
    this.#step({ type: 'phrase-finished' });
  }

  /** It asks for nothing. */
  notify(): void {
    return;
  }

  close(): void {
    this.#isClosed = true;
    this.#playing = undefined;
  }

  #step(event: SessionEvent): void {
    if (this.#isClosed) return;
    const { state, effects } = step(this.#state, event);
    this.#state = state;
    for (const effect of effects) this.#perform(effect);
  }

  #perform(effect: SessionEffect): void {
    switch (effect.type) {
      case 'say':
        this.#say(effect.phrase);
        break;
      case 'stop-speaking':
        this.#playing = undefined;
        break;
      case 'hang-up':
        this.host.emit({ type: 'agent-hangup' });
        break;
    }
  }

  #say(phrase: Phrase): void {
    const spoken = this.#spoken(phrase);
    const playing: Playing = {
      text: spoken.text,
      samples: new Int16Array(0),
      isReady: false,
      position: 0,
      silentFrames: phrase.kind === 'goodbye' ? FAREWELL_FRAMES : 0,
    };
    this.#playing = playing;
    this.#synthesize(spoken).then(
      (samples) => {
        playing.samples = samples;
        playing.isReady = true;
      },
      (error: unknown) => {
        this.#warn(error);
        // Nothing to say: the frame after this one goes on.
        playing.isReady = true;
      },
    );
  }

  /** A key that was pressed is answered at once. */
  #prepareDigits(): void {
    for (let event = 0; event < PREPARED_DIGITS; event += 1) this.#prepare({ kind: 'digit', event });
    this.#prepare({ kind: 'goodbye' });
  }

  #prepare(phrase: Phrase): void {
    this.#synthesize(this.#spoken(phrase)).catch((error: unknown) => this.#warn(error));
  }

  #spoken(phrase: Phrase): SpokenText {
    const { firstSentence, language } = this.settings;
    const view = phrase.kind === 'figures' ? this.host.view() : null;
    const spoken = textOf(phrase, firstSentence, language, view === null ? null : this.#figures(view));
    // Words of another language than the agent's want a voice of that one.
    return this.#voice === undefined || spoken.language.toUpperCase() !== language.toUpperCase()
      ? spoken
      : { ...spoken, voice: this.#voice };
  }

  #synthesize(spoken: SpokenText): Promise<Int16Array> {
    const { pronunciationGuide, accountSid } = this.settings;
    return this.speech.synthesize(spoken, pronunciationGuide, accountSid);
  }

  #figures({ figures, codec, carrierSuite, bufferedMs }: LegView): CallFigures {
    const expected = figures.packetsReceived + figures.packetsLost;
    const lossRate = expected === 0 ? 0 : figures.packetsLost / expected;
    const echoMs = this.#echoDelay.delayMs ?? bufferedMs;
    const mos = meanOpinionScore({ lossRate, delayMs: (figures.roundTripMs ?? 0) / 2 + echoMs });
    return { lossPercent: 100 * lossRate, jitterMs: figures.jitterMs, mos, codec, cipher: carrierSuite, echoMs };
  }

  #transcribe(speaker: 'agent' | 'caller', text: string): void {
    if (this.#isClosed || text === '') return;
    const atMs = this.#startedMs === undefined ? 0 : Math.round(this.clock.nowMs() - this.#startedMs);
    this.host.emit({ type: 'agent-request', request: { type: 'transcript', entries: [{ speaker, text, at_ms: atMs }] } });
  }

  #warn(error: unknown): void {
    if (this.#hasWarned || this.#isClosed) return;
    this.#hasWarned = true;
    this.log.warn({ code: error instanceof SpeechError ? error.code : 'failed', hint: 'the test line only echoes' }, 'agent.speech.failed');
  }
}

/** Frames between two looks at the buffer: ten a second are plenty. */
const FRAMES_PER_LOOK = 5;
/** The last 3.2 s count. */
const KEPT_LOOKS = 32;

/**
 * How long the caller's audio takes from its arrival until it goes out again: what waits in the jitter buffer when a frame was taken
 * out of it, and half a frame, since packets arrive at any moment between two frames. The median of the last looks: a key that is
 * pressed empties the buffer, for its telephone-events come in place of audio.
 */
class EchoDelay {
  readonly #looks: number[] = [];
  #frames = 0;

  /** To be called once a frame of echo. */
  frame(bufferedMs: () => number | undefined): void {
    this.#frames += 1;
    if (this.#frames % FRAMES_PER_LOOK !== 0) return;
    const looked = bufferedMs();
    if (looked === undefined) return;
    this.#looks.push(looked);
    if (this.#looks.length > KEPT_LOOKS) this.#looks.shift();
  }

  /** `null`: there was no echo yet. */
  get delayMs(): number | null {
    const sorted = [...this.#looks].sort((a, b) => a - b);
    const median = sorted[Math.floor(sorted.length / 2)];
    return median === undefined ? null : median + FRAME_MS / 2;
  }
}

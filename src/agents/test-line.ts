import type { TestLineSettings } from '../contracts/agent.js';
import type { Log } from '../lib/log.js';
import type { AgentHost } from '../media/leg-agent.js';
import type { SampleAgent } from '../media/sample-leg-agent.js';
import { textOf } from './phrases.js';
import { INITIAL_SESSION, step, type Phrase, type SessionEffect, type SessionEvent, type SessionState } from './session.js';
import { SpeechError, type Speech } from './speech.js';

/** 200 ms of silence between goodbye and hanging up: what is still in jitter buffers on the way is heard too. */
const FAREWELL_FRAMES = 10;
const PREPARED_DIGITS = 12;

interface Playing {
  /** Empty until the speech is ready. */
  samples: Int16Array;
  isReady: boolean;
  position: number;
  silentFrames: number;
}

/** The built-in test line on one leg: carries out the session's effects. Without speech it echoes only. */
export class TestLine implements SampleAgent {
  readonly #settings: TestLineSettings;
  readonly #speech: Speech;
  readonly #host: AgentHost;
  readonly #log: Log;
  #state: SessionState = INITIAL_SESSION;
  #playing: Playing | undefined;
  #isClosed = false;
  #hasWarned = false;

  constructor(settings: TestLineSettings, speech: Speech, host: AgentHost, log: Log) {
    this.#settings = settings;
    this.#speech = speech;
    this.#host = host;
    this.#log = log;
  }

  /** The greeting is synthesized from here on; the call does not wait for it. */
  connect(): Promise<void> {
    this.#prepare({ kind: 'greeting' });
    return Promise.resolve();
  }

  start(): void {
    this.#step({ type: 'started' });
    for (let event = 0; event < PREPARED_DIGITS; event += 1) this.#prepare({ kind: 'digit', event });
    this.#prepare({ kind: 'goodbye' });
  }

  digit(event: number): void {
    this.#step({ type: 'digit', event });
  }

  frame(heard: Int16Array, spoken: Int16Array): void {
    if (this.#state.phase === 'echo') {
      spoken.set(heard);
      return;
    }
    spoken.fill(0);
    const playing = this.#playing;
    if (playing?.isReady !== true) return;
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
  tell(): void {
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
        this.#host.emit({ type: 'agent-hangup' });
        break;
    }
  }

  #say(phrase: Phrase): void {
    const playing: Playing = {
      samples: new Int16Array(0),
      isReady: false,
      position: 0,
      silentFrames: phrase.kind === 'goodbye' ? FAREWELL_FRAMES : 0,
    };
    this.#playing = playing;
    this.#synthesize(phrase).then(
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

  #prepare(phrase: Phrase): void {
    this.#synthesize(phrase).catch((error: unknown) => this.#warn(error));
  }

  #synthesize(phrase: Phrase): Promise<Int16Array> {
    const { firstSentence, language, pronunciationGuide } = this.#settings;
    return this.#speech.synthesize(textOf(phrase, firstSentence, language), pronunciationGuide);
  }

  #warn(error: unknown): void {
    if (this.#hasWarned || this.#isClosed) return;
    this.#hasWarned = true;
    this.#log.warn({ code: error instanceof SpeechError ? error.code : 'failed' }, 'no speech: the test line echoes only');
  }
}

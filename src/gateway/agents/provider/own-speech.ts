import type { ProviderSettings } from '../../model/provider-settings.js';
import { errorText } from '../../../lib/result.js';
import type { SpeechRequest, TextToSpeech } from '../text-to-speech.js';
import { isoLanguageOf } from './instructions.js';

interface OwnSpeechSink {
  /** The bytes may be changed. */
  play(format: SpeechRequest['format'], bytes: Uint8Array): void;
  /** No more audio of the first sentence follows. */
  end(): void;
  /** There is no audio of the first sentence, or no more. @param isHeard some of it was played */
  failed(message: string, isHeard: boolean): void;
  /** There is no audio of what a tool has said. */
  unspoken(message: string): void;
}

/** What a tool has said while it runs, ready to be played: 16-bit linear at 8 kHz. */
interface ToolSpeech {
  readonly callId: string;
  readonly text: string;
  readonly bytes: Uint8Array;
}

/** What the provider itself cannot say word for word, spoken by another service. */
export class OwnSpeech {
  #abort = new AbortController();
  #isHeard = false;
  #hasGreeting = false;
  #ready: ToolSpeech[] = [];

  constructor(
    private readonly settings: Pick<ProviderSettings, 'speech' | 'language'>,
    private readonly textToSpeech: Pick<TextToSpeech, 'stream' | 'samples'>,
    private readonly sink: OwnSpeechSink,
  ) {}

  /** The first sentence is spoken here, or was. */
  get hasGreeting(): boolean {
    return this.#hasGreeting;
  }

  /** The first sentence, played while it comes. False: there is no service. */
  begin(text: string): boolean {
    const { speech, language } = this.settings;
    if (speech === null) return false;
    const { signal } = this.#abort;
    const unlessStopped = unless(signal);
    this.#hasGreeting = true;
    const onAudio = (format: SpeechRequest['format'], bytes: Uint8Array): void =>
      unlessStopped(() => {
        this.#isHeard = true;
        this.sink.play(format, bytes);
      });
    this.textToSpeech.stream(speech.services, { text, language: isoLanguageOf(language), voice: speech.voice }, signal, onAudio).then(
      () => unlessStopped(() => this.sink.end()),
      (error: unknown) =>
        unlessStopped(() => {
          this.#hasGreeting = this.#isHeard;
          this.sink.failed(errorText(error), this.#isHeard);
        }),
    );
    return true;
  }

  /** What is to be said while a tool runs. Whole, so that no audio of the provider comes between. */
  prepare(callId: string, text: string): void {
    const { speech, language } = this.settings;
    if (speech === null) return;
    const { signal } = this.#abort;
    const unlessStopped = unless(signal);
    this.textToSpeech.samples(speech.services, { text, language: isoLanguageOf(language), voice: speech.voice }, signal).then(
      ({ buffer, byteOffset, byteLength }) =>
        unlessStopped(() => this.#ready.push({ callId, text, bytes: new Uint8Array(buffer, byteOffset, byteLength) })),
      (error: unknown) => unlessStopped(() => this.sink.unspoken(errorText(error))),
    );
  }

  /** The next one of `prepare` that is to be said; those whose tool has its result are dropped. */
  take(isRunning: (callId: string) => boolean): ToolSpeech | undefined {
    if (this.#ready.length === 0) return undefined;
    this.#ready = this.#ready.filter(({ callId }) => isRunning(callId));
    return this.#ready.shift();
  }

  /** Nothing more of what was begun is played. */
  stop(): void {
    this.#abort.abort();
    this.#abort = new AbortController();
    this.#ready = [];
  }
}

/** Runs work unless the signal is aborted by then. */
function unless(signal: AbortSignal): (work: () => void) => void {
  return (work) => (signal.aborted ? undefined : work());
}

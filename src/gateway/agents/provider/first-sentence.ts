import type { ProviderSettings } from '../../model/provider-settings.js';
import { errorText } from '../../../lib/result.js';
import type { SpeechRequest, TextToSpeech } from '../text-to-speech.js';
import { isoLanguageOf } from './instructions.js';

interface FirstSentenceSink {
  /** The bytes may be changed. */
  play(format: SpeechRequest['format'], bytes: Uint8Array): void;
  /** No more audio of it follows. */
  end(): void;
  /** There is no audio of it, or no more. @param isHeard some of it was played */
  failed(message: string, isHeard: boolean): void;
}

/** The agent's first sentence word for word, spoken by another service than the provider. */
export class FirstSentence {
  readonly #abort = new AbortController();
  #isHeard = false;

  constructor(
    private readonly textToSpeech: Pick<TextToSpeech, 'stream'>,
    private readonly sink: FirstSentenceSink,
  ) {}

  begin(text: string, { services, voice }: NonNullable<ProviderSettings['speech']>, language: string): void {
    const { signal } = this.#abort;
    const unlessStopped = (work: () => void): void => (signal.aborted ? undefined : work());
    const onAudio = (format: SpeechRequest['format'], bytes: Uint8Array): void =>
      unlessStopped(() => {
        this.#isHeard = true;
        this.sink.play(format, bytes);
      });
    this.textToSpeech.stream(services, { text, language: isoLanguageOf(language), voice }, signal, onAudio).then(
      () => unlessStopped(() => this.sink.end()),
      (error: unknown) => unlessStopped(() => this.sink.failed(errorText(error), this.#isHeard)),
    );
  }

  /** Nothing more of it is played. */
  stop(): void {
    this.#abort.abort();
  }
}

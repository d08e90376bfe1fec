import type { CallerInput } from '../../model/conversation.js';
import type { WireFormat } from '../stream/wire-format.js';

/** Something that is to be heard. */
export interface SpeechItem {
  /** Unique in the call. */
  readonly id: string;
  /** Texts until one that is the last belong together. */
  readonly cycle: number;
  readonly content:
    | { readonly kind: 'text'; readonly text: string; readonly language: string }
    /** An audio file; `loop` 0: until it is interrupted. */
    | { readonly kind: 'file'; readonly url: string; readonly loop: number };
  /** What of the caller interrupts it. */
  readonly interruptible: CallerInput;
  /** The next cycle interrupts it. */
  readonly preemptible: boolean;
}

interface AudioPiece {
  readonly format: WireFormat;
  readonly bytes: Uint8Array;
}

interface PendingItem {
  readonly item: SpeechItem;
  readonly abort: AbortController;
  isRequested: boolean;
  isComplete: boolean;
  /** Came, and is not given on. */
  pieces: AudioPiece[];
  /** For a file: all of it, for the next round. */
  readonly kept: AudioPiece[];
  roundsLeft: number;
}

interface SpeakerSink {
  /** Makes the audio; rejects with a sentence for a person. */
  request(item: SpeechItem, signal: AbortSignal, onAudio: (piece: AudioPiece) => void): Promise<void>;
  /** The next audio of an item, in order. The bytes may be changed. */
  play(item: SpeechItem, format: WireFormat, bytes: Uint8Array): void;
  /** No more audio of it follows. */
  end(item: SpeechItem): void;
  /** Its audio could not be had, or not all. */
  failed(item: SpeechItem, message: string): void;
  /** What waits to be heard, in milliseconds. */
  readonly queuedMs: number;
}

/** The audio of this item and the next one is made at the same time: there is no gap between sentences. */
const REQUESTED_AHEAD = 2;
/** Another round of a file begins when less than this waits. */
const ROUND_MS = 500;
const MAX_ITEMS = 500;

/** Makes audio of items, and gives it on in their order. */
export class Speaker {
  #pending: PendingItem[] = [];

  constructor(private readonly sink: SpeakerSink) {}

  /** Nothing is still to be given on. */
  get isIdle(): boolean {
    return this.#pending.length === 0;
  }

  get items(): readonly SpeechItem[] {
    return this.#pending.map(({ item }) => item);
  }

  /** False: too many wait. */
  add(item: SpeechItem): boolean {
    if (this.#pending.length >= MAX_ITEMS) return false;
    const loop = item.content.kind === 'file' ? item.content.loop : 1;
    const roundsLeft = loop === 0 ? Infinity : loop;
    const abort = new AbortController();
    this.#pending.push({ item, abort, isRequested: false, isComplete: false, pieces: [], kept: [], roundsLeft });
    this.advance();
    return true;
  }

  /** Nothing that is not given on will be. */
  cut(): void {
    for (const { abort } of this.#pending.splice(0)) abort.abort();
  }

  /** Gives on what there is. Called whenever more may be wanted. */
  advance(): void {
    for (let head = this.#pending[0]; head !== undefined; head = this.#pending[0]) {
      for (const pending of this.#pending.slice(0, REQUESTED_AHEAD)) if (!pending.isRequested) this.#request(pending);
      for (const { format, bytes } of head.pieces.splice(0)) this.sink.play(head.item, format, bytes);
      if (!head.isComplete) return;
      if (head.kept.length > 0 && head.roundsLeft > 1) {
        if (this.sink.queuedMs >= ROUND_MS) return;
        head.roundsLeft -= 1;
        head.pieces = head.kept.map(({ format, bytes }) => ({ format, bytes: bytes.slice() }));
        continue;
      }
      this.#pending.shift();
      this.sink.end(head.item);
    }
  }

  #request(pending: PendingItem): void {
    pending.isRequested = true;
    const { item, abort } = pending;
    const isRepeated = item.content.kind === 'file' && item.content.loop !== 1;
    const done = (): void => {
      if (abort.signal.aborted) return;
      pending.isComplete = true;
      this.advance();
    };
    this.sink
      .request(item, abort.signal, (piece) => {
        if (abort.signal.aborted) return;
        if (isRepeated && piece.bytes.length > 0) pending.kept.push({ ...piece, bytes: piece.bytes.slice() });
        pending.pieces.push(piece);
        this.advance();
      })
      .then(done, (error: unknown) => {
        if (abort.signal.aborted) return;
        this.sink.failed(item, error instanceof Error ? error.message : 'unknown');
        done();
      });
  }
}

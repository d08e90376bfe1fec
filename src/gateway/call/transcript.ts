import type { TranscriptEntry } from '../model/agent.js';

const MAX_ENTRIES = 2_000;
const MAX_CHARACTERS = 200_000;

/** What was said in one call, and whether it is all. */
export interface TranscriptNotes {
  readonly transcript: readonly TranscriptEntry[];
  /** `failed`: nothing of what was said is there. `null`: the agent sent none. */
  readonly state: 'complete' | 'partial' | 'failed' | null;
  /** What is missing first; `null`: nothing. */
  readonly cause: string | null;
}

/** An agent that sent none. */
export const NOTHING_SAID: TranscriptNotes = { transcript: [], state: null, cause: null };

/** What a call's agents said that was said. */
export class Transcript {
  readonly #entries: TranscriptEntry[] = [];
  #characters = 0;
  #beganMs: number | null = null;
  /** How long after the call's first agent the present one began. */
  #offsetMs = 0;
  #cause: string | null = null;

  get notes(): TranscriptNotes {
    const [transcript, cause] = [this.#entries, this.#cause];
    if (cause === null) return { transcript, state: transcript.length === 0 ? null : 'complete', cause };
    return { transcript, state: transcript.length === 0 ? 'failed' : 'partial', cause };
  }

  /** The call goes on in another process: what was said meanwhile is missing. @param beganMs when its first agent began */
  restore({ transcript, cause }: TranscriptNotes, beganMs: number): void {
    this.#beganMs = beganMs;
    this.#entries.push(...transcript);
    this.#characters = transcript.reduce((sum, { text }) => sum + text.length, 0);
    this.#cause = cause ?? 'the gateway was restarted during the call';
  }

  /** An agent begins: the times of its entries count from here. */
  begin(nowMs: number): void {
    this.#beganMs ??= nowMs;
    this.#offsetMs = Math.round(nowMs - this.#beganMs);
  }

  /**
   * @param isByTime they take their places by `at_ms`; otherwise they follow what came before
   * @returns whether they changed anything: the first ones without room do
   */
  add(entries: readonly TranscriptEntry[], isByTime: boolean): boolean {
    const before = { length: this.#entries.length, cause: this.#cause };
    for (const given of entries) {
      const entry = this.#offsetMs === 0 ? given : { ...given, at_ms: given.at_ms + this.#offsetMs };
      const characters = this.#characters + entry.text.length;
      if (this.#entries.length === MAX_ENTRIES || characters > MAX_CHARACTERS) {
        this.miss('the transcript is full');
        break;
      }
      this.#characters = characters;
      const at = isByTime ? this.#entries.findLastIndex(({ at_ms: atMs }) => atMs <= entry.at_ms) + 1 : this.#entries.length;
      this.#entries.splice(at, 0, entry);
    }
    return this.#entries.length > before.length || this.#cause !== before.cause;
  }

  /** What was heard of the agent's utterance that was interrupted last; '': nothing. */
  correct(text: string): void {
    const at = this.#entries.findLastIndex(({ interrupted }) => interrupted === true);
    const entry = this.#entries[at];
    if (entry === undefined) return;
    if (text === '') this.#entries.splice(at, 1);
    else this.#entries[at] = { ...entry, text };
  }

  /** Something that was said is not there. */
  miss(cause: string): void {
    this.#cause ??= cause;
  }
}

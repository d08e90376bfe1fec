import type { TranscriptEntry } from '../../model/agent.js';
import type { Said } from '../../model/provider-settings.js';

const MAX_SAID = 200;

/** What was said so far, by the time of its audio: another session goes on from there. */
export class ConversationSoFar {
  readonly #said: (Said & { readonly atMs: number })[];

  /** @param before what another agent and the caller said */
  constructor(before: readonly Said[]) {
    this.#said = before.slice(-MAX_SAID).map((said) => ({ ...said, atMs: -Infinity }));
  }

  get said(): readonly Said[] {
    return this.#said;
  }

  add(entries: readonly TranscriptEntry[]): void {
    for (const { speaker, text, at_ms: atMs } of entries)
      this.#said.splice(this.#said.findLastIndex((one) => one.atMs <= atMs) + 1, 0, { speaker, text, atMs });
    this.#said.splice(0, this.#said.length - MAX_SAID);
  }
}

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

function notesOf(transcript: readonly TranscriptEntry[], cause: string | null): TranscriptNotes {
  if (cause === null) return { transcript, state: transcript.length === 0 ? null : 'complete', cause };
  return { transcript, state: transcript.length === 0 ? 'failed' : 'partial', cause };
}

/**
 * With what an agent says that was said, as far as there is room.
 * @param isByTime the entries take their places by `at_ms`; otherwise they follow what came before
 * @returns the same object when nothing changed: the first entries without room change it
 */
export function withEntries(notes: TranscriptNotes, entries: readonly TranscriptEntry[], isByTime: boolean): TranscriptNotes {
  const transcript = [...notes.transcript];
  let characters = transcript.reduce((sum, { text }) => sum + text.length, 0);
  for (const entry of entries) {
    characters += entry.text.length;
    if (transcript.length === MAX_ENTRIES || characters > MAX_CHARACTERS) {
      if (transcript.length === notes.transcript.length && notes.cause !== null) return notes;
      return notesOf(transcript, notes.cause ?? 'the transcript is full');
    }
    const at = isByTime ? transcript.findLastIndex(({ at_ms: atMs }) => atMs <= entry.at_ms) + 1 : transcript.length;
    transcript.splice(at, 0, entry);
  }
  return transcript.length === notes.transcript.length ? notes : notesOf(transcript, notes.cause);
}

/** With what was heard of the agent's utterance that was interrupted last; '': nothing. */
export function withCorrection(notes: TranscriptNotes, text: string): TranscriptNotes {
  const at = notes.transcript.findLastIndex(({ interrupted }) => interrupted === true);
  const transcript =
    text === ''
      ? notes.transcript.filter((_, index) => index !== at)
      : notes.transcript.map((entry, index) => (index === at ? { ...entry, text } : entry));
  return notesOf(transcript, notes.cause);
}

/** Something that was said is not there. The first cause stays. */
export function withGap(notes: TranscriptNotes, cause: string): TranscriptNotes {
  return notesOf(notes.transcript, notes.cause ?? cause);
}

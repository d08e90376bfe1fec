import type { TranscriptEntry } from '../../model/agent.js';
import type { Said } from '../../model/provider-settings.js';
import { BYTES_PER_MS } from '../../../rtp/codec/g711.js';
import type { Played } from './adapter.js';

// What of each utterance was sent to the caller: positions in the queue of speech, in bytes since its first.

interface Utterance {
  readonly id: string;
  /** Pieces of the queue. */
  readonly pieces: { readonly from: number; to: number }[];
  text: string;
  /** No more audio, and no more text, follows. */
  hasAllAudio: boolean;
  hasAllText: boolean;
  /** When its first piece was played, in milliseconds since the agent began. */
  startedMs: number | null;
  /** Its session is over: `cut`: before all of it had come. */
  readonly lost?: 'cut' | 'whole';
}

/** What was heard of an utterance. */
export interface HeardUtterance {
  readonly id: string;
  readonly entry: TranscriptEntry;
}

/** Utterances whose beginning alone was heard: to remember all would be a leak of a call of hours. */
const MAX_UTTERANCES = 200;
/** About 150 words a minute. */
const MS_PER_CHARACTER = 65;

export class Utterances {
  readonly #open = new Map<string, Utterance>();
  #hasUnwritten = false;
  #lost = 0;

  /** @param isTextFirst the whole text is known before its audio: how much is still to come can be estimated */
  constructor(private readonly isTextFirst = false) {}

  /** Something was heard of which no text came. */
  get hasUnwritten(): boolean {
    return this.#hasUnwritten;
  }

  /** What is being said, or is still in the queue. */
  get underWay(): readonly Said[] {
    return [...this.#open.values()]
      .filter(({ pieces, text }) => pieces.length > 0 && text !== '')
      .map(({ text }) => ({ speaker: 'agent', text }));
  }

  /**
   * The session is over: nothing more of its utterances follows, and the next one may use their names.
   * @param position played up to here
   * @param isComplete the agent had said all
   * @param kept is no utterance of the session
   */
  sessionEnded(position: number, isComplete: boolean, kept: string): void {
    for (const utterance of [...this.#open.values()]) {
      const [sent, received] = [bytesBefore(utterance, position), bytesOf(utterance)];
      if (utterance.id === kept || utterance.lost !== undefined) continue;
      this.#open.delete(utterance.id);
      if (received === 0) continue;
      const isWhole = isComplete || (utterance.hasAllText && (utterance.hasAllAudio || sent === received));
      const part = isWhole || utterance.hasAllAudio ? 1 : received / spokenBytes(utterance, received);
      const text = beginningOf(utterance.text, part);
      this.#lost += 1;
      const id = `lost-${String(this.#lost)}`;
      this.#open.set(id, { ...utterance, id, text, hasAllAudio: true, hasAllText: true, lost: isWhole ? 'whole' : 'cut' });
    }
  }

  /** Audio was queued. */
  queued(id: string, from: number, to: number): void {
    const utterance = this.#of(id);
    const last = utterance.pieces.at(-1);
    if (last?.to === from) last.to = to;
    else if (to > from) utterance.pieces.push({ from, to });
  }

  ended(id: string): void {
    const utterance = this.#open.get(id);
    if (utterance !== undefined) utterance.hasAllAudio = true;
  }

  said(id: string, text: string, isLast: boolean): void {
    const utterance = this.#of(id);
    utterance.text = text;
    utterance.hasAllText = isLast;
  }

  /** Played up to here: returns what was heard to its end. */
  played(position: number, nowMs: number): HeardUtterance[] {
    if (this.#open.size === 0) return [];
    const heard: HeardUtterance[] = [];
    for (const utterance of this.#open.values()) {
      const [first] = utterance.pieces;
      if (first !== undefined && first.from < position) utterance.startedMs ??= nowMs;
      if (!utterance.hasAllAudio || !utterance.hasAllText || bytesBefore(utterance, position) < bytesOf(utterance)) continue;
      this.#open.delete(utterance.id);
      if (utterance.startedMs === null) continue;
      if (utterance.text === '') this.#hasUnwritten ||= utterance.lost !== 'cut';
      else heard.push({ id: utterance.id, entry: entryOf(utterance, utterance.text, utterance.lost === 'cut') });
    }
    return heard;
  }

  /** The queue is emptied after `position`: what each utterance lost, and what of it was heard. */
  cut(position: number, nowMs: number): { readonly played: Played[]; readonly heard: HeardUtterance[] } {
    const heard = this.played(position, nowMs);
    const played: Played[] = [];
    for (const utterance of this.#open.values()) {
      const [sent, received] = [bytesBefore(utterance, position), bytesOf(utterance)];
      // All of it was heard, and only its text is on its way.
      if (utterance.hasAllAudio && sent === received) continue;
      this.#open.delete(utterance.id);
      if (received === 0) continue;
      if (utterance.lost === undefined) played.push({ utterance: utterance.id, playedMs: Math.floor(sent / BYTES_PER_MS) });
      if (sent > 0 && utterance.text === '') this.#hasUnwritten ||= utterance.lost !== 'cut';
      const text = beginningOf(utterance.text, sent / this.#wholeBytes(utterance, received));
      const isWhole = sent === received && utterance.hasAllText && utterance.lost !== 'cut';
      if (text !== '') heard.push({ id: utterance.id, entry: entryOf(utterance, text, !isWhole) });
    }
    return { played, heard };
  }

  /** The length of all its audio, while more is on its way. */
  #wholeBytes(utterance: Utterance, received: number): number {
    return this.isTextFirst && !utterance.hasAllAudio ? spokenBytes(utterance, received) : received;
  }

  #of(id: string): Utterance {
    let utterance = this.#open.get(id);
    if (utterance === undefined) {
      utterance = { id, pieces: [], text: '', hasAllAudio: false, hasAllText: false, startedMs: null };
      this.#open.set(id, utterance);
      const [oldest] = this.#open.keys();
      if (this.#open.size > MAX_UTTERANCES && oldest !== undefined) this.#open.delete(oldest);
    }
    return utterance;
  }
}

function entryOf({ startedMs }: Utterance, text: string, isCut: boolean): TranscriptEntry {
  return { speaker: 'agent', text, at_ms: Math.round(startedMs ?? 0), ...(isCut ? { interrupted: true } : {}) };
}

/** The length of a text whose audio is incomplete: at least what people need to say it. */
function spokenBytes({ text }: Utterance, received: number): number {
  return Math.max(received, text.length * MS_PER_CHARACTER * BYTES_PER_MS);
}

function bytesOf({ pieces }: Utterance): number {
  return pieces.reduce((sum, { from, to }) => sum + to - from, 0);
}

function bytesBefore({ pieces }: Utterance, position: number): number {
  return pieces.reduce((sum, { from, to }) => sum + Math.max(0, Math.min(to, position) - from), 0);
}

/** The words of the first part of a text: an estimate, for no provider tells when each word is spoken. */
function beginningOf(text: string, part: number): string {
  if (part >= 1) return text;
  const length = Math.floor(text.length * part);
  const end = text.lastIndexOf(' ', length);
  return end <= 0 ? '' : text.slice(0, end).trimEnd();
}

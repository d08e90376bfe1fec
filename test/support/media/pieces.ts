import { crossCorrelation } from '../../../src/loadtest/test-caller/correlation.js';
import { levelDbfs } from '../../../src/rtp/codec/level.js';

/** 160 ms: long enough that another stretch of speech does not resemble it. */
const PIECE = 1_280;
const QUIETEST_DBFS = -45;
const SAME = 0.9;

/** The pieces of a phrase that are loud enough to be told from silence. */
const loudPieces = (phrase: Int16Array): Int16Array[] =>
  Array.from({ length: Math.floor(phrase.length / PIECE) }, (_none, at) => phrase.subarray(at * PIECE, (at + 1) * PIECE)).filter(
    (piece) => levelDbfs(piece) > QUIETEST_DBFS,
  );

/**
 * Looks for a phrase piece by piece. A sender that stood still for a moment leaves a gap in it, and what it says before and after is as it was: so a phrase
 * is heard when half of its pieces are, in their order.
 * @returns the index in `heard` behind the last piece, or -1
 */
export function endOfPhrase(heard: Int16Array, phrase: Int16Array): number {
  const pieces = loudPieces(phrase);
  let found = 0;
  let end = 0;
  for (const piece of pieces) {
    const at = crossCorrelation(heard.subarray(end), piece).findIndex((score) => score > SAME);
    if (at < 0) continue;
    found += 1;
    end += at + PIECE;
  }
  return found * 2 >= pieces.length && found > 0 ? end : -1;
}

/** Whether some 100 ms of what was said, none of them silent, are heard. */
export function hearsSomeOf(heard: Int16Array, said: Int16Array): boolean {
  const PART = 800;
  for (let at = 0; at + PART <= said.length; at += PART) {
    if (crossCorrelation(heard, said.subarray(at, at + PART)).some((score) => score > SAME)) return true;
  }
  return false;
}

/** 40 ms of G.711. */
const CODED_PIECE = 320;

/**
 * Whether coded audio was heard as it was said, to the byte. As in `endOfPhrase`, a sender that stood still leaves a gap: half of the pieces
 * in their order are enough. Pieces of one value alone, as silence is, count for nothing.
 */
export function hearsCoded(heard: Buffer, said: Buffer): boolean {
  if (heard.includes(said)) return true;
  const pieces = Array.from({ length: Math.floor(said.length / CODED_PIECE) }, (_none, at) =>
    said.subarray(at * CODED_PIECE, (at + 1) * CODED_PIECE),
  ).filter((piece) => piece.some((byte) => byte !== piece[0]));
  let found = 0;
  let end = 0;
  for (const piece of pieces) {
    const at = heard.indexOf(piece, end);
    if (at < 0) continue;
    found += 1;
    end = at + CODED_PIECE;
  }
  return found > 0 && found * 2 >= pieces.length;
}

import { err, ok, type Result } from './result.js';

/** What is nested deeper is refused: JSON.stringify() and whatever walks through a value recurse, and end with a RangeError at some depth. */
export const MAX_NESTING = 64;

export type JsonFault = 'not-json' | 'too-deep';

/** Parses a text from outside. */
export function parseJson(text: string): Result<unknown, JsonFault> {
  if (isNestedDeeper(text, MAX_NESTING)) return err('too-deep');
  try {
    return ok(JSON.parse(text) as unknown);
  } catch {
    return err('not-json');
  }
}

/** Whether arrays and objects in a text of JSON are nested deeper than this. */
export function isNestedDeeper(text: string, levels: number): boolean {
  let depth = 0;
  let isText = false;
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (isText) {
      if (code === BACKSLASH) at += 1;
      else if (code === QUOTE) isText = false;
    } else if (code === QUOTE) isText = true;
    else if (code === ARRAY || code === OBJECT) {
      depth += 1;
      if (depth > levels) return true;
    } else if (code === ARRAY_END || code === OBJECT_END) depth -= 1;
  }
  return false;
}

const [QUOTE, BACKSLASH, ARRAY, OBJECT, ARRAY_END, OBJECT_END] = [0x22, 0x5c, 0x5b, 0x7b, 0x5d, 0x7d];

import type { PronunciationEntry } from '../model/agent-record.js';

/** As it may come from outside: `case_sensitive` is false and `spaced` is true unless said otherwise. */
export type PronunciationRule = Pick<PronunciationEntry, 'word' | 'pronunciation'> &
  Partial<Pick<PronunciationEntry, 'case_sensitive' | 'spaced'>>;

const MAX_RULES = 500;
const REGEXP_SYNTAX = /[\\^$.*+?()[\]{}|/]/g;

/**
 * The text with every word of the guide replaced by its pronunciation. `spaced`: only where the word stands alone, with no letter or
 * digit of any script beside it. The longest word wins where several fit; a replacement is not looked at again.
 */
export function applyPronunciation(text: string, guide: readonly PronunciationRule[]): string {
  const rules = guide
    .filter((rule) => rule.word !== '')
    .slice(0, MAX_RULES)
    .sort((a, b) => b.word.length - a.word.length)
    .map((rule) => ({ pattern: patternOf(rule), pronunciation: rule.pronunciation }));
  if (rules.length === 0) return text;
  let result = '';
  for (let index = 0; index < text.length;) {
    const match = matchAt(text, index, rules);
    result += match === undefined ? (text[index] ?? '') : match.pronunciation;
    index += match === undefined ? 1 : match.length;
  }
  return result;
}

function matchAt(
  text: string,
  index: number,
  rules: readonly { readonly pattern: RegExp; readonly pronunciation: string }[],
): { readonly pronunciation: string; readonly length: number } | undefined {
  for (const { pattern, pronunciation } of rules) {
    pattern.lastIndex = index;
    const found = pattern.exec(text);
    if (found !== null) return { pronunciation, length: found[0].length };
  }
  return undefined;
}

function patternOf(rule: PronunciationRule): RegExp {
  const word = rule.word.replace(REGEXP_SYNTAX, '\\$&');
  const source = rule.spaced === false ? word : `(?<![\\p{L}\\p{M}\\p{N}])${word}(?![\\p{L}\\p{M}\\p{N}])`;
  return new RegExp(source, rule.case_sensitive === true ? 'uy' : 'iuy');
}

import { describe, expect, it } from 'vitest';
import { applyPronunciation, type PronunciationRule } from '../../../../src/gateway/agents/speech.js';

const rule = (word: string, pronunciation: string, rest: Partial<PronunciationRule> = {}): PronunciationRule => ({
  word,
  pronunciation,
  ...rest,
});

describe('a pronunciation guide', () => {
  it('replaces whole words in any case unless told otherwise', () => {
    const guide = [rule('SIP', 'sip')];
    expect(applyPronunciation('SIP, Sip and sip; gossip, SIPs, SIP2.', guide)).toBe('sip, sip and sip; gossip, SIPs, SIP2.');
  });

  it('replaces only the exact case with case_sensitive, and parts of words with spaced: false', () => {
    expect(applyPronunciation('US us', [rule('US', 'U.S.', { case_sensitive: true })])).toBe('U.S. us');
    expect(applyPronunciation('gossip', [rule('sip', 'ZIP', { spaced: false })])).toBe('gosZIP');
  });

  it('has the defaults case_sensitive: false and spaced: true, each with an effect of its own', () => {
    const text = 'SQL sql MySQL mysql';
    const spell = (rest: Partial<PronunciationRule>) => applyPronunciation(text, [rule('SQL', 'x', rest)]);
    expect(spell({})).toBe('x x MySQL mysql');
    expect(spell({})).toBe(spell({ case_sensitive: false, spaced: true }));
    expect(spell({ case_sensitive: true })).toBe('x sql MySQL mysql');
    expect(spell({ spaced: false })).toBe('x x Myx myx');
    expect(spell({ case_sensitive: true, spaced: false })).toBe('x sql Myx mysql');
  });

  it('keeps a letter with a combining accent apart from the letter alone', () => {
    expect(applyPronunciation('cafe\u0301 cafe', [rule('cafe', 'x')])).toBe('cafe\u0301 x');
  });

  it('treats letters of any script as parts of words', () => {
    expect(applyPronunciation('Mülleré Müller', [rule('Müller', 'Miller')])).toBe('Mülleré Miller');
    expect(applyPronunciation('ÄRGER ärger', [rule('ärger', 'x')])).toBe('x x');
    expect(applyPronunciation('ΟΔΟΣ οδος İ οδοσ', [rule('Οδος', 'x')])).toBe('x x İ x');
  });

  it('replaces the longest word, and no replacement again', () => {
    const guide = [rule('New', 'Old'), rule('New York', 'N Y'), rule('N', 'en')];
    expect(applyPronunciation('New York New N', guide)).toBe('N Y Old en');
    expect(applyPronunciation('a b', [rule('a', 'b'), rule('b', 'a')])).toBe('b a');
  });

  it('reads words and pronunciations literally, whatever their characters', () => {
    expect(applyPronunciation('C++ costs 5$ (or so)', [rule('C++', '$& $1'), rule('5$', 'five'), rule('(or', '[')])).toBe(
      '$& $1 costs five [ so)',
    );
    expect(applyPronunciation('a-b [x] a.b', [rule('a.b', '1'), rule('a-b', '2'), rule('[x]', '3')])).toBe('2 3 1');
  });

  it('treats a character of two code units as any letter beside a word', () => {
    expect(applyPronunciation('𝐀is is𝐀 😀is is', [rule('is', 'x')])).toBe('𝐀is is𝐀 😀x x');
  });

  it('with 500 words that a long text nearly has at each place takes no time that grows with both', () => {
    const guide = Array.from({ length: 500 }, (_none, at) => rule(`${'a'.repeat(60)}${String(at)}`, 'x', { spaced: false }));
    // Quadratic work would not end within the test's limit.
    const text = 'a'.repeat(1_000_000);
    expect(applyPronunciation(text, guide)).toBe(text);
  });

  it('changes nothing for an empty word or an empty guide, and keeps characters outside of the basic plane', () => {
    expect(applyPronunciation('as 😀 is', [rule('', 'x')])).toBe('as 😀 is');
    expect(applyPronunciation('as 😀 is', [rule('is', 'was')])).toBe('as 😀 was');
    expect(applyPronunciation('as is', [])).toBe('as is');
  });
});

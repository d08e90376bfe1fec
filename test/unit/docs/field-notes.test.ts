import { existsSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { testTitles } from '../../../scripts/docs/conformance.js';
import { ROOT } from '../../../scripts/docs/generate.js';

const rows = readFileSync(`${ROOT}docs/field-notes.md`, 'utf8')
  .split('\n')
  .filter((line) => line.startsWith('| ') && !/^\| (?:---|problem)/.test(line))
  .map((line) => line.split(' | '));

/** A whole title, or with "…" the beginning of exactly one. */
function isTitle(titles: readonly string[], named: string): boolean {
  if (!named.endsWith('…')) return titles.includes(named);
  return titles.filter((title) => title.startsWith(named.slice(0, -1))).length === 1;
}

describe('docs/field-notes.md', () => {
  it('has three cells in each row, and a test or "not yet" in the last', () => {
    expect(rows.length).toBeGreaterThan(50);
    for (const row of rows) {
      expect(row, row[0]).toHaveLength(3);
      expect(row[2], row[0]).toMatch(/^(?:not yet \||\[\S+\.test\.ts\]\(\.\.\/test\/\S+\): `)/);
    }
  });

  it('names tests that are there, by file and title', () => {
    const named = rows.flatMap((row) => [...(row[2] ?? '').matchAll(/\[(\S+)\]\(\.\.\/test\/(\S+)\): `([^`]+)`/g)]);
    expect(named.length).toBeGreaterThan(rows.length);
    const missing = named.filter(([, shown = '', file = '', title = '']) => {
      return shown !== file || !existsSync(`${ROOT}test/${file}`) || !isTitle(testTitles(file), title);
    });
    expect(missing.map(([reference]) => reference)).toEqual([]);
  });
});

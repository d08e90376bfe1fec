import { existsSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { testTitles } from '../../../scripts/docs/conformance.js';
import { ROOT } from '../../../scripts/docs/generate.js';

const rows = readFileSync(`${ROOT}docs/security.md`, 'utf8')
  .split('## Tried')[1]!
  .split('## Hardening')[0]!
  .split('\n')
  .filter((line) => line.startsWith('| ') && !/^\| (?:---|attack )/.test(line))
  .map((line) => line.split(' | '));

describe('what was tried, in docs/security.md', () => {
  it('has three cells in each row, and a test in the last', () => {
    expect(rows.length).toBeGreaterThan(20);
    for (const row of rows) {
      expect(row, row[0]).toHaveLength(3);
      expect(row[2], row[0]).toMatch(/^(?:\[\S+\.test\.ts\]\(\.\.\/test\/\S+\): `)/);
    }
  });

  it('names tests that are there, by file and title', () => {
    const named = rows.flatMap((row) => [...(row[2] ?? '').matchAll(/\[(\S+)\]\(\.\.\/test\/(\S+)\): `([^`]+)`/g)]);
    expect(named.length).toBeGreaterThanOrEqual(rows.length);
    const missing = named.filter(([, shown = '', file = '', title = '']) => {
      return shown !== file || !existsSync(`${ROOT}test/${file}`) || !testTitles(file).includes(title);
    });
    expect(missing.map(([reference]) => reference)).toEqual([]);
  });
});

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { isNestedDeeper, MAX_NESTING, parseJson } from '../../../src/lib/bounded-json.js';

const nested = (levels: number): string => '['.repeat(levels) + ']'.repeat(levels);

describe('a text of JSON from outside', () => {
  it('is parsed as by JSON.parse()', () => {
    fc.assert(
      fc.property(fc.json({ maxDepth: 10 }), (text) => {
        expect(parseJson(text)).toEqual({ ok: true, value: JSON.parse(text) as unknown });
      }),
    );
  });

  it('is refused when it is not JSON, or nested too deep', () => {
    expect(parseJson('{')).toEqual({ ok: false, error: 'not-json' });
    expect(parseJson(nested(MAX_NESTING))).toMatchObject({ ok: true });
    expect(parseJson(nested(MAX_NESTING + 1))).toEqual({ ok: false, error: 'too-deep' });
    expect(parseJson(nested(500_000))).toEqual({ ok: false, error: 'too-deep' });
    expect(parseJson(`{"a":${'{"a":'.repeat(MAX_NESTING)}1${'}'.repeat(MAX_NESTING)}}`)).toEqual({ ok: false, error: 'too-deep' });
  });

  it('may have brackets in its strings, and many side by side', () => {
    const text = JSON.stringify({ a: '['.repeat(1_000), 'b"\\[{': '\\"[['.repeat(100), c: Array(1_000).fill([]) });
    expect(isNestedDeeper(text, 2)).toBe(true);
    expect(isNestedDeeper(text, 3)).toBe(false);
    expect(parseJson(text)).toMatchObject({ ok: true });
  });
});

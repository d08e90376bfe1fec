import { describe, expect, it } from 'vitest';
import { MAX_RESULT_CHARACTERS, pickResults } from '../../../../src/gateway/agents/pick-results.js';

const pick = (paths: Readonly<Record<string, string>>, text: string) => pickResults({ paths, text });

describe('the result paths of a tool', () => {
  it('select one value as it is, several as a list, and none as null', () => {
    const text = JSON.stringify({ id: 7, items: [{ n: 1 }, { n: { a: 'x' } }] });
    expect(pick({ id: '$.id', all: '$..n', 'a "name"': '$.none' }, text)).toEqual({
      ok: true,
      value: JSON.stringify({ id: 7, all: [1, { a: 'x' }], 'a "name"': null }),
    });
  });

  it('reject an answer that is not JSON, or nested too deep, with the cause', () => {
    expect(pick({ a: '$.a' }, '<html>')).toEqual({ ok: false, error: 'it is not JSON' });
    expect(pick({ a: '$.a' }, '['.repeat(300_000) + ']'.repeat(300_000))).toEqual({
      ok: false,
      error: 'its arrays and objects are nested too deep',
    });
  });

  it('stop as soon as they have selected more than a result may have', () => {
    const deep = `${'['.repeat(50)}"${'x'.repeat(100_000)}"${']'.repeat(50)}`;
    const error = `its result paths select more than ${String(MAX_RESULT_CHARACTERS)} characters`;
    expect(pick({ a: '$..*' }, deep)).toEqual({ ok: false, error });
    const names = Object.fromEntries(Array.from({ length: 50 }, (_none, at) => [`n${String(at)}`, '$[*]']));
    expect(pick(names, JSON.stringify(Array(2_000).fill(1)))).toMatchObject({ ok: true });
    expect(pick(names, JSON.stringify(Array(10_000).fill('x')))).toEqual({ ok: false, error });
  });
});

import { describe, expect, it } from 'vitest';
import { checkAnalysis } from '../../../../src/gateway/model/analysis.js';

const isKept = (kind: string, value: unknown): boolean => 'x' in checkAnalysis({ x: kind }, { x: value }).kept;

describe('an analysis', () => {
  it.each([
    ['string', ['', 'a'], [1, true, {}, []]],
    ['boolean', [true, false], ['true', 0]],
    ['number', [1, -0.5], ['1', true]],
    ['integer', [1, -7], [0.5, '1']],
    ['email', ['ann@a.example', `${'a'.repeat(252)}@b`], ['ann', 'a b@c', 'a@b c', 'a@b@c', `${'a'.repeat(253)}@b`, ['ann@a.example'], 7]],
    [
      'url',
      ['https://a.example/x', 'HTTP://a'],
      ['a.example', 'x https://a', 'javascript:"http://a"', 'http://', ['https://a.example'], 7],
    ],
    ['YYYY-MM-DD', ['2026-02-28', '2024-02-29'], ['2026-02-29', '2026-13-01', '26-01-01', '2026-01-01T00', 20260101]],
    ['YYYY-MM-DD HH:mm:ss', ['2026-01-31 23:59:59'], ['2026-01-31 24:00:00', '2026-01-31', '2026-01-31T23:59:59']],
    ['HH:mm', ['00:00', '23:59'], ['7:30', '12:60', 'noon', 'x2:30', '1x:30', '12:3', ' 12:30']],
    ['MM/DD', ['02/29', '12/31'], ['02/30', '13/01', '00/10', '01/00']],
    ['DD', ['01', '31'], ['00', '32', '1']],
    ['MM', ['01', '12'], ['00', '13']],
    ['about HH:mm', ['noon', 12], [{}]],
    ['HH:mm or so', ['noon', 12], [{}]],
    ['YYYY-MM-DDTHH:mm:ssZ', ['2026-01-01T00:00:00Z'], ['2026-01-01 00:00:00Z']],
    ['how the caller felt', ['fine', 7, true], [{}, []]],
    ['EMAIL ', ['ann@a.example'], ['ann']],
  ])('has a value of the kind %j', (kind, right, wrong) => {
    for (const value of right) expect([value, isKept(kind, value)]).toEqual([value, true]);
    for (const value of wrong) expect([value, isKept(kind, value)]).toEqual([value, false]);
  });

  it('keeps what is valid and names what is not', () => {
    const schema = { name: 'string', age: 'integer', mail: 'email' };
    expect(checkAnalysis(schema, { name: 'Ann', age: 'old', mail: null, shoes: 40, toString: 'x' })).toEqual({
      kept: { name: 'Ann', mail: null },
      wrong: { age: 'old', shoes: 40, toString: 'x' },
    });
  });

  it('may be anything without a schema', () => {
    expect(checkAnalysis(null, { any: { thing: [1] } })).toEqual({ kept: { any: { thing: [1] } }, wrong: {} });
  });
});

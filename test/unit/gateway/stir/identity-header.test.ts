import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { identityHeaderValues } from '../../../../src/gateway/stir/identity-header.js';

const VALUE = { token: 'a.b.c', info: 'https://cert.example/a,b.pem', alg: 'ES256', ppt: 'shaken' };

describe('[8224 §4] the Identity header', () => {
  it('is read with its parameters in any order and case, with or without quotes and spaces', () => {
    for (const text of [
      'a.b.c;info=<https://cert.example/a,b.pem>;alg=ES256;ppt="shaken"',
      ' a.b.c ; PPT=shaken ; ALG="ES256" ; Info=<https://cert.example/a,b.pem> ;x=y',
      'a.b.c;info=<https://cert.example/a,b.pem>;ppt=shaken',
    ])
      expect(identityHeaderValues(text)).toEqual([VALUE]);
  });

  it('has several values, of which a malformed one affects no other', () => {
    expect(identityHeaderValues('a.b.c;info=<https://x/>,rubbish, ..c;info=<https://y/>;alg=ES256')).toEqual([
      { token: 'a.b.c', info: 'https://x/', alg: 'ES256', ppt: null },
      null,
      { token: '..c', info: 'https://y/', alg: 'ES256', ppt: null },
    ]);
    expect(identityHeaderValues('')).toEqual([]);
  });

  it.each([
    'a.b;info=<x>',
    'a.b.c',
    'a.b.c;info=https://x/',
    'a.b.c;info=<x>;info=<y>',
    '.b.c;info=<x>',
    'a..c;info=<x>',
    'a.b.c!;info=<x>',
  ])('is malformed: %s', (text) => expect(identityHeaderValues(text)).toEqual([null]));

  it('has at most eight values, and no long one', () => {
    expect(identityHeaderValues(Array(50).fill('a.b.c;info=<x>').join(','))).toHaveLength(8);
    expect(identityHeaderValues(`a.${'b'.repeat(9_000)}.c;info=<x>`)).toEqual([null]);
    expect(identityHeaderValues('a'.repeat(1_000_000))).toEqual([null]);
  });

  it('is parsed without a throw from any text', () => {
    fc.assert(
      fc.property(
        fc.string({ unit: fc.constantFrom('a', '.', ';', ',', '"', '<', '>', '=', ' ', '\\', 'info') }),
        (text) => void identityHeaderValues(text),
      ),
    );
  });
});

import { expect, it } from 'vitest';
import { splitOutside } from '../../../src/lib/split-outside.js';

it.each([
  ['a, b', ['a', ' b']],
  ['one', ['one']],
  ['"a, b" <sip:x>, c', ['"a, b" <sip:x>', ' c']],
  ['<sip:x?a,b>, c', ['<sip:x?a,b>', ' c']],
  ['"a \\", b", c', ['"a \\", b"', ' c']],
  ['"a\\\\", b', ['"a\\\\"', ' b']],
  ['"<", a', ['"<"', ' a']],
  ['<a>,<b>', ['<a>', '<b>']],
  ['\\", a', ['\\", a']],
  ['a,, ,b,', ['a', 'b']],
  ['', []],
])('%j is split outside of quotes and brackets', (text, parts) => {
  expect(splitOutside(text, ',')).toEqual(parts);
});

it('the split happens at the given separator alone', () => {
  expect(splitOutside('a,b;c', ';')).toEqual(['a,b', 'c']);
});

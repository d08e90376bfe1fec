import { expect, it } from 'vitest';
import { parseResultPath } from '../../../../src/gateway/model/result-path.js';

it.each(['$', '$.data.id', '$[0].name', '$[-1]', '$.items[*].id', '$.items[1:3]', '$..id', '$.a..b[0]'])(
  'a result path may be %s',
  (path) => {
    expect(parseResultPath(path)).toBeDefined();
  },
);

it.each([
  ['nothing', ''],
  ['a text without $', 'data.id'],
  ['a filter', '$.items[?@.price < 10]'],
  ['a search', '$.items[?search(@.name, "a.*b")]'],
  ['two in one bracket', '$["a","b"]'],
  ['a wildcard beside an index', '$[0,*]'],
  ['two descents', '$..a..b'],
])('a result path may not be %s', (_what, path) => {
  expect(parseResultPath(path)).toBeUndefined();
});

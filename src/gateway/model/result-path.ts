import { compile, jsonpath, type JSONPathQuery } from 'json-p3';

const { IndexSelector, NameSelector, SliceSelector, WildcardSelector } = jsonpath.selectors;
const PLAIN = [IndexSelector, NameSelector, SliceSelector, WildcardSelector];

/**
 * A JSONPath (RFC 9535) that takes time and room in proportion to what it is applied to: names, indexes, slices and wildcards, and one
 * `..` at most. Filters could search with regular expressions, and more than one selector in brackets multiplies. `undefined`: it is none.
 */
export function parseResultPath(text: string): JSONPathQuery | undefined {
  try {
    const path = compile(text);
    const isPlain = path.segments.every(
      ({ selectors: [selector, ...more] }) => more.length === 0 && PLAIN.some((kind) => selector instanceof kind),
    );
    const descents = path.segments.filter((segment) => segment.toString().startsWith('..'));
    return isPlain && descents.length <= 1 ? path : undefined;
  } catch {
    return undefined;
  }
}

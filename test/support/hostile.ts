import type { Parameter, Operation } from './openapi.js';

/** Texts that mean something to HTTP, Redis, Lua, JSONPath, a file system, a template or a terminal. */
export const HOSTILE: readonly string[] = [
  'a\r\nx-injected: yes',
  'a\nb',
  'a\0b',
  '\u001b[2J',
  '\ud800',
  '{}',
  '{a}:b',
  '*',
  'num:{*}',
  'org:{x}:keys',
  "'); redis.call('FLUSHALL') --",
  '"]]) return redis.call("KEYS", "*")',
  '../../../etc/passwd',
  '%2e%2e%2f',
  '$.__proto__.polluted',
  '$..*',
  '__proto__',
  '{{input}}',
  'http://127.0.0.1:6379/',
  'file:///etc/passwd',
  'a'.repeat(5_000),
];

/** A body with each of its texts in turn, and each object's names with one more, replaced. */
export function* withHostileText(body: unknown, hostile: string): Generator {
  if (typeof body === 'string') yield hostile;
  if (typeof body !== 'object' || body === null) return;
  if (Array.isArray(body)) {
    for (const [index, inner] of body.entries()) for (const one of withHostileText(inner, hostile)) yield body.with(index, one);
    return;
  }
  for (const [name, inner] of Object.entries(body)) for (const one of withHostileText(inner, hostile)) yield { ...body, [name]: one };
  // As a parser makes it: a field of its own, whatever its name.
  yield Object.fromEntries([...Object.entries(body), [hostile, 'x']]);
}

export function queryParameters({ parameters = [] }: Operation): readonly Parameter[] {
  return parameters.filter((one) => one.in === 'query');
}

export function hasPathParameters({ path }: Operation): boolean {
  return path.includes('{');
}

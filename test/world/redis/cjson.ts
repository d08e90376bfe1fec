import { formatDouble } from './number-text.js';
import { RedisError } from './reply.js';

// The module cjson of Redis' scripts: JSON as values of Lua. Texts are binary, as everywhere here.

/** JSON's null, which Lua's nil cannot be: a table has no place for it. */
export const JSON_NULL: unique symbol = Symbol('null');

export type LuaTable = Map<string | number, LuaValue>;
export type LuaValue = string | number | boolean | typeof JSON_NULL | LuaTable;

const ESCAPE = /\\(?:u(d[89ab]..)\\u(d[c-f]..)|u(....)|.)/gis;

export function decodeJson(text: string): LuaValue | RedisError {
  // An escape may name a letter that has several bytes.
  const bytes = text.replace(ESCAPE, (escape, high?: string, low?: string, one?: string) => {
    const units = [high, low, one].flatMap((hex) => (hex === undefined ? [] : [Number.parseInt(hex, 16)]));
    return (units[0] ?? 0) < 0x80 ? escape : Buffer.from(String.fromCharCode(...units)).toString('latin1');
  });
  try {
    return toLua(JSON.parse(bytes));
  } catch {
    // cjson names the place, too.
    return new RedisError('Expected value but found invalid token');
  }
}

function toLua(value: unknown): LuaValue {
  if (typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean') return value;
  if (typeof value !== 'object' || value === null) return JSON_NULL;
  if (Array.isArray(value)) return new Map(value.map((item, at) => [at + 1, toLua(item)]));
  return new Map(Object.entries(value).map(([key, item]) => [key, toLua(item)]));
}

const SPARSE_RATIO = 2;
const SPARSE_SAFE = 10;

/** The length of an array; `null`: the table is none, as that without anything. */
function arrayLength(table: LuaTable): number | null {
  let length = 0;
  for (const key of table.keys()) {
    if (typeof key === 'string' || key < 1 || !Number.isInteger(key)) return null;
    length = Math.max(length, key);
  }
  return length === 0 ? null : length;
}

export function encodeJson(value: LuaValue): string | RedisError {
  try {
    return encode(value);
  } catch (error) {
    if (error instanceof RedisError) return error;
    throw error;
  }
}

function encode(value: LuaValue): string {
  if (typeof value === 'string') return quoted(value);
  if (typeof value === 'boolean') return String(value);
  if (typeof value === 'number') {
    if (!Number.isFinite(value)) throw new RedisError('Cannot serialise number: must not be NaN or Inf');
    return formatDouble(value, 14);
  }
  if (value === JSON_NULL) return 'null';
  const length = arrayLength(value);
  if (length !== null) {
    if (length > SPARSE_SAFE && length > value.size * SPARSE_RATIO)
      throw new RedisError('Cannot serialise table: excessively sparse array');
    return `[${Array.from({ length }, (_, at) => encode(value.get(at + 1) ?? JSON_NULL)).join(',')}]`;
  }
  const fields = [...value].map(([key, item]) => `${typeof key === 'number' ? `"${formatDouble(key, 14)}"` : quoted(key)}:${encode(item)}`);
  return `{${fields.join(',')}}`;
}

const ESCAPES: Readonly<Record<string, string>> = { '\b': '\\b', '\t': '\\t', '\n': '\\n', '\f': '\\f', '\r': '\\r' };

function quoted(text: string): string {
  // eslint-disable-next-line no-control-regex -- JSON escapes them
  const escaped = text.replace(/["\\/\x00-\x1f\x7f]/g, (letter) =>
    /["\\/]/.test(letter) ? `\\${letter}` : (ESCAPES[letter] ?? `\\u00${letter.charCodeAt(0).toString(16).padStart(2, '0')}`),
  );
  return `"${escaped}"`;
}

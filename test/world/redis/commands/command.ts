import type { Connection } from '../connection.js';
import type { Keyspace } from '../keyspace.js';
import type { MemoryRedis } from '../memory-redis.js';
import { notAnInteger, RedisError, syntaxError, type Reply } from '../reply.js';
import { parseDouble, parseInteger } from '../number-text.js';

/** One command as it was sent. */
export interface Call {
  /** Its words, without its name. */
  readonly args: readonly string[];
  readonly keys: Keyspace;
  readonly redis: MemoryRedis;
  /** Who sent it, or the script that it is of. */
  readonly connection: Connection;
}

export interface Command {
  /** How many words it has, its name included; below 0: at least so many. */
  readonly arity: number;
  /** `write`: it changes data. `grow`: and Redis may need memory for that. */
  readonly effect?: 'write' | 'grow';
  /** A script may not send it. */
  readonly noScript?: true;
  readonly run: (call: Call) => Reply;
}

/** By name, in lower case; a subcommand as `client|setname`. */
export type Commands = Readonly<Record<string, Command>>;

/** A word that has to be there: the arity says so, or an option needs it. */
export function word(words: readonly string[], at: number): string {
  const found = words[at];
  if (found === undefined) throw syntaxError();
  return found;
}

export function integer(text: string): number {
  const value = parseInteger(text);
  if (value === undefined) throw notAnInteger();
  return value;
}

/** How many are taken. */
export function positive(text: string): number {
  const value = parseInteger(text);
  if (value === undefined || value < 0) throw new RedisError('ERR value is out of range, must be positive');
  return value;
}

export function double(text: string, message = 'ERR value is not a valid float'): number {
  const value = parseDouble(text);
  if (value === undefined) throw new RedisError(message);
  return value;
}

/** Words in twos; `null`: one is left over. */
export function inPairs(words: readonly string[]): readonly (readonly [string, string])[] | null {
  if (words.length % 2 !== 0) return null;
  return Array.from({ length: words.length / 2 }, (_, at) => [words[2 * at] ?? '', words[2 * at + 1] ?? '']);
}

/** First and last place of a range in which -1 is the last, as indexes for `slice`. */
export function placesOf(start: number, stop: number, size: number): readonly [from: number, to: number] {
  const place = (index: number): number => (index < 0 ? Math.max(0, size + index) : index);
  const to = stop < 0 ? size + stop + 1 : stop + 1;
  return [place(start), Math.max(0, Math.min(to, size))];
}

import { formatDouble } from './number-text.js';

// All texts here are binary: each character is one byte.

/** What a command answers: a text is a bulk string, a number an integer, an array an array, and null the null of the protocol. */
export type Reply =
  | string
  | number
  | null
  | readonly Reply[]
  | Status
  | RedisError
  | Double
  | Text
  | Members
  | Pairs
  | Push
  | typeof NULL_ARRAY;

/** What RESP2 has words for, and so a script. */
export type PlainReply = string | number | null | readonly PlainReply[] | Status | RedisError;

export class Status {
  constructor(readonly text: string) {}
}

export const OK = new Status('OK');

/** An error answer; its message begins with the code. */
export class RedisError extends Error {}

export const syntaxError = (): RedisError => new RedisError('ERR syntax error');
export const notAnInteger = (): RedisError => new RedisError('ERR value is not an integer or out of range');

export class Double {
  constructor(readonly value: number) {}
}

/** A text for people. */
export class Text {
  constructor(readonly text: string) {}
}

/** A set. */
export class Members {
  constructor(readonly members: readonly string[]) {}
}

/** Names and values: RESP3 has a map for them, or an array of two for each; RESP2 has them in turn. */
export class Pairs {
  constructor(
    readonly kind: 'map' | 'nested',
    readonly pairs: readonly (readonly [string, Reply])[],
  ) {}
}

/** What nobody asked for. */
export class Push {
  constructor(readonly items: readonly Reply[]) {}
}

/** The null of RESP2 where an array was expected. */
export const NULL_ARRAY: unique symbol = Symbol('null array');

/** The answer as RESP2 has it. */
export function plain(reply: Reply): PlainReply {
  if (reply === NULL_ARRAY) return null;
  if (typeof reply !== 'object' || reply === null || reply instanceof Status || reply instanceof RedisError) return reply;
  if (reply instanceof Double) return formatDouble(reply.value);
  if (reply instanceof Text) return reply.text;
  if (reply instanceof Members) return reply.members;
  if (reply instanceof Pairs) return reply.pairs.flat().map(plain);
  if (reply instanceof Push) return reply.items.map(plain);
  return reply.map(plain);
}

const encodeAll = (replies: readonly Reply[], protocol: 2 | 3): string => replies.map((reply) => encode(reply, protocol)).join('');

/** The answer's bytes in RESP2 or RESP3. */
export function encode(reply: Reply, protocol: 2 | 3): string {
  if (typeof reply === 'string') return `$${reply.length}\r\n${reply}\r\n`;
  if (typeof reply === 'number') return `:${Number.isSafeInteger(reply) ? reply : BigInt(reply).toString()}\r\n`;
  if (reply === null) return protocol === 3 ? '_\r\n' : '$-1\r\n';
  if (reply instanceof Status) return `+${reply.text.replace(/[\r\n]/g, ' ')}\r\n`;
  if (reply instanceof RedisError) return `-${reply.message.replace(/[\r\n]/g, ' ')}\r\n`;
  if (reply === NULL_ARRAY) return protocol === 3 ? '_\r\n' : '*-1\r\n';
  if (protocol === 2) {
    const items = plain(reply);
    return Array.isArray(items) ? `*${items.length}\r\n${encodeAll(items, 2)}` : encode(items, 2);
  }
  if (reply instanceof Double) return `,${formatDouble(reply.value)}\r\n`;
  if (reply instanceof Text) return `=${reply.text.length + 4}\r\ntxt:${reply.text}\r\n`;
  if (reply instanceof Members) return `~${reply.members.length}\r\n${encodeAll(reply.members, 3)}`;
  if (reply instanceof Push) return `>${reply.items.length}\r\n${encodeAll(reply.items, 3)}`;
  if (reply instanceof Pairs) {
    const { kind, pairs } = reply;
    return kind === 'map' ? `%${pairs.length}\r\n${encodeAll(pairs.flat(), 3)}` : `*${pairs.length}\r\n${encodeAll(pairs, 3)}`;
  }
  return `*${reply.length}\r\n${encodeAll(reply, 3)}`;
}

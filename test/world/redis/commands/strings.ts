import { STRING } from '../keyspace.js';
import { OK, RedisError, syntaxError, type Reply } from '../reply.js';
import { integer, word, type Call, type Commands } from './command.js';

interface SetOptions {
  readonly only: 'NX' | 'XX' | null;
  readonly returnsOld: boolean;
  readonly keepsTtl: boolean;
  readonly expiresMs: number | null;
}

/** In milliseconds, and whether it counts from now. */
const UNITS: Readonly<Record<string, readonly [unitMs: number, isRelative: boolean]>> = {
  EX: [1_000, true],
  PX: [1, true],
  EXAT: [1_000, false],
  PXAT: [1, false],
};

function setOptions(words: readonly string[], nowMs: number): SetOptions {
  let only: SetOptions['only'] = null;
  let [returnsOld, keepsTtl] = [false, false];
  let expiresMs: number | null = null;
  for (let at = 0; at < words.length; at += 1) {
    const option = word(words, at).toUpperCase();
    const unit = UNITS[option];
    if ((option === 'NX' || option === 'XX') && only === null) only = option;
    else if (option === 'GET') returnsOld = true;
    else if (option === 'KEEPTTL' && expiresMs === null) keepsTtl = true;
    else if (unit !== undefined && expiresMs === null && !keepsTtl) {
      at += 1;
      const [unitMs, isRelative] = unit;
      const amount = integer(word(words, at));
      if (amount <= 0) throw new RedisError("ERR invalid expire time in 'set' command");
      expiresMs = amount * unitMs + (isRelative ? nowMs : 0);
    } else throw syntaxError();
  }
  return { only, returnsOld, keepsTtl, expiresMs };
}

function set({ args, keys }: Call): Reply {
  const [key, value] = [word(args, 0), word(args, 1)];
  const { only, returnsOld, keepsTtl, expiresMs } = setOptions(args.slice(2), keys.nowMs);
  const old = returnsOld ? (keys.find(key, STRING) ?? null) : null;
  if ((only === 'NX' && keys.has(key)) || (only === 'XX' && !keys.has(key))) return old;
  keys.setString(key, value, keepsTtl ? (keys.expiresMs(key) ?? null) : expiresMs);
  return returnsOld ? old : OK;
}

export const STRING_COMMANDS: Commands = {
  get: { arity: 2, run: ({ args, keys }) => keys.find(word(args, 0), STRING) ?? null },
  mget: {
    arity: -2,
    run: ({ args, keys }) => args.map((key) => (keys.type(key) === STRING.name ? (keys.find(key, STRING) ?? null) : null)),
  },
  set: { arity: -3, effect: 'grow', run: set },
  strlen: { arity: 2, run: ({ args, keys }) => keys.find(word(args, 0), STRING)?.length ?? 0 },
};

import { OK, RedisError, Status, syntaxError, type Reply } from '../reply.js';
import { integer, word, type Call, type Command, type Commands } from './command.js';

/** The pattern of KEYS and SCAN: `*`, `?`, `[…]`, and a backslash before any of them. */
function patternOf(glob: string): RegExp {
  const source = glob.replace(
    /\\(.)|\[(\^?)((?:\\.|[^\]])*)\]|[*?]|[$()+.[\]^{|}\\/]/gs,
    (found, escaped: string | undefined, not, set) => {
      if (escaped !== undefined) return `\\x${escaped.charCodeAt(0).toString(16).padStart(2, '0')}`;
      if (set !== undefined) return `[${String(not)}${String(set).replace(/[\]^[]/g, '\\$&')}]`;
      return found === '*' ? '.*' : found === '?' ? '.' : `\\${found}`;
    },
  );
  return new RegExp(`^${source}$`, 's');
}

const DEFAULT_COUNT = 10;

function scan({ args, keys }: Call): Reply {
  const [cursor = '', ...options] = args;
  if (!/^\d+$/.test(cursor)) throw new RedisError('ERR invalid cursor');
  let pattern: RegExp | null = null;
  let count = DEFAULT_COUNT;
  for (let at = 0; at < options.length; at += 2) {
    const value = word(options, at + 1);
    const option = word(options, at).toUpperCase();
    if (option === 'MATCH') pattern = patternOf(value);
    else if (option === 'COUNT') count = integer(value);
    else throw syntaxError();
  }
  if (count < 1) throw syntaxError();
  const found: string[] = [];
  let last = 0;
  let looked = 0;
  // The cursor is the place of the last key that was looked at: no key that stays is missed.
  for (const [key, place] of keys.keys(Number(cursor))) {
    if (looked === count) return [String(last), found];
    looked += 1;
    last = place;
    if (pattern?.test(key) !== false) found.push(key);
  }
  return ['0', found];
}

function remove({ args, keys }: Call): Reply {
  return args.filter((key) => keys.delete(key)).length;
}

/** @param unitMs of the time that is given, in milliseconds */
function expire(name: string, unitMs: number, isRelative: boolean): Command {
  return {
    arity: -3,
    effect: 'write',
    run: ({ args, keys }) => {
      const [key = '', time = '', ...words] = args;
      const { nowMs } = keys;
      const options = words.map((option) => option.toUpperCase());
      const unknown = options.find((option) => !['NX', 'XX', 'GT', 'LT'].includes(option));
      if (unknown !== undefined) throw new RedisError(`ERR Unsupported option ${words[options.indexOf(unknown)] ?? ''}`);
      if (options.includes('NX') && options.length > 1)
        throw new RedisError('ERR NX and XX, GT or LT options at the same time are not compatible');
      if (options.includes('GT') && options.includes('LT'))
        throw new RedisError('ERR GT and LT options at the same time are not compatible');
      const atMs = integer(time) * unitMs + (isRelative ? nowMs : 0);
      if (!Number.isSafeInteger(atMs)) throw new RedisError(`ERR invalid expire time in '${name}' command`);
      const before = keys.expiresMs(key);
      if (before === undefined) return 0;
      const isKept = (option: string): boolean =>
        (option === 'NX' && before !== null) ||
        (option === 'XX' && before === null) ||
        (option === 'GT' && atMs <= (before ?? Infinity)) ||
        (option === 'LT' && atMs >= (before ?? Infinity));
      if (options.some(isKept)) return 0;
      if (atMs <= nowMs) keys.delete(key);
      else keys.expire(key, atMs);
      return 1;
    },
  };
}

/** What is left of a key's time, or when it ends: -1 without one, -2 without the key. */
function expiry(toReply: (atMs: number, nowMs: number) => number): Command {
  return {
    arity: 2,
    run: ({ args, keys }) => {
      const atMs = keys.expiresMs(word(args, 0));
      if (atMs === undefined) return -2;
      return atMs === null ? -1 : toReply(atMs, keys.nowMs);
    },
  };
}

const toSeconds = (ms: number): number => Math.floor((ms + 500) / 1_000);

export const KEY_COMMANDS: Commands = {
  del: { arity: -2, effect: 'write', run: remove },
  unlink: { arity: -2, effect: 'write', run: remove },
  exists: { arity: -2, run: ({ args, keys }) => args.filter((key) => keys.has(key)).length },
  type: { arity: 2, run: ({ args, keys }) => new Status(keys.type(word(args, 0))) },
  expire: expire('expire', 1_000, true),
  pexpire: expire('pexpire', 1, true),
  expireat: expire('expireat', 1_000, false),
  pexpireat: expire('pexpireat', 1, false),
  persist: {
    arity: 2,
    effect: 'write',
    run: ({ args, keys }) => {
      if (typeof keys.expiresMs(word(args, 0)) !== 'number') return 0;
      keys.expire(word(args, 0), null);
      return 1;
    },
  },
  ttl: expiry((atMs, nowMs) => toSeconds(atMs - nowMs)),
  pttl: expiry((atMs, nowMs) => atMs - nowMs),
  expiretime: expiry(toSeconds),
  pexpiretime: expiry((atMs) => atMs),
  scan: { arity: -2, run: scan },
  keys: {
    arity: 2,
    run: ({ args, keys }) => {
      const pattern = patternOf(word(args, 0));
      return [...keys.keys()].flatMap(([key]) => (pattern.test(key) ? [key] : []));
    },
  },
  dbsize: { arity: 1, run: ({ keys }) => [...keys.keys()].length },
  flushall: {
    arity: 1,
    effect: 'write',
    run: ({ keys }) => {
      keys.clear();
      return OK;
    },
  },
};

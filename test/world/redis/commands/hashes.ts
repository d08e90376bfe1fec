import { HASH } from '../keyspace.js';
import { parseInteger } from '../number-text.js';
import { Pairs, RedisError } from '../reply.js';
import { inPairs, integer, word, type Commands } from './command.js';

export const HASH_COMMANDS: Commands = {
  hset: {
    arity: -4,
    effect: 'grow',
    run: ({ args, keys }) => {
      const pairs = inPairs(args.slice(1));
      if (pairs === null) throw new RedisError("ERR wrong number of arguments for 'hset' command");
      const hash = keys.open(word(args, 0), HASH);
      const before = hash.size;
      for (const [field, value] of pairs) hash.set(field, value);
      return hash.size - before;
    },
  },
  hsetnx: {
    arity: 4,
    effect: 'grow',
    run: ({ args, keys }) => {
      const hash = keys.open(word(args, 0), HASH);
      if (hash.has(word(args, 1))) return 0;
      hash.set(word(args, 1), word(args, 2));
      return 1;
    },
  },
  hincrby: {
    arity: 4,
    effect: 'grow',
    run: ({ args, keys }) => {
      const by = integer(word(args, 2));
      const before = parseInteger(keys.find(word(args, 0), HASH)?.get(word(args, 1)) ?? '0');
      if (before === undefined) throw new RedisError('ERR hash value is not an integer');
      // Redis has 64 bits for it.
      if (!Number.isSafeInteger(before + by)) throw new RedisError('ERR increment or decrement would overflow');
      keys.open(word(args, 0), HASH).set(word(args, 1), String(before + by));
      return before + by;
    },
  },
  hdel: {
    arity: -3,
    effect: 'write',
    run: ({ args, keys }) => {
      const [key = '', ...fields] = args;
      const hash = keys.find(key, HASH);
      const deleted = fields.filter((field) => hash?.delete(field) === true).length;
      keys.dropEmpty(key);
      return deleted;
    },
  },
  hget: { arity: 3, run: ({ args, keys }) => keys.find(word(args, 0), HASH)?.get(word(args, 1)) ?? null },
  hmget: {
    arity: -3,
    run: ({ args, keys }) => {
      const hash = keys.find(word(args, 0), HASH);
      return args.slice(1).map((field) => hash?.get(field) ?? null);
    },
  },
  hgetall: { arity: 2, run: ({ args, keys }) => new Pairs('map', [...(keys.find(word(args, 0), HASH) ?? [])]) },
  hkeys: { arity: 2, run: ({ args, keys }) => [...(keys.find(word(args, 0), HASH)?.keys() ?? [])] },
  hvals: { arity: 2, run: ({ args, keys }) => [...(keys.find(word(args, 0), HASH)?.values() ?? [])] },
  hlen: { arity: 2, run: ({ args, keys }) => keys.find(word(args, 0), HASH)?.size ?? 0 },
  hexists: { arity: 3, run: ({ args, keys }) => (keys.find(word(args, 0), HASH)?.has(word(args, 1)) === true ? 1 : 0) },
};

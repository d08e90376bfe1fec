import { LIST } from '../keyspace.js';
import { NULL_ARRAY, RedisError } from '../reply.js';
import { integer, placesOf, positive, word, type Commands } from './command.js';

export const LIST_COMMANDS: Commands = {
  rpush: {
    arity: -3,
    effect: 'grow',
    run: ({ args, keys }) => {
      const list = keys.open(word(args, 0), LIST);
      for (const value of args.slice(1)) list.push(value);
      return list.length;
    },
  },
  lpop: {
    arity: -2,
    effect: 'write',
    run: ({ args, keys }) => {
      const [key = '', countText, ...more] = args;
      if (more.length > 0) throw new RedisError("ERR wrong number of arguments for 'lpop' command");
      const count = countText === undefined ? null : positive(countText);
      const list = keys.find(key, LIST);
      if (list === undefined) return count === null ? null : NULL_ARRAY;
      const values = list.splice(0, count ?? 1);
      keys.dropEmpty(key);
      return count === null ? (values[0] ?? null) : values;
    },
  },
  lindex: {
    arity: 3,
    run: ({ args, keys }) => {
      const list = keys.find(word(args, 0), LIST);
      return list?.at(integer(word(args, 1))) ?? null;
    },
  },
  lrange: {
    arity: 4,
    run: ({ args, keys }) => {
      const [start, stop] = [integer(word(args, 1)), integer(word(args, 2))];
      const list = keys.find(word(args, 0), LIST) ?? [];
      return list.slice(...placesOf(start, stop, list.length));
    },
  },
  llen: { arity: 2, run: ({ args, keys }) => keys.find(word(args, 0), LIST)?.length ?? 0 },
};

import { LIST } from '../keyspace.js';
import { integer, placesOf, word, type Commands } from './command.js';

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
    arity: 2,
    effect: 'write',
    run: ({ args, keys }) => {
      const value = keys.find(word(args, 0), LIST)?.shift() ?? null;
      keys.dropEmpty(word(args, 0));
      return value;
    },
  },
  lindex: {
    arity: 3,
    run: ({ args, keys }) => {
      const at = integer(word(args, 1));
      return keys.find(word(args, 0), LIST)?.at(at) ?? null;
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

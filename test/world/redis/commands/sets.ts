import { SET } from '../keyspace.js';
import { Members } from '../reply.js';
import { word, type Commands } from './command.js';

export const SET_COMMANDS: Commands = {
  sadd: {
    arity: -3,
    effect: 'grow',
    run: ({ args, keys }) => {
      const set = keys.open(word(args, 0), SET);
      const before = set.size;
      for (const member of args.slice(1)) set.add(member);
      return set.size - before;
    },
  },
  srem: {
    arity: -3,
    effect: 'write',
    run: ({ args, keys }) => {
      const [key = '', ...members] = args;
      const set = keys.find(key, SET);
      const removed = members.filter((member) => set?.delete(member) === true).length;
      keys.dropEmpty(key);
      return removed;
    },
  },
  smembers: { arity: 2, run: ({ args, keys }) => new Members([...(keys.find(word(args, 0), SET) ?? [])]) },
  sismember: { arity: 3, run: ({ args, keys }) => (keys.find(word(args, 0), SET)?.has(word(args, 1)) === true ? 1 : 0) },
  scard: { arity: 2, run: ({ args, keys }) => keys.find(word(args, 0), SET)?.size ?? 0 },
};

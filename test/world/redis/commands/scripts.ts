import { OK, RedisError, type Reply } from '../reply.js';
import { integer, word, type Call, type Commands } from './command.js';

/** @param words how many keys there are, the keys, and the arguments */
function run(call: Call, sha1: string, words: readonly string[]): Reply {
  const count = integer(word(words, 0));
  if (count > words.length - 1) throw new RedisError("ERR Number of keys can't be greater than number of args");
  if (count < 0) throw new RedisError("ERR Number of keys can't be negative");
  return call.redis.scripts.run(sha1, words.slice(1, 1 + count), words.slice(1 + count), call.connection);
}

export const SCRIPT_COMMANDS: Commands = {
  eval: {
    arity: -3,
    noScript: true,
    run: (call) => run(call, call.redis.scripts.load(word(call.args, 0)), call.args.slice(1)),
  },
  evalsha: { arity: -3, noScript: true, run: (call) => run(call, word(call.args, 0).toLowerCase(), call.args.slice(1)) },
  'script|load': { arity: 3, noScript: true, run: ({ args, redis }) => redis.scripts.load(word(args, 0)) },
  'script|exists': {
    arity: -3,
    noScript: true,
    run: ({ args, redis }) => args.map((sha1) => (redis.scripts.has(sha1.toLowerCase()) ? 1 : 0)),
  },
  'script|flush': {
    arity: 2,
    noScript: true,
    run: ({ redis }) => {
      redis.scripts.flush();
      return OK;
    },
  },
};

import { OK, RedisError, type Reply } from '../reply.js';
import { integer, word, type Call, type Commands } from './command.js';

/** @param shaOf the script, whose words begin with how many keys there are */
function run({ args, redis, connection }: Call, shaOf: (script: string) => string): Reply {
  const [script = '', countText = '', ...words] = args;
  const count = integer(countText);
  if (count > words.length) throw new RedisError("ERR Number of keys can't be greater than number of args");
  if (count < 0) throw new RedisError("ERR Number of keys can't be negative");
  return redis.scripts.run(shaOf(script), words.slice(0, count), words.slice(count), connection);
}

export const SCRIPT_COMMANDS: Commands = {
  eval: { arity: -3, noScript: true, run: (call) => run(call, (source) => call.redis.scripts.load(source)) },
  evalsha: { arity: -3, noScript: true, run: (call) => run(call, (sha1) => sha1.toLowerCase()) },
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

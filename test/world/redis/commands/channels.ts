import { Push, type Reply } from '../reply.js';
import { word, type Call, type Commands } from './command.js';

/** One answer for each channel; the last of them is the command's own. */
function each({ connection }: Call, channels: readonly string[], change: (channel: string) => Reply): Reply {
  const replies = channels.map(change);
  const last = replies.pop() ?? null;
  for (const reply of replies) connection.send(reply);
  return last;
}

export const CHANNEL_COMMANDS: Commands = {
  publish: { arity: 3, run: ({ args, redis }) => redis.publish(word(args, 0), word(args, 1)) },
  subscribe: {
    arity: -2,
    noScript: true,
    run: (call) =>
      each(call, call.args, (channel) => {
        call.connection.channels.add(channel);
        return new Push(['subscribe', channel, call.connection.channels.size]);
      }),
  },
  unsubscribe: {
    arity: -1,
    noScript: true,
    run: (call) => {
      const { channels } = call.connection;
      const left = call.args.length > 0 ? call.args : [...channels];
      if (left.length === 0) return new Push(['unsubscribe', null, 0]);
      return each(call, left, (channel) => {
        channels.delete(channel);
        return new Push(['unsubscribe', channel, channels.size]);
      });
    },
  },
  'pubsub|numsub': {
    arity: -2,
    noScript: true,
    run: ({ args, redis }) => args.flatMap((channel) => [channel, redis.subscribers(channel)]),
  },
};

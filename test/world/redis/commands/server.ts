import { parseInteger } from '../number-text.js';
import { OK, Pairs, RedisError, Status, Text, type Reply } from '../reply.js';
import { integer, word, type Call, type Commands } from './command.js';

/** What it says it is: the version whose answers it gives. */
const VERSION = '7.0.15';

function hello({ args, connection }: Call): Reply {
  const [version, ...more] = args;
  if (version !== undefined) {
    const protocol = Number(version);
    if (protocol !== 2 && protocol !== 3) throw new RedisError('NOPROTO unsupported protocol version');
    if (more.length > 0) throw new RedisError(`ERR Syntax error in HELLO option '${word(more, 0)}'`);
    connection.protocol = protocol;
  }
  return new Pairs('map', [
    ['server', 'redis'],
    ['version', VERSION],
    ['proto', connection.protocol],
    ['id', connection.id],
    ['mode', 'standalone'],
    ['role', 'master'],
    ['modules', []],
  ]);
}

function info({ args, redis }: Call): Reply {
  const { usedBytes, maxBytes, policy } = redis.memory;
  const sections: Readonly<Record<string, readonly string[]>> = {
    Server: [`redis_version:${VERSION}`, 'redis_mode:standalone'],
    Memory: [`used_memory:${usedBytes}`, `maxmemory:${maxBytes}`, `maxmemory_policy:${policy}`],
    Persistence: ['loading:0'],
    Replication: [`role:${redis.refusal === 'READONLY' ? 'slave' : 'master'}`, `connected_slaves:${redis.replicas}`],
  };
  const asked = args.map((section) => section.toLowerCase());
  const texts = Object.entries(sections)
    .filter(([name]) => asked.length === 0 || asked.includes(name.toLowerCase()))
    .map(([name, lines]) => [`# ${name}`, ...lines, ''].join('\r\n'));
  return new Text(texts.join('\r\n'));
}

/** Seconds and microseconds, as Redis answers TIME. */
function time({ redis }: Call): Reply {
  const microseconds = Math.floor(redis.clock.wallMs() * 1_000);
  return [String(Math.floor(microseconds / 1_000_000)), String(microseconds % 1_000_000)];
}

export const SERVER_COMMANDS: Commands = {
  ping: {
    arity: -1,
    run: ({ args, connection }) => {
      if (args.length > 1) throw new RedisError("ERR wrong number of arguments for 'ping' command");
      if (connection.isSubscriber) return ['pong', args[0] ?? ''];
      return args[0] ?? new Status('PONG');
    },
  },
  echo: { arity: 2, run: ({ args }) => word(args, 0) },
  quit: {
    arity: -1,
    noScript: true,
    run: ({ connection }) => {
      connection.isEnding = true;
      return OK;
    },
  },
  hello: { arity: -1, noScript: true, run: hello },
  select: {
    arity: 2,
    run: ({ args }) => {
      if (integer(word(args, 0)) !== 0) throw new RedisError('ERR DB index is out of range');
      return OK;
    },
  },
  'client|setname': {
    arity: 3,
    noScript: true,
    run: ({ args, connection }) => {
      const name = word(args, 0);
      if (!/^[!-~]*$/.test(name)) throw new RedisError('ERR Client names cannot contain spaces, newlines or special characters.');
      connection.name = name;
      return OK;
    },
  },
  'client|getname': { arity: 2, noScript: true, run: ({ connection }) => (connection.name === '' ? null : connection.name) },
  'client|id': { arity: 2, noScript: true, run: ({ connection }) => connection.id },
  info: { arity: -1, run: info },
  time: { arity: 1, run: time },
  /** Redis waits for its replicas, up to a limit; here they have everything at once. */
  wait: {
    arity: 3,
    noScript: true,
    run: ({ args, redis }) => {
      integer(word(args, 0));
      const timeoutMs = parseInteger(word(args, 1));
      if (timeoutMs === undefined) throw new RedisError('ERR timeout is not an integer or out of range');
      if (timeoutMs < 0) throw new RedisError('ERR timeout is negative');
      return redis.replicas;
    },
  },
};

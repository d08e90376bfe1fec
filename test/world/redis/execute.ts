import { COMMANDS, CONTAINERS } from './commands/all.js';
import type { Command } from './commands/command.js';
import type { Connection } from './connection.js';
import type { MemoryRedis } from './memory-redis.js';
import { RedisError, Status, type Reply } from './reply.js';

/** A script that runs. */
export interface RunningScript {
  hasWritten: boolean;
}

interface Found {
  readonly name: string;
  readonly command: Command;
  readonly args: readonly string[];
}

const OUT_OF_MEMORY = "OOM command not allowed when used memory > 'maxmemory'.";
/** Why a Redis takes no writes, and how it says so. */
const REFUSALS = {
  READONLY: "READONLY You can't write against a read only replica.",
  NOREPLICAS: 'NOREPLICAS Not enough good replicas to write.',
  MISCONF:
    "MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist to disk. Commands that may modify the data set are disabled, because this instance is configured to report errors during writes if RDB snapshotting fails (stop-writes-on-bgsave-error option). Please check the Redis logs for details about the RDB error.",
};
export type Refusal = keyof typeof REFUSALS;
const NOT_QUEUED = new Set(['multi', 'exec', 'discard', 'quit']);
const OF_SUBSCRIBERS = new Set(['subscribe', 'unsubscribe', 'ping', 'quit']);

/** Runs one command to its end. Returns also errors. */
export function execute(redis: MemoryRedis, words: readonly string[], connection: Connection): Reply {
  const { transaction } = connection;
  return answered(() => {
    let found: Found;
    try {
      found = find(words);
      refuse(redis, found, found.command.effect === 'grow');
    } catch (error) {
      if (transaction !== null) transaction.isBroken = true;
      throw error;
    }
    const { name } = found;
    if (connection.isSubscriber && !OF_SUBSCRIBERS.has(name))
      throw new RedisError(
        `ERR Can't execute '${name}': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this context`,
      );
    if (transaction === null || NOT_QUEUED.has(name)) return run(redis, found, connection);
    transaction.queued.push(() => answered(() => run(redis, found, connection)));
    return new Status('QUEUED');
  });
}

/** As `execute`, of a script's command. */
export function executeInScript(redis: MemoryRedis, words: readonly string[], connection: Connection, script: RunningScript): Reply {
  return answered(() => {
    let found: Found;
    try {
      found = find(words);
    } catch (error) {
      const isArity = error instanceof RedisError && error.message.startsWith('ERR wrong number');
      throw new RedisError(
        isArity ? 'ERR Wrong number of args calling Redis command from script' : 'ERR Unknown Redis command called from script',
        {
          cause: error,
        },
      );
    }
    const { command } = found;
    if (command.noScript === true) throw new RedisError('ERR This Redis command is not allowed from script');
    // A script that has begun to write is let finish.
    refuse(redis, found, command.effect === 'grow' && !script.hasWritten);
    if (command.effect !== undefined) script.hasWritten = true;
    return run(redis, found, connection);
  });
}

function answered(work: () => Reply): Reply {
  try {
    return work();
  } catch (error) {
    if (error instanceof RedisError) return error;
    throw error;
  }
}

function run(redis: MemoryRedis, { name, command, args }: Found, connection: Connection): Reply {
  redis.counts.set(name, (redis.counts.get(name) ?? 0) + 1);
  return command.run({ args, keys: redis.keys, redis, connection });
}

/** Throws when there is no such command, or it has another number of words. */
function find(words: readonly string[]): Found {
  const [word = '', second = ''] = words;
  const first = word.toLowerCase();
  const isContainer = CONTAINERS.has(first);
  if (isContainer && words.length === 1) throw new RedisError(`ERR wrong number of arguments for '${first}' command`);
  const name = isContainer ? `${first}|${second.toLowerCase()}` : first;
  const command = COMMANDS.get(name);
  if (command === undefined) {
    if (isContainer) throw new RedisError(`ERR unknown subcommand '${second.slice(0, 128)}'. Try ${first.toUpperCase()} HELP.`);
    const args = words.slice(1).map((arg) => `'${arg}' `);
    throw new RedisError(`ERR unknown command '${word.slice(0, 128)}', with args beginning with: ${args.join('').slice(0, 128)}`);
  }
  const { arity } = command;
  if (arity >= 0 ? words.length !== arity : words.length < -arity)
    throw new RedisError(`ERR wrong number of arguments for '${name}' command`);
  return { name, command, args: words.slice(isContainer ? 2 : 1) };
}

/** Throws when this Redis takes no writes, or has no memory for one. */
function refuse(redis: MemoryRedis, { name, command }: Found, needsMemory: boolean): void {
  const { usedBytes, maxBytes } = redis.memory;
  if (needsMemory && maxBytes > 0 && usedBytes > maxBytes) throw new RedisError(OUT_OF_MEMORY);
  const { refusal } = redis;
  if (refusal !== null && (command.effect !== undefined || (refusal === 'MISCONF' && name === 'ping')))
    throw new RedisError(REFUSALS[refusal]);
}

import { STRING } from '../keyspace.js';
import { OK, RedisError, syntaxError, type Reply } from '../reply.js';
import { integer, word, type Call, type Commands } from './command.js';

/** Its options, and the milliseconds of one unit of their time, and whether that counts from now. */
const TIMES: Readonly<Record<string, readonly [unitMs: number, isRelative: boolean]>> = {
  EX: [1_000, true],
  PX: [1, true],
  EXAT: [1_000, false],
  PXAT: [1, false],
};

function set({ args, keys }: Call): Reply {
  const [key, value] = [word(args, 0), word(args, 1)];
  const flags = new Set<string>();
  let time: readonly [option: string, amount: string] | null = null;
  for (let at = 2; at < args.length; at += 1) {
    const option = word(args, at).toUpperCase();
    const isSecondTime = time !== null || flags.has('KEEPTTL');
    if (option in TIMES && !isSecondTime) time = [option, word(args, (at += 1))];
    else if (option === 'GET' || (option === 'KEEPTTL' && time === null)) flags.add(option);
    else if ((option === 'NX' && !flags.has('XX')) || (option === 'XX' && !flags.has('NX'))) flags.add(option);
    else throw syntaxError();
  }
  const expiresMs = time === null ? null : momentOf(time, keys.nowMs);
  const old = flags.has('GET') ? (keys.find(key, STRING) ?? null) : null;
  if ((flags.has('NX') && keys.has(key)) || (flags.has('XX') && !keys.has(key))) return old;
  keys.setString(key, value, flags.has('KEEPTTL') ? (keys.expiresMs(key) ?? null) : expiresMs);
  return flags.has('GET') ? old : OK;
}

function momentOf([option, amount]: readonly [option: string, amount: string], nowMs: number): number {
  const [unitMs, isRelative] = TIMES[option] ?? [1, false];
  const units = integer(amount);
  if (units <= 0) throw new RedisError("ERR invalid expire time in 'set' command");
  return units * unitMs + (isRelative ? nowMs : 0);
}

export const STRING_COMMANDS: Commands = {
  get: { arity: 2, run: ({ args, keys }) => keys.find(word(args, 0), STRING) ?? null },
  mget: {
    arity: -2,
    run: ({ args, keys }) => args.map((key) => (keys.type(key) === STRING.name ? (keys.find(key, STRING) ?? null) : null)),
  },
  set: { arity: -3, effect: 'grow', run: set },
  strlen: { arity: 2, run: ({ args, keys }) => keys.find(word(args, 0), STRING)?.length ?? 0 },
};

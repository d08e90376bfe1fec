import fc from 'fast-check';

// Commands as anybody may send them to a Redis: of every kind that MemoryRedis knows, right and wrong.

export type Commands = readonly (readonly string[])[];
type Words = fc.Arbitrary<Commands[number]>;

const TYPES = ['string', 'hash', 'list', 'set', 'zset', 'stream'] as const;

/** Few, so that commands meet. Any of them may be of any type; most are of that which their name says. */
export const KEYS = [...TYPES, 'hash:2', 'zset:2', 'zset:lex'];
const key = fc.constantFrom(...KEYS.slice(0, -1));
const keyOf = (type: (typeof TYPES)[number]): fc.Arbitrary<string> =>
  fc.oneof(
    { weight: 8, arbitrary: fc.constantFrom(...KEYS.filter((name) => name.startsWith(type) && name !== 'zset:lex')) },
    { weight: 1, arbitrary: key },
  );
const field = fc.constantFrom('f', 'g', 'h\xff', '');
/** Scores that are exact, that are not, and that are none. */
const score = fc.oneof(
  { weight: 8, arbitrary: fc.constantFrom('0', '1', '2', '-1', '3.5', '0.1', '1e20', '-1e-7', '+inf', '-inf', '123456789012', '-0') },
  { weight: 1, arbitrary: fc.constantFrom('nan', '', 'x', '1 ') },
);
const integer = fc.oneof(
  { weight: 8, arbitrary: fc.integer({ min: -4, max: 6 }).map(String) },
  { weight: 1, arbitrary: fc.constantFrom('x', '', '01', '1.5', '-0', '99999999999999999999') },
);
const value = fc.oneof(field, integer, fc.constantFrom('{"a":1}', 'line\r\n\x00'));
/** A far moment, so that nothing expires while the two are compared. */
const later = fc.constantFrom('4000000000', '4100000000', '4200000000');
const seconds = fc.oneof(later, fc.constantFrom('1000000000', '1', '0', '-1'));
const milliseconds = seconds.map((text) => `${text}000`);
const lasting = fc.constantFrom('1000000', '2000000', '3000000', '0', '-1', 'x');
const streamId = fc.constantFrom('1-1', '1-2', '2', '3-0', '0-0', '7-7', '1-', 'x');
const streamBound = fc.oneof(
  fc.constantFrom('-', '+', '(', '(-'),
  streamId,
  streamId.map((id) => `(${id}`),
);
const lexBound = fc.oneof(fc.constantFrom('-', '+', 'f', '(f', '[f', '[g', '(g', '[', '(h\xff'));
const scoreBound = fc.oneof(
  score,
  score.map((text) => `(${text}`),
);

const some = (one: fc.Arbitrary<string>, maxLength = 3): Words => fc.array(one, { minLength: 1, maxLength });
const words = (...parts: readonly (string | fc.Arbitrary<string> | Words)[]): Words =>
  fc
    .tuple(...parts.map((part): fc.Arbitrary<string | readonly string[]> => (typeof part === 'string' ? fc.constant(part) : part)))
    .map((found) => found.flat());
const option = (...parts: readonly (string | fc.Arbitrary<string> | Words)[]): Words =>
  fc.oneof({ weight: 3, arbitrary: fc.constant([]) }, { weight: 1, arbitrary: words(...parts) });
const options = (...names: readonly string[]): Words => fc.subarray([...names], { maxLength: 2 });
const limit = option('LIMIT', integer, integer);
const withScores = option('WITHSCORES');

const stringKey = keyOf('string');
const strings = [
  words('GET', stringKey),
  words('MGET', some(stringKey)),
  words(
    'SET',
    stringKey,
    value,
    options('NX', 'XX', 'GET', 'KEEPTTL'),
    option(fc.constantFrom('EX', 'PX'), lasting),
    option('EXAT', later),
    option(
      'PXAT',
      later.map((text) => `${text}000`),
    ),
  ),
  words('STRLEN', stringKey),
  words('PEXPIREAT', 'string', milliseconds, fc.constantFrom('NX', 'XX', 'GT', 'LT')),
  words('PERSIST', 'string'),
];

const hashKey = keyOf('hash');
const hashes = [
  words('HSET', hashKey, field, value, field, value),
  words('HSET', hashKey, field, value),
  words('HSET', hashKey, field, value, field),
  words('HSETNX', hashKey, field, value),
  words('HINCRBY', hashKey, field, integer),
  words('HDEL', hashKey, some(field)),
  words('HGET', hashKey, field),
  words('HMGET', hashKey, some(field)),
  ...['HGETALL', 'HKEYS', 'HVALS', 'HLEN'].map((name) => words(name, hashKey)),
  words('HEXISTS', hashKey, field),
];

const listKey = keyOf('list');
const lists = [
  words('RPUSH', listKey, some(value)),
  words('LPOP', listKey),
  words('LINDEX', listKey, integer),
  words('LRANGE', listKey, integer, integer),
  words('LLEN', listKey),
];

const setKey = keyOf('set');
const sets = [
  words('SADD', setKey, some(value)),
  words('SREM', setKey, some(value)),
  words('SMEMBERS', setKey),
  words('SISMEMBER', setKey, value),
  words('SCARD', setKey),
];

const zsetKey = keyOf('zset');
const sortedSets = [
  words('ZADD', 'zset', fc.constantFrom('NX', 'XX', 'GT', 'LT', 'CH'), fc.constantFrom('0', '1', '2'), field),
  words('ZADD', 'zset', fc.constantFrom('GT', 'LT'), 'CH', fc.constantFrom('0', '1', '2'), field),
  words('ZADD', zsetKey, options('NX', 'XX', 'GT', 'LT', 'CH'), score, field),
  words('ZADD', zsetKey, score, field, score, field),
  words('ZADD', zsetKey, '0', field, '0', field, '0', field),
  words('ZADD', zsetKey, options('NX', 'XX', 'GT', 'LT'), 'INCR', score, field),
  words('ZREM', zsetKey, some(field)),
  words('ZSCORE', zsetKey, field),
  words('ZMSCORE', zsetKey, some(field)),
  words('ZRANK', zsetKey, field),
  words('ZCARD', zsetKey),
  words('ZCOUNT', zsetKey, scoreBound, scoreBound),
  words('ZRANGE', zsetKey, integer, integer, option('REV'), withScores, limit),
  words('ZRANGE', zsetKey, scoreBound, scoreBound, 'BYSCORE', option('REV'), withScores, limit),
  words('ZREVRANGE', zsetKey, integer, integer, withScores),
  ...['ZRANGEBYSCORE', 'ZREVRANGEBYSCORE'].map((name) => words(name, zsetKey, scoreBound, scoreBound, withScores, limit)),
  words('ZREMRANGEBYRANK', zsetKey, integer, integer),
  words('ZREMRANGEBYSCORE', zsetKey, scoreBound, scoreBound),
  ...['ZPOPMIN', 'ZPOPMAX'].map((name) => words(name, zsetKey, option(integer))),
];

/** By their bytes, which only means something where all scores are the same: a key for them alone. */
const lexKey = fc.constantFrom('zset:lex');
const lexicalSets = [
  words('ZADD', lexKey, '0', field, '0', value, '0', field),
  words('ZREM', lexKey, some(field)),
  ...['ZRANGEBYLEX', 'ZREVRANGEBYLEX'].map((name) => words(name, lexKey, lexBound, lexBound, limit)),
  words('ZRANGE', lexKey, lexBound, lexBound, 'BYLEX', option('REV'), withScores, limit),
  words('ZLEXCOUNT', lexKey, lexBound, lexBound),
  words('ZREMRANGEBYLEX', lexKey, lexBound, lexBound),
];

const streamKey = keyOf('stream');
const streams = [
  words('XADD', streamKey, option('MAXLEN', fc.constantFrom('0', '1', '2', '-1', 'x')), streamId, some(value, 4)),
  words('XADD', streamKey, streamId, 'entry', value),
  ...['XRANGE', 'XREVRANGE'].map((name) => words(name, streamKey, streamBound, streamBound, option('COUNT', integer))),
  words('XLEN', streamKey),
];

const keys = [
  words('SET', key, value),
  words('DEL', some(key)),
  words('UNLINK', key),
  words('EXISTS', some(key)),
  words('TYPE', key),
  // Which of two of these is later depends on when they come.
  ...['EXPIRE', 'PEXPIRE'].map((name) => words(name, key, lasting, options('NX', 'XX'))),
  words('EXPIREAT', key, seconds, options('NX', 'XX', 'GT', 'LT', 'x')),
  words('PEXPIREAT', key, milliseconds, options('NX', 'XX', 'GT', 'LT')),
  words('PERSIST', key),
  ...['TTL', 'PTTL', 'EXPIRETIME', 'PEXPIRETIME'].map((name) => words(name, key)),
  words('SCAN', '0', option('MATCH', fc.constantFrom('*', '??t', '[hl]*', '[^s]*', '*:2', 'zset:\\l*', '[a-k]ash', 'x')), 'COUNT', '1000'),
  words('KEYS', fc.constantFrom('*', 's?t', '*:2', '[l-s]*', '\\set')),
  words('DBSIZE'),
];

const server = [
  words('PING', option(value)),
  words('ECHO', value),
  words('SELECT', fc.constantFrom('0', '99', 'x')),
  words('PUBLISH', 'nobody', value),
  words('WAIT', '0', fc.constantFrom('1', '-1', 'x')),
  words('CLIENT', fc.constantFrom('GETNAME', 'nosuch')),
  words('MULTI'),
  words('EXEC'),
  words('DISCARD'),
  words('NOSUCH', some(field)),
];

/** What scripts answer, and how they fail. */
const SCRIPTS = [
  "return {1, 2.7, -2.7, 1e15, 'a', true, false, {ok = 'FINE'}, {err = 'BAD thing'}, {'nested', {}}, nil, 3}",
  'return 3.999',
  'return false',
  'return nil',
  'return {1, nil, 3}',
  'return {KEYS, ARGV, #KEYS, #ARGV}',
  "return tostring(3.0) .. ' ' .. 7 / 2 .. ' ' .. 2 ^ 53 .. ' ' .. 1e15 .. ' ' .. 10 % 3 .. ' ' .. tonumber('0x10') .. ' ' .. tostring(1e100)",
  'return {ARGV[1] + 1, ARGV[1] * 1000, tostring(ARGV[1] / 1000), math.floor(-1.5)}',
  "return redis.call('SET', KEYS[1], ARGV[1] / 10)",
  "redis.call('SET', KEYS[1], 1 / 3) return redis.call('GET', KEYS[1])",
  "redis.call('SET', KEYS[1], 2 ^ 60) return redis.call('GET', KEYS[1])",
  "return redis.pcall('HGET', KEYS[1], ARGV[1])",
  "local reply = redis.pcall('HGET', KEYS[1], ARGV[1]) return {type(reply), type(reply) == 'table' and reply.err or reply}",
  "local found, reply = pcall(redis.call, 'GET', KEYS[1]) return {tostring(found), type(reply) == 'table' and reply.err or reply}",
  "return redis.call('HGETALL', KEYS[1])",
  "return {redis.call('ZRANGE', KEYS[1], 0, -1, 'WITHSCORES'), redis.call('TYPE', KEYS[1])}",
  "return redis.call('ZSCORE', KEYS[1], ARGV[1])",
  "return {redis.call('TYPE', KEYS[1]).ok, redis.call('EXISTS', KEYS[1])}",
  "return redis.status_reply('QUITE FINE')",
  "return {redis.error_reply('one'), redis.error_reply('MY own'), redis.error_reply('-MY own'), redis.error_reply(1), redis.status_reply()}",
  "return redis.call('NOSUCH')",
  "return redis.call('GET')",
  'return redis.call()',
  'return redis.call({})',
  "return redis.call('MULTI')",
  "return redis.call('EVAL', 'return 1', 0)",
  "return redis.call('SUBSCRIBE', 'a')",
  'return nosuch',
  'nosuch = 1',
  'return 1 + nil',
  'local t = nil\nreturn t.field',
  "error('thrown')",
  "error({err = 'MY error'})",
  'error()',
  'return return',
  'for',
  "local text = '' for kind in pairs({trace = 1, record = 2, x = 3, ['a b'] = 4}) do text = text .. kind .. ';' end return text",
  "return {string.match('12 34 rest', '^%d+ (%d+) '), string.gsub('org:{*}:x', '%*', 'abc'), string.find('a,b', ',', 1, true)}",
  "return cjson.encode({1, 2.5, {a = 'x/y\"\\n\\1', b = cjson.null}, {}, true, 'é'})",
  "return cjson.encode({[1] = 'a', [3] = 'c'})",
  'return cjson.encode({key = 1e20, other = 1 / 3 })',
  "return cjson.encode({[1] = 'a', [100] = 'c'})",
  'local d = cjson.decode(\'{"a":{"b":[1,2.5,null,true,"x\\\\u00e9é"]},"n":null}\') return {d.a.b[1], tostring(d.a.b[2]), tostring(d.a.b[4]), d.a.b[5], tostring(d.n == cjson.null), type(d.n), #d.a.b}',
  'return {unpack(ARGV)}',
  "return select('#', unpack(KEYS, 1, 3))",
  'local t = {} for i = 1, 9000 do t[i] = i end return unpack(t)',
  "table.sort(ARGV) return table.concat(ARGV, ',')",
];

const runs = fc
  .tuple(fc.constantFrom(...SCRIPTS), key, fc.array(value, { maxLength: 3 }))
  .map(([script, name, args]) => ['EVAL', script, '1', name, ...args]);
const scripts = [
  words('EVAL', 'return 1', fc.constantFrom('0', '1', '-1', 'x')),
  words('EVALSHA', 'e0e1f9fabfc9d4800c877a703b823ac0578ff8db', '0'),
  words('SCRIPT', fc.constantFrom('LOAD', 'EXISTS'), fc.constantFrom('return 2', 'e0e1f9fabfc9d4800c877a703b823ac0578ff8db')),
];

/** Some that have a word too few or too many. */
const wrong = (command: Words): Words =>
  fc.oneof(
    { weight: 20, arbitrary: command },
    { weight: 1, arbitrary: command.map((all) => (all.length > 1 ? all.slice(0, -1) : all)) },
    { weight: 1, arbitrary: fc.tuple(command, fc.constantFrom('x', '1', '')).map(([all, more]) => [...all, more]) },
  );

const GROUPS: readonly Words[] = [
  ...[strings, hashes, lists, sets, sortedSets, lexicalSets, streams, keys, scripts].map((group) => wrong(fc.oneof(...group))),
  fc.oneof(...server),
  runs,
];

/** Commands of a few groups: those of many would seldom meet. */
export const redisCommands: fc.Arbitrary<Commands> = fc
  .subarray([...GROUPS], { minLength: 1, maxLength: 3 })
  .chain((groups) => fc.array(fc.oneof(...groups), { minLength: 1, maxLength: 60, size: 'max' }));

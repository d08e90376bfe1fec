import { STREAM } from '../keyspace.js';
import { NULL_ARRAY, RedisError, syntaxError, type Reply } from '../reply.js';
import { compareIds, idText, Stream, type StreamId } from '../stream.js';
import { inPairs, integer, word, type Call, type Command, type Commands } from './command.js';

const FIRST: StreamId = { ms: 0, sequence: 0 };
const LAST: StreamId = { ms: Infinity, sequence: Infinity };

/** @param sequence of an id that has none */
function parseId(text: string, sequence: number): StreamId {
  const [, ms, given] = /^(\d+)(?:-(\d+))?$/.exec(text) ?? [];
  if (ms === undefined) throw new RedisError('ERR Invalid stream ID specified as stream command argument');
  return { ms: Number(ms), sequence: given === undefined ? sequence : Number(given) };
}

/** One end of a range, and whether an entry there is outside. */
function parseBound(text: string, isMin: boolean): { readonly id: StreamId; readonly isExclusive: boolean } {
  if (text === '-') return { id: FIRST, isExclusive: false };
  if (text === '+') return { id: LAST, isExclusive: false };
  const isExclusive = text.startsWith('(');
  const id = parseId(isExclusive ? text.slice(1) : text, isMin ? 0 : Infinity);
  if (isExclusive && !isMin && compareIds(id, FIRST) === 0) throw new RedisError('ERR invalid end ID for the interval');
  return { id, isExclusive };
}

function add({ args, keys }: Call): Reply {
  const [key = ''] = args;
  let at = 1;
  let maxEntries = Infinity;
  if (word(args, at).toUpperCase() === 'MAXLEN') {
    at += 1;
    // About as many: Redis leaves a few more.
    if (args[at] === '~' || args[at] === '=') at += 1;
    maxEntries = integer(word(args, at));
    if (maxEntries < 0) throw new RedisError('ERR The MAXLEN argument must be >= 0.');
    at += 1;
  }
  const idGiven = word(args, at);
  const given = idGiven === '*' ? null : parseId(idGiven, 0);
  const fields = args.slice(at + 1);
  if (fields.length === 0 || inPairs(fields) === null) throw new RedisError("ERR wrong number of arguments for 'xadd' command");
  if (given !== null && compareIds(given, FIRST) === 0) throw new RedisError('ERR The ID specified in XADD must be greater than 0-0');
  const { lastId } = keys.find(key, STREAM) ?? new Stream();
  if (given !== null && compareIds(given, lastId) <= 0)
    throw new RedisError('ERR The ID specified in XADD is equal or smaller than the target stream top item');
  const { nowMs } = keys;
  const id = given ?? (nowMs > lastId.ms ? { ms: nowMs, sequence: 0 } : { ms: lastId.ms, sequence: lastId.sequence + 1 });
  const stream = keys.open(key, STREAM);
  stream.add({ id, fields });
  stream.trim(maxEntries);
  return idText(id);
}

function range(isReversed: boolean): Command {
  return {
    arity: -4,
    run: ({ args, keys }) => {
      const [key = '', first = '', second = '', ...options] = args;
      const min = parseBound(isReversed ? second : first, true);
      const max = parseBound(isReversed ? first : second, false);
      let count = Infinity;
      for (let at = 0; at < options.length; at += 2) {
        if (word(options, at).toUpperCase() !== 'COUNT') throw syntaxError();
        count = Math.max(0, integer(word(options, at + 1)));
      }
      const stream = keys.find(key, STREAM);
      if (stream === undefined) return [];
      if (count === 0) return NULL_ARRAY;
      const isWithin = (id: StreamId): boolean => {
        const [fromMin, toMax] = [compareIds(id, min.id), compareIds(max.id, id)];
        return fromMin >= (min.isExclusive ? 1 : 0) && toMax >= (max.isExclusive ? 1 : 0);
      };
      const found = stream.entries.filter(({ id }) => isWithin(id));
      if (isReversed) found.reverse();
      return found.slice(0, count).map(({ id, fields }) => [idText(id), fields]);
    },
  };
}

export const STREAM_COMMANDS: Commands = {
  xadd: { arity: -5, effect: 'grow', run: add },
  xrange: range(false),
  xrevrange: range(true),
  xlen: { arity: 2, run: ({ args, keys }) => keys.find(word(args, 0), STREAM)?.entries.length ?? 0 },
};

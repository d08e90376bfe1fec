import { SORTED_SET } from '../keyspace.js';
import { Double, Pairs, RedisError, syntaxError, type Reply } from '../reply.js';
import type { ScoredMember, SortedSet } from '../sorted-set.js';
import { double, inPairs, integer, placesOf, positive, word, type Call, type Command, type Commands } from './command.js';

type By = 'place' | 'score' | 'lex';

/** The indexes of a range in a set, for `slice`. */
type Range = (set: SortedSet) => readonly [from: number, to: number];

/** Where a bound lies in a set: how many members are before it. */
type Bound = (set: SortedSet) => number;

/** @param isMax members at the bound are before it, unless it is exclusive */
function scoreBound(text: string, isMax: boolean): Bound {
  const isExclusive = text.startsWith('(');
  const number = isExclusive ? text.slice(1) : text;
  const bound = number === '' ? 0 : double(number, 'ERR min or max is not a float');
  return (set) => set.countWhile(isMax === isExclusive ? ({ score }) => score < bound : ({ score }) => score <= bound);
}

function lexBound(text: string, isMax: boolean): Bound {
  if (text === '-') return () => 0;
  if (text === '+') return ({ size }) => size;
  if (!/^[([]/.test(text)) throw new RedisError('ERR min or max not valid string range item');
  const bound = text.slice(1);
  return (set) => set.countWhile(isMax === text.startsWith('(') ? ({ member }) => member < bound : ({ member }) => member <= bound);
}

/** Throws for what are no bounds. */
function parseRange(by: By, min: string, max: string): Range {
  if (by === 'place') {
    const [start, stop] = [integer(min), integer(max)];
    return ({ size }) => placesOf(start, stop, size);
  }
  const parse = by === 'score' ? scoreBound : lexBound;
  const [from, to] = [parse(min, false), parse(max, true)];
  return (set) => [from(set), Math.max(from(set), to(set))];
}

const EMPTY = SORTED_SET.create();

function scored(items: readonly ScoredMember[]): Pairs {
  return new Pairs(
    'nested',
    items.map(({ member, score }) => [member, new Double(score)]),
  );
}

interface RangeForm {
  readonly by: By;
  readonly isReversed: boolean;
  /** The options that say so are known too. */
  readonly takesAll: boolean;
}

function rangeCommand(form: RangeForm): Command {
  return {
    arity: -4,
    run: ({ args, keys }) => {
      const [key = '', start = '', stop = ''] = args;
      let { by, isReversed } = form;
      let limit: readonly [offset: number, count: number] = [0, -1];
      let withScores = false;
      for (let at = 3; at < args.length; at += 1) {
        const option = word(args, at).toUpperCase();
        if (option === 'WITHSCORES' && form.by !== 'lex') withScores = true;
        else if (option === 'LIMIT' && at + 2 < args.length && (form.takesAll || form.by !== 'place')) {
          limit = [integer(word(args, at + 1)), integer(word(args, at + 2))];
          at += 2;
        } else if (form.takesAll && option === 'REV') isReversed = true;
        else if (form.takesAll && option === 'BYSCORE' && by !== 'lex') by = 'score';
        else if (form.takesAll && option === 'BYLEX' && by !== 'score') by = 'lex';
        else throw syntaxError();
      }
      const [offset, count] = limit;
      if (count !== -1 && by === 'place')
        throw new RedisError('ERR syntax error, LIMIT is only supported in combination with either BYSCORE or BYLEX');
      if (withScores && by === 'lex') throw new RedisError('ERR syntax error, WITHSCORES not supported in combination with BYLEX');
      const range = isReversed && by !== 'place' ? parseRange(by, stop, start) : parseRange(by, start, stop);
      const set = keys.find(key, SORTED_SET) ?? EMPTY;
      const [from, to] = range(set);
      let items = isReversed && by === 'place' ? set.slice(Math.max(0, set.size - to), Math.max(0, set.size - from)) : set.slice(from, to);
      if (isReversed) items = items.toReversed();
      if (by !== 'place') items = offset < 0 ? [] : items.slice(offset, count < 0 ? undefined : offset + count);
      return withScores ? scored(items) : items.map(({ member }) => member);
    },
  };
}

function removeRange(by: By): Command {
  return {
    arity: 4,
    effect: 'write',
    run: ({ args, keys }) => {
      const [key = '', min = '', max = ''] = args;
      const range = parseRange(by, min, max);
      const set = keys.find(key, SORTED_SET) ?? EMPTY;
      const items = set.slice(...range(set));
      for (const { member } of items) set.delete(member);
      keys.dropEmpty(key);
      return items.length;
    },
  };
}

function countRange(by: By): Command {
  return {
    arity: 4,
    run: ({ args, keys }) => {
      const range = parseRange(by, word(args, 1), word(args, 2));
      const [from, to] = range(keys.find(word(args, 0), SORTED_SET) ?? EMPTY);
      return to - from;
    },
  };
}

function add({ args, keys }: Call): Reply {
  const [key = '', ...words] = args;
  const options = new Set<string>();
  while (/^(?:NX|XX|GT|LT|CH|INCR)$/i.test(words[0] ?? '')) options.add((words.shift() ?? '').toUpperCase());
  const has = (option: string): boolean => options.has(option);
  const pairs = inPairs(words);
  if (pairs === null || pairs.length === 0) throw syntaxError();
  if (has('NX') && has('XX')) throw new RedisError('ERR XX and NX options at the same time are not compatible');
  if ((has('GT') && has('LT')) || (has('NX') && (has('GT') || has('LT'))))
    throw new RedisError('ERR GT, LT, and/or NX options at the same time are not compatible');
  if (has('INCR') && pairs.length > 1) throw new RedisError('ERR INCR option supports a single increment-element pair');
  const scores = pairs.map(([score, member]) => [double(score), member] as const);

  const set = has('XX') ? (keys.find(key, SORTED_SET) ?? EMPTY) : keys.open(key, SORTED_SET);
  let [added, updated] = [0, 0];
  let incremented: number | null = null;
  for (const [given, member] of scores) {
    const before = set.score(member);
    if (before === undefined ? has('XX') : has('NX')) continue;
    const score = has('INCR') && before !== undefined ? before + given : given;
    if (Number.isNaN(score)) throw new RedisError('ERR resulting score is not a number (NaN)');
    if (before !== undefined && ((has('GT') && score <= before) || (has('LT') && score >= before))) continue;
    set.set(member, score);
    incremented = score;
    if (before === undefined) added += 1;
    else if (before !== score) updated += 1;
  }
  if (has('INCR')) return incremented === null ? null : new Double(incremented);
  return has('CH') ? added + updated : added;
}

function pop(isMax: boolean): Command {
  return {
    arity: -2,
    effect: 'write',
    run: ({ args, keys }) => {
      const [key = '', countText, ...more] = args;
      if (more.length > 0) throw syntaxError();
      const count = countText === undefined ? 1 : positive(countText);
      const set = keys.find(key, SORTED_SET) ?? EMPTY;
      const items = isMax ? set.slice(Math.max(0, set.size - count), set.size).toReversed() : set.slice(0, count);
      for (const { member } of items) set.delete(member);
      keys.dropEmpty(key);
      // Without a count there is one, and no pair around it.
      return countText === undefined ? items.flatMap(({ member, score }) => [member, new Double(score)]) : scored(items);
    },
  };
}

const scoreOf = (set: SortedSet | undefined, member: string): Double | null => {
  const score = set?.score(member);
  return score === undefined ? null : new Double(score);
};

export const SORTED_SET_COMMANDS: Commands = {
  zadd: { arity: -4, effect: 'grow', run: add },
  zrem: {
    arity: -3,
    effect: 'write',
    run: ({ args, keys }) => {
      const [key = '', ...members] = args;
      const set = keys.find(key, SORTED_SET);
      const removed = members.filter((member) => set?.delete(member) === true).length;
      keys.dropEmpty(key);
      return removed;
    },
  },
  zcard: { arity: 2, run: ({ args, keys }) => keys.find(word(args, 0), SORTED_SET)?.size ?? 0 },
  zscore: { arity: 3, run: ({ args, keys }) => scoreOf(keys.find(word(args, 0), SORTED_SET), word(args, 1)) },
  zmscore: {
    arity: -3,
    run: ({ args, keys }) => {
      const set = keys.find(word(args, 0), SORTED_SET);
      return args.slice(1).map((member) => scoreOf(set, member));
    },
  },
  zrank: { arity: 3, run: ({ args, keys }) => keys.find(word(args, 0), SORTED_SET)?.rank(word(args, 1)) ?? null },
  zcount: countRange('score'),
  zlexcount: countRange('lex'),
  zrange: rangeCommand({ by: 'place', isReversed: false, takesAll: true }),
  zrevrange: rangeCommand({ by: 'place', isReversed: true, takesAll: false }),
  zrangebyscore: rangeCommand({ by: 'score', isReversed: false, takesAll: false }),
  zrevrangebyscore: rangeCommand({ by: 'score', isReversed: true, takesAll: false }),
  zrangebylex: rangeCommand({ by: 'lex', isReversed: false, takesAll: false }),
  zrevrangebylex: rangeCommand({ by: 'lex', isReversed: true, takesAll: false }),
  zremrangebyrank: removeRange('place'),
  zremrangebyscore: removeRange('score'),
  zremrangebylex: removeRange('lex'),
  zpopmin: pop(false),
  zpopmax: pop(true),
};

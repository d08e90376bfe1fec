import { InvalidArgumentError, type Command } from 'commander';
import { unsetLimits, type Dialling, type DialLimits } from '../gateway/model/dialling.js';
import { E164_FORM, parseE164, type E164 } from '../gateway/model/e164.js';
import type { OrgRecord } from '../gateway/model/records.js';
import type { OrgChange, Stores } from '../gateway/ports/stores.js';
import {
  CommandFailure,
  findOrg,
  limitArgument,
  overStores,
  printResult,
  type JsonFlag,
  type LimitArgument,
  type StoreIo,
} from './command.js';

type Prices = Dialling['prices'];
type TrunkLimits = { readonly [Limit in keyof DialLimits]?: LimitArgument };
type ChangeOrg = (stores: Pick<Stores, 'orgs' | 'audit'>, idOrName: string, change: OrgChange) => Promise<OrgRecord>;

interface DiallingFlags extends JsonFlag {
  readonly prices?: Prices;
  readonly callers?: readonly E164[];
  readonly maxCallsPerSecond?: number;
  readonly maxConcurrentCalls?: number;
  readonly maxCallsPerDay?: number;
  readonly maxCostPerDay?: number;
  readonly maxCallsPerSecondPerTrunk?: LimitArgument;
  readonly maxConcurrentCallsPerTrunk?: LimitArgument;
  readonly maxCallsPerDayPerTrunk?: LimitArgument;
}

const MAX_PREFIXES = 2_000;
const MAX_CALLERS = 1_000;
/** What was never set allows nothing. */
const NOTHING: Dialling = {
  prices: {},
  callers: [],
  max_calls_per_second: 0,
  max_concurrent_calls: 0,
  max_calls_per_day: 0,
  max_cost_per_day: 0,
};

/** `trunkline org set-dialling` and `disable-dialling`. */
export function addDialling(parent: Command, io: StoreIo, changeOrg: ChangeOrg, shown: (org: OrgRecord) => object): void {
  const set = parent
    .command('set-dialling')
    .description('let an organization place calls; omitted settings stay, and allow nothing until they are set (docs/outbound.md)')
    .argument('<org>', 'its id or its name')
    .option(
      '--prices <list>',
      'price of a minute by prefix, such as +49=0.02,+1=0.01,+1900=never; the longest prefix counts',
      pricesArgument,
    )
    .option('--callers <list>', 'numbers that calls may come from, which you have verified, comma-separated, or "none"', callersArgument)
    .option('--max-calls-per-second <n>', 'new calls a second, 0 to 10000', amount(10_000, true))
    .option('--max-concurrent-calls <n>', 'calls at once, 0 to 100000', amount(100_000, true))
    .option('--max-calls-per-day <n>', 'calls in a day (UTC), 0 to 10000000', amount(10_000_000, true))
    .option('--max-cost-per-day <n>', 'cost of a day (UTC), in the currency of the prices', amount(1_000_000, false))
    .option('--max-calls-per-second-per-trunk <n>', 'new calls a second to each trunk, 0 to 10000, or "none"', limitArgument(10_000))
    .option('--max-concurrent-calls-per-trunk <n>', 'calls at once on each trunk, 0 to 100000, or "none"', limitArgument(100_000))
    .option('--max-calls-per-day-per-trunk <n>', 'calls in a day (UTC) to each trunk, 0 to 10000000, or "none"', limitArgument(10_000_000))
    .option('--json', 'print JSON');
  overStores(set, io, async (stores, flags: DiallingFlags, idOrName: string) => {
    const { dialling } = await findOrg(stores, idOrName);
    const { per_trunk: before, ...rest } = dialling ?? NOTHING;
    const ofTrunk = trunkFlags(flags);
    const { prices, callers, maxCallsPerSecond, maxConcurrentCalls, maxCallsPerDay, maxCostPerDay } = flags;
    const change: Partial<Dialling> = {
      ...(prices === undefined ? {} : { prices }),
      ...(callers === undefined ? {} : { callers }),
      ...(maxCallsPerSecond === undefined ? {} : { max_calls_per_second: maxCallsPerSecond }),
      ...(maxConcurrentCalls === undefined ? {} : { max_concurrent_calls: maxConcurrentCalls }),
      ...(maxCallsPerDay === undefined ? {} : { max_calls_per_day: maxCallsPerDay }),
      ...(maxCostPerDay === undefined ? {} : { max_cost_per_day: maxCostPerDay }),
    };
    if (Object.keys({ ...change, ...ofTrunk }).length === 0)
      throw new CommandFailure('nothing to change: set at least one option (--help shows them)');
    const changed = await changeOrg(stores, idOrName, { dialling: { ...rest, ...change, ...perTrunk({ ...before, ...ofTrunk }) } });
    printResult(io, flags, shown(changed), diallingLine(changed));
  });
  const disable = parent
    .command('disable-dialling')
    .description('undo set-dialling: no new call is placed; calls in progress continue')
    .argument('<org>', 'its id or its name')
    .option('--json', 'print JSON');
  overStores(disable, io, async (stores, flags: JsonFlag, idOrName: string) => {
    const changed = await changeOrg(stores, idOrName, { dialling: null });
    printResult(io, flags, shown(changed), diallingLine(changed));
  });
}

function trunkFlags(flags: DiallingFlags): TrunkLimits {
  const { maxCallsPerSecondPerTrunk: rate, maxConcurrentCallsPerTrunk: calls, maxCallsPerDayPerTrunk: daily } = flags;
  return {
    ...(rate === undefined ? {} : { max_calls_per_second: rate }),
    ...(calls === undefined ? {} : { max_concurrent_calls: calls }),
    ...(daily === undefined ? {} : { max_calls_per_day: daily }),
  };
}

/** What is stored of them: nothing when no limit is left. */
function perTrunk(limits: TrunkLimits): Pick<Dialling, 'per_trunk'> {
  const set = Object.entries(limits).filter(([, limit]) => limit !== 'none');
  return set.length === 0 ? {} : { per_trunk: Object.fromEntries(set) };
}

function diallingLine({ name, dialling }: OrgRecord): string {
  if (dialling === null) return `"${name}": places no calls`;
  const {
    prices,
    callers,
    max_calls_per_second: rate,
    max_concurrent_calls: calls,
    max_calls_per_day: daily,
    max_cost_per_day: cost,
    per_trunk: ofTrunk,
  } = dialling;
  const listed = Object.entries(prices).map(([prefix, price]) => `${prefix} ${price === null ? 'never' : String(price)}`);
  const from = callers.length === 0 ? 'no number' : callers.join(', ');
  const limits = `${String(rate)} calls a second, ${String(calls)} at once, ${String(daily)} a day, cost of a day ${String(cost)}${trunkLine(ofTrunk)}`;
  const missing = unsetLimits(dialling).map((limit) => `--${limit.replaceAll('_', '-')}`);
  const lack = missing.length === 0 ? '' : `; places no calls until ${missing.join(', ')} is set`;
  return `"${name}": calls from ${from} to ${listed.length === 0 ? 'no prefix' : listed.join(', ')}; ${limits}${lack}`;
}

function trunkLine(limits: Partial<DialLimits> = {}): string {
  const { max_calls_per_second: rate, max_concurrent_calls: calls, max_calls_per_day: daily } = limits;
  const shown = [
    [rate, 'calls a second'],
    [calls, 'at once'],
    [daily, 'a day'],
  ].flatMap(([limit, what]) => (limit === undefined ? [] : [`${String(limit)} ${String(what)}`]));
  return shown.length === 0 ? '' : `; on each trunk ${shown.join(', ')}`;
}

function pricesArgument(text: string): Prices {
  const entries = text.split(',').map((part) => part.trim());
  if (entries.length > MAX_PREFIXES) throw new InvalidArgumentError(`at most ${MAX_PREFIXES} of them.`);
  return Object.fromEntries(
    entries.map((entry) => {
      const [, prefix, price] = /^(\+[1-9]\d{0,14})=(never|\d{1,6}(?:\.\d{1,6})?)$/.exec(entry) ?? [];
      if (prefix === undefined || price === undefined)
        throw new InvalidArgumentError(`"${entry}" is not a prefix with its price, such as +49=0.02 or +1900=never.`);
      return [prefix, price === 'never' ? null : Number(price)];
    }),
  );
}

function callersArgument(text: string): readonly E164[] {
  if (text === 'none') return [];
  const numbers = text.split(',').map((part) => {
    const number = parseE164(part);
    if (number === undefined) throw new InvalidArgumentError(`"${part.trim()}" is not ${E164_FORM}.`);
    return number;
  });
  if (numbers.length > MAX_CALLERS) throw new InvalidArgumentError(`at most ${MAX_CALLERS} of them.`);
  return [...new Set(numbers)];
}

function amount(most: number, isWhole: boolean): (text: string) => number {
  const form = isWhole ? /^\d{1,8}$/ : /^\d{1,7}(?:\.\d{1,6})?$/;
  return (text) => {
    if (form.test(text) && Number(text) <= most) return Number(text);
    throw new InvalidArgumentError(`must be ${isWhole ? 'a whole number from ' : ''}0 to ${String(most)}.`);
  };
}

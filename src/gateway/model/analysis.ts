/** What an agent found out, as far as it is what its owner wants to know. */
export interface CheckedAnalysis {
  readonly kept: Readonly<Record<string, unknown>>;
  /** What the schema does not have, or with values that are not of their kind. */
  readonly wrong: Readonly<Record<string, unknown>>;
}

/** Checks each data point by the kind that its name has in the agent's `analysis_schema`; without one everything is kept. */
export function checkAnalysis(
  schema: Readonly<Record<string, string>> | null,
  analysis: Readonly<Record<string, unknown>>,
): CheckedAnalysis {
  if (schema === null) return { kept: analysis, wrong: {} };
  const isRight = ([name, value]: [string, unknown]): boolean =>
    Object.hasOwn(schema, name) && (value === null || isOfKind(schema[name] ?? '', value));
  const points = Object.entries(analysis);
  return { kept: Object.fromEntries(points.filter(isRight)), wrong: Object.fromEntries(points.filter((point) => !isRight(point))) };
}

function isOfKind(kind: string, value: unknown): boolean {
  const name = kind.trim();
  switch (name.toLowerCase()) {
    case 'string':
      return typeof value === 'string';
    case 'boolean':
      return typeof value === 'boolean';
    case 'number':
      return typeof value === 'number';
    case 'integer':
      return Number.isInteger(value);
    case 'email':
      return typeof value === 'string' && value.length <= 254 && /^[^\s@]+@[^\s@]+$/.test(value);
    case 'url':
      return typeof value === 'string' && /^https?:\/\//i.test(value) && URL.canParse(value);
    default:
      break;
  }
  if (isTimePattern(name)) return typeof value === 'string' && matchesTime(name, value);
  // A description in words says nothing that can be checked.
  return typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean';
}

const TIME_TOKENS: Readonly<Record<string, { readonly digits: number; readonly least: number; readonly most: number }>> = {
  YYYY: { digits: 4, least: 0, most: 9_999 },
  MM: { digits: 2, least: 1, most: 12 },
  DD: { digits: 2, least: 1, most: 31 },
  HH: { digits: 2, least: 0, most: 23 },
  mm: { digits: 2, least: 0, most: 59 },
  ss: { digits: 2, least: 0, most: 59 },
};
const TOKEN = /YYYY|MM|DD|HH|mm|ss/g;

/** `YYYY-MM-DD HH:mm:ss` and the like: tokens with separators between them. */
function isTimePattern(kind: string): boolean {
  return /^(?:YYYY|MM|DD|HH|mm|ss)(?:[-/.:, TZ]|YYYY|MM|DD|HH|mm|ss)*$/.test(kind);
}

function matchesTime(pattern: string, value: string): boolean {
  const parts = new Map<string, number>();
  let at = 0;
  let from = 0;
  for (const match of pattern.matchAll(TOKEN)) {
    const { digits, least, most } = TIME_TOKENS[match[0]] ?? { digits: 0, least: 0, most: 0 };
    const literal = pattern.slice(from, match.index);
    const text = value.slice(at + literal.length, at + literal.length + digits);
    if (!value.startsWith(literal, at) || !/^\d+$/.test(text) || text.length !== digits) return false;
    if (Number(text) < least || Number(text) > most) return false;
    parts.set(match[0], Number(text));
    at += literal.length + digits;
    from = match.index + match[0].length;
  }
  return value.slice(at) === pattern.slice(from) && isDay(parts);
}

/** Not the 31st of a short month; any year when the pattern has none. */
function isDay(parts: ReadonlyMap<string, number>): boolean {
  const [month, day] = [parts.get('MM'), parts.get('DD')];
  if (month === undefined || day === undefined) return true;
  return new Date(Date.UTC(parts.get('YYYY') ?? 2_000, month - 1, day)).getUTCDate() === day;
}

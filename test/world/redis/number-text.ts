/** As C's `%.<precision>g` writes a number: Redis 7.0 writes scores with 17 digits, its cjson numbers with 14. */
export function formatDouble(value: number, precision = 17): string {
  if (value === 0) return Object.is(value, -0) ? '-0' : '0';
  if (Number.isNaN(value)) return 'nan';
  if (!Number.isFinite(value)) return value > 0 ? 'inf' : '-inf';
  if (Number.isSafeInteger(value) && Math.abs(value) < 10 ** Math.min(precision, 15)) return String(value);
  const [digits = '', power = ''] = value.toExponential(precision - 1).split('e');
  const exponent = Number(power);
  const withoutZeros = (text: string): string => (text.includes('.') ? text.replace(/\.?0+$/, '') : text);
  if (exponent >= -4 && exponent < precision) return withoutZeros(value.toPrecision(precision));
  return `${withoutZeros(digits)}e${exponent < 0 ? '-' : '+'}${String(Math.abs(exponent)).padStart(2, '0')}`;
}

/** A whole number as Redis reads it; `undefined`: it is none, or one that JavaScript cannot hold. */
export function parseInteger(text: string): number | undefined {
  if (!/^(?:0|-?[1-9]\d*)$/.test(text)) return undefined;
  const value = Number(text);
  return Number.isSafeInteger(value) ? value : undefined;
}

/** A score; `undefined`: it is none. */
export function parseDouble(text: string): number | undefined {
  const infinite = /^([+-]?)inf(?:inity)?$/i.exec(text);
  if (infinite !== null) return infinite[1] === '-' ? -Infinity : Infinity;
  return /^[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?$/i.test(text) ? Number(text) : undefined;
}

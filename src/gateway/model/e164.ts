/** A phone number in E.164 form with its plus: `+15551234567`. */
export type E164 = string & { readonly __brand: 'E164' };

/** What a message says of a text that is none. */
export const E164_FORM = 'a phone number in E.164 form, such as +15551234567: country code and number, without (0)';

/** Visual separators (RFC 3966 §5.1.1). */
const SEPARATORS = '[-.()]*';
/** Before the plus or the first digit no separator but a parenthesis has a meaning. */
const START = String.raw`(?:\((?:${SEPARATORS}\+)?${SEPARATORS}|\+${SEPARATORS})?`;
/** A zero in parentheses is dialled within the country only. */
const DIGIT = `(?:${SEPARATORS}[1-9]|(?:${SEPARATORS}[-.)])?0)`;
/** Behind a point, it would be of a number that a spreadsheet kept as one with decimals. */
const LAST_DIGIT = `(?:(?:${SEPARATORS}[-()])?[1-9]|(?:${SEPARATORS}[-)])?0)`;

/**
 * What every text has that `parseE164` takes, for programs of others too: no lookahead, and no backtracking that grows faster than the text.
 * Which countries have numbers that begin with 0 is not in it.
 */
export const E164_PATTERN = String.raw`^\s*${START}[1-9]${DIGIT}{5,13}(?:${LAST_DIGIT}|${DIGIT}[-.()]+)\s*$`;

const FORM = new RegExp(E164_PATTERN);

/** Country codes of two digits (ITU-T E.164, list of assigned country codes); +1 and +7 have one digit, all others three. */
const TWO_DIGITS = new Set([
  ...['20', '27', '30', '31', '32', '33', '34', '36', '39', '40', '41', '43', '44', '45', '46', '47', '48', '49', '51', '52', '53', '54'],
  ...['55', '56', '57', '58', '60', '61', '62', '63', '64', '65', '66', '81', '82', '84', '86', '90', '91', '92', '93', '94', '95', '98'],
]);
/** Country codes behind which a number may begin with 0 (libphonenumber 9). Behind any other, a 0 is the trunk prefix of that country. */
const ZERO_BEHIND = new Set([
  ...['39', '47', '62', '81', '82', '225', '226', '227', '229', '241', '242', '247', '250', '267', '268', '378', '379', '501', '598'],
  ...['676', '679', '687', '800', '808', '853', '870', '878', '881', '882', '883', '888', '979', '992'],
]);

/**
 * The number in E.164 form, or `undefined` when the text is not one without doubt. Accepts it with or without the plus; a plus that a query
 * string turned into a space; and the visual separators `-().` of RFC 3966 §5.1.1. Never guesses a country code, and never takes a trunk
 * prefix for a digit of the number: `+49(0)30…` would dial another one.
 */
export function parseE164(text: string): E164 | undefined {
  if (!FORM.test(text)) return undefined;
  const digits = text.replace(/\D/g, '');
  return hasTrunkPrefix(digits) ? undefined : (`+${digits}` as E164);
}

function hasTrunkPrefix(digits: string): boolean {
  const { length } = countryCode(digits);
  return digits[length] === '0' && !ZERO_BEHIND.has(digits.slice(0, length));
}

/** The country code of a number without its plus. */
export function countryCode(digits: string): string {
  const isOne = digits.startsWith('1') || digits.startsWith('7');
  return digits.slice(0, isOne ? 1 : TWO_DIGITS.has(digits.slice(0, 2)) ? 2 : 3);
}

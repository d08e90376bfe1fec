import type { Dialling } from '../model/dialling.js';
import type { E164 } from '../model/e164.js';
import type { Route } from '../model/records.js';
import { err, ok, type Result } from '../../lib/result.js';

// Whether a number may be dialled, before anything is counted. Everything is refused that the operator did not allow.

/** Country codes of two digits (ITU-T E.164, list of assigned country codes); +1 and +7 have one digit, all others three. */
const TWO_DIGITS = new Set([
  ...['20', '27', '30', '31', '32', '33', '34', '36', '39', '40', '41', '43', '44', '45', '46', '47', '48', '49', '51', '52', '53', '54'],
  ...['55', '56', '57', '58', '60', '61', '62', '63', '64', '65', '66', '81', '82', '84', '86', '90', '91', '92', '93', '94', '95', '98'],
]);
/** Emergency and service numbers are shorter than this behind their country code; so are those of some small islands. */
const MIN_NATIONAL_DIGITS = 7;
/** +1 911 and the other service codes are no area codes (NANP). */
const SERVICE_CODE = /^[2-9]11/;

/** The price of a minute, or why the number is not dialled: a sentence for the customer. */
export function mayDial(from: Pick<Route, 'org' | 'number'>, to: E164): Result<number, string> {
  const dialling = mayDialFrom(from);
  return dialling.ok ? priceOf(dialling.value, to) : dialling;
}

/** What the organization may dial from this number, or why it may dial nothing. */
export function mayDialFrom({ org, number }: Pick<Route, 'org' | 'number'>): Result<Dialling, string> {
  const { dialling } = org;
  if (org.disabled || !org.sip_enabled) return err('the organization may place no calls now');
  if (dialling === null) return err('the operator has not enabled placing calls for this organization');
  if (number.outbound === null) return err(`${number.phone_number} is not attached for outbound calls`);
  if (!dialling.callers.includes(number.phone_number))
    return err(`the operator has not verified ${number.phone_number} as a number that calls may come from`);
  return ok(dialling);
}

function priceOf(dialling: Dialling, to: E164): Result<number, string> {
  if (isServiceNumber(to)) return err(`${to} is an emergency, service or short number, which are never dialled`);
  const prefix = longestPrefix(Object.keys(dialling.prices), to);
  const price = prefix === undefined ? undefined : dialling.prices[prefix];
  if (price === undefined) return err(`${to} begins with no prefix that the operator has allowed`);
  return price === null ? err(`the operator has forbidden numbers that begin with ${prefix ?? ''}`) : ok(price);
}

function longestPrefix(prefixes: readonly string[], to: E164): string | undefined {
  return prefixes.filter((prefix) => to.startsWith(prefix)).sort((one, other) => other.length - one.length)[0];
}

/** Emergency numbers, service codes, and whatever is too short to be a subscriber's. */
export function isServiceNumber(to: E164): boolean {
  const digits = to.slice(1);
  const isNanp = digits.startsWith('1');
  const codeLength = isNanp || digits.startsWith('7') ? 1 : TWO_DIGITS.has(digits.slice(0, 2)) ? 2 : 3;
  const national = digits.slice(codeLength);
  if (isNanp) return national.length !== 10 || SERVICE_CODE.test(national);
  return national.length < MIN_NATIONAL_DIGITS;
}

import type { Dialling } from '../model/dialling.js';
import { countryCode, type E164 } from '../model/e164.js';
import type { OrgRecord, Route } from '../model/records.js';
import { countryOf, homeCountries } from '../model/number-country.js';
import { err, ok, type Result } from '../../lib/result.js';
import { listedNumbers } from '../model/transfer-list.js';
import { dialledByUser, uriParts, type Target } from './target.js';

// Whether a number may leave, before anything is counted: the one guard of every door. The do-not-call list is asked where calls are counted.

/** How a number leaves. */
export type Door =
  /** A call that we place, or that its trunk places for our REFER. */
  | {
      readonly door: 'placed-call';
      readonly from: Pick<Route, 'org' | 'number'>;
      /** The agent that asks for a transfer has this one; left out: nobody asks. */
      readonly transferList?: unknown;
    }
  /** A call that came in: its carrier is asked to call. */
  | {
      readonly door: 'transfer';
      readonly org: OrgRecord;
      readonly transferList: unknown;
      /** The operator's `calls.transfer_prefixes` and `calls.transfer_hosts`. */
      readonly prefixes: readonly string[];
      readonly hosts: readonly string[];
    };

/** Why it may leave. `price`: of a minute; the call counts against the limits of the organization. */
export type Grant = { readonly by: 'price'; readonly price: number } | { readonly by: 'transfer-list' | 'prefix' | 'host' };

/** Emergency and service numbers are shorter than this behind their country code; so are those of some small islands. */
const MIN_NATIONAL_DIGITS = 7;
/** +1 911 and the other service codes are no area codes (NANP), nor is what begins with 0 or 1. */
const NO_AREA_CODE = /^(?:[2-9]11|[01])/;

const SERVICE = (number: E164): string => `${number} is an emergency, service or short number, which are never dialled`;
const NOT_LISTED = "the target is not in the agent's transfer_list";
const FORBIDDEN = (prefix: string): string => `the operator has forbidden numbers that begin with ${prefix}`;

/** Why the target may be reached through this door, or a sentence for the customer why not. */
export function mayLeave(target: Target, door: Door): Result<Grant, string> {
  if (target.kind === 'number' && isServiceNumber(target.number)) return err(SERVICE(target.number));
  if (door.door === 'transfer') return mayTransfer(target, door);
  if (target.kind === 'uri') return err('a call that we placed reaches numbers only, no SIP URI');
  if (listedNumbers(door.transferList)?.includes(target.number) === false) return err(NOT_LISTED);
  const dialling = mayDialFrom(door.from);
  return dialling.ok ? byPrice(dialling.value, target.number) : dialling;
}

/** What the organization may dial from this number, or why it may dial nothing. */
export function mayDialFrom({ org, number }: Pick<Route, 'org' | 'number'>): Result<Dialling, string> {
  const dialling = mayDialAtAll(org);
  if (!dialling.ok) return dialling;
  if (number.outbound === null) return err(`${number.phone_number} is not attached for outbound calls`);
  if (!dialling.value.callers.includes(number.phone_number))
    return err(`the operator has not verified ${number.phone_number} as a number that calls may come from`);
  return dialling;
}

function mayDialAtAll({ disabled, sip_enabled: isEnabled, dialling }: OrgRecord): Result<Dialling, string> {
  if (disabled || !isEnabled) return err('the organization may place no calls now');
  return dialling === null ? err('the operator has not enabled placing calls for this organization') : ok(dialling);
}

type TransferDoor = Extract<Door, { door: 'transfer' }>;

function mayTransfer(target: Target, door: TransferDoor): Result<Grant, string> {
  const { org, transferList, prefixes } = door;
  const listed = listedNumbers(transferList);
  if (target.kind === 'uri') {
    if (listed !== null) return err("the agent's transfer_list names numbers only, no SIP URI");
    return mayReferTo(target.uri, door);
  }
  const { number } = target;
  const forbidden = forbiddenPrefix(org.dialling, number);
  if (forbidden !== undefined) return err(FORBIDDEN(forbidden));
  if (listed !== null) return listed.includes(number) ? ok({ by: 'transfer-list' }) : err(NOT_LISTED);
  if (prefixes.some((prefix) => number.startsWith(prefix))) return ok({ by: 'prefix' });
  const dialling = mayDialAtAll(org);
  const priced = dialling.ok ? byPrice(dialling.value, number) : dialling;
  if (priced.ok) return priced;
  return err(
    "a transfer reaches what the agent's transfer_list names, what the organization may dial (org set-dialling) and what begins with one " +
      `of calls.transfer_prefixes; ${priced.error}`,
  );
}

/** Whether the carrier may be asked to call a SIP URI: at a host of the operator's list, but no emergency, short or forbidden number there. */
function mayReferTo(uri: string, { org, hosts }: TransferDoor): Result<Grant, string> {
  const { user, host, parameters } = uriParts(uri);
  if (!hosts.some((one) => one.toLowerCase() === host.toLowerCase())) return err(`the host ${host} is not in calls.transfer_hosts`);
  // It would lead past the host (RFC 3261 §19.1.1).
  if (/;\s*maddr\s*=/i.test(parameters)) return err('a SIP URI with maddr leads past its host');
  const dialled = dialledByUser(user);
  if (!dialled.ok) return dialled;
  if (dialled.value === null) return ok({ by: 'host' });
  const { number, hasPlus } = dialled.value;
  if (hasPlus && isServiceNumber(number)) return err(SERVICE(number));
  const forbidden = forbiddenPrefix(org.dialling, number);
  return forbidden === undefined ? ok({ by: 'host' }) : err(FORBIDDEN(forbidden));
}

function byPrice(dialling: Dialling, to: E164): Result<Grant, string> {
  const prefix = longestPrefix(dialling, to);
  const price = prefix === undefined ? undefined : dialling.prices[prefix];
  if (prefix === undefined || price === undefined) return err(`${to} begins with no prefix that the operator has allowed`);
  if (price === null) return err(FORBIDDEN(prefix));
  const elsewhere = otherCountry(prefix, to);
  return elsewhere === null ? ok({ by: 'price', price }) : err(elsewhere);
}

const NAMES = new Intl.DisplayNames('en', { type: 'region' });

/** A price of a country code alone is not one for the other countries that share it. `null`: it is one for the number. */
function otherCountry(prefix: string, to: E164): string | null {
  if (prefix.slice(1) !== countryCode(to.slice(1))) return null;
  const country = countryOf(to);
  const homes = homeCountries(to);
  if (country === undefined || homes.includes(country)) return null;
  const theirs = homes.map((home) => NAMES.of(home)).join(' and ');
  return `${to} is a number of ${String(NAMES.of(country))}, and the price of ${prefix} is for ${theirs}: a prefix such as ${to.slice(0, prefix.length + 3)} needs a price of its own`;
}

/** `undefined`: none. */
function forbiddenPrefix(dialling: Dialling | null, to: E164): string | undefined {
  const prefix = dialling === null ? undefined : longestPrefix(dialling, to);
  return prefix !== undefined && dialling?.prices[prefix] === null ? prefix : undefined;
}

function longestPrefix({ prices }: Dialling, to: E164): string | undefined {
  return Object.keys(prices)
    .filter((prefix) => to.startsWith(prefix))
    .sort((one, other) => other.length - one.length)[0];
}

/** Emergency numbers, service codes, and whatever is too short to be a subscriber's. */
export function isServiceNumber(to: E164): boolean {
  const digits = to.slice(1);
  const national = digits.slice(countryCode(digits).length);
  if (digits.startsWith('1')) return national.length !== 10 || NO_AREA_CODE.test(national);
  return national.length < MIN_NATIONAL_DIGITS;
}

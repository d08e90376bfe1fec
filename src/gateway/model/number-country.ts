import { parsePhoneNumberFromString } from 'libphonenumber-js/min';
import metadata from 'libphonenumber-js/min/metadata';
import { countryCode, type E164 } from './e164.js';

/** The two-letter code (ISO 3166-1) of the country of a number; `undefined`: no country has numbers that begin so. */
export function countryOf(number: E164): string | undefined {
  return parsePhoneNumberFromString(number)?.country;
}

/**
 * The countries that a price of the country code alone is for. Some codes are shared with countries where calls cost many times as much,
 * such as +1 with those of the Caribbean: libphonenumber names the main one first. Prices of the United States are those of Canada.
 */
export function homeCountries(number: E164): readonly string[] {
  const code = countryCode(number.slice(1));
  const [main] = metadata.country_calling_codes[code] ?? [];
  if (main === undefined) return [];
  return code === '1' ? [main, 'CA'] : [main];
}

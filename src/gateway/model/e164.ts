/** A phone number in E.164 form with its plus: `+15551234567`. */
export type E164 = string & { readonly __brand: 'E164' };

const DIGITS = /^[1-9]\d{6,14}$/;

/**
 * The number in E.164 form, or `undefined` when the text is not one. Accepts it with or without the plus; a plus that a
 * query string turned into a space; and the visual separators `-().` of RFC 3966 §5.1.1. Never guesses a country code.
 */
export function parseE164(text: string): E164 | undefined {
  const digits = text
    .trim()
    .replace(/[-().]/g, '')
    .replace(/^\+/, '');
  return DIGITS.test(digits) ? (`+${digits}` as E164) : undefined;
}
